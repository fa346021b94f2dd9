"""TABLESAMPLE BERNOULLI (p) [REPEATABLE (seed)]: a filter on the key of the map.

SYSTEM samples blocks of storage in PostgreSQL. Here it picks single entries as BERNOULLI does: the
choice of a seed must not depend on where the rows happen to be.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN, DOUBLE, TIMESTAMPTZ
from remuda.errors import (
    InvalidSampleArgument,
    InvalidSampleSeed,
    NotSupported,
    RemudaError,
    UndefinedType,
)
from remuda.plan.expression import Call, ColumnRef, Expression, Literal
from remuda.plan.logical import Filter, Logical, Scan
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.functions.sequences import refuse_calls
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast

_METHODS: Final = ("bernoulli", "system")


def sampled(context: Context, plan: Logical, node: ast.TableSample) -> Logical:
    """The rows of ``plan`` that the sample has; raises NotSupported if it is not a map."""
    if not isinstance(plan, Scan):
        raise context.error(
            NotSupported,
            "TABLESAMPLE clause can only be applied to tables and materialized views",
            node.percent,
            hint="Sample the table in a subquery.",
        )
    name = node.method.name.lower()
    if name not in _METHODS:
        raise context.error(
            UndefinedType,
            f"tablesample method {name} does not exist",
            node.method,
            hint="The methods are BERNOULLI and SYSTEM.",
        )
    percent = _number(context, node.percent, InvalidSampleArgument, "parameter")
    if isinstance(percent, Literal) and not 0 <= float(str(percent.value)) <= 100:
        raise context.error(
            InvalidSampleArgument,
            "sample percentage must be between 0 and 100",
            node.percent,
        )
    seed: Expression = Call(TIMESTAMPTZ, "current_timestamp", ())
    if node.seed is not None:
        seed = _number(context, node.seed, InvalidSampleSeed, "REPEATABLE parameter")
    columns = [plan.output[position] for position in plan.schema.key_positions]
    key = tuple(ColumnRef(column.type, column.id, column.name) for column in columns)
    return Filter(plan.output, plan, Call(BOOLEAN, "sampled", (percent, seed, *key)))


def _number(context: Context, node: ast.Node, error: type[RemudaError], what: str) -> Expression:
    binder = ExpressionBinder(context, Scope(), Forbidding(context, "TABLESAMPLE"))
    bound = refuse_calls(context, binder.bind(node), "TABLESAMPLE", node)
    value = binder.convert.implicit(bound, DOUBLE, node, f"TABLESAMPLE {what}")
    if isinstance(value, Literal) and value.value is None:
        raise context.error(error, f"TABLESAMPLE {what} cannot be null", node)
    return value
