"""The image of a member's stores at one place of its log, as files, which a start reads instead of
the log before it.

The rows are taken in one step of the loop, so the image holds exactly the state of the log up to
``sequence``; rows that end while they are written end again when the log is replayed. Files are
``checkpoint-NUMBER-...``, the manifest is written last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import DataCorrupted, DiskFull
from remuda.formats import CHECKPOINT
from remuda.limits import PARTITIONS
from remuda.storage.format import records as log
from remuda.storage.format.rows_object import decode_rows, encode_rows
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import EVERY_PARTITION, Extraction, Versions
from remuda.world import Disk

PREFIX = "checkpoint-"
MANIFEST = ".json"
FILE_SIZE = 64 * 2**20
"""Bytes of rows in a file, about."""


@dataclass(frozen=True, slots=True)
class ImageHead:
    """``sequence``: of the first record that is not in the image; replay begins at ``replay_from``,
    which is earlier when parts or jobs were open. ``ends``: how parts of several partitions ended
    that others may ask for; ``jobs`` the same of jobs."""

    number: int
    sequence: int
    replay_from: int
    clock: int
    catalog: bytes
    replicated: bool
    ends: Mapping[log.PartId, int | None]
    jobs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ImageRows:
    map_id: int
    schema_version: int
    file: str
    digest: str
    floor: int | None = None
    """The map's changes are in the image since then; None: since the clock of the image."""


def _stem(number: int) -> str:
    return f"{PREFIX}{number:010d}"


def numbers(disk: Disk, root: Path) -> list[int]:
    """Of the checkpoints that are whole."""
    stems = [
        name.removeprefix(PREFIX).removesuffix(MANIFEST)
        for name in disk.names(root)
        if name.startswith(PREFIX) and name.endswith(MANIFEST)
    ]
    return sorted(int(stem) for stem in stems if stem.isdigit())


def remove_others(disk: Disk, root: Path, number: int) -> None:
    """The remains of all checkpoints but one: manifests first, so that none is there in part."""
    keep = _stem(number)
    names = [n for n in disk.names(root) if n.startswith(PREFIX) and not n.startswith(keep)]
    _remove(disk, root, names)


def _remove(disk: Disk, root: Path, names: Sequence[str]) -> None:
    for name in sorted(names, key=lambda name: not name.endswith(MANIFEST)):
        disk.remove(root / name)
    disk.sync_folder(root)


class Taking:
    """Rows to be written, pinned in one step of the loop. Of maps whose changes are kept those too
    that have ended: each with the partitions whose history the store has."""

    def __init__(self, stores: Sequence[tuple[MapStore, frozenset[int]]]) -> None:
        self._pinned: list[tuple[MapSchema, Extraction, int | None]] = []
        for store, history in stores:
            kept = bool(store.schema.options.change_retention)
            extraction = store.extraction(history if kept else EVERY_PARTITION)
            self._pinned.append((store.schema, extraction, store.floor if kept else None))

    def write(self, disk: Disk, root: Path, head: ImageHead) -> tuple[str, int]:
        """On any thread; the manifest's SHA-256 and the number of rows. Raises DiskFull,
        ResourceError; the files that are there then have no manifest, and on a full disk there are
        none."""
        try:
            return self._write_all(disk, root, head)
        except DiskFull:  # what nobody needs would keep it full, and the log waits for room
            stem = _stem(head.number)
            _remove(disk, root, [name for name in disk.names(root) if name.startswith(stem)])
            raise

    def _write_all(self, disk: Disk, root: Path, head: ImageHead) -> tuple[str, int]:
        disk.make_folder(root)
        stem = _stem(head.number)
        entries: list[ImageRows] = []
        rows = 0
        for place, (schema, extraction, floor) in enumerate(self._pinned):
            ended_after = head.clock if floor is None else floor
            for part, batches in enumerate(_files(extraction, ended_after)):
                name = f"{stem}-{schema.map_id}-{place}-{part:04d}.arrow"
                data = encode_rows(batches, batches[0].schema)
                _write(disk, root / name, data)
                digest = hashlib.sha256(data).hexdigest()
                entries.append(ImageRows(schema.map_id, schema.version, name, digest, floor))
                rows += sum(batch.num_rows for batch in batches)
        disk.sync_folder(root)
        manifest = _encode(head, entries)
        disk.write(root / f"{stem}{MANIFEST}", manifest)
        disk.sync_folder(root)
        return hashlib.sha256(manifest).hexdigest(), rows


