"""Send: the root of a fragment whose rows go to another fragment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.hashes.keyhash import hash_arrays, partitions_of
from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.limits import BATCH_ROWS
from remuda.plan.physical import ExchangeKind
from remuda.query.ids import Endpoint

_SMALL_ROWS = BATCH_ROWS // 4


class Splitter:
    """UNICAST: rows to the owners of their partitions. ``places[p]`` is the place of the owner of
    partition ``p`` among ``receivers`` (``Sites.places``)."""

    def __init__(
        self,
        positions: Sequence[int],
        types: Sequence[SqlType],
        places: npt.NDArray[Any],
        receivers: Sequence[Endpoint],
    ) -> None:
        self._positions = positions
        self._types = types
        self._place_of = places
        self._receivers = receivers

    def split(self, batch: Batch) -> list[tuple[Endpoint, Batch]]:
        """(receiver, its rows), for receivers that get any."""
        keys = [
            canonical(batch.column(position), type_)
            for position, type_ in zip(self._positions, self._types, strict=True)
        ]
        places = self._place_of[partitions_of(hash_arrays(keys, self._types))]
        counts = np.bincount(places, minlength=len(self._receivers))
        if counts.max() == batch.rows:
            return [(self._receivers[int(counts.argmax())], batch)]
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(counts)
        return [
            (receiver, batch.narrow(order[end - count : end]))
            for receiver, count, end in zip(self._receivers, counts, ends, strict=True)
            if count
        ]


class _Collected:
    """Small batches for one receiver, put together before they are sent."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def take(self) -> pa.RecordBatch:
        batches, self.batches, self.rows, self.bytes = self.batches, [], 0, 0
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class SendOperator(Operator):
    """Reads no further while anything waits for credit, so it holds at most one input batch and
    the small remainders. Ends early when no receiver needs more rows.

    Where receivers merge (design rule 12), it reads on while one of them has nothing to come: then
    a sender stands still only when it has filled the windows of all its receivers, so none of them
    waits for it, and no circle of waiting can close.
    """

    def __init__(
        self,
        source: Operator,
        *,
        kind: ExchangeKind,
        splitter: Splitter | None,
        outbox: Outbox,
        form: BatchForm,
        memory: Reservation,
    ) -> None:
        self._source = Upstream(source, memory)
        self._kind = kind
        self._splitter = splitter
        self._outbox = outbox
        self._form = form
        self._memory = memory
        self._collected = {receiver: _Collected() for receiver in outbox.receivers}
        self._rows = 0

    def advance(self) -> Progress:
        if self._outbox.unwanted:
            self._outbox.stop()
            self._source.done = True
        if not self._outbox.flush() and (self._source.done or not self._someone_starves()):
            return Progress.WAIT
        if self._source.done:
            return Progress.FETCHED_DONE
        batch = self._source.fetch()
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._put(batch)
        if self._source.done:
            self._flush_collected(0)
            self._outbox.end()
        if self._outbox.flush():
            return Progress.FETCHED_DONE if self._source.done else Progress.FETCHED
        return Progress.FETCHED if self._outbox.starving else Progress.WAIT

    def _someone_starves(self) -> bool:
        """After the small remainders of those who do were sent."""
        for receiver in self._outbox.starving:
            if self._collected[receiver].rows:
                self._outbox.put(receiver, self._collected[receiver].take())
        self._outbox.flush()
        return bool(self._outbox.starving)

    def _put(self, batch: Batch) -> None:
        if self._kind is ExchangeKind.BROADCAST and len(self._outbox.receivers) > 1:
            self._outbox.put_all(self._form.record_batch(batch))
            return
        if self._splitter is None:
            parts = [(self._outbox.receivers[0], batch)]
        else:
            parts = self._splitter.split(batch)
        for receiver, part in parts:
            if self._outbox.listening(receiver):
                self._collected[receiver].add(self._form.record_batch(part))
        self._flush_collected(_SMALL_ROWS)

    def _flush_collected(self, at_least: int) -> None:
        bytes_max = self._memory.piece // len(self._collected)
        left = 0
        for receiver, collected in self._collected.items():
            if collected.rows and (collected.rows >= at_least or collected.bytes >= bytes_max):
                self._outbox.put(receiver, collected.take())
            left += collected.bytes
        self._memory.resize(left)

    def current_batch(self) -> Batch:
        return EMPTY

    def close(self) -> None:
        self._collected.clear()
        self._memory.clear()
        self._source.close()
