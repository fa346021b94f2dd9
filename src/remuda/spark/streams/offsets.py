"""How far a stream has read a map, as Spark keeps it in the checkpoint of a query.

An offset is in a snapshot (so many partitions of the map at a timestamp have been read) or behind a
place in the order of changes. Spark keeps the ends of batches only, and asks anew where the first
one began when it has to be repeated: so each offset says where its stream began.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from remuda.client.requests.feeds import Place
from remuda.datatypes.timestamp import from_micros
from remuda.errors import InputError
from remuda.formats import SPARK_OFFSET
from remuda.limits import PARTITIONS

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
SNAPSHOT: Final = "snapshot"


@dataclass(frozen=True, slots=True)
class Offset:
    """``read``: how many partitions of the snapshot at ``place``'s timestamp have been read; None:
    everything up to ``place``. ``origin``: the timestamp with which the stream began, and whether
    with a snapshot."""

    map_id: int
    place: Place
    read: int | None
    origin: tuple[int, bool]

    @classmethod
    def first(cls, map_id: int, timestamp: int, *, snapshot: bool) -> Offset:
        read = 0 if snapshot else None
        return cls(map_id, (timestamp, None, 0), read, (timestamp, snapshot))

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Offset:
        SPARK_OFFSET.check(document.get("format", 1), "the checkpoint of the query")
        try:
            partition, hash_ = document.get("partition"), int(document.get("hash", 0))
            return cls(
                int(document["map_id"]),
                (int(document["timestamp"]), partition, hash_),
                document.get("snapshot_partitions"),
                (int(document["origin"]), bool(document["origin_snapshot"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the checkpoint has an offset that is not one of remuda: {dict(document)}",
                hint="Begin the query with a new checkpointLocation.",
            ) from error

    def document(self) -> dict[str, Any]:
        timestamp, partition, hash_ = self.place
        found: dict[str, Any] = {
            "format": SPARK_OFFSET.number,
            "map_id": self.map_id,
            "timestamp": timestamp,
            "origin": self.origin[0],
            "origin_snapshot": self.origin[1],
        }
        if partition is not None:
            found |= {"partition": partition, "hash": str(hash_)}  # 64 bits without a sign
        if self.read is not None:
            found["snapshot_partitions"] = self.read
        return found

    def behind(self, place: Place) -> Offset:
        return replace(self, place=place, read=None)

    def within(self, read: int) -> Offset:
        """``read`` partitions of the snapshot have been read; with all of them, changes follow."""
        return replace(self, read=read if read < PARTITIONS else None)

    @property
    def began(self) -> Offset:
        """Where the stream of this offset began."""
        return Offset.first(self.map_id, self.origin[0], snapshot=self.origin[1])


def batch_start(start: Offset, end: Offset) -> Offset:
    """Where a batch begins: the first one, repeated, is told another begin than it had."""
    return start if start.origin == end.origin else end.began


def is_before(one: Place, other: Place) -> bool:
    return _order(one) < _order(other)


def _order(place: Place) -> tuple[int, int, int]:
    timestamp, partition, hash_ = place
    return timestamp, PARTITIONS if partition is None else partition, hash_


def starting_timestamp(text: str) -> int | None:
    """The hybrid timestamp that option "startingFrom" names; None for its words. Raises
    InputError."""
    if text.lower() in {LATEST, EARLIEST, SNAPSHOT}:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(
            f'option "startingFrom" is snapshot, latest, earliest or a moment, not {text!r}',
            hint="A moment has a time zone: 2024-01-31 12:00:00+00:00.",
        )
    micros = (moment - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)
    return max(0, from_micros(micros))
