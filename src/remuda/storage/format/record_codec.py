"""Records of the log as bytes. A kind number is never given to another record; a record whose
fields change gets a new number, so old logs stay readable. (5 was never written by a member.)"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import Any, Final

from remuda.errors import UnknownFormat
from remuda.storage.format import records as log
from remuda.storage.format.committed import decode_committed, encode_committed
from remuda.storage.format.fields import (
    BLOB,
    FLAG,
    INTEGER,
    TEXT,
    FieldCodec,
    FieldReader,
    composed,
    optional,
    several,
)

COMMITTED: Final = 2
"""The kind of nearly all records."""
_part: Final = struct.Struct("<3q")
"""A ``PART``, with which the records of a part begin."""
APART: Final = 64 * 1024
"""Fields of at least so many bytes are not copied."""
PART: Final = composed(log.PartId, began=INTEGER, near=INTEGER, partition=INTEGER)
CHANGES: Final = several(
    composed(log.Change, map_id=INTEGER, schema_version=INTEGER, key=BLOB, row=optional(BLOB))
)


def _write_unit(out: list[bytes], unit: log.Unit) -> None:
    FLAG.write(out, isinstance(unit, str))
    (TEXT if isinstance(unit, str) else PART).write(out, unit)


def _read_unit(source: FieldReader) -> Any:
    return (TEXT if FLAG.read(source) else PART).read(source)


_units: Final = several(FieldCodec(_write_unit, _read_unit))


def _write_units(out: list[bytes], units: frozenset[log.Unit]) -> None:
    _units.write(out, tuple(sorted(units, key=str)))  # one set, one encoding


UNITS: Final = FieldCodec(_write_units, lambda source: frozenset(_units.read(source)))

_RECORDS: Final[Mapping[int, tuple[type[Any], Mapping[str, FieldCodec]]]] = {
    1: (
        log.Prepared,
        {
            "part": PART,
            "timestamp": INTEGER,
            "partitions": several(INTEGER),
            "work": BLOB,
            "changes": CHANGES,
        },
    ),
    COMMITTED: (
        log.Committed,
        {
            "part": PART,
            "timestamp": INTEGER,
            "partitions": several(INTEGER),
            "changes": optional(CHANGES),
        },
    ),
    3: (log.RolledBack, {"part": PART}),
    4: (
        log.StagedRows,
        {
            "job": TEXT,
            "task": TEXT,
            "number": INTEGER,
            "map_id": INTEGER,
            "schema_version": INTEGER,
            "rows": BLOB,
        },
    ),
    6: (log.JobCommitted, {"job": TEXT, "timestamp": INTEGER, "entry": BLOB}),
    7: (log.JobRolledBack, {"job": TEXT}),
    8: (
        log.CatalogChanged,
        {"version": INTEGER, "timestamp": INTEGER, "edits": BLOB, "text": TEXT},
    ),
    9: (log.CutStart, {"version": INTEGER, "timestamp": INTEGER}),
    10: (log.CutFinish, {"version": INTEGER, "before": UNITS, "after": UNITS}),
    11: (log.PartitionTaken, {"view": INTEGER, "partition": INTEGER, "timestamp": INTEGER}),
    12: (
        log.CopiedRows,
        {
            "view": INTEGER,
            "partition": INTEGER,
            "map_id": INTEGER,
            "schema_version": INTEGER,
            "rows": BLOB,
        },
    ),
    13: (log.PartitionReady, {"view": INTEGER, "partition": INTEGER, "logged": FLAG}),
    14: (log.PartitionLeft, {"view": INTEGER, "partition": INTEGER}),
    15: (
        log.Checkpoint,
        {
            "number": INTEGER,
            "timestamp": INTEGER,
            "replay_from": INTEGER,
            "image": TEXT,
            "digest": BLOB,
        },
    ),
    16: (log.Closed, {"timestamp": INTEGER}),
    17: (log.Stopped, {"timestamp": INTEGER}),
    18: (
        log.StagedKeys,
        {
            "job": TEXT,
            "task": TEXT,
            "number": INTEGER,
            "map_id": INTEGER,
            "schema_version": INTEGER,
            "keys": BLOB,
        },
    ),
    19: (
        log.JobPrepared,
        {
            "job": TEXT,
            "timestamp": INTEGER,
            "map_id": INTEGER,
            "tasks": several(TEXT),
            "overwrite": FLAG,
            "participants": several(INTEGER),
            "ttl": INTEGER,
        },
    ),
    20: (
        log.LogsHeard,
        {"logs": several(composed(log.HeardLog, member=INTEGER, identity=BLOB, sequence=INTEGER))},
    ),
}
_LAYOUTS: Final = {kind: composed(made, **items) for kind, (made, items) in _RECORDS.items()}
_KINDS: Final = {made: kind for kind, (made, _) in _RECORDS.items()}


def kinds_of(records: Collection[type[log.Record]]) -> frozenset[int]:
    """Their kind numbers."""
    return frozenset(_KINDS[each] for each in records)


_OF_PARTS: Final = kinds_of((log.Prepared, log.Committed, log.RolledBack))


def encode_record(record: log.Record) -> tuple[int, bytes]:
    """The kind number and the payload."""
    if type(record) is log.Committed:
        return COMMITTED, encode_committed(record)
    kind, payload, rest = encode_apart(record)
    return kind, payload + rest if rest else payload


def encode_apart(record: log.Record) -> tuple[int, bytes, bytes]:
    """The kind number, and the payload in two parts: the second is a large last field as it is
    (rows, of which every copy costs), or empty."""
    kind = _KINDS[type(record)]
    out: list[bytes] = []
    _LAYOUTS[kind].write(out, record)
    rest = out.pop() if len(out[-1]) >= APART else b""
    return kind, b"".join(out), rest


def partition_of(kind: int, payload: bytes) -> int | None:
    """The partition of a record of a part, and nothing else of it; None: another kind of record, or
    one that ends too early."""
    if kind not in _OF_PARTS or len(payload) < _part.size:
        return None
    partition: int = _part.unpack_from(payload)[2]
    return partition


def decode_record(kind: int, payload: bytes) -> log.Record:
    """Raises ``UnknownFormat`` for a kind that this release does not know, and ``DataCorrupted``
    for other fields."""
    if kind == COMMITTED:
        return decode_committed(payload)
    layout = _LAYOUTS.get(kind)
    if layout is None:
        raise UnknownFormat(
            f"a record of the log is of kind {kind}, which this release of Remuda does not know",
            hint="A newer release of Remuda wrote it. Start the member with that release; the log"
            " is left as it is.",
        )
    source = FieldReader(payload)
    record: log.Record = layout.read(source)
    source.finish()
    return record
