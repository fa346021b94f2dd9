"""Subqueries in expressions: EXISTS, IN, ANY, SOME, ALL, and queries that stand for a value.

A subquery becomes a ``Subquery`` expression, whose arguments are the columns of the enclosing query
that it uses. How it is computed is the planner's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    Subquery,
    SubqueryKind,
    children,
    columns_of,
    with_children,
)
from remuda.plan.logical import Logical
from remuda.plan.uses import is_by_chance
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.expressions.row_values import (
    compared_rows,
    is_star,
    row_part,
    row_parts,
    row_values,
    star_column,
    tags_of,
)
from remuda.sql.scope.context import Context
from remuda.sql.scope.output import free_references
from remuda.sql.trees import ast

PlanOf: TypeAlias = Callable[[ast.Node], Logical]

_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class SubqueryPlans:
    """The plans of the subqueries of one query. Equal texts mean equal plans, so that a subquery in
    GROUP BY is recognized in the select list."""

    def __init__(self, plan_of: PlanOf) -> None:
        self._plan_of = plan_of
        self._known: dict[object, Logical] = {}

    def plan(self, node: ast.Node) -> Logical:
        bare = node
        while isinstance(bare, ast.Paren) or (
            isinstance(bare, ast.Subquery)
            and not any(bare.args[n] for n in bare.args if n != "this")
        ):
            bare = bare.this
        key = bare.identity()
        found = self._known.get(key)
        if found is None:
            found = self._plan_of(node)
            if not is_by_chance(found):
                self._known[key] = found
        return found


def query_in(node: ast.Node) -> ast.Node | None:
    """The query that ``node`` is, perhaps in parentheses."""
    inner = node
    while isinstance(inner, ast.Paren | ast.Subquery):
        inner = inner.this
    if isinstance(inner, ast.Tuple) and len(inner.expressions) == 1:
        return query_in(inner.expressions[0])
    return node if isinstance(inner, ast.Query) else None


def _made(
    kind: SubqueryKind, plan: Logical, condition: Expression | None = None, column: int = 0
) -> Subquery:
    free = free_references(plan)
    type_ = plan.output[column].type if kind is SubqueryKind.SCALAR else BOOLEAN
    return Subquery(type_, kind, plan, tuple(free), tuple(free.values()), condition, column)


# --- a query that stands for a value, or for a row of values ------------------------------------


def refuse_no_columns(context: Context, node: ast.Node) -> None:
    """Raises SqlSyntaxError for ``SELECT FROM m`` where a value is needed."""
    query = query_in(node)
    while isinstance(query, ast.Paren | ast.Subquery):
        query = query.this
    if isinstance(query, ast.Select) and not query.expressions:
        raise context.error(
            SqlSyntaxError, "subquery has too few columns", query.args.get("from_") or node
        )


def _scalar(binder: ExpressionBinder, node: ast.Node) -> Expression:
    plan = binder.surroundings.subquery(node)
    if len(plan.output) != 1:
        raise binder.context.error(SqlSyntaxError, "subquery must return only one column", node)
    return _made(SubqueryKind.SCALAR, plan)


def scalar_of(plan: Logical) -> Expression:
    """The value of the only row of ``plan``."""
    return _made(SubqueryKind.SCALAR, plan)


def _exists(binder: ExpressionBinder, node: ast.Node) -> Expression:
    query = node.this
    if isinstance(query, ast.Select) and not query.expressions and not query.args.get("distinct"):
        # SELECT without columns: there are rows all the same.
        query = query.with_args(expressions=[ast.Literal.number(1)])
    return _made(SubqueryKind.EXISTS, binder.surroundings.subquery(query))


def row_of(binder: ExpressionBinder, node: ast.Node, width: int) -> list[Expression]:
    """The columns of a query that is compared with a row of ``width`` values."""
    plan = binder.surroundings.subquery(node)
    _check_width(binder.context, plan, width, node)
    return [_made(SubqueryKind.SCALAR, plan, column=place) for place in range(width)]


def columns_of_query(query: ast.Node, width: int) -> list[ast.Node]:
    """A tree for each column of a query of ``width`` columns, for ``SET (a, b) = (SELECT ...)``."""
    return tags_of(query, width)


def _tagged(binder: ExpressionBinder, node: ast.Node) -> Expression:
    """One of the values of a star, of a row, or of a query of one row."""
    inner: ast.Node = node.this
    place: int = node.args["prefix"]
    width: int = node.args["postfix"]
    if is_star(inner):
        return star_column(binder, inner, place)
    if row_parts(inner) is not None:
        return row_part(binder, inner, place, width)
    return row_of(binder, inner, width)[place]


def _check_width(context: Context, plan: Logical, width: int, node: ast.Node) -> None:
    if len(plan.output) != width:
        what = "many" if len(plan.output) > width else "few"
        raise context.error(SqlSyntaxError, f"subquery has too {what} columns", node)


def compared(
    binder: ExpressionBinder, name: str, left: ast.Node, right: ast.Node, node: ast.Node
) -> Expression | None:
    """``left name right``, where one of them is a row of values; None if none is."""
    sides = [row_values(binder, left), row_values(binder, right)]
    if all(side is None for side in sides):
        return None
    width = max(len(side) for side in sides if side is not None)
    values: list[list[Expression]] = []
    places: list[list[ast.Node]] = []
    for side, written in zip(sides, (left, right), strict=True):
        if side is not None:
            values.append([binder.bind(part) for part in side])
            places.append(side)
        elif query_in(written) is not None:
            values.append(row_of(binder, written, width))
            places.append([written] * width)
        else:
            raise binder.context.error(
                SqlSyntaxError, "unequal number of entries in row expressions", node
            )
    return compared_rows(binder, name, (values[0], values[1]), (places[0], places[1]), node)


# --- IN, ANY, ALL ------------------------------------------------------------------------------


def quantifier(node: ast.Node) -> tuple[ast.Node, bool] | None:
    """(query, whether ALL) of ``ANY (query)``, ``SOME (query)``, ``ALL (query)``."""
    every = isinstance(node, ast.AllOf)
    inner: ast.Node | None = None
    if isinstance(node, ast.AnyOf | ast.AllOf):
        inner = node.this
    query = None if inner is None else query_in(inner)
    return None if query is None else (query, every)


def quantified(
    binder: ExpressionBinder,
    name: str,
    sides: tuple[ast.Node, ast.Node],
    node: ast.Node,
    every: bool = False,
) -> Expression:
    """``left name ANY (query)`` of ``sides``; with ``every``, ALL: no row for which the opposite
    holds."""
    left, query = sides
    operands = row_values(binder, left) or [left]
    plan = binder.surroundings.subquery(query)
    _check_width(binder.context, plan, len(operands), query)
    test = _NEGATED.get(name, name) if every else name
    condition = compared_rows(
        binder,
        test,
        (
            [binder.bind(operand) for operand in operands],
            [ColumnRef(c.type, c.id, c.name) for c in plan.output],
        ),
        (operands, [query] * len(operands)),
        node,
    )
    if every and test == name:
        condition = Call(BOOLEAN, "not", (condition,))
    subquery = _made(SubqueryKind.ANY, plan, condition)
    result: Expression = _with_arguments(binder.context, subquery, plan)
    return Call(BOOLEAN, "not", (result,)) if every else result


def _with_arguments(context: Context, subquery: Subquery, plan: Logical) -> Subquery:
    """``subquery`` with what its condition computes from the enclosing query as arguments."""
    own = plan.column_ids
    made: dict[Expression, ColumnRef] = {}

    def abstracted(expression: Expression) -> Expression:
        used = columns_of(expression)
        if not used and not any(isinstance(part, Subquery) for part in _parts(expression)):
            return expression
        if used & own:
            parts = children(expression)
            return with_children(expression, tuple(abstracted(part) for part in parts))
        if expression not in made:
            name = expression.name if isinstance(expression, ColumnRef) else "operand"
            made[expression] = ColumnRef(expression.type, context.new_id(), name)
        return made[expression]

    assert subquery.condition is not None
    condition = abstracted(subquery.condition)
    new: list[ColumnId] = [column.column for column in made.values()]
    return replace(
        subquery,
        parameters=(*subquery.parameters, *new),
        arguments=(*subquery.arguments, *made),
        condition=condition,
    )


def _parts(expression: Expression) -> list[Expression]:
    found = [expression]
    for part in found:
        found += children(part)
    return found


for _kind in (ast.Subquery, ast.Select, ast.Union, ast.Intersect, ast.Except):
    # The query's own binder looks at its parts.
    register(_kind, _scalar, *ast.QUERY_PARTS)
register(ast.Exists, _exists, "this")
register(ast.Tag, _tagged, "this", "prefix", "postfix")
