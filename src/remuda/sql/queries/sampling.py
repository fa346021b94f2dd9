"""TABLESAMPLE BERNOULLI (p) [REPEATABLE (seed)]: a filter on the key of the map.

SYSTEM samples blocks of storage in PostgreSQL. Here it picks single entries as BERNOULLI does:
what a seed chooses must not depend on where the rows happen to be.
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
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast

_METHODS: Final = ("bernoulli", "system")


def sampled(context: Context, plan: Logical, node: ast.TableSample) -> Logical:
    """The rows of ``plan`` that the sample has; raises NotSupported if it is not a map."""
    context.only(node, "method", "percent", "seed")
    if not isinstance(plan, Scan):
        raise context.error(
            NotSupported,
            "TABLESAMPLE clause can only be applied to tables and materialized views",
            node.args.get("percent"),
            hint="Sample the table in a subquery.",
        )
    method = node.args.get("method")
    name = "" if method is None else str(method.this).lower()
    if name not in _METHODS or method is None:
        raise context.error(
            UndefinedType,
            f"tablesample method {name or 'of this form'} does not exist",
            method or node.args.get("percent"),
            hint="The methods are BERNOULLI and SYSTEM.",
        )
    percent = _number(context, node.args.get("percent"), InvalidSampleArgument, "parameter")
    if isinstance(percent, Literal) and not 0 <= float(str(percent.value)) <= 100:
        raise context.error(
            InvalidSampleArgument,
            "sample percentage must be between 0 and 100",
            node.args.get("percent"),
        )
    seed: Expression = Call(TIMESTAMPTZ, "current_timestamp", ())
    if node.args.get("seed") is not None:
        seed = _number(context, node.args["seed"], InvalidSampleSeed, "REPEATABLE parameter")
    columns = [plan.output[position] for position in plan.schema.key_positions]
    key = tuple(ColumnRef(column.type, column.id, column.name) for column in columns)
    return Filter(plan.output, plan, Call(BOOLEAN, "sampled", (percent, seed, *key)))


def _number(
    context: Context, node: ast.Node | None, error: type[RemudaError], what: str
) -> Expression:
    if node is None:
        raise context.error(error, f"TABLESAMPLE {what} is missing", node)
    binder = ExpressionBinder(context, Scope(), Forbidding(context, "TABLESAMPLE"))
    value = binder.convert.implicit(binder.bind(node), DOUBLE, node, f"TABLESAMPLE {what}")
    if isinstance(value, Literal) and value.value is None:
        raise context.error(error, f"TABLESAMPLE {what} cannot be null", node)
    return value
