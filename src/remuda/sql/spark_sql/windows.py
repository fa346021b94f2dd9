"""Window calls as Spark SQL, each of exactly the type that the grid gives it."""

from __future__ import annotations

from typing import Final

from remuda.plan.expression import Literal
from remuda.plan.functions.catalog import AGGREGATE_FUNCTIONS
from remuda.plan.windows import BoundKind, Exclusion, Frame, FrameBound, FrameUnit, WindowCall
from remuda.sql.spark_sql.aggregates import call_text
from remuda.sql.spark_sql.literals import type_name
from remuda.sql.spark_sql.refusal import refused

_NUMBERS: Final = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
_SHIFTS: Final = ("lag", "lead")
_FRAMED: Final = ("first_value", "last_value", "nth_value")
NO_ORDER: Final = "ORDER BY CAST(NULL AS INT)"
"""Spark wants an order where the grid does without: all rows are peers."""


def window(
    call: WindowCall, arguments: list[str], condition: str | None, partition: str, order: str
) -> str:
    """``partition`` and ``order`` are clauses, or "". Raises NotOnSpark."""
    name = call.function
    if name in _NUMBERS or name == "ntile":
        if name == "ntile":
            _whole(call, 0, least=1)
        text, frame = f"{name}({', '.join(arguments)})", ""
        order = order or NO_ORDER
    elif name in _SHIFTS:
        if len(arguments) > 1:
            _whole(call, 1, least=0)
        text, frame = f"{name}({', '.join(arguments)})", ""
        order = order or NO_ORDER
    elif name in _FRAMED:
        if name == "nth_value":
            _whole(call, 1, least=1)
        text, frame = f"{name}({', '.join(arguments)})", _frame(call.frame, order)
    elif name in AGGREGATE_FUNCTIONS:
        text, frame = _aggregate(call, arguments, condition), _frame(call.frame, order)
    else:
        raise refused(f"the window function {name}")
    over = " ".join(part for part in (partition, order, frame) if part)
    return f"CAST({text} OVER ({over}) AS {type_name(call.type)})"


def _whole(call: WindowCall, place: int, least: int) -> None:
    """Spark takes constants there."""
    argument = call.arguments[place]
    if not isinstance(argument, Literal) or not isinstance(argument.value, int):
        raise refused(f"{call.function} with a number that is computed")
    if argument.value < least:
        raise refused(f"{call.function} with {argument.value}")


def _aggregate(call: WindowCall, arguments: list[str], condition: str | None) -> str:
    """FILTER becomes CASE: Spark has none in windows, and every aggregate here skips NULLs."""
    types = tuple(argument.type for argument in call.arguments)
    if condition is not None:
        first = arguments[0] if arguments else "1"
        arguments = [f"CASE WHEN {condition} THEN {first} END", *arguments[1:]]
    return call_text(call.function, arguments, types, "")


def _frame(frame: Frame, order: str) -> str:
    if frame.exclude is not Exclusion.NO_OTHERS:
        raise refused(f"a frame with EXCLUDE {frame.exclude.value}")
    if frame.unit is FrameUnit.GROUPS:
        raise refused("a frame of GROUPS")
    rows = frame.unit is FrameUnit.ROWS
    if not order and not rows:
        return ""  # all rows of the partition are peers
    start, end = _bound(frame.start, rows), _bound(frame.end, rows)
    return f"{frame.unit.value} BETWEEN {start} AND {end}"


def _bound(bound: FrameBound, rows: bool) -> str:
    if bound.kind not in (BoundKind.PRECEDING, BoundKind.FOLLOWING):
        return str(bound.kind.value)
    offset = bound.offset
    if not rows or not isinstance(offset, Literal) or not isinstance(offset.value, int):
        raise refused("a frame of RANGE with an offset, or with an offset that is computed")
    if not 0 <= offset.value < 2**31:
        raise refused(f"a frame with the offset {offset.value}")
    return f"{offset.value} {bound.kind.value}"
