"""From the calls of a WindowRows to calls over batches: expressions compiled, offsets known."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidFrameOffset
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.execution.operators.ordering import BoundKey
from remuda.execution.operators.window_calls import BoundFrame, BoundLimit, BoundWindowCall
from remuda.plan.expression import Expression, Literal, Parameter
from remuda.plan.physical import WindowRows
from remuda.plan.windows import Frame, FrameBound, FrameUnit, WindowCall


def bound_window_calls(
    node: WindowRows, compiler: Compiler, parameters: Sequence[PhysicalValue]
) -> list[BoundWindowCall]:
    """Raises InvalidFrameOffset for a parameter that is no offset."""
    return [_bound_call(node, call, compiler, parameters) for call in node.calls]


def _bound_call(
    node: WindowRows, call: WindowCall, compiler: Compiler, parameters: Sequence[PhysicalValue]
) -> BoundWindowCall:
    return BoundWindowCall(
        function=call.function,
        arguments=[compiler.column(argument) for argument in call.arguments],
        types=[argument.type for argument in call.arguments],
        result=call.type,
        condition=None if call.filter is None else compiler.column(call.filter),
        frame=_bound_frame(node, call.frame, compiler, parameters),
        shift=_shift(call, parameters),
    )


def _shift(call: WindowCall, parameters: Sequence[PhysicalValue]) -> int | None:
    if call.function not in ("lag", "lead"):
        return None
    if len(call.arguments) == 1:
        return 1
    offset = call.arguments[1]
    if not isinstance(offset, Literal | Parameter):
        return None
    value = evaluate_constant(offset, parameters)
    return value if isinstance(value, int) else 0


def _bound_frame(
    node: WindowRows, frame: Frame, compiler: Compiler, parameters: Sequence[PhysicalValue]
) -> BoundFrame:
    key = None
    if frame.key is not None:
        (order,) = node.order
        key = BoundKey(0, frame.key.type, order.descending, order.nulls_first)
    return BoundFrame(
        unit=frame.unit,
        start=_bound_limit(frame, frame.start, "starting", compiler, parameters),
        end=_bound_limit(frame, frame.end, "ending", compiler, parameters),
        key=key,
        values=None if frame.key is None else compiler.column(frame.key),
        exclude=frame.exclude,
    )


def _bound_limit(
    frame: Frame,
    bound: FrameBound,
    side: str,
    compiler: Compiler,
    parameters: Sequence[PhysicalValue],
) -> BoundLimit:
    offset = None
    if bound.offset is not None:
        offset = _offset(bound.offset, side, parameters)
    if frame.unit is FrameUnit.RANGE:
        offset = None
    limit = None if bound.limit is None else compiler.column(bound.limit)
    return BoundLimit(bound.kind, offset or 0, limit)


def _offset(expression: Expression, side: str, parameters: Sequence[PhysicalValue]) -> int:
    value = evaluate_constant(expression, parameters)
    if value is None:
        raise InvalidFrameOffset(f"frame {side} offset must not be null")
    assert isinstance(value, int | float)
    if value < 0:
        raise InvalidFrameOffset(f"frame {side} offset must not be negative")
    return 0 if expression.type.is_float or expression.type.kind is Kind.DECIMAL else int(value)
