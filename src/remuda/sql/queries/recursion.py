"""WITH RECURSIVE: which CTEs refer to themselves, how, and their two terms.

The restrictions are PostgreSQL's (``parse_cte.c``): a reference to the query itself stands once, in
the recursive term, and nowhere that would need all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from remuda.datatypes.coercion import common_type, is_comparable
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import QUOTIENT_STEP, VARCHAR, Kind, SqlType, computed_decimal
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    InvalidColumnReference,
    InvalidRecursion,
    NotSupported,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedFunction,
)
from remuda.plan.functions.catalog import AGGREGATE_FUNCTIONS
from remuda.plan.functions.signatures import SCALE_OF_INEXACT
from remuda.plan.logical import Logical, Recursion
from remuda.plan.uses import is_by_chance
from remuda.sql.expressions.calls import function_name
from remuda.sql.queries.relations import CommonTable, Environment
from remuda.sql.queries.search_cycle import with_search
from remuda.sql.queries.set_operations import converted
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import free_references
from remuda.sql.scope.supplied import supplied
from remuda.sql.trees import ast


class Terms(Protocol):
    """A query analyzed but not yet built (see ``queries.Pending``)."""

    @property
    def names(self) -> list[str]: ...

    @property
    def types(self) -> list[SqlType]: ...

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical: ...


EXPECTED_ROWS = 1000.0
WIDE_DECIMAL = SqlType(Kind.DECIMAL, precision=38, scale=16)
"""The type of a decimal whose digits would grow with every round."""
_INEXACT_DECIMAL = computed_decimal(SCALE_OF_INEXACT, QUOTIENT_STEP, 0)
"""The same for quotients and other inexact numbers, which keep PostgreSQL's digits."""
WIDENINGS_MAX = 4


def references(node: ast.Node, name: str) -> Iterator[ast.Table]:
    """The places in ``node`` that mean the CTE ``name`` of an enclosing WITH."""
    pending: list[ast.Node] = [node]
    while pending:
        current = pending.pop()
        clause = current.args.get("with_")
        if clause is not None and any(
            identifier(entry.args["alias"].this) == name for entry in clause.expressions
        ):
            continue
        if isinstance(current, ast.Table) and _names(current, name):
            yield current
        pending += list(current.children())


def _names(table: ast.Table, name: str) -> bool:
    return (
        isinstance(table.this, ast.Identifier)
        and table.args.get("db") is None
        and identifier(table.this) == name
    )


def in_order(context: Context, entries: Sequence[ast.Node]) -> list[ast.Node]:
    """The CTEs of WITH RECURSIVE, those that others read before these."""
    names = [identifier(entry.args["alias"].this) for entry in entries]
    needs = [
        [other for other in range(len(entries)) if other != at and _reads(entry, names[other])]
        for at, entry in enumerate(entries)
    ]
    done: list[int] = []
    left = list(range(len(entries)))
    while left:
        ready = [at for at in left if all(other in done for other in needs[at])]
        if not ready:
            raise context.error(
                NotSupported,
                "mutual recursion between WITH items is not implemented",
                entries[left[0]].args["alias"],
                hint="Write one recursive query whose rows say which of the two they belong to.",
            )
        done.append(ready[0])
        left.remove(ready[0])
    return [entries[at] for at in done]


def _reads(entry: ast.Node, name: str) -> bool:
    return next(references(entry.this, name), None) is not None


def is_recursive(entry: ast.Node) -> bool:
    return _reads(entry, identifier(entry.args["alias"].this))


