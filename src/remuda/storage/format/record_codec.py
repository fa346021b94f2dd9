"""Records of the log as bytes. A kind number is never given to another record; a record whose
fields change gets a new number, so old logs stay readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from remuda.errors import DataCorrupted
from remuda.storage.format import records as log
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

_LAYOUTS: Final[Mapping[int, FieldCodec]] = {
    1: composed(
        log.Prepared,
        part=PART,
        timestamp=INTEGER,
        partitions=several(INTEGER),
        work=BLOB,
        changes=CHANGES,
    ),
    2: composed(
        log.Committed,
        part=PART,
        timestamp=INTEGER,
        partitions=several(INTEGER),
        changes=optional(CHANGES),
    ),
    3: composed(log.RolledBack, part=PART),
    4: composed(
        log.StagedRows,
        job=TEXT,
        task=TEXT,
        number=INTEGER,
        map_id=INTEGER,
        schema_version=INTEGER,
        rows=BLOB,
    ),
    5: composed(
        log.JobPrepared,
        job=TEXT,
        timestamp=INTEGER,
        map_id=INTEGER,
        tasks=several(TEXT),
        overwrite=FLAG,
        participants=several(INTEGER),
    ),
    6: composed(log.JobCommitted, job=TEXT, timestamp=INTEGER, entry=BLOB),
    7: composed(log.JobRolledBack, job=TEXT),
    8: composed(log.CatalogChanged, version=INTEGER, timestamp=INTEGER, edits=BLOB, text=TEXT),
    9: composed(log.CutStart, version=INTEGER, timestamp=INTEGER),
    10: composed(log.CutFinish, version=INTEGER, before=UNITS, after=UNITS),
    11: composed(log.PartitionTaken, view=INTEGER, partition=INTEGER, timestamp=INTEGER),
    12: composed(
        log.CopiedRows,
        view=INTEGER,
        partition=INTEGER,
        map_id=INTEGER,
        schema_version=INTEGER,
        rows=BLOB,
    ),
    13: composed(log.PartitionReady, view=INTEGER, partition=INTEGER, logged=FLAG),
    14: composed(log.PartitionLeft, view=INTEGER, partition=INTEGER),
    15: composed(
        log.Checkpoint,
        number=INTEGER,
        timestamp=INTEGER,
        replay_from=INTEGER,
        image=TEXT,
        digest=BLOB,
    ),
    16: composed(log.Closed, timestamp=INTEGER),
    17: composed(log.Stopped, timestamp=INTEGER),
}
_KINDS: Final[Mapping[type[Any], int]] = {
    log.Prepared: 1,
    log.Committed: 2,
    log.RolledBack: 3,
    log.StagedRows: 4,
    log.JobPrepared: 5,
    log.JobCommitted: 6,
    log.JobRolledBack: 7,
    log.CatalogChanged: 8,
    log.CutStart: 9,
    log.CutFinish: 10,
    log.PartitionTaken: 11,
    log.CopiedRows: 12,
    log.PartitionReady: 13,
    log.PartitionLeft: 14,
    log.Checkpoint: 15,
    log.Closed: 16,
    log.Stopped: 17,
}


def encode_record(record: log.Record) -> tuple[int, bytes]:
    """The kind number and the payload."""
    kind = _KINDS[type(record)]
    out: list[bytes] = []
    _LAYOUTS[kind].write(out, record)
    return kind, b"".join(out)


def decode_record(kind: int, payload: bytes) -> log.Record:
    """Raises ``DataCorrupted`` for a kind that this version does not know, or other fields."""
    layout = _LAYOUTS.get(kind)
    if layout is None:
        raise DataCorrupted(
            f"a record is of kind {kind}, which this version does not know",
            hint="The log was written by a newer version of Remuda.",
        )
    source = FieldReader(payload)
    record: log.Record = layout.read(source)
    source.finish()
    return record
