"""``ARRAY(query)``: the values of a query's only column as an array, in the order of the query."""

from __future__ import annotations

from remuda.datatypes.sql import array
from remuda.errors import SqlSyntaxError
from remuda.plan.expression import (
    AggregateCall,
    ArgumentOrder,
    Call,
    ColumnRef,
    Expression,
    Literal,
)
from remuda.plan.logical import Aggregate, Logical, OutputColumn, Project, Sort
from remuda.sql.expressions.expressions import ExpressionBinder, register
from remuda.sql.expressions.nested import array_value
from remuda.sql.expressions.subqueries import query_in, scalar_of
from remuda.sql.trees import ast


def _array_of_query(binder: ExpressionBinder, whole: ast.ArrayQuery) -> Expression:
    """Raises SqlSyntaxError for more than one column. Without rows it is an empty array."""
    context, node = binder.context, whole.this
    if query_in(node) is None:
        raise context.error(SqlSyntaxError, "ARRAY(...) takes a query", node, "Write ARRAY[...].")
    plan = binder.surroundings.subquery(node)
    if len(plan.output) != 1:
        raise context.error(SqlSyntaxError, "subquery must return only one column", node)
    if plan.output[0].type.element is not None:
        raise context.unsupported(
            "an array of more than one dimension",
            node,
            hint="Use JSON, or an array of one dimension.",
        )
    source, value, order = _ordered(plan)
    of_type = array(value.type)
    call = AggregateCall("array_agg", value, of_type, order=order)
    gathered = OutputColumn(context.new_id(), "array", of_type)
    made = Aggregate((gathered,), source, (), (call,))
    filled = Call(
        of_type, "coalesce", (ColumnRef(of_type, gathered.id, "array"), Literal(of_type, ()))
    )
    column = OutputColumn(context.new_id(), "array", of_type, nullable=False)
    return scalar_of(Project((column,), made, (filled,)))


def _ordered(plan: Logical) -> tuple[Logical, Expression, tuple[ArgumentOrder, ...]]:
    """Rows, the value of each, and the order that the query gives them."""
    value: Expression = ColumnRef(plan.output[0].type, plan.output[0].id, plan.output[0].name)
    source = plan
    if isinstance(plan, Project) and isinstance(plan.input, Sort):
        source, value = plan.input, plan.expressions[0]
    if not isinstance(source, Sort) or not source.keys:
        return plan, value if source is plan else _first(plan), ()
    by_id = {column.id: column for column in source.output}
    order = tuple(
        ArgumentOrder(
            ColumnRef(by_id[key.column].type, key.column, by_id[key.column].name),
            key.descending,
            key.nulls_first,
        )
        for key in source.keys
    )
    return source, value, order


def _first(plan: Logical) -> Expression:
    column = plan.output[0]
    return ColumnRef(column.type, column.id, column.name)


register(ast.Array, array_value, "expressions")
register(ast.ArrayQuery, _array_of_query, "this")
