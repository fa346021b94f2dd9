"""Change streams as plain values: positions that can be stored, pages as batches. Pure.

A batch has the columns of the map (the row after the change; of a delete the row that was removed)
and those of ``OWN_COLUMNS``.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.client.requests.feeds import FeedPage, FeedPositions, Place, Position
from remuda.datatypes.arrow import external_schema, to_external
from remuda.datatypes.schema import Column
from remuda.datatypes.timestamp import LOGICAL_BITS, from_micros
from remuda.errors import DuplicateColumn, InputError
from remuda.formats import STREAM_POSITION
from remuda.limits import PARTITIONS

HEAD: Final = 4
"""Columns of a page before those of the key."""
CHANGE: Final = "_change"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
TRANSACTION: Final = "_transaction"
BEFORE: Final = "_before"
OWN_COLUMNS: Final = (CHANGE, COMMIT_TIMESTAMP, TRANSACTION, BEFORE)
KINDS: Final = ("insert", "update", "delete", "delete")
"""By the numbers of messages; an expired entry is a deleted one."""
SNAPSHOT: Final = "snapshot"
_MOMENT: Final = pa.timestamp("us", "UTC")
LATEST, EARLIEST = "latest", "earliest"
AHEAD: Final = from_micros(60_000_000)
"""By so much, clocks of those who name a moment may be ahead of the grid's."""


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream begins: ``word`` is one of LATEST, EARLIEST and SNAPSHOT, or it goes on from
    ``positions`` of the map ``map_id`` (0: of whichever has the name), or begins at ``snapshot``,
    a timestamp at which the map is read first."""

    word: str = ""
    positions: FeedPositions | None = None
    snapshot: int | None = None
    map_id: int = 0


def stream_start(wanted: Any) -> StreamStart:
    """The place that a user asked for: a word, a moment, a hybrid timestamp, or the position of a
    stream. Raises InputError."""
    if isinstance(wanted, str) and wanted in {LATEST, EARLIEST, SNAPSHOT}:
        return StreamStart(wanted)
    if isinstance(wanted, dt.datetime) and wanted.tzinfo is not None:
        micros = (wanted - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)
        return StreamStart(positions=FeedPositions(max(0, from_micros(micros))))
    if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < 1 << 63:
        return StreamStart(positions=FeedPositions(wanted))
    if isinstance(wanted, Mapping):
        return _read_position(wanted)
    raise InputError(
        f"a stream of changes cannot begin at {wanted!r}",
        hint='Give "latest", "earliest", "snapshot", a datetime with a time zone, a hybrid '
        "timestamp, or the position of another stream.",
    )


def check_not_ahead(timestamp: int, now: int, what: str = "the begin of the stream") -> None:
    """A stream cannot begin behind what the clock of the grid, ``now``, will say soon. Raises
    InputError."""
    if timestamp > now + AHEAD:
        raise InputError(
            f"{what} lies in the future: nothing has been committed by then",
            detail=f"It is the hybrid timestamp {timestamp}, and the grid is at {now}.",
            hint="Begin with latest, or with a moment that is over.",
        )


def position_document(
    map_id: int, positions: FeedPositions | None, snapshot: int | None
) -> dict[str, Any]:
    """A position as JSON can hold it. ``positions`` None: the snapshot has not been read wholly."""
    head = {"format": STREAM_POSITION.number, "map_id": map_id}
    if positions is None:
        return {**head, "snapshot": snapshot}
    found = [
        [time, None if hash_ is None else str(hash_), partitions]
        for (time, hash_), partitions in positions.groups(positions.partitions)
    ]
    if len(found) == 1 and len(positions.partitions) == PARTITIONS:
        found[0][2] = None
    return {**head, "read": found}


def _read_position(document: Mapping[str, Any]) -> StreamStart:
    STREAM_POSITION.check(document.get("format", 1))
    try:
        map_id = _whole(document["map_id"])
        if "snapshot" in document:
            return StreamStart(snapshot=_whole(document["snapshot"]), map_id=map_id)
        at: dict[int, Position] = {}
        for time, hash_, partitions in document["read"]:
            position = _whole(time), None if hash_ is None else _whole(int(hash_), 64)
            for partition in range(PARTITIONS) if partitions is None else partitions:
                at[_whole(partition)] = position
        if sorted(at) != list(range(PARTITIONS)):
            raise ValueError("it does not name every partition")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            "this is not the position of a stream of changes",
            detail=f"{json.dumps(document, default=str)[:200]}: {error}",
        ) from None
    return StreamStart(positions=FeedPositions.at_each(at), map_id=map_id)


def _whole(value: Any, bits: int = 63) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ValueError(f"{value!r} is no whole number of {bits} bits")
    return value


# --- batches --------------------------------------------------------------------------------------


def stream_schema(columns: Sequence[Column]) -> pa.Schema:
    """Of the batches of a map with these columns. Raises DuplicateColumn."""
    for column in columns:
        if column.name in OWN_COLUMNS:
            raise DuplicateColumn(
                f'column "{column.name}" has the name of a column that streams of changes add',
                hint="Rename it: ALTER TABLE ... RENAME COLUMN.",
            )
    fields = [pa.field(f.name, f.type) for f in external_schema(columns)]
    own = [
        pa.field(CHANGE, pa.string()),
        pa.field(COMMIT_TIMESTAMP, _MOMENT),
        pa.field(TRANSACTION, pa.int64()),
        pa.field(BEFORE, pa.struct(fields)),
    ]
    return pa.schema([*fields, *own])


def changed_batch(batch: pa.RecordBatch, page: FeedPage) -> pa.RecordBatch:
    """Changes of a page for the application."""
    count = batch.num_columns - HEAD - len(page.columns)
    keys = len(page.columns) - count
    columns, first = page.columns[keys:], HEAD + keys
    befores = _external(batch.columns[first : first + count], columns)
    afters = _external(batch.columns[first + count :], columns)
    kinds, times = batch.column(0), batch.column(1)
    gone = pc.greater_equal(kinds, pa.scalar(2, kinds.type))
    rows = [_chosen(gone, one, other) for one, other in zip(befores, afters, strict=True)]
    schema = stream_schema(columns)
    absent = pc.equal(kinds, pa.scalar(0, kinds.type))
    before = pa.StructArray.from_arrays(
        befores, fields=list(schema.field(BEFORE).type), mask=absent
    )
    return pa.RecordBatch.from_arrays(
        [*rows, pa.array(KINDS).take(kinds), _moments(times), times, before], schema=schema
    )


def snapshot_batch(
    batch: pa.RecordBatch, columns: Sequence[Column], timestamp: int
) -> pa.RecordBatch:
    """Rows of a snapshot, which come in the form for applications."""
    schema, rows = stream_schema(columns), batch.num_rows
    times = pa.array(np.full(rows, timestamp, np.int64))
    own = [pa.repeat(SNAPSHOT, rows), _moments(times), times]
    return pa.RecordBatch.from_arrays(
        [*batch.columns, *own, pa.nulls(rows, schema.field(BEFORE).type)], schema=schema
    )


def until(batch: pa.RecordBatch, end: Place) -> pa.RecordBatch:
    """Of a page: the changes up to a place."""
    time, partition, hash_ = end
    times = batch.column(1).to_numpy()
    if partition is None:
        inside = times <= time
    else:
        partitions, hashes = batch.column(2).to_numpy(), batch.column(3).to_numpy()
        within = (partitions < partition) | (
            (partitions == partition) & (hashes <= np.uint64(hash_))
        )
        inside = (times < time) | ((times == time) & within)
    return batch if inside.all() else batch.filter(pa.array(inside))


def _external(arrays: Sequence[pa.Array], columns: Sequence[Column]) -> list[pa.Array]:
    return [to_external(array, c.type) for array, c in zip(arrays, columns, strict=True)]


def _moments(times: pa.Array) -> pa.Array:
    return pa.array(times.to_numpy() >> LOGICAL_BITS, pa.int64()).cast(_MOMENT)


def _chosen(gone: pa.Array, before: pa.Array, after: pa.Array) -> pa.Array:
    """``pc.if_else``, for all types."""
    rows = len(gone)
    places = np.arange(rows) + np.where(gone.to_numpy(zero_copy_only=False), 0, rows)
    return pa.concat_arrays([before, after]).take(pa.array(places))
