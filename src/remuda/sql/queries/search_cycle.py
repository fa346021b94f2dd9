"""SEARCH and CYCLE of recursive queries, rewritten into plain ones as PostgreSQL does it.

Each term becomes a derived table with further columns: the way to a row as an array of rows (depth
first, and the path of CYCLE), or how deep the row lies and its key (breadth first).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.errors import DuplicateColumn, NotSupported, SqlSyntaxError
from remuda.sql.scope.context import Context, identifier
from remuda.sql.trees import ast

_BASE, _STEP = " base", " step"
_FIELD_OF_DEPTH: Final = "f1"


def with_search(
    context: Context, name: str, columns: Sequence[str], union: ast.Union, clause: ast.Search
) -> tuple[ast.Union, list[str]]:
    """The two terms with the columns of SEARCH or CYCLE, and the names of all columns. ``columns``
    are those that the query ``name`` has without. Raises NotSupported, SqlSyntaxError,
    DuplicateColumn."""
    found = _Clause(context, clause, columns)
    base, step = union.args["this"].unnest(), union.args["expression"].unnest()
    for term, side in ((base, "left"), (step, "right")):
        if not isinstance(term, ast.Select | ast.Values if term is base else ast.Select):
            raise context.error(
                NotSupported,
                f"with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT",
                term,
                hint="Put the other form into a subquery: SELECT * FROM (...) AS name.",
            )
    source = _reference(context, name, step)
    items = [*step.expressions, *(_column(source, extra) for extra in found.names)]
    inner = step.with_args(expressions=items)
    if found.mark:
        wanted: ast.Node = ast.NEQ(this=_column(source, found.mark), expression=found.reached)
        where = step.args.get("where")
        if where is not None:
            wanted = ast.And(this=ast.Paren(this=where.this), expression=wanted)
        inner = inner.with_args(where=ast.Where(this=wanted))
    every = [*columns, *found.names]
    made = union.with_args(
        this=_derived(base, _BASE, columns, columns, found.of_base()),
        expression=_derived(inner, _STEP, every, columns, found.of_step()),
    )
    return made, every


class _Clause:
    """The words of the clause. ``names`` are those of the further columns; ``mark`` is the first of
    CYCLE, which is ``reached`` where a row came before."""

    def __init__(self, context: Context, node: ast.Search, columns: Sequence[str]) -> None:
        self._kind = node.kind
        what = "cycle" if self._kind == "CYCLE" else "search"
        self._by = [identifier(column) for column in node.columns]
        for place in node.columns:
            column = identifier(place)
            if column not in columns:
                raise context.error(
                    SqlSyntaxError, f'{what} column "{column}" not in WITH query column list', place
                )
            if self._by.count(column) > 1:
                raise context.error(
                    DuplicateColumn, f'{what} column "{column}" specified more than once', place
                )
        self.names = [identifier(node.set_)]
        self.mark = ""
        if node.using is not None:
            self.mark = self.names[0]
            self.names.append(identifier(node.using))
        for extra in self.names:
            if extra in columns or self.names.count(extra) > 1:
                raise context.error(
                    SqlSyntaxError,
                    f'{what} column name "{extra}" already used in WITH query column list',
                    node.set_,
                )
        self.reached = node.to or ast.Boolean(this=True)
        self._default = node.default or ast.Boolean(this=False)

    def _row(self, table: str, *before: ast.Node) -> ast.Node:
        fields = [*before, *(_column(table, column) for column in self._by)]
        return ast.Call(this="row", expressions=fields)

    def of_base(self) -> list[ast.Node]:
        """The further columns of the first term."""
        if self._kind == "BREADTH":
            zero = ast.Cast(operand=_number(0), to=ast.TypeName(this="bigint"))
            return [self._row(_BASE, zero)]
        path = ast.Array(expressions=[self._row(_BASE)])
        return [self._default, path] if self.mark else [path]

    def of_step(self) -> list[ast.Node]:
        """Those of the recursive term."""
        old = _column(_STEP, self.names[-1])
        if self._kind == "BREADTH":
            depth = ast.Dot(this=ast.Paren(this=old), expression=ast.name(_FIELD_OF_DEPTH))
            return [self._row(_STEP, ast.Add(this=depth, expression=_number(1)))]
        longer = ast.Call(this="array_append", expressions=[old, self._row(_STEP)])
        if not self.mark:
            return [longer]
        before = ast.EQ(this=self._row(_STEP), expression=ast.AnyOf(this=old))
        marked = ast.Branch(condition=before, result=self.reached)
        return [ast.Case(branches=[marked], otherwise=self._default), longer]


def _derived(
    query: ast.Node, alias: str, given: Sequence[str], kept: Sequence[str], more: list[ast.Node]
) -> ast.Select:
    """``SELECT kept, more FROM (query) AS alias (given)``"""
    names = ast.TableAlias(this=ast.name(alias), columns=[ast.name(column) for column in given])
    source = ast.Subquery(this=query, alias=names)
    items = [*(_column(alias, column) for column in kept), *more]
    return ast.Select(expressions=items, from_=ast.From(this=source))


def _reference(context: Context, name: str, step: ast.Select) -> str:
    """The recursive term's name for the query ``name``, which stands in its own FROM."""
    first = step.args.get("from_")
    sources = [] if first is None else [first.this]
    sources += [join.this for join in step.args.get("joins") or ()]
    for source in sources:
        if isinstance(source, ast.Table) and isinstance(source.this, ast.Identifier):
            if identifier(source.this) != name or source.args.get("db") is not None:
                continue
            alias = source.args.get("alias")
            return name if alias is None or alias.this is None else identifier(alias.this)
    raise context.error(
        NotSupported,
        "with a SEARCH or CYCLE clause, the recursive reference to WITH query "
        f'"{name}" must be at the top level of its right-hand SELECT',
        step,
        hint="Read the WITH query in the FROM clause of the right-hand SELECT itself.",
    )


def _column(table: str, name: str) -> ast.Column:
    return ast.Column(this=ast.name(name), table=ast.name(table))


def _number(value: int) -> ast.Literal:
    return ast.Literal(this=str(value), is_string=False)
