"""Cut files into pieces that tasks read on their own.

Parquet by row groups, Arrow files by record batches, CSV and JSON lines by byte ranges that begin
and end between records; compressed text, Arrow streams and JSON arrays stay whole.
"""

from __future__ import annotations

import glob
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from remuda.errors import InputError

Format = Literal["parquet", "csv", "json", "arrow"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)

SPLIT_SIZE: Final = 24 * 1024 * 1024
"""Bytes of a piece: uncompressed for Parquet, as they lie in the file for all others."""
SPLIT_SIZE_MIN: Final = 1024 * 1024
SCAN_SIZE: Final = 4 * 1024 * 1024
"""Bytes looked at in one go when the end of a record is searched."""

_ENDINGS: Final[dict[str, Format]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_ARROW_MAGIC: Final = b"ARROW1"
_NEWLINE: Final = 10
_QUOTE: Final = 34


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a file.

    ``start`` and ``stop`` count row groups (Parquet), record batches (Arrow) or bytes (text);
    ``stop`` is None for the whole file. ``first_row`` is known for Parquet only.
    """

    path: str
    format: Format
    start: int
    stop: int | None
    size: int
    rows: int | None = None
    first_row: int | None = None


def find_files(source: str | os.PathLike[str]) -> list[str]:
    """The files of ``source``: one file, all below a directory, or all that match a glob."""
    text = os.fspath(source)
    path = Path(text)
    if path.is_file():
        return [text]
    if path.is_dir():
        found = [str(p) for p in sorted(path.rglob("*")) if p.is_file() and not _hidden(p, path)]
    elif glob.has_magic(text):
        found = sorted(p for p in glob.glob(text, recursive=True) if os.path.isfile(p))
    else:
        raise InputError(f"no such file or directory: {text}")
    if not found:
        raise InputError(f"no files in {text}")
    return found


def _hidden(path: Path, root: Path) -> bool:
    """Spark and others leave files such as ``_SUCCESS`` and ``.part.crc`` beside the data."""
    return any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)


def file_format(path: str) -> Format:
    """The format that the name tells. Raises ``InputError`` when it tells none."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSIONS:
        ending = os.path.splitext(stem)[1]
    found = _ENDINGS.get(ending)
    if found is None:
        raise InputError(
            f"the format of {path} is unknown", hint="name it: --format " + "|".join(FORMATS)
        )
    return found


def compression_of(path: str) -> str | None:
    return COMPRESSIONS.get(os.path.splitext(path.lower())[1])


def plan_splits(
    files: Sequence[str],
    format_: Format | None,
    parallelism: int,
    *,
    split_size: int | None = None,
    quotes: bool = True,
) -> list[Split]:
    """Pieces of all ``files`` in order, enough of them to keep ``parallelism`` tasks busy.

    Raises ``InputError`` for a file that cannot be read as what it should be.
    """
    if split_size is None:
        total = sum(os.path.getsize(path) for path in files)
        split_size = min(SPLIT_SIZE, max(SPLIT_SIZE_MIN, total // (parallelism * 3)))
    splits: list[Split] = []
    for path in files:
        kind = format_ or file_format(path)
        try:
            if kind == "parquet":
                splits += _parquet(path, split_size)
            elif kind == "arrow":
                splits += _arrow(path, split_size)
            else:
                splits += _text(path, kind, split_size, quotes=quotes and kind == "csv")
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read as {kind}: {first_line(error)}") from error
    return splits


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _parquet(path: str, split_size: int) -> Iterator[Split]:
    metadata = pq.read_metadata(path)
    start, size, rows, first = 0, 0, 0, 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        size += group.total_byte_size
        rows += group.num_rows
        if size >= split_size or index == metadata.num_row_groups - 1:
            yield Split(path, "parquet", start, index + 1, size, rows, first)
            first += rows
            start, size, rows = index + 1, 0, 0


def _arrow(path: str, split_size: int) -> Iterator[Split]:
    total = os.path.getsize(path)
    with open(path, "rb") as file:
        if file.read(len(_ARROW_MAGIC)) != _ARROW_MAGIC:
            yield Split(path, "arrow", 0, None, total)
            return
    with pa.memory_map(path) as mapped:
        batches = pa.ipc.open_file(mapped).num_record_batches
    if batches == 0:
        return
    pieces = min(batches, max(1, total // split_size))
    for index in range(pieces):
        yield Split(
            path,
            "arrow",
            batches * index // pieces,
            batches * (index + 1) // pieces,
            total // pieces,
        )


def _text(path: str, kind: Format, split_size: int, *, quotes: bool) -> Iterator[Split]:
    size = os.path.getsize(path)
    if size == 0:
        return
    if compression_of(path) is not None or (kind == "json" and _is_json_array(path)):
        yield Split(path, kind, 0, None, size)
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        ends = record_ends(mapped, split_size, quotes=quotes)
    start = 0
    for end in ends:
        yield Split(path, kind, start, end, end - start)
        start = end


def _is_json_array(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4096).lstrip()[:1] == b"["


def record_ends(data: mmap.mmap | bytes, split_size: int, *, quotes: bool) -> list[int]:
    """Offsets just behind a record, about ``split_size`` bytes apart; the last is the data's end.

    A line break inside quotes ends no record. Quotes come in pairs (a quote inside quotes is
    doubled), so a place is outside of quotes when the number of quotes before it is even. A file
    with an odd number of quotes does not keep to that and is not cut.
    """
    size = len(data)
    ends: list[int] = []
    wanted, inside = split_size, 0
    with memoryview(data) as view:
        for base in range(0, size, SCAN_SIZE):
            block = np.frombuffer(view[base : base + SCAN_SIZE], dtype=np.uint8)
            if base + len(block) > wanted:
                for end in _breaks(block, inside if quotes else None):
                    if base + end >= wanted:
                        ends.append(base + end)
                        wanted = base + end + split_size
            if quotes:
                inside = (inside + int(np.count_nonzero(block == _QUOTE))) % 2
            del block
    if inside:
        ends.clear()
    if not ends or ends[-1] != size:
        ends.append(size)
    return ends


def _breaks(block: npt.NDArray[np.uint8], inside: int | None) -> list[int]:
    """Offsets in ``block`` just behind line breaks that end a record."""
    breaks = np.flatnonzero(block == _NEWLINE)
    if inside is not None:
        before = np.searchsorted(np.flatnonzero(block == _QUOTE), breaks)
        breaks = breaks[(before + inside) % 2 == 0]
    found: list[int] = (breaks + 1).tolist()
    return found
