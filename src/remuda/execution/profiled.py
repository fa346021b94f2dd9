"""Operators under observation: rows, batches and time, for EXPLAIN ANALYZE and for statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.profile import OperatorProfile


class ProfiledOperator(Operator):
    """Counts what an operator puts out and the time spent below it, inputs included."""

    def __init__(
        self,
        operator: Operator,
        profile: OperatorProfile,
        inputs: Sequence[ProfiledOperator],
        clock: Callable[[], float],
        count_bytes: bool,
    ) -> None:
        self._operator = operator
        self._clock = clock
        self._count_bytes = count_bytes
        self.profile = profile
        self.inputs = inputs
        self.inclusive = 0.0

    def advance(self) -> Progress:
        start = self._clock()
        progress = self._operator.advance()
        self.inclusive += self._clock() - start
        if progress is not Progress.WAIT:
            batch = self._operator.current_batch()
            if batch.rows:
                profile = self.profile
                profile.rows += batch.rows
                profile.batches += 1
                if self._count_bytes:
                    profile.bytes += batch.estimated_bytes()
        return progress

    def current_batch(self) -> Batch:
        return self._operator.current_batch()

    def close(self) -> None:
        self._operator.close()

    def finished_profile(self) -> OperatorProfile:
        below = sum(source.inclusive for source in self.inputs)
        self.profile.seconds = max(0.0, self.inclusive - below)
        return self.profile
