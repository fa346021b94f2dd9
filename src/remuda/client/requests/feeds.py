"""Reading changes: positions, requests and answers as plain values. Pure.

A position says how far a partition has been read. The present primary of the partition is asked
from there on, so a change comes exactly once, whichever members have the partition meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from remuda.client.requests.requests import Call, Clock
from remuda.client.values.arrow_stream import decode_stream
from remuda.client.values.decoding import python_values
from remuda.datatypes.arrow import to_external
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.limits import PARTITIONS
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.packing import packer

Place = tuple[int, int | None, int]
"""How far everything is known: a timestamp, or, in the middle of what was committed at it, also a
partition and a hash. Places are the order of changes, the same on every member."""
Position = tuple[int, int | None]
"""A timestamp, and, if only a part of what was committed at it is known, the last hash of that."""
_HEAD = 4
"""Columns of changes before those of the key."""


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """A query whose changes are read; ``name`` is that of the subscription."""

    name: str
    kind: str
    text: str
    parameters: Sequence[PhysicalValue]
    types: tuple[SqlType, ...]
    keys_only: bool = False
    arrow: bool = False
    """Pages have ``batches``, not ``changes``."""


@dataclass(frozen=True, slots=True)
class Change:
    """``kind`` is a number, see ``feed_events.KINDS``; ``old`` and ``new`` are rows of the query,
    Python values."""

    kind: int
    timestamp: int
    hash: int
    """Of the key."""
    key: tuple[Any, ...]
    old: tuple[Any, ...] | None
    new: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """An answer. ``through`` is how far everything has been told: a timestamp, or, in the middle of
    what was committed at it, also a partition and a hash."""

    columns: tuple[Column, ...]
    changes: list[Change]
    through: Place
    map_id: int
    confirmed: bool = False
    """``through`` lies above every write that was acknowledged before the request was sent."""
    partitions: tuple[int, ...] = ()
    """That were asked for."""
    kept_since: int = 0
    """The member can tell all their changes after it."""
    batches: tuple[pa.RecordBatch, ...] = ()
    """As they come: kind, timestamp, partition, hash, columns of the key, of the query before, of
    the query after; in engine form."""


class FeedPositions:
    """Of all partitions, or of those that are wanted."""

    def __init__(self, timestamp: int, partitions: Iterable[int] | None = None) -> None:
        self.partitions = tuple(range(PARTITIONS) if partitions is None else sorted(partitions))
        self._at: dict[int, Position] = dict.fromkeys(self.partitions, (timestamp, None))

    @classmethod
    def after(cls, place: Place, partitions: Iterable[int] | None = None) -> FeedPositions:
        """Everything up to a place in the order of changes is known."""
        found = cls(0, partitions)
        found.reach(found.partitions, place)
        return found

    @classmethod
    def at_each(cls, positions: Mapping[int, Position]) -> FeedPositions:
        found = cls(0, positions)
        found._at |= positions
        return found

    @property
    def each(self) -> Mapping[int, Position]:
        return self._at

    def at(self, partition: int) -> Position:
        return self._at[partition]

    @property
    def low(self) -> int:
        """Everything at or below it has been told."""
        return min(time if hash_ is None else time - 1 for time, hash_ in self._at.values())

    def before(self, end: Place) -> list[int]:
        """The partitions that have not been read up to a place."""
        wanted = FeedPositions.after(end, self.partitions)
        return [p for p in self.partitions if _before(self._at[p], wanted.at(p))]

    def skip(self, partitions: Iterable[int], timestamp: int) -> None:
        """Changes before ``timestamp`` will not be told."""
        for partition in partitions:
            if self._at[partition][0] < timestamp:
                self._at[partition] = (timestamp, None)

    def groups(self, partitions: Iterable[int]) -> Iterator[tuple[Position, list[int]]]:
        """Partitions by their position."""
        found: dict[Position, list[int]] = {}
        for partition in partitions:
            found.setdefault(self._at[partition], []).append(partition)
        yield from found.items()

    def advance(self, partitions: Iterable[int], page: FeedPage) -> None:
        """The answer to a request for ``partitions`` has come."""
        self.reach(partitions, page.through)

    def reach(self, partitions: Iterable[int], place: Place) -> None:
        """Everything up to ``place`` is known of ``partitions``."""
        time, last, hash_ = place
        for partition in partitions:
            reached: Position = (time, None)
            if last is not None and partition == last:
                reached = (time, hash_)
            elif last is not None and partition > last:
                reached = (time - 1, None)
            if _before(self._at[partition], reached):
                self._at[partition] = reached


def _before(one: Position, other: Position) -> bool:
    """Whether ``other`` is further."""
    if one[0] != other[0]:
        return one[0] < other[0]
    if one[1] is None:
        return False
    return other[1] is None or one[1] < other[1]


def changes_read(  # noqa: PLR0917 (what, from where, how)
    query: FeedQuery,
    positions: FeedPositions,
    partitions: Sequence[int],
    wait: float,
    rows: int,
    map_id: int,
    clock: Clock,
    view: int,
) -> Call[FeedPage]:
    body = user_pb2.ChangesRequest(
        subscription=query.name,
        kind=query.kind,
        text=query.text,
        parameter_types=type_codec.encode_types(query.types),
        parameters=packer(query.types).pack(query.parameters) if query.types else b"",
        context=common_pb2.Context(clock=clock.value, view=view),
        wait=wait,
        rows=rows,
        keys_only=query.keys_only,
        map_id=map_id,
    )
    for (time, hash_), some in positions.groups(partitions):
        each = body.positions.add(partitions=some, timestamp=time)
        if hash_ is not None:
            each.hash = hash_

    def parse(pbody: bytes) -> FeedPage:
        message = user_pb2.ChangesPage.FromString(pbody)
        clock.observe(message.context)
        columns = tuple(codec.decode_column(column) for column in message.columns)
        partition = message.partition if message.HasField("partition") else None
        arrow, body = query.arrow, message.changes
        return FeedPage(
            columns,
            [] if arrow else list(_changes(body, columns, query.keys_only)),
            (message.timestamp, partition, message.hash),
            message.map_id,
            message.confirmed,
            tuple(partitions),
            message.kept_since,
            tuple(decode_stream(body)[1]) if arrow and body else (),
        )

    return Call(user_pb2.CHANGES_READ, body, parse)


def changes_end(name: str) -> Call[None]:
    return Call(user_pb2.CHANGES_END, user_pb2.ChangesEnd(subscription=name), lambda _: None)


def _changes(data: bytes, columns: tuple[Column, ...], keys_only: bool) -> Iterator[Change]:
    """``columns`` are those of the key, then of the query; the stream has the latter twice."""
    if not data:
        return
    _, batches = decode_stream(data)
    for batch in batches:
        arrays = batch.columns
        width = 0 if keys_only else len(arrays) - _HEAD - len(columns)
        keys = len(columns) - width
        listed = [*columns, *columns[keys:]]
        found = [
            python_values(to_external(array, column.type), column)
            for array, column in zip(arrays[_HEAD:], listed, strict=True)
        ]
        rows = batch.num_rows
        key = _tuples(found[:keys], rows)
        # A row of the query that is NULL in all columns is still a row: the kind tells.
        old = _tuples(found[keys : keys + width], rows)
        new = _tuples(found[keys + width :], rows)
        kinds, times, hashes = (arrays[place].to_pylist() for place in (0, 1, 3))
        for place, kind in enumerate(kinds):
            has_old, has_new = kind != 0 and width > 0, kind < _REMOVED and width > 0
            yield Change(
                kind,
                times[place],
                hashes[place],
                key[place],
                old[place] if has_old else None,
                new[place] if has_new else None,
            )


_REMOVED = 2
"""From this kind on there is no row after."""


def _tuples(columns: Sequence[Sequence[Any]], rows: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * rows