def _write(disk: Disk, path: Path, data: bytes) -> None:
    if path.name in disk.names(path.parent):  # of a checkpoint that was not finished
        disk.remove(path)
    appender = disk.create(path)
    try:
        appender.append(data)
        appender.sync()
    finally:
        appender.close()


def _files(extraction: Extraction, after: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches of rows that exist after ``after``, with their times, in groups of a file's size."""
    group: list[pa.RecordBatch] = []
    size = 0
    for versions in extraction.versions():
        live = np.flatnonzero(versions.ends > after)
        if not len(live):
            continue
        batch = versions.batch
        if len(live) < batch.num_rows:
            batch = batch.take(pa.array(live))
        columns = [
            pa.array(np.zeros(len(live), dtype=np.uint16)),
            pa.array(versions.begins[live]),
            pa.array(versions.ends[live]),
        ]
        fields = [
            pa.field("__partition", pa.uint16(), nullable=False),
            pa.field("__begin", pa.int64(), nullable=False),
            pa.field("__end", pa.int64(), nullable=False),
        ]
        schema = pa.schema([*fields, *batch.schema])
        group.append(pa.RecordBatch.from_arrays([*columns, *batch.columns], schema=schema))
        size += batch.nbytes
        if size >= FILE_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


# --- manifests ------------------------------------------------------------------------------------


def _encode(head: ImageHead, entries: Sequence[ImageRows]) -> bytes:
    body = {
        "format": CHECKPOINT.number,
        "number": head.number,
        "sequence": head.sequence,
        "replay_from": head.replay_from,
        "clock": head.clock,
        "catalog": head.catalog.hex(),
        "replicated": head.replicated,
        "partitions": PARTITIONS,
        "ends": [[p.began, p.near, p.partition, end] for p, end in head.ends.items()],
        "jobs": dict(head.jobs),
        "rows": [[e.map_id, e.schema_version, e.file, e.digest, e.floor] for e in entries],
    }
    text = json.dumps(body, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"checkpoint": body, "sha256": digest}, sort_keys=True).encode()


def read_head(disk: Disk, root: Path, number: int) -> tuple[ImageHead, list[ImageRows]]:
    """Raises DataCorrupted, UnknownFormat."""
    path = root / f"{_stem(number)}{MANIFEST}"
    try:
        whole = json.loads(disk.read(path))
        body = whole["checkpoint"]
        text = json.dumps(body, sort_keys=True)
        if hashlib.sha256(text.encode()).hexdigest() != whole["sha256"]:
            raise _damaged(path, "its digest is another one")
        CHECKPOINT.check(body.get("format", 1), str(path))  # the first heads had no number
        head = ImageHead(
            body["number"],
            body["sequence"],
            body["replay_from"],
            body["clock"],
            bytes.fromhex(body["catalog"]),
            body["replicated"],
            {log.PartId(began, near, p): end for began, near, p, end in body["ends"]},
            body["jobs"],
        )
        return head, [ImageRows(*entry) for entry in body["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _damaged(path, str(problem)) from problem


def read_rows(disk: Disk, root: Path, rows: ImageRows, schema: MapSchema) -> Versions:
    """Raises DataCorrupted."""
    path = root / rows.file
    data = disk.read(path)
    if hashlib.sha256(data).hexdigest() != rows.digest:
        raise _damaged(path, "its digest is another one")
    try:
        table = decode_rows(data).combine_chunks()
    except DataCorrupted as problem:
        raise _damaged(path, problem.message) from problem
    wanted = engine_schema(schema)
    batch = pa.RecordBatch.from_arrays(
        [
            (column.chunk(0) if column.num_chunks else pa.array([], column.type))
            for column in table.columns[3:]
        ],
        schema=wanted,
    )
    begins, ends = (table.column(place).to_numpy().copy() for place in (1, 2))
    return Versions(schema, batch, begins, ends)


def _damaged(path: Path, why: str) -> DataCorrupted:
    return DataCorrupted(
        f"the checkpoint is damaged: {path}",
        detail=why,
        hint="Restore the member from its copies or from a snapshot; the folder is left as it is.",
    )