class RecursionBinder:
    """One CTE that refers to itself."""

    def __init__(
        self,
        context: Context,
        name: str,
        common: CommonTable,
        analyze: Callable[[ast.Node, Environment], Terms],
    ) -> None:
        """``analyze`` reads a query."""
        self.context = context
        self.name = name
        self.common = common
        self.analyze = analyze

    def bind(self, search: ast.Search | None = None) -> Callable[[], Logical]:
        """The maker of the relation for each place that reads it; ``search`` is the clause SEARCH
        or CYCLE."""
        context, name = self.context, self.name
        union = _form(context, name, self.common.node)
        _check(context, name, union)
        if search is not None:
            names = self.analyze(union.args["this"], self.common.environment).names
            union, names = with_search(context, name, self._column_names(names), union, search)
            self.common.columns = [ast.name(column) for column in names]
        columns, base, step = self._terms(union)
        free = {**free_references(base), **free_references(step)}
        if free and (is_by_chance(base) or is_by_chance(step)):
            raise context.unsupported(
                "a recursive query that refers to columns of the query around it and to random "
                "values",
                union,
                hint="Compute the random values outside of the recursive query.",
            )
        distinct = bool(union.args.get("distinct"))
        if distinct:
            for column in columns:
                if not is_comparable(column.type):
                    raise context.error(
                        UndefinedFunction,
                        "could not identify an equality operator for type "
                        + type_name(column.type),
                        union,
                        hint="UNION ALL compares no rows.",
                    )
        relation = context.unique(f"recursive {name}")
        definition = Recursion(name, self._working, base, step, distinct)
        return lambda: supplied(
            context,
            relation,
            columns,
            rows=EXPECTED_ROWS,
            definition=definition,
            outer=[free[column] for column in sorted(free)],
        )

    def _terms(self, union: ast.Union) -> tuple[list[Column], Logical, Logical]:
        """Columns, base and step, of the same types."""
        context, environment = self.context, self.common.environment
        self._working = context.unique(f"working table of {self.name}")
        targets: list[SqlType] | None = None
        for _ in range(WIDENINGS_MAX):
            terms = self.analyze(union.args["this"], environment)
            types = [VARCHAR if t.kind is Kind.NULL else t for t in terms.types]
            targets = types if targets is None else targets
            base = converted(context, terms.build(targets), targets)
            columns = [
                Column(column, found, nullable=True)
                for column, found in zip(self._column_names(terms.names), targets, strict=True)
            ]
            inner = Environment(dict(environment.tables), environment.parent)
            inner.tables[self.name] = CommonTable(
                self.common.node,
                [],
                environment,
                make=partial(supplied, context, self._working, columns),
            )
            step = self.analyze(union.args["expression"], inner)
            wider = self._overall(union, targets, step.types)
            if wider == targets:
                return columns, base, converted(context, step.build(targets), targets)
            targets = wider
        raise context.error(
            TypeMismatch,
            f'the column types of recursive query "{self.name}" grow with every round',
            union,
            hint="Cast the columns of both terms to one type.",
        )

    def _column_names(self, names: Sequence[str]) -> list[str]:
        given = self.common.columns
        if len(given) > len(names):
            raise self.context.error(
                InvalidColumnReference,
                f'WITH query "{self.name}" has {len(names)} columns available but '
                f"{len(given)} columns specified",
                given[len(names)],
            )
        return [identifier(column) for column in given] + list(names[len(given) :])

    def _overall(
        self, union: ast.Union, base: Sequence[SqlType], step: Sequence[SqlType]
    ) -> list[SqlType]:
        """The types of both terms together; they differ from the base's only in length or scale."""
        if len(base) != len(step):
            raise self.context.error(
                SqlSyntaxError,
                "each UNION query must have the same number of columns",
                union.args["expression"],
            )
        overall: list[SqlType] = []
        for index, (have, more) in enumerate(zip(base, step, strict=True)):
            both = common_type([have, more])
            if both == have:
                overall.append(have)
            elif both is not None and have.is_text and more.is_text:
                overall.append(VARCHAR)
            elif both is not None and have.kind is Kind.DECIMAL and more.kind is Kind.DECIMAL:
                overall.append(_INEXACT_DECIMAL if more.digits else WIDE_DECIMAL)
            elif have in (WIDE_DECIMAL, _INEXACT_DECIMAL) and more.kind is Kind.DECIMAL:
                overall.append(have)
            else:
                raise self._type_mismatch(union, index, have, both or more)
        return overall

    def _type_mismatch(
        self, union: ast.Union, index: int, have: SqlType, both: SqlType
    ) -> TypeMismatch:
        left = union.args["this"]
        while isinstance(left, ast.Subquery | ast.SetOperation):
            left = left.this
        selected = left.expressions if isinstance(left, ast.Select) else []
        return self.context.error(
            TypeMismatch,
            f'recursive query "{self.name}" column {index + 1} has type {type_name(have)} in '
            f"non-recursive term but type {type_name(both)} overall",
            selected[index] if index < len(selected) else union,
            hint="Cast the output of the non-recursive term to the correct type.",
        )


# --- the restrictions --------------------------------------------------------------------------


