"""A cut as Parquet, written by any process that reaches the store: in pieces, visible as a whole.

On a local (or mounted) file system the files are written into a folder beside the target, which
gets the target's name when all are there. Other stores cannot rename: there the target has a file
``_SUCCESS`` when it is complete; files that an interrupted export leaves lie without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import fs

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import moment, to_micros
from remuda.errors import DuplicateObject, ResourceError
from remuda.snapshot.pieces import Piece, chosen_maps, pieces_of, rows_of
from remuda.snapshot.store import harmless_url
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.parquet import encoded, folder_of, parquet_batch, parquet_schema
from remuda.storage.snapshot.restoring import RestorePlan

FILE_ROWS: Final = 1_000_000
SUCCESS: Final = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class Exported:
    """Files of one map: their names below the map's folder, and the rows in all."""

    map: str
    rows: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """``path`` in the file system of ``url`` (a folder, or a URL that ``pyarrow.fs`` reads);
    ``work`` is where files are written until all are there."""

    url: str
    path: str
    work: str

    @property
    def renamed(self) -> bool:
        return self.work != self.path


def target_of(url: str, identity: str) -> Target:
    """``identity`` tells this export from others. Raises ResourceError."""
    system, path = _system(url)
    path = path.rstrip("/")
    if isinstance(system, fs.LocalFileSystem):
        folder, _, name = path.rpartition("/")
        return Target(url, path, f"{folder}/.{name}.exporting-{identity}")
    return Target(url, path, path)


def begin_export(target: Target) -> None:
    """Raises DuplicateObject when there is something, ResourceError for what cannot be written."""
    system, _ = _system(target.url)
    try:
        found = system.get_file_info(fs.FileSelector(target.path, allow_not_found=True))
        taken = found or system.get_file_info(target.path).type == fs.FileType.File
        if taken:
            raise DuplicateObject(
                f"the target {harmless_url(target.url)} of the export is there already, and not"
                " empty",
                hint="Export to a new folder, or take away what is there.",
            )
        system.create_dir(target.work, recursive=True)
    except OSError as problem:
        raise _cannot(target, problem) from problem


def export_piece(
    store: ObjectStore,
    key: ObjectKey | None,
    path: RestorePlan,
    piece: Piece,
    *,
    maps: Sequence[str] | None,
    target: Target,
    name: str,
) -> list[Exported]:
    """Write the rows of a piece; ``name`` is another one for each piece and attempt. Raises
    ResourceError, DataCorrupted."""
    found: list[Exported] = []
    rows_by_map = groupby(rows_of(store, key, path, piece, chosen_maps(path, maps)), _schema)
    for schema, pairs in rows_by_map:
        files, rows = [], 0
        for number, table in enumerate(_tables((b for _, b in pairs), schema, _origin(path))):
            file = f"{name}-{number:03}.parquet"
            _put(target, schema.name, file, encoded(table))
            files.append(file)
            rows += table.num_rows
        if files:
            found.append(Exported(schema.name, rows, tuple(files)))
    return found


def _schema(pair: tuple[MapSchema, pa.RecordBatch]) -> MapSchema:
    return pair[0]


def finish_export(
    path: RestorePlan, maps: Sequence[str] | None, target: Target, parts: Sequence[Exported]
) -> list[Exported]:
    """Make the export visible: only the files of ``parts``, and for a map without rows a file that
    has its columns. The maps. Raises ResourceError when a file is missing."""
    system, _ = _system(target.url)
    found: list[Exported] = []
    for schema in chosen_maps(path, maps):
        mine = [part for part in parts if part.map == schema.name]
        files = {file for part in mine for file in part.files}
        if not files:
            files = {"part-empty.parquet"}
            empty = parquet_schema(schema, _origin(path)).empty_table()
            _put(target, schema.name, "part-empty.parquet", encoded(empty))
        _keep(system, target, schema.name, files)
        found.append(Exported(schema.name, sum(part.rows for part in mine), tuple(sorted(files))))
    try:
        with system.open_output_stream(f"{target.work}/{SUCCESS}") as stream:
            stream.write(b"")
        if target.renamed:
            if system.get_file_info(target.path).type == fs.FileType.Directory:
                system.delete_dir(target.path)  # empty, or the export would not have begun
            system.move(target.work, target.path)
    except OSError as problem:
        raise _cannot(target, problem) from problem
    return found


def abandon_export(target: Target) -> None:
    """Take away what was written."""
    system, _ = _system(target.url)
    if system.get_file_info(target.work).type == fs.FileType.Directory:
        system.delete_dir(target.work)


def export_here(
    store: ObjectStore,
    key: ObjectKey | None,
    path: RestorePlan,
    *,
    maps: Sequence[str] | None,
    target: Target,
    pieces: int = 1,
) -> list[Exported]:
    """The whole export in this process, piece by piece."""
    ids = {schema.map_id for schema in chosen_maps(path, maps)}
    begin_export(target)
    try:
        parts: list[Exported] = []
        for number, piece in enumerate(pieces_of(path, ids, pieces)):
            name = f"part-{number:05}"
            parts += export_piece(store, key, path, piece, maps=maps, target=target, name=name)
        return finish_export(path, maps, target, parts)
    except BaseException:
        abandon_export(target)
        raise


def _tables(
    batches: Iterator[pa.RecordBatch], schema: MapSchema, origin: Mapping[str, str]
) -> Iterator[pa.Table]:
    """Of about ``FILE_ROWS`` rows."""
    target = parquet_schema(schema, origin)
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(parquet_batch(batch, schema, target))
        rows += batch.num_rows
        if rows >= FILE_ROWS:
            yield pa.Table.from_batches(held, target)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held, target)


def _origin(path: RestorePlan) -> dict[str, str]:
    cut = path.cut
    return {
        "snapshot": cut.name,
        "cut": str(cut.version),
        "moment": moment(to_micros(path.target.moment)).isoformat(),
    }


def _put(target: Target, name: str, file: str, data: bytes) -> None:
    system, _ = _system(target.url)
    folder = f"{target.work}/{folder_of(name)}"
    try:
        system.create_dir(folder, recursive=True)
        with system.open_output_stream(f"{folder}/{file}") as stream:
            stream.write(data)
    except OSError as problem:
        raise _cannot(target, problem) from problem


def _keep(system: fs.FileSystem, target: Target, name: str, files: set[str]) -> None:
    """Only these files: others are of attempts that do not count."""
    folder = f"{target.work}/{folder_of(name)}"
    there = {
        info.base_name for info in system.get_file_info(fs.FileSelector(folder, recursive=False))
    }
    if files - there:
        raise ResourceError(
            f"file {folder_of(name)}/{min(files - there)} of the export is not there",
            hint="All machines of Spark must reach the same target.",
        )
    for spare in there - files:
        system.delete_file(f"{folder}/{spare}")


def _system(url: str) -> tuple[fs.FileSystem, str]:
    try:
        if "://" in url:
            system, path = fs.FileSystem.from_uri(url)
            return system, path
        return fs.LocalFileSystem(), str(Path(url).absolute())
    except (ValueError, OSError, NotImplementedError) as problem:
        raise ResourceError(
            f"the target {harmless_url(url)} cannot be opened: "
            + str(problem).replace(url, harmless_url(url)),
            hint="Name a folder, or a URL that pyarrow.fs reads, such as s3://bucket/path.",
        ) from problem


def _cannot(target: Target, problem: OSError) -> ResourceError:
    return ResourceError(f"the export cannot be written to {harmless_url(target.url)}: {problem}")
