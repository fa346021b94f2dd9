"""HashJoin: the right side is built, the left side probes.

Keys become dense ids (``execution.keys``); rows of the right side are laid out by id in compressed
rows (``starts`` and ``order``), so the matches of a probing batch are a virtual list of pairs that
is cut into output batches wherever it must be. Columns are taken only when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.execution.arrays import Data, Indices, Mask, boolean_array
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.keys import KeyIds, null_rows
from remuda.execution.memory import Reservation
from remuda.execution.operators.input import EMPTY, Gathered, Upstream
from remuda.limits import BATCH_ROWS, TUPLE_BATCH_ROWS
from remuda.plan.logical import JoinKind

KEEPS_LEFT = (JoinKind.LEFT, JoinKind.FULL)
KEEPS_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)
LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
"""Kinds that put out no columns of the right side."""
NEEDS_LEFT = (*KEEPS_LEFT, JoinKind.ANTI, JoinKind.MARK)
"""Kinds that put out left rows even if the right side is empty."""


def mark_column(matched: Mask, unknown: Mask | None) -> pa.Array:
    """The marks of left rows: true, else NULL where ``unknown``, else false."""
    if unknown is None:
        return boolean_array(matched)
    return pa.array(matched, pa.bool_(), mask=unknown & ~matched)


class RightNulls:
    """The facts about the whole right side that NOT IN needs where a join sees only a part of
    it."""

    def __init__(self) -> None:
        self.any_rows = False
        self.any_null = False
        self.complete = False
        """Until then the right side is not split: a join sees all of it."""

    def clear(self) -> None:
        """Another right side follows."""
        self.any_rows = self.any_null = self.complete = False

    def add(self, keys: Sequence[pa.Array]) -> None:
        if len(keys[0]):
            self.any_rows = True
            missing = null_rows(keys)
            self.any_null = self.any_null or (missing is not None and bool(missing.any()))


class BuildTable:
    """The rows of the right side by key. Rows with a NULL in the key are kept, but never found."""

    def __init__(self, rows: Batch, keys: Sequence[pa.Array], types: Sequence[SqlType]) -> None:
        self.rows = rows
        self._ids = KeyIds(types)
        without = null_rows(keys)
        numbers: Indices | None = None
        if without is not None:
            numbers = np.flatnonzero(~without)
            keys = [key.filter(pa.array(~without)) for key in keys]
        ids = self._ids.encode(keys)
        count = self._ids.count
        self.unique = len(ids) == count
        self.row_of: Data = np.zeros(0, np.int64)
        """unique: id -> row, -1 for id 0 (not there)."""
        self.starts: Data = np.zeros(0, np.int64)
        self.order: Data = np.zeros(0, np.int64)
        if self.unique:
            self.row_of = np.empty(count + 1, np.int64)
            self.row_of[0] = -1
            self.row_of[ids] = np.arange(len(ids)) if numbers is None else numbers
        else:
            order = np.argsort(ids, kind="stable")
            self.order = order if numbers is None else numbers[order]
            self.counts = np.bincount(ids, minlength=count + 1)
            self.starts = np.cumsum(self.counts) - self.counts

    @property
    def bytes(self) -> int:
        return self._ids.bytes + self.row_of.nbytes + self.starts.nbytes * 2 + self.order.nbytes

    def find(self, keys: Sequence[pa.Array]) -> Indices:
        """The ids of probing keys, 0 where there is no such key."""
        return self._ids.lookup(keys)


class _Probe:
    """One probing batch and how far its matches were put out."""

    def __init__(self, batch: Batch, ids: Indices, table: BuildTable) -> None:
        self.batch = batch
        self._table = table
        self._next = 0
        if table.unique:
            self._left = np.flatnonzero(ids > 0)
            known = ids if len(self._left) == batch.rows else ids.take(self._left)
            self._right = table.row_of.take(known)
            self.total = len(self._left)
        else:
            counts = table.counts.take(ids)
            counts[ids == 0] = 0
            self._ends = np.cumsum(counts)
            self._begins = self._ends - counts
            self._starts = table.starts.take(ids)
            self.total = int(self._ends[-1]) if len(counts) else 0

    @property
    def exhausted(self) -> bool:
        return self._next >= self.total

    def pairs(self) -> tuple[Indices, Indices]:
        """The next pairs of (row of the batch, row of the table), at most ``BATCH_ROWS``."""
        first = self._next
        last = self._next = min(first + BATCH_ROWS, self.total)
        if self._table.unique:
            return self._left[first:last], self._right[first:last]
        places = np.arange(first, last)
        if first == 0 and last == self.total:
            left = np.repeat(np.arange(len(self._ends)), self._ends - self._begins)
        else:
            left = np.searchsorted(self._ends, places, side="right")
        within = places - self._begins.take(left)
        return left, self._table.order.take(self._starts.take(left) + within)


class HashJoinOperator(Operator):
    """``output`` are positions in (left columns, right columns kept); ``right_kept`` are the
    positions of the right input that output and residual need."""

    def __init__(
        self,
        *,
        kind: JoinKind,
        left: Operator,
        right: Operator,
        left_keys: Sequence[int],
        right_keys: Sequence[int],
        key_types: Sequence[SqlType],
        left_types: Sequence[SqlType],
        right_kept: Sequence[int],
        right_types: Sequence[SqlType],
        residual: Predicate | None,
        output: Sequence[int],
        memory: Reservation,
        unknown: Predicate | None = None,
        null_aware: bool = False,
        nulls: RightNulls | None = None,
        fixed_right: bool = False,
    ) -> None:
        """MARK: ``output`` leaves out the mark, ``unknown`` finds the pairs for which the residual
        is NULL. ``fixed_right``: the right side is the same after each restart."""
        self._kind = kind
        self._left = Upstream(left)
        self._right = Upstream(right, memory)
        self._left_keys = left_keys
        self._right_keys = right_keys
        self._key_types = key_types
        self._left_types = left_types
        self._right_kept = right_kept
        self._residual = residual
        self._unknown = unknown
        self._null_aware = null_aware
        self._nulls = nulls or RightNulls()
        self._left_unknown: Mask | None = None
        self._output = list(output)
        self._memory = memory
        self._fixed_right = fixed_right
        gathered = dict(zip(right_kept, right_types, strict=True))
        for position, type_ in zip(right_keys, key_types, strict=True):
            gathered.setdefault(position, type_)
        self._gathered_places = list(gathered)
        """Of the right input: the columns that are kept, and the other keys."""
        self._key_places = [self._gathered_places.index(position) for position in right_keys]
        self._rows = Gathered(list(gathered.values()), memory)
        self._table: BuildTable | None = None
        self._probe: _Probe | None = None
        self._left_matched: Mask | None = None
        self._right_matched: Mask | None = None
        self._right_rest: Indices | None = None
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._table is None:
            progress = self._build()
            if self._table is None or self._table.rows.rows > TUPLE_BATCH_ROWS:
                return progress
        while True:
            if self._probe is not None:
                if not self._put_out(self._probe):
                    self._batch = EMPTY
                ended = self._probe is None and self._left.done and self._right_matched is None
                return Progress.FETCHED_DONE if ended else Progress.FETCHED
            if self._left.done:
                return self._finish()
            batch = self._left.fetch()
            if batch is None:
                return Progress.WAIT
            if batch.rows == 0:
                if self._left.done:
                    continue
                self._batch = EMPTY
                return Progress.FETCHED
            self._start(batch)

    # --- build --------------------------------------------------------------------------------

    def _build(self) -> Progress:
        batch = self._right.fetch() if not self._right.done else EMPTY
        if batch is None:
            return Progress.WAIT
        if batch.rows:
            self._rows.add([batch.column(position) for position in self._gathered_places])
        if self._right.done:
            gathered = self._rows.batch()
            keys = [gathered.column(place) for place in self._key_places]
            rows = gathered.project(range(len(self._right_kept)))
            self._table = BuildTable(rows, keys, self._key_types)
            if self._null_aware and not self._nulls.complete:
                self._nulls.add(keys)
            self._memory.grow(self._table.bytes)
            self._begin_probing(self._table)
        self._batch = EMPTY
        return Progress.FETCHED

    def _begin_probing(self, table: BuildTable) -> None:
        if self._kind in KEEPS_RIGHT:
            self._right_matched = np.zeros(table.rows.rows, np.bool_)
        if not table.rows.rows and self._kind not in NEEDS_LEFT:
            self._left.done = True  # nothing can match: do not read the left side at all

    # --- probe --------------------------------------------------------------------------------

    def _start(self, batch: Batch) -> None:
        table = self._table
        assert table is not None
        keys = [batch.column(position) for position in self._left_keys]
        ids = table.find(keys)
        self._probe = _Probe(batch, ids, table)
        self._left_unknown = self._unknown_keys(keys, batch.rows)
        needs_matched = self._kind in (*KEEPS_LEFT, *LEFT_ONLY)
        self._left_matched = np.zeros(batch.rows, np.bool_) if needs_matched else None
        if self._residual is None and self._kind in LEFT_ONLY:
            assert self._left_matched is not None
            self._left_matched = ids > 0
            self._probe.total = 0

    def _unknown_keys(self, keys: Sequence[pa.Array], rows: int) -> Mask | None:
        """True for left rows whose mark is NULL unless they match."""
        if self._unknown is not None:
            return np.zeros(rows, np.bool_)
        if not self._null_aware or not self._nulls.any_rows:
            return None
        if self._nulls.any_null:
            return np.ones(rows, np.bool_)
        return null_rows(keys)

    def _put_out(self, probe: _Probe) -> bool:
        """Put the next piece of the probing batch into ``_batch``; False if there was none."""
        if not probe.exhausted:
            left, right = probe.pairs()
            pairs = self._pairs(probe.batch, left, right)
            if self._unknown is not None and pairs.rows:
                open_pairs = self._unknown.select(pairs)
                assert self._left_unknown is not None
                self._left_unknown[left if open_pairs is None else left[open_pairs]] = True
            if self._residual is not None and pairs.rows:
                passed = self._residual.select(pairs)
                if passed is not None:
                    pairs, left, right = pairs.narrow(passed), left[passed], right[passed]
            if self._left_matched is not None:
                self._left_matched[left] = True
            if self._right_matched is not None:
                self._right_matched[right] = True
            if probe.exhausted and self._left_matched is None:
                self._probe = None
            if self._kind in LEFT_ONLY or pairs.rows == 0:
                return False
            self._batch = pairs.project(self._output)
            return True
        self._probe = None
        matched = self._left_matched
        if matched is None:
            return False
        if self._kind is JoinKind.MARK:
            marks = mark_column(matched, self._left_unknown)
            columns = probe.batch.project(self._output).columns()
            self._batch = Batch([*columns, marks], probe.batch.rows)
            return True
        wanted = np.flatnonzero(matched if self._kind is JoinKind.SEMI else ~matched)
        if len(wanted) == 0:
            return False
        batch = probe.batch if len(wanted) == probe.batch.rows else probe.batch.narrow(wanted)
        if self._kind in LEFT_ONLY:
            self._batch = batch.project(self._output)
        else:
            assert self._table is not None
            nothing = self._table.rows.narrow(np.full(len(wanted), -1, np.int64), outer=True)
            self._batch = batch.beside(nothing).project(self._output)
        return True

    def _pairs(self, batch: Batch, left: Indices, right: Indices) -> Batch:
        assert self._table is not None
        whole = len(left) == batch.rows and self._table.unique
        chosen = batch if whole else batch.narrow(left)
        if not self._right_kept:
            return chosen
        return chosen.beside(self._table.rows.narrow(right))

    # --- the rows of the right side that nobody matched -----------------------------------------

    def _finish(self) -> Progress:
        if self._right_matched is None:
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        if self._right_rest is None:
            self._right_rest = np.flatnonzero(~self._right_matched)
        rest, self._right_rest = self._right_rest[:BATCH_ROWS], self._right_rest[BATCH_ROWS:]
        if len(rest) == 0:
            self._batch = EMPTY
            return Progress.FETCHED_DONE
        assert self._table is not None
        missing = [pa.nulls(len(rest), engine_type(type_)) for type_ in self._left_types]
        batch = Batch(missing, len(rest)).beside(self._table.rows.narrow(rest))
        self._batch = batch.project(self._output)
        return Progress.FETCHED if len(self._right_rest) else Progress.FETCHED_DONE

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        """The table of a fixed right side stays; else it is made of what the right side gives
        now."""
        keeps = self._fixed_right and self._table is not None
        if not self._left.restart() or not (keeps or self._right.restart()):
            return False
        self._probe = None
        self._right_rest = None
        if keeps and self._table is not None:
            self._begin_probing(self._table)
            return True
        self._table = None
        self._right_matched = None
        self._rows.release()
        self._nulls.clear()
        return True

    def close(self) -> None:
        self._batch = EMPTY
        self._table = None
        self._probe = None
        self._rows.clear()
        self._left_matched = self._right_matched = self._right_rest = None
        self._left_unknown = None
        self._memory.clear()
        self._left.close()
        self._right.close()
