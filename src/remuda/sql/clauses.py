"""Pieces of queries that SELECT and set operations share: output names, ordinals, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from remuda.datatypes.sql import BIGINT
from remuda.errors import AmbiguousColumn, InputError, InvalidDefinition
from remuda.plan.expression import Expression, Literal, Parameter, SortKey
from remuda.plan.logical import Logical, Sort
from remuda.sql import calls
from remuda.sql.context import Context, identifier
from remuda.sql.expressions import ExpressionBinder, Forbidding
from remuda.sql.scope import Scope


def conjunct_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The conditions under a top-level AND, through parentheses."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, exp.And):
            pending += [current.args["expression"], current.args["this"]]
        elif isinstance(current, exp.Paren) and isinstance(current.this, exp.And | exp.Paren):
            pending.append(current.this)
        else:
            found.append(current)
    return found


def ordinal_of(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdecimal():
        return int(node.this)
    return None


def first_part(node: exp.Expr) -> exp.Expr:
    return next(iter(node.iter_expressions()), node)


def matching_output(context: Context, items: Sequence[Any], node: exp.Column) -> int | None:
    """The index of the output column called like ``node``; AmbiguousColumn if two differ."""
    name = identifier(node.this)
    found = [index for index, item in enumerate(items) if item.name == name]
    if len({items[index].expression for index in found}) > 1:
        raise context.error(AmbiguousColumn, f'ORDER BY "{name}" is ambiguous', node)
    return found[0] if found else None


def default_name(node: exp.Expr) -> str:
    """The name of an unnamed output column, as PostgreSQL chooses it."""
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        return identifier(inner.this)
    if isinstance(inner, exp.Cast):
        named = default_name(inner.this)
        return named if named != "?column?" else inner.args["to"].sql("postgres").lower()
    if isinstance(inner, exp.Filter | exp.Window | exp.RespectNulls):
        return default_name(inner.this)
    if isinstance(inner, exp.Anonymous):
        return calls.function_name(inner)
    if isinstance(inner, exp.Case):
        return "case"
    if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Select):
        selected = inner.this.expressions
        first = selected[0] if selected else inner
        return (
            identifier(first.args["alias"]) if isinstance(first, exp.Alias) else default_name(first)
        )
    names: dict[type[exp.Expr], str] = {
        exp.Extract: "extract",
        exp.Substring: "substring",
        exp.StrPosition: "position",
        exp.Trim: "btrim",
        exp.Boolean: "bool",
        exp.CurrentDate: "current_date",
        exp.CurrentTimestamp: "current_timestamp",
        exp.Localtimestamp: "localtimestamp",
    }
    return names.get(type(inner), "?column?")


def limited(context: Context, plan: Logical, keys: tuple[SortKey, ...], node: exp.Expr) -> Logical:
    """``plan`` under the ORDER BY keys and the LIMIT, OFFSET, FETCH of ``node``."""
    limit = offset = None
    if (clause := node.args.get("limit")) is not None:
        limit = _limit(context, clause)
    if (clause := node.args.get("offset")) is not None:
        context.only(clause, "expression")
        offset = _count(context, clause.args["expression"], "OFFSET")
    if not keys and limit is None and offset is None:
        return plan
    return Sort(plan.output, plan, keys, limit, offset)


def _limit(context: Context, clause: exp.Expr) -> Expression | None:
    options = clause.args.get("limit_options")
    if options is not None:
        context.only(options, "rows")
    if isinstance(clause, exp.Fetch):
        context.only(clause, "direction", "count", "limit_options")
        count = clause.args.get("count")
        return Literal(BIGINT, 1) if count is None else _count(context, count, "FETCH")
    context.only(clause, "expression", "limit_options")
    value = clause.args["expression"]
    if isinstance(value, exp.Var) and str(value.this).upper() == "ALL":
        return None
    return _count(context, value, "LIMIT")


def _count(context: Context, node: exp.Expr, clause: str) -> Expression | None:
    column = node.find(exp.Column)
    if column is not None:
        raise context.error(
            InvalidDefinition, f"argument of {clause} must not contain variables", column
        )
    binder = ExpressionBinder(context, Scope(), Forbidding(context, clause))
    bound = binder.bind(node)
    value = binder.convert.implicit(bound, BIGINT, node, f"argument of {clause}")
    if isinstance(value, Literal):
        if value.value is None:
            return None
        if isinstance(value.value, int) and value.value < 0:
            raise context.error(InputError, f"{clause} must not be negative", node)
    elif not isinstance(value, Parameter):
        raise context.unsupported(
            f"an expression in {clause}", node, hint="Write a number or a parameter."
        )
    return value
