"""Changes of a map as pages for a client: those that concern its query, as one Arrow stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.schema import Column
from remuda.datatypes.timestamp import EXPIRY_MARK
from remuda.execution.arrays import Indices
from remuda.limits import ENCODED_BATCH_SIZE_MAX
from remuda.member.changes.change_logs import News
from remuda.rpc import arrow_stream
from remuda.session.watching import WatchedQuery
from remuda.storage.chunks.layout import Layouts
from remuda.storage.maps.change_log import NONE, Changes, Place

INSERTED, UPDATED, REMOVED, EXPIRED = 0, 1, 2, 3
_HEAD = [
    pa.field("#kind", pa.int8()),
    pa.field("#timestamp", pa.int64()),
    pa.field("#partition", pa.uint16()),
    pa.field("#hash", pa.uint64()),
]


@dataclass(frozen=True, slots=True)
class Page:
    """``last`` is the place of the last change that was looked at, when there are more: its
    timestamp, partition and hash."""

    rows: int
    body: bytes
    last: Place | None


def key_columns(query: WatchedQuery) -> list[Column]:
    return [query.schema.columns[position] for position in query.schema.key_positions]


def page_of(news: News, query: WatchedQuery, rows: int, *, keys_only: bool) -> Page:
    """The first of the changes, about as many as ``rows`` and as one frame may hold."""
    changes = news.changes
    while True:
        taken = changes.first(rows)
        batch = _batch(taken, query, keys_only=keys_only)
        if batch.nbytes <= ENCODED_BATCH_SIZE_MAX or rows <= 1 or len(taken) <= 1:
            break
        rows = min(rows, len(taken)) // 2
    last = changes.place(len(taken) - 1) if len(taken) < len(changes) else news.end
    body = bytes(arrow_stream.encode(batch.schema, [batch])) if batch.num_rows else b""
    return Page(batch.num_rows, body, last)


def _batch(changes: Changes, query: WatchedQuery, *, keys_only: bool) -> pa.RecordBatch:
    layouts = Layouts(query.schema)
    sides = [_side(changes, slots, query, layouts) for slots in (changes.old, changes.new)]
    old, new = sides
    told = np.flatnonzero((old.places != NONE) | (new.places != NONE))
    before, after = old.places[told], new.places[told]
    kinds = np.where(before == NONE, INSERTED, np.where(after == NONE, REMOVED, UPDATED))
    times = changes.times[told]
    kinds[(kinds == REMOVED) & (times & EXPIRY_MARK == EXPIRY_MARK)] = EXPIRED
    arrays: list[pa.Array] = [
        pa.array(kinds.astype(np.int8)),
        pa.array(times),
        pa.array(changes.partitions[told]),
        pa.array(changes.hashes[told]),
    ]
    fields = list(_HEAD)
    where = np.where(after == NONE, before, after + len(old.keys[0]))
    for column, olds, news in zip(key_columns(query), old.keys, new.keys, strict=True):
        arrays.append(pa.concat_arrays([olds, news]).take(pa.array(where)))
        fields.append(pa.field(column.name, arrays[-1].type))
    if not keys_only:
        for side, places in ((old, before), (new, after)):
            wanted = pa.array(places, mask=places == NONE)
            for column, values in zip(query.columns, side.columns, strict=True):
                arrays.append(values.take(wanted))
                fields.append(pa.field(column.name, arrays[-1].type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


@dataclass(slots=True)
class _Side:
    """The rows before, or after, that are in the result: ``places`` says where each change has its
    row (NONE: it has none there)."""

    places: Indices
    keys: list[pa.Array]
    columns: list[pa.Array]


def _side(changes: Changes, slots: Indices, query: WatchedQuery, layouts: Layouts) -> _Side:
    there = np.flatnonzero(slots != NONE)
    rows = changes.rows(slots[there], layouts)
    chosen, columns = query.select(rows)
    places = np.full(len(changes), NONE, dtype=np.int64)
    places[there[chosen]] = np.arange(len(chosen))
    picked = rows if len(chosen) == rows.num_rows else rows.take(pa.array(chosen))
    keys = [picked.column(position) for position in query.schema.key_positions]
    return _Side(places, keys, columns or _empty(query.columns))


def _empty(columns: Sequence[Column]) -> list[pa.Array]:
    return [pa.array([], type=engine_type(column.type)) for column in columns]
