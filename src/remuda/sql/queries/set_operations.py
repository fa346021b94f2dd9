"""UNION, INTERSECT, EXCEPT: branches of one type, and ORDER BY over a finished query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from remuda.datatypes.coercion import common_type, is_comparable
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    InvalidColumnReference,
    NotSupported,
    SqlSyntaxError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedFunction,
)
from remuda.plan.expression import ColumnId, ColumnRef, Expression, SortKey
from remuda.plan.logical import (
    Logical,
    OutputColumn,
    Project,
    SetKind,
    SetOperation,
    Union,
)
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.queries.clauses import (
    RowCounts,
    limited,
    matching_output,
    ordinal_of,
    refuse_constant,
)
from remuda.sql.queries.relations import Environment
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import distinct
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast


class Pending(Protocol):
    """A query that is analyzed but not yet built (see ``SelectBinder``)."""

    @property
    def names(self) -> list[str]: ...

    @property
    def types(self) -> list[SqlType]: ...

    def build(self, targets: Sequence[SqlType | None] | None = None) -> Logical: ...


Analyze: TypeAlias = Callable[[Context, ast.Node, Environment], Pending]
_WORDS: Final[dict[type[ast.Node], str]] = {
    ast.Union: "UNION",
    ast.Intersect: "INTERSECT",
    ast.Except: "EXCEPT",
}
_OWN_CLAUSES: Final = ("order", "limit", "offset", "with_")


def bind_set_operation(
    context: Context, node: ast.SetOperation, environment: Environment, analyze: Analyze
) -> Logical:
    """A chain of one operation over branches whose columns have been given common types."""
    context.only(node, "this", "expression", "distinct", *_OWN_CLAUSES)
    word = _WORDS[type(node)]
    places = _branches(context, node)
    branches = [analyze(context, part, environment) for part in places]
    for branch, place in zip(branches, places, strict=True):
        if len(branch.types) != len(branches[0].types):
            raise context.error(
                SqlSyntaxError, f"each {word} query must have the same number of columns", place
            )
    targets = _common_types(context, branches, word, places[-1])
    plans = tuple(converted(context, branch.build(targets), targets) for branch in branches)
    unique = bool(node.args.get("distinct"))
    if unique or word != "UNION":
        _require_equality(context, targets, places[0])
    plan = _operation(context, node, branches[0].names, plans, unique)
    counts = RowCounts(
        context,
        lambda inner: analyze(context, inner, environment).build(),
        Scope(parent=environment.parent),
    )
    return limited(counts, plan, order_keys(context, plan, node), node)


def _common_types(
    context: Context, branches: Sequence[Pending], word: str, place: ast.Node
) -> list[SqlType]:
    targets: list[SqlType] = []
    for index, name in enumerate(branches[0].names):
        types = [branch.types[index] for branch in branches]
        common = common_type(types)
        if common is None:
            known = [type_name(t) for t in dict.fromkeys(types) if t.kind is not Kind.NULL]
            raise context.error(
                TypeMismatch,
                f"{word} types {known[0]} and {known[1]} cannot be matched "
                f'(column {index + 1}, "{name}")',
                place,
                hint="Convert one of them with CAST.",
            )
        targets.append(common)
    return targets


def _require_equality(context: Context, types: Sequence[SqlType], place: ast.Node) -> None:
    for type_ in types:
        if not is_comparable(type_):
            raise context.error(
                UndefinedFunction,
                f"could not identify an equality operator for type {type_name(type_)}",
                place,
            )


def _operation(
    context: Context,
    node: ast.SetOperation,
    names: Sequence[str],
    plans: tuple[Logical, ...],
    unique: bool,
) -> Logical:
    output = tuple(
        OutputColumn(
            context.new_id(),
            name,
            plans[0].output[i].type,
            _may_be_null(node, [plan.output[i].nullable for plan in plans]),
        )
        for i, name in enumerate(names)
    )
    if isinstance(node, ast.Union):
        union = Union(output, plans)
        return distinct(union) if unique else union
    kind = SetKind.INTERSECT if isinstance(node, ast.Intersect) else SetKind.EXCEPT
    return SetOperation(output, kind, unique, plans)


def _may_be_null(node: ast.SetOperation, nullable: Sequence[bool]) -> bool:
    if isinstance(node, ast.Union):
        return any(nullable)
    return all(nullable) if isinstance(node, ast.Intersect) else nullable[0]


def _branches(context: Context, node: ast.SetOperation) -> list[ast.Node]:
    """The inputs of a chain of equal operations, without recursion on its left side."""
    unique = bool(node.args.get("distinct"))
    found: list[ast.Node] = []
    current: ast.Node = node
    while (
        type(current) is type(node)
        and bool(current.args.get("distinct")) == unique
        and (current is node or not _has_own_clauses(current))
    ):
        if current is not node:
            context.only(current, "this", "expression", "distinct")
        found.append(current.args["expression"])
        current = current.args["this"]
    found.append(current)
    return found[::-1]


def _has_own_clauses(node: ast.Node) -> bool:
    return any(node.args.get(name) for name in _OWN_CLAUSES)


# --- ORDER BY over a finished query ------------------------------------------------------------


def order_keys(context: Context, plan: Logical, node: ast.Node) -> tuple[SortKey, ...]:
    """ORDER BY over a finished query: ordinals and output names only."""
    order = node.args.get("order")
    if order is None:
        return ()
    context.only(order, "expressions")
    keys: list[SortKey] = []
    seen: set[ColumnId] = set()
    items = [
        _Named(column.name, ColumnRef(column.type, column.id, column.name))
        for column in plan.output
    ]
    for key in order.expressions:
        context.only(key, "this", "desc", "nulls_first")
        index = _output_index(context, items, key.this)
        column = plan.output[index]
        if not is_comparable(column.type):
            raise context.error(TypeMismatch, f"cannot sort type {type_name(column.type)}", key)
        if column.id not in seen:
            seen.add(column.id)
            descending = bool(key.args.get("desc"))
            keys.append(SortKey(column.id, descending, bool(key.args.get("nulls_first"))))
    return tuple(keys)


@dataclass(slots=True)
class _Named:
    name: str
    expression: Expression


def _output_index(context: Context, items: list[_Named], node: ast.Node) -> int:
    ordinal = ordinal_of(node)
    if ordinal is not None:
        if not 1 <= ordinal <= len(items):
            raise context.error(
                InvalidColumnReference, f"ORDER BY position {ordinal} is not in select list", node
            )
        return ordinal - 1
    refuse_constant(context, node, "ORDER BY")
    if isinstance(node, ast.Column) and node.args.get("table") is None:
        found = matching_output(context, items, node)
        if found is not None:
            return found
        raise context.error(
            UndefinedColumn, f'column "{identifier(node.this)}" does not exist', node
        )
    raise context.error(
        NotSupported,
        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
        node,
        hint="Add the expression to every SELECT, or move the UNION into a FROM clause.",
        detail="Only result column names can be used, not expressions or functions.",
    )


def converted(context: Context, plan: Logical, targets: Sequence[SqlType]) -> Logical:
    """``plan`` with columns of exactly the types ``targets`` (implicit conversions)."""
    if all(c.type == t for c, t in zip(plan.output, targets, strict=True)):
        return plan
    converter = ExpressionBinder(context, Scope(), Forbidding(context, "VALUES")).convert
    expressions: list[Expression] = []
    output: list[OutputColumn] = []
    for column, target in zip(plan.output, targets, strict=True):
        reference = ColumnRef(column.type, column.id, column.name)
        if column.type == target:
            expressions.append(reference)
            output.append(column)
            continue
        expressions.append(converter.cast(reference, target, None))
        output.append(OutputColumn(context.new_id(), column.name, target, column.nullable))
    return Project(tuple(output), plan, tuple(expressions))
