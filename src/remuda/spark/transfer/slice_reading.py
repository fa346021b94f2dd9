"""The rows of some partitions of a map at one timestamp, each exactly once, wherever they are.

A slice is read in pieces: one statement for some partitions of one member. The rows of a statement
are handed on when it has ended, so a piece whose member is lost is read again, from the member that
has its partitions then. A piece that is larger than ``HELD_SIZE`` is handed on while it is read; if
its member is lost then, the attempt fails, and Spark runs the task again from its start.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from remuda.client.blocking.client import Client
from remuda.client.network.known_members import without_owner
from remuda.datatypes.view import NOBODY
from remuda.errors import (
    PartitionsLost,
    QueryCanceled,
    QueryTimeout,
    SchemaChanged,
    SnapshotTooOld,
    TransientError,
)

SCAN_PAGE_ROWS: Final = 64 * 1024
"""Rows per page of a scan into Spark: whole batches, not the small pages of a person's cursor."""
PIECE_SIZE: Final = 32 * 1024 * 1024
"""Bytes that the rows of a piece should have, as far as that is known."""
HELD_SIZE: Final = 2 * PIECE_SIZE
PATIENCE: Final = 60.0
"""Seconds without any row after which a grid that cannot serve a piece is given up: well above the
time in which the members notice a loss and others take over."""
_PAUSE: Final = 0.2
_PAUSE_MAX: Final = 2.0
_FINAL = (SnapshotTooOld, QueryTimeout, QueryCanceled, SchemaChanged, PartitionsLost)
"""Errors that do not go away by asking again."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows that are read of each piece."""

    statement: str
    parameters: tuple[object, ...]
    at: int | None
    timeout: float | None
    pieces: int = 1
    """Into how many pieces a slice is cut."""


def pieces_of(client: Client, partitions: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """The partitions in about ``count`` groups, each of one owner, as the client knows them now."""
    owners = client.cluster_info().view.owners
    by_owner: dict[int, list[int]] = {}
    for partition in partitions:
        by_owner.setdefault(owners[partition], []).append(partition)
    found: list[tuple[int, ...]] = []
    for owned in by_owner.values():
        share = max(1, round(count * len(owned) / len(partitions)))
        found += [tuple(owned[index::share]) for index in range(min(share, len(owned)))]
    return found


def read_slice(client: Client, scan: Scan, partitions: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """All rows of these partitions. Raises what a statement raises; TransientError when the grid
    cannot serve a piece for ``PATIENCE``."""
    waiting: deque[tuple[int, ...]] = deque(pieces_of(client, partitions, scan.pieces))
    patience = _Patience()
    while waiting:
        piece = waiting.popleft()
        given = False
        try:
            owned = pieces_of(client, piece, 1)
            if len(owned) > 1:  # it was one member's when the pieces were made
                waiting.extendleft(owned)
                continue
            for batch in _piece(client, scan, piece):
                given = True
                yield batch
        except TransientError as error:
            if given or isinstance(error, _FINAL):
                raise
            patience.wait(error)
            waiting.appendleft(piece)
        else:
            patience = _Patience()


def read_whole(client: Client, scan: Scan) -> Iterator[pa.RecordBatch]:
    """The result of a query, from any member."""
    patience = _Patience()
    while True:
        given = False
        try:
            cursor = client.query(
                scan.statement,
                scan.parameters,
                at=scan.at,
                timeout=scan.timeout,
                page_rows=SCAN_PAGE_ROWS,
            )
            for batch in held(cursor.batches()):
                given = True
                yield batch
        except TransientError as error:
            if given or isinstance(error, _FINAL):
                raise
            patience.wait(error)
        else:
            return


def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, when all of them are there, or more than ``HELD_SIZE`` bytes."""
    kept: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        kept.append(batch)
        size += batch.nbytes
        if size > HELD_SIZE:
            break
    yield from kept
    kept.clear()
    yield from batches


def _piece(client: Client, scan: Scan, piece: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    view = client.cluster_info().view
    owner = view.owners[piece[0]]
    if owner == NOBODY:
        raise without_owner(view)
    cursor = client.query(
        scan.statement,
        scan.parameters,
        member=owner,
        partitions=piece,
        at=scan.at,
        local=True,
        timeout=scan.timeout,
        page_rows=SCAN_PAGE_ROWS,
    )
    yield from held(cursor.batches())


class _Patience:
    """Pauses between tries, growing, and their end."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + PATIENCE
        self._pause = _PAUSE

    def wait(self, error: TransientError) -> None:
        """Raises ``error`` when it has lasted too long."""
        if time.monotonic() + self._pause > self._ends:
            raise error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _PAUSE_MAX)