def _form(context: Context, name: str, node: ast.Node) -> ast.Union:
    """The UNION of the two terms."""
    while isinstance(node, ast.Subquery):
        node = node.this
    if type(node) is not ast.Union:
        raise context.error(
            InvalidRecursion,
            f'recursive query "{name}" does not have the form '
            "non-recursive-term UNION [ALL] recursive-term",
            node if isinstance(node, ast.SetOperation) else next(references(node, name)),
        )
    for part, words in (("order", "ORDER BY"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if node.args.get(part) is not None:
            clause = node.args[part]
            written = "FETCH" if isinstance(clause, ast.Fetch) else words
            raise context.error(
                NotSupported,
                f"{written} in a recursive query is not implemented",
                clause,
                hint="Move the clause into the query that reads the recursive one.",
            )
    return node


def _check(context: Context, name: str, union: ast.Union) -> None:
    early = next(references(union.args["this"], name), None)
    if early is not None:
        raise _refused(context, name, "must not appear within its non-recursive term", early)
    found = list(references(union.args["expression"], name))
    if not found:  # it stands in the WITH of the union itself
        raise context.error(
            InvalidRecursion,
            f'recursive query "{name}" does not have the form '
            "non-recursive-term UNION [ALL] recursive-term",
            union,
        )
    found.sort(key=_offset)
    above = _parents(union)
    for reference in found:
        where = _forbidden_place(reference, union, above)
        if where is not None:
            raise _refused(context, name, f"must not appear within {where}", reference)
    if len(found) > 1:
        raise _refused(context, name, "must not appear more than once", found[1])
    _check_aggregates(context, found[0], above)


def _offset(table: ast.Table) -> int:
    return int(table.this.start)


def _parents(root: ast.Node) -> dict[int, ast.Node]:
    """The node that each node below ``root`` is a part of, by its identity."""
    return {id(child): node for node in root.walk() for child in node.children()}


def _refused(context: Context, name: str, what: str, place: ast.Node) -> InvalidRecursion:
    return context.error(InvalidRecursion, f'recursive reference to query "{name}" {what}', place)


def _forbidden_place(
    reference: ast.Node, union: ast.Union, parents: dict[int, ast.Node]
) -> str | None:
    """The first thing around ``reference``, below ``union``, that would need all rows at once."""
    node: ast.Node = reference
    while node is not union:
        above = parents[id(node)]
        where = _forbidden(node, above)
        if where is not None:
            return where
        node = above
    return None


def _forbidden(node: ast.Node, above: ast.Node) -> str | None:
    if isinstance(node, ast.Query) and not isinstance(
        above, ast.From | ast.Join | ast.Subquery | ast.SetOperation | ast.CTE | ast.Table
    ):
        return "a subquery"
    if isinstance(node, ast.Subquery) and not isinstance(
        above, ast.From | ast.Join | ast.Subquery | ast.SetOperation | ast.CTE | ast.Lateral
    ):
        return "a subquery"
    if isinstance(above, ast.Intersect):
        return "INTERSECT"
    if isinstance(above, ast.Except) and above.args.get("expression") is node:
        return "EXCEPT"
    return _outer_join(node, above)


def _outer_join(node: ast.Node, above: ast.Node) -> str | None:
    """Whether ``node`` is on a side of an outer join that may be padded with NULL."""
    joins: Sequence[ast.Node] = above.args.get("joins") or ()
    if isinstance(node, ast.Join):
        side = str(node.args.get("side") or "")
        if side in ("LEFT", "FULL"):
            return "an outer join"
        at = next((i for i, join in enumerate(joins) if join is node), len(joins))
        joins = joins[at + 1 :]
    elif not isinstance(node, ast.From) and above.args.get("this") is not node:
        return None
    for join in joins:
        if not join.args.get("side") and not join.args.get("kind") and not join.args.get("on"):
            return None  # a comma: what follows is joined by itself
        if str(join.args.get("side") or "") in ("RIGHT", "FULL"):
            return "an outer join"
    return None


def _check_aggregates(context: Context, reference: ast.Table, parents: dict[int, ast.Node]) -> None:
    select: ast.Node | None = reference
    while select is not None and not isinstance(select, ast.Select):
        select = parents.get(id(select))
    pending = [] if select is None else _own_parts(select)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Query | ast.Window):
            continue
        if isinstance(node, ast.Call) and function_name(node) in AGGREGATE_FUNCTIONS:
            raise context.error(
                InvalidRecursion,
                "aggregate functions are not allowed in a recursive query's recursive term",
                node,
            )
        pending += list(node.children())


def _own_parts(select: ast.Select) -> list[ast.Node]:
    parts = list(select.expressions)
    parts += [clause for key in ("having", "order") if (clause := select.args.get(key))]
    return parts
