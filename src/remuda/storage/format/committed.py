"""The record of a commit as bytes, written out by hand: nearly all records are of this kind, and
the general codec of ``fields`` takes several times as long. The bytes are the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from remuda.errors import DataCorrupted
from remuda.storage.format import records as log

_head: Final = struct.Struct("<4qI")
"""Transaction, near member, partition, timestamp; how many partitions follow."""
_change: Final = struct.Struct("<2qI")
"""Map, version; the size of the key that follows."""
_size: Final = struct.Struct("<I")
_single: Final = "<4qIqBI2qI{}sBI{}s"
"""The whole record of one change in one partition, for a key and a row of some sizes."""
LAYOUTS_KEPT: Final = 4096
_singles: Final[dict[tuple[int, int], Callable[..., bytes]]] = {}


def encode_committed(record: log.Committed) -> bytes:
    partitions, changes = record.partitions, record.changes
    if changes is not None and len(changes) == 1 and len(partitions) == 1:
        change = changes[0]
        key, row = change.key, change.row
        if row is not None:
            part, sizes = record.part, (len(key), len(row))
            pack = _singles.get(sizes) or _single_layout(sizes)
            return pack(
                part.began,
                part.near,
                part.partition,
                record.timestamp,
                1,
                partitions[0],
                1,
                1,
                change.map_id,
                change.schema_version,
                sizes[0],
                key,
                1,
                sizes[1],
                row,
            )
    return _encode_any(record)


def _single_layout(sizes: tuple[int, int]) -> Callable[..., bytes]:
    if len(_singles) >= LAYOUTS_KEPT:
        _singles.clear()  # rows of all sizes: so a layout is made anew now and then
    pack = _singles[sizes] = struct.Struct(_single.format(*sizes)).pack
    return pack


def _encode_any(record: log.Committed) -> bytes:
    part, partitions, changes = record.part, record.partitions, record.changes
    count = len(partitions)
    out = [
        struct.pack(
            f"<4qI{count}q",
            part.began,
            part.near,
            part.partition,
            record.timestamp,
            count,
            *partitions,
        )
    ]
    if changes is None:
        out.append(b"\x00")
        return b"".join(out)
    out.append(b"\x01" + _size.pack(len(changes)))
    for change in changes:
        key, row = change.key, change.row
        out += (_change.pack(change.map_id, change.schema_version, len(key)), key)
        if row is None:
            out.append(b"\x00")
        else:
            out += (b"\x01" + _size.pack(len(row)), row)
    return b"".join(out)


def decode_committed(data: bytes) -> log.Committed:
    """Raises DataCorrupted."""
    try:
        began, near, partition, timestamp, count = _head.unpack_from(data)
        at = _head.size + 8 * count
        if at >= len(data):
            raise DataCorrupted("a commit in the log ends too early")
        partitions = struct.unpack_from(f"<{count}q", data, _head.size)
        changes = None
        if _flag(data, at):
            changes, at = _changes(data, at + 1)
        else:
            at += 1
    except (struct.error, IndexError) as problem:
        raise DataCorrupted(f"a commit in the log cannot be read: {problem}") from problem
    if at != len(data):
        raise DataCorrupted(f"a commit in the log has {len(data)} bytes, {at} are used")
    part = log.PartId(began, near, partition)
    return log.Committed(part, timestamp, partitions, changes)


def _changes(data: bytes, at: int) -> tuple[tuple[log.Change, ...], int]:
    (count,) = _size.unpack_from(data, at)
    at += _size.size
    changes: list[log.Change] = []
    for _ in range(count):
        map_id, version, size = _change.unpack_from(data, at)
        start = at + _change.size
        at = start + size
        key, row = data[start:at], None
        if _flag(data, at):
            (size,) = _size.unpack_from(data, at + 1)
            start = at + 1 + _size.size
            at = start + size
            row = data[start:at]
        else:
            at += 1
        if at > len(data):
            raise DataCorrupted("a change in the log ends too early")
        changes.append(log.Change(map_id, version, key, row))
    return tuple(changes), at


def _flag(data: bytes, at: int) -> bool:
    if data[at] > 1:
        raise DataCorrupted(f"{data[at]} is no truth value")
    return data[at] == 1
