"""Aggregate calls as Spark SQL, each of exactly the type that the grid gives it."""

from __future__ import annotations

from remuda.datatypes.sql import DOUBLE, Kind, SqlType
from remuda.plan.expression import AggregateCall, Literal
from remuda.plan.functions.aggregates import aggregate_function
from remuda.sql.spark_sql.literals import COMPARABLE, literal, type_name
from remuda.sql.spark_sql.refusal import refused


def aggregate(
    call: AggregateCall, arguments: list[str], condition: str | None, order: list[str]
) -> str:
    """``arguments``, ``condition`` (of FILTER) and ``order`` are the parts of the call as Spark
    SQL. Raises NotOnSpark."""
    if call.function == "string_agg":
        return _listed(call, arguments, condition, order)
    if call.order:
        raise refused(f"{call.function} with ORDER BY")
    text = _plain(call.function, arguments, call, call.distinct)
    if condition is not None:
        text += f" FILTER (WHERE {condition})"
    return f"CAST({text} AS {type_name(call.type)})"


def _plain(function: str, arguments: list[str], call: AggregateCall, distinct: bool) -> str:
    types = tuple(argument.type for argument in call.arguments)
    word = "DISTINCT " if distinct else ""
    if distinct and types[0].kind not in COMPARABLE:
        raise refused(f"{function}(DISTINCT ...) of {types[0]}")
    return call_text(function, arguments, types, word)


def call_text(function: str, arguments: list[str], types: tuple[SqlType, ...], word: str) -> str:
    """Also of windows. Raises NotOnSpark."""
    if function == "count":
        return f"count({word}{arguments[0] if arguments else '*'})"
    if function == "sum" and types[0].is_numeric:
        # Sums of BIGINT are decimals, so that they do not overflow.
        wide = types[0].kind is Kind.BIGINT
        value = f"CAST({arguments[0]} AS DECIMAL(20,0))" if wide else arguments[0]
        return f"sum({word}{value})"
    if function in ("min", "max") and types[0].kind in COMPARABLE:
        return f"{function}({arguments[0]})"
    if function == "any_value":
        return f"any_value({arguments[0]}, true)"
    if aggregate_function(function).on_spark:
        return f"{function}({word}{', '.join(_converted(function, arguments, types))})"
    of = f" of {types[0]}" if types else ""
    raise refused(f"the aggregate {function}{of}")


def _converted(function: str, arguments: list[str], types: tuple[SqlType, ...]) -> list[str]:
    """Exact numbers whose result is a DOUBLE are converted first, as the grid does."""
    signature = aggregate_function(function).resolve(types)
    if signature is None or signature.result != DOUBLE:
        return arguments
    return [
        text if of_type == DOUBLE else f"CAST({text} AS DOUBLE)"
        for text, of_type in zip(arguments, types, strict=True)
    ]


def _listed(
    call: AggregateCall, arguments: list[str], condition: str | None, order: list[str]
) -> str:
    delimiter = call.more[0]
    if call.distinct or not call.arguments[0].type.is_text or not isinstance(delimiter, Literal):
        raise refused("string_agg of bytes, with DISTINCT, or with a delimiter that is computed")
    if not order:
        raise refused("string_agg without ORDER BY")
    mark = literal(delimiter.value if delimiter.value is not None else "", delimiter.type)
    text = f"listagg({arguments[0]}, {mark}) WITHIN GROUP (ORDER BY {', '.join(order)})"
    return text + ("" if condition is None else f" FILTER (WHERE {condition})")
