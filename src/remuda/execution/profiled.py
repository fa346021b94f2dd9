"""Operators under observation: rows, batches and time, for EXPLAIN ANALYZE and for statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.profile import OperatorProfile
from remuda.execution.spill import Usage

_MEASURED_ROWS: Final = 256
"""The bytes of smaller batches are not worth the time to count them; of larger ones the first, the
second, the fourth ... is measured and stands for those that follow."""


class ProfiledOperator(Operator):
    """Counts what an operator puts out and the time spent below it, inputs included.

    One thread at a time advances it; ``profile_now`` may be called from any, and is then exact up
    to the batch in hand.
    """

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        operator: Operator,
        profile: OperatorProfile,
        inputs: Sequence[ProfiledOperator],
        clock: Callable[[], float],
        count_bytes: bool,
        usage: Usage | None = None,
    ) -> None:
        """``usage``: the bytes that the operator's reservations hold."""
        self._operator = operator
        self._clock = clock
        self._count_bytes = count_bytes
        self._width = 0.0
        """Bytes of a row, as they were last measured."""
        self._usage = usage or Usage()
        self._first = 0.0
        self._last = 0.0
        self._waits_since = 0.0
        """0: it does not wait."""
        self._waited = 0.0
        self._waits = 0
        self.profile = profile
        self.inputs = inputs
        self.inclusive = 0.0

    def advance(self) -> Progress:
        start = self._clock()
        if self._waits_since:
            self._waited += start - self._waits_since
            self._waits_since = 0.0
        elif not self._first:
            self._first = start
        progress = self._operator.advance()
        self._last = end = self._clock()
        self.inclusive += end - start
        if progress is Progress.WAIT:
            self._waits_since = end
            self._waits += 1
            return progress
        batch = self._operator.current_batch()
        rows = batch.rows
        if rows:
            profile = self.profile
            profile.rows += rows
            profile.batches = number = profile.batches + 1
            if self._count_bytes or (rows >= _MEASURED_ROWS and not number & (number - 1)):
                size = batch.estimated_bytes()
                self._width = size / rows
                profile.bytes += size
            else:
                profile.bytes += int(rows * self._width)
        return progress

    def current_batch(self) -> Batch:
        return self._operator.current_batch()

    def restart(self) -> bool:
        return self._operator.restart()

    def close(self) -> None:
        """The profile stays, and the observed objects go: an operator may know who built it, who
        knows all observers, and such a circle would wait for the collector of cycles."""
        operator, self._operator = self._operator, _CLOSED
        operator.close()

    def profile_now(self, wall: float) -> OperatorProfile:
        """Its profile so far. ``wall`` is what the wall clock shows when the clock shows 0."""
        waited, waits = self.all_waits()
        seconds = self.inclusive
        for source in self.inputs:
            below, below_waits = source.all_waits()
            waited, waits = waited - below, waits - below_waits
            seconds -= source.inclusive
        done, usage = self.profile, self._usage
        return OperatorProfile(
            done.index,
            done.operator,
            done.rows,
            done.batches,
            done.bytes,
            seconds=max(0.0, seconds),
            wait=max(0.0, waited),
            waits=max(0, waits),
            memory=usage.peak,
            spilled=usage.spilled,
            files=usage.files,
            first=wall + self._first if self._first else 0.0,
            last=wall + self._last if self._first else 0.0,
        )

    def all_waits(self) -> tuple[float, int]:
        """Seconds of waiting and how often, inputs included."""
        since = self._waits_since
        return self._waited + (self._clock() - since if since else 0.0), self._waits


class _Closed(Operator):
    """The rest of an operator after its end."""

    def advance(self) -> Progress:
        return Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return Batch([], 0)

    def close(self) -> None:
        """It is."""


_CLOSED: Final = _Closed()
