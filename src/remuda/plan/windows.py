"""Window calls: functions over the rows of a partition, in an order, seen through a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from remuda.datatypes.sql import SqlType
from remuda.plan.expression import Expression
from remuda.plan.printing import ColumnNames, expression_text, own_name


class FrameUnit(Enum):
    """The unit of a frame's offsets: rows, values of the order column, or groups of peers."""

    ROWS = "ROWS"
    RANGE = "RANGE"
    GROUPS = "GROUPS"


class BoundKind(Enum):
    """In the order in which a frame's start may precede its end."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class Exclusion(Enum):
    """Which rows around the current one a frame leaves out."""

    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    """The current row and its peers."""
    TIES = "TIES"
    """The peers of the current row."""


@dataclass(frozen=True, slots=True)
class FrameBound:
    """One end of a frame.

    ``offset`` (PRECEDING, FOLLOWING) has no columns: a BIGINT for ROWS and GROUPS; for RANGE a
    number, or None where the offset is an interval. ``limit`` (RANGE only) is the value of the
    order column up to which the frame of a row reaches, computed from that row; it has the type
    of ``Frame.key``.
    """

    kind: BoundKind
    offset: Expression | None = None
    limit: Expression | None = None
    text: str = ""
    """The offset as it is printed, where ``offset`` is None."""


@dataclass(frozen=True, slots=True)
class Frame:
    """``key`` is the only order column in the type of the limits; None without RANGE offsets."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    key: Expression | None = None
    exclude: Exclusion = Exclusion.NO_OTHERS


DEFAULT_FRAME = Frame(
    FrameUnit.RANGE, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.CURRENT_ROW)
)
"""All rows from the first of the partition to the last peer of the current row."""


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One call of a Window operator: a function of ``WINDOW_FUNCTIONS`` or an aggregate.

    ``arguments`` is () for ``count(*)``; ``filter`` (aggregates only) is the FILTER clause.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    frame: Frame = DEFAULT_FRAME
    filter: Expression | None = None


def expressions_of(call: WindowCall) -> Iterator[Expression]:
    """Every expression of ``call``, those of its frame included."""
    yield from call.arguments
    if call.filter is not None:
        yield call.filter
    frame = call.frame
    for part in (frame.key, frame.start.offset, frame.start.limit, frame.end.offset,
                 frame.end.limit):  # fmt: skip
        if part is not None:
            yield part


def rewritten(call: WindowCall, rewrite: Callable[[Expression], Expression]) -> WindowCall:
    """``call`` with every expression replaced."""

    def optional(part: Expression | None) -> Expression | None:
        return None if part is None else rewrite(part)

    def bound(old: FrameBound) -> FrameBound:
        return replace(old, offset=optional(old.offset), limit=optional(old.limit))

    frame = call.frame
    return replace(
        call,
        arguments=tuple(rewrite(argument) for argument in call.arguments),
        filter=optional(call.filter),
        frame=replace(
            frame, start=bound(frame.start), end=bound(frame.end), key=optional(frame.key)
        ),
    )


def window_call_text(call: WindowCall, names: ColumnNames = own_name) -> str:
    """The call with its FILTER and, unless it is the default, its frame."""
    inside: str = ", ".join(expression_text(argument, names) for argument in call.arguments)
    if call.function == "count" and not call.arguments:
        inside = "*"
    text = f"{call.function}({inside})"
    if call.filter is not None:
        text += f" FILTER (WHERE {expression_text(call.filter, names)})"
    if call.frame != DEFAULT_FRAME:
        text += f" {frame_text(call.frame, names)}"
    return text


def frame_text(frame: Frame, names: ColumnNames = own_name) -> str:
    start, end = _bound_text(frame.start, names), _bound_text(frame.end, names)
    text = f"{frame.unit.value} BETWEEN {start} AND {end}"
    if frame.exclude is not Exclusion.NO_OTHERS:
        text += f" EXCLUDE {frame.exclude.value}"
    return text


def _bound_text(bound: FrameBound, names: ColumnNames) -> str:
    if bound.kind not in (BoundKind.PRECEDING, BoundKind.FOLLOWING):
        return str(bound.kind.value)
    offset = bound.text if bound.offset is None else expression_text(bound.offset, names)
    return f"{offset} {bound.kind.value}"
