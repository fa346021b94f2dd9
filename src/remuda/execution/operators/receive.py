"""Receive: rows of an edge in any order, or merged by a collation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.execution.arrays import Data, Indices
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.operators.input import EMPTY
from remuda.execution.operators.ordering import BoundKey, sorted_rows
from remuda.query.ids import Endpoint


class ReceiveOperator(Operator):
    """All that has arrived, sender by sender as it comes."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._batch = EMPTY

    def advance(self) -> Progress:
        rows = self._inbox.take()
        if rows is None:
            self._batch = EMPTY
            return Progress.FETCHED_DONE if self._inbox.exhausted else Progress.WAIT
        self._batch = Batch.of(rows)
        return Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY


class MergeReceiveOperator(Operator):
    """Merges sorted streams: with a batch of every open sender at hand, all rows up to the smallest
    of their last rows are in place, whatever comes later; they are sorted and put out, the rest
    waits. A sender that has ended holds nobody up, one that has sent nothing yet makes it WAIT."""

    def __init__(self, inbox: Inbox, keys: Sequence[BoundKey]) -> None:
        self._inbox = inbox
        self._keys = keys
        self._heads: dict[Endpoint, pa.RecordBatch] = {}
        self._batch = EMPTY

    def advance(self) -> Progress:
        for sender in self._inbox.senders:
            if sender not in self._heads:
                rows = self._inbox.take_from(sender)
                if rows is not None:
                    self._heads[sender] = rows
                elif not self._inbox.ended(sender):
                    return Progress.WAIT
        if not self._heads:
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        self._merge()
        return Progress.FETCHED

    def _merge(self) -> None:
        if len(self._heads) == 1:
            self._batch = Batch.of(self._heads.popitem()[1])
            return
        senders = sorted(self._heads)
        heads = [self._heads[sender] for sender in senders]
        table = pa.concat_batches(heads)
        order = sorted_rows([table.column(key.position) for key in self._keys], self._keys)
        ends = np.cumsum([head.num_rows for head in heads])
        cut = self._safe_prefix(order, ends, senders)
        self._batch = Batch.of(table).narrow(order[:cut])
        self._keep_rest(order[cut:], ends, senders, table)

    def _safe_prefix(self, order: Indices, ends: Data, senders: list[Endpoint]) -> int:
        """How many rows of ``order`` nothing still to come can precede: up to and including the
        first last row of a stream that goes on."""
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        last_places = [
            int(places[end - 1])
            for end, sender in zip(ends, senders, strict=True)
            if not self._inbox.ended(sender)
        ]
        return min(last_places) + 1 if last_places else len(order)

    def _keep_rest(
        self, rest: Indices, ends: Data, senders: list[Endpoint], table: pa.RecordBatch
    ) -> None:
        # Within one sender the order is kept by the stable sort, so its rest is its tail.
        owner = np.searchsorted(ends, rest, side="right")
        left = np.bincount(owner, minlength=len(senders))
        for sender, end, count in zip(senders, ends, left, strict=True):
            if count:
                self._heads[sender] = table.slice(int(end - count), int(count))
            else:
                del self._heads[sender]

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._heads.clear()
