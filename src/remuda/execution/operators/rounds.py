"""The recursive term of a query, run again and again over the rows that it gave last.

The operators below are built once. Between two rounds they are restarted (``Operator.restart``),
and only those that cannot are built anew, from what is compiled already. So a round of few rows
costs what its operators compute, and neither messages nor plans nor tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.errors import InternalError
from remuda.execution.arrays import size_of
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, Borrowed
from remuda.execution.rounds import Rounds, beyond_rounds
from remuda.execution.stored_rows import StoredRows
from remuda.limits import BATCH_ROWS, TUPLE_BATCH_ROWS

_BATCHES: Final = 16
"""So many small batches are taken in one ``advance``."""


class RoundsOperator(Operator):
    """Puts out the new rows of all rounds; small ones of several rounds together."""

    def __init__(
        self,
        source: Operator,
        rounds: Rounds,
        types: Sequence[SqlType],
        form: BatchForm,
        memory: Reservation,
    ) -> None:
        self._source = source
        self._rounds = rounds
        self._types = types
        self._form = form
        self._memory = memory
        """Holds what telling rows apart takes, and the rows that wait to be put out."""
        self._next = StoredRows(types, memory.beside())
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_size = 0
        self._seen_size = 0
        self._round = 1
        self._found = rounds.rows_before
        self._done = False
        self._batch = EMPTY

    def advance(self) -> Progress:
        self._batch = EMPTY
        piece = self._memory.piece
        for _ in range(_BATCHES):
            progress = self._source.advance()
            if progress is Progress.WAIT:
                return progress
            batch = self._source.current_batch()
            if batch.rows:
                self._take(self._form.record_batch(batch))
            if progress is Progress.FETCHED_DONE and not self._begin_round():
                self._put_out()
                return Progress.FETCHED_DONE
            if self._waiting_rows >= BATCH_ROWS or self._waiting_size >= piece:
                self._put_out()
                break
            if batch.rows > TUPLE_BATCH_ROWS:
                break
        self._memory.resize(self._seen_size + self._waiting_size)
        return Progress.FETCHED

    def _take(self, page: pa.RecordBatch) -> None:
        fresh = self._rounds.new.of(page)
        if not fresh.num_rows:
            return
        self._seen_size += self._rounds.new.growth()
        size = sum(map(size_of, fresh.columns))
        self._next.add(fresh, size)
        self._waiting.append(fresh)
        self._waiting_rows += fresh.num_rows
        self._waiting_size += size
        self._found += fresh.num_rows

    def _begin_round(self) -> bool:
        """False: the last round was the last one. Raises LimitExceeded."""
        rounds = self._rounds
        if not self._next.rows or (rounds.enough is not None and self._found >= rounds.enough):
            return False
        if self._round >= rounds.rounds_max:
            raise beyond_rounds(rounds.name, rounds.rounds_max)
        self._round += 1
        rounds.working.replace(self._next)
        self._next = StoredRows(self._types, self._memory.beside())
        if not self._source.restart():
            raise InternalError("an operator of a recursive term cannot begin again")
        return True

    def _put_out(self) -> None:
        if not self._waiting:
            return
        whole = self._waiting[0]
        if len(self._waiting) > 1:
            whole = pa.concat_batches(self._waiting)
        self._batch = Batch.of(whole)
        self._waiting = []
        self._waiting_rows = self._waiting_size = 0

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._waiting = []
        self._next.close()
        self._rounds.working.close()
        self._memory.clear()
        self._source.close()


class RenewedOperator(Operator):
    """An operator that is built anew where it cannot be restarted, over the same inputs."""

    def __init__(
        self, inputs: Sequence[Operator], make: Callable[[Sequence[Operator]], Operator]
    ) -> None:
        self._inputs = inputs
        self._lent = [Borrowed(source) for source in inputs]
        self._make = make
        self._operator = make(self._lent)

    def advance(self) -> Progress:
        return self._operator.advance()

    def current_batch(self) -> Batch:
        return self._operator.current_batch()

    def restart(self) -> bool:
        if self._operator.restart():
            return True
        self._operator.close()
        for source in self._inputs:
            if not source.restart():
                raise InternalError("an operator of a recursive term cannot begin again")
        self._operator = self._make(self._lent)
        return True

    def close(self) -> None:
        self._operator.close()
        for source in self._inputs:
            source.close()
