"""LimitRows: skip ``offset`` rows, pass ``limit``, then end at once."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidOffset, InvalidRowCount
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.execution.operator_builders import BuildContext, builds
from remuda.plan.expression import Expression
from remuda.plan.physical import LimitRows


class LimitOperator(Operator):
    """Ends with FETCHED_DONE as soon as the limit is reached, without reading its input further."""

    def __init__(self, source: Operator, limit: int | None, offset: int) -> None:
        self._source = source
        self._limit = self._left = limit
        self._offset = self._skip = offset
        self._batch = Batch([], 0)

    def advance(self) -> Progress:
        if self._left == 0:
            self._batch = Batch([], 0)
            return Progress.FETCHED_DONE
        progress = self._source.advance()
        if progress is Progress.WAIT:
            return progress
        batch = self._source.current_batch()
        if self._skip and batch.rows:
            skipped = min(self._skip, batch.rows)
            self._skip -= skipped
            batch = (
                batch.slice(skipped, batch.rows - skipped) if skipped < batch.rows else Batch([], 0)
            )
        if self._left is not None and batch.rows:
            batch = batch.slice(0, self._left)
            self._left -= batch.rows
        self._batch = batch
        return Progress.FETCHED_DONE if self._left == 0 else progress

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        if not self._source.restart():
            return False
        self._left, self._skip = self._limit, self._offset
        return True

    def close(self) -> None:
        self._batch = Batch([], 0)
        self._source.close()


def row_count(
    expression: Expression | None, clause: str, parameters: Sequence[PhysicalValue]
) -> int | None:
    """The value of a LIMIT or OFFSET; None if there is none, or if it is NULL. Raises
    InvalidRowCount or InvalidOffset for a negative one."""
    if expression is None:
        return None
    value = evaluate_constant(expression, parameters)
    if value is None:
        return None
    assert isinstance(value, int | float)
    count = int(value)
    if expression.type.kind is Kind.DECIMAL:
        count //= 10 ** (expression.type.scale or 0)
    if count < 0:
        kind = InvalidOffset if clause == "OFFSET" else InvalidRowCount
        raise kind(f"{clause} must not be negative")
    return count


@builds(LimitRows)
def _limit(node: LimitRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    parameters = build.context.parameters
    limit = row_count(node.limit, "LIMIT", parameters)
    return LimitOperator(inputs[0], limit, row_count(node.offset, "OFFSET", parameters) or 0)
