"""The heavy part of the steps of a large commit, done on another thread: putting rows in order and
finding the stored versions of their keys.

Nothing is decided here. A result that has been worked out is used if the index is still the same
(its ``stamp``), and worked out again by the step itself if not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.errors import InternalError, RemudaError
from remuda.storage.chunks.chunk_table import ChunkTable
from remuda.storage.chunks.key_index import KeyIndex, Run, match_runs
from remuda.storage.chunks.keys import KeyRule
from remuda.storage.staging.removals import Removals
from remuda.storage.staging.staging import Match, PreparedRows, Staging

HEAVY_ROWS: Final = 32 * 1024
"""Jobs of at least this size here (5 ms of work) are arranged and matched off the loop."""

Work: TypeAlias = Callable[[], Callable[[], None]]


class Ahead:
    def __init__(
        self,
        keys: KeyRule,
        table: ChunkTable,
        index: KeyIndex,
        staging: Staging,
        removals: Removals,
    ) -> None:
        self.keys = keys
        """Of any schema of the map: to compare keys."""
        self._table = table
        self._index = index
        self._staging = staging
        self._removals = removals
        self._running = 0

    @property
    def holds(self) -> bool:
        """Upkeep must rest: versions that have been found must stay where they are."""
        if self._running:
            return True
        pending = self._staging.pending
        return bool(pending) and (
            self._staging.matched() or any(map(self._removals.matched, pending))
        )

    def work(self, job: str, tasks: Collection[str], *, overwrite: bool) -> Work | None:
        """The heavy part of the job's next step; None: it is not heavy, or done already."""
        staging, removals, index = self._staging, self._removals, self._index
        written, removed = staging.prepared(job), removals.prepared(job)
        if isinstance(written, RemudaError):
            return None
        rows = written.rows if written is not None else staging.unarranged_rows(job)
        if rows + removals.rows(job) < HEAVY_ROWS:
            return None
        write = written is None or not (overwrite or written.stamp == index.stamp)
        remove = bool(removals.rows(job)) and (removed is None or removed.stamp != index.stamp)
        if not (write or remove):
            return None
        accepted = staging.close(job, tasks)
        keys_gone = removals.close(job, tasks)
        remove = remove and (removed is not None or bool(keys_gone))
        write_keys, remove_keys = staging.keys_of(job), removals.keys_of(job)
        index.freeze()
        stamp, runs = index.stamp, index.runs
        self._running += 1

        def arrange_both() -> tuple[PreparedRows | None, PreparedRows | None]:
            first = second = None
            if write:
                first = written or staging.arranged(accepted, write_keys, overwrite=overwrite)
                self._match(first, runs, stamp, found=not overwrite)
            if remove:
                second = removed or removals.arranged(keys_gone, remove_keys)
                self._match(second, runs, stamp, found=True)
            return first, second

        def run() -> Callable[[], None]:
            try:
                both = arrange_both()
            except RemudaError as error:
                refusal = error
            except Exception as error:  # noqa: BLE001 (a bug must not keep upkeep resting)
                refusal = InternalError(f"{type(error).__name__}: {error}")
            else:
                return lambda: self._keep(job, *both)
            return lambda: self._keep(job, refusal, None)

        return run

    def _match(
        self, rows: PreparedRows, runs: Sequence[Run], stamp: tuple[int, bool], *, found: bool
    ) -> None:
        matched = list(matches(self.keys, self._table, runs, rows)) if found else None
        rows.found = stamp, matched

    def _keep(
        self, job: str, written: PreparedRows | RemudaError | None, removed: PreparedRows | None
    ) -> None:
        self._running -= 1
        if written is not None:
            self._staging.keep(job, written)
        if removed is not None:
            self._removals.keep(job, removed)


def matches(
    keys: KeyRule, table: ChunkTable, runs: Sequence[Run], rows: PreparedRows
) -> Iterator[Match]:
    """The stored versions of the rows' keys, chunk by chunk. Any thread, while upkeep rests."""
    columns: list[pa.Array] | None = None
    for found, slots in match_runs(runs, rows.hashes):
        if columns is None and not keys.exact:
            columns = rows.key_columns()
        for chunk, indexes, offsets in table.groups(slots):
            matched = rows.order[found[indexes]]
            if columns is not None:
                same = keys.equal(chunk, offsets, columns, matched)
                matched, offsets = matched[same], offsets[same]  # noqa: PLW2901
            yield chunk, matched, offsets
