"""The source of a COPY FROM as pieces of its data: files, texts, bytes, rows, Arrow data."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from remuda.client.operations.bulk import as_table
from remuda.client.values.convert import encoded_column, encoder
from remuda.copying.options import CopyOptions, Format
from remuda.copying.writing import RowWriter
from remuda.datatypes.arrow import to_engine
from remuda.datatypes.schema import Column
from remuda.errors import DataError, InputError, ObjectMismatch, TypeMismatch
from remuda.limits import KIB

PIECE: Final = 512 * KIB
ROWS: Final = 8 * KIB
"""Rows that are encoded at a time."""
_BINARY: Final = CopyOptions(format=Format.BINARY)

Pieces = AsyncIterator[bytes]


class Rows:
    """Rows or record batches, which become COPY's binary format once the columns are known.
    ``names`` are the columns that they have themselves; None: rows have those of the COPY."""

    def __init__(self, items: AsyncIterator[Any], names: Sequence[str] | None = None) -> None:
        self._items = items
        self.names = names

    async def encoded(self, name: str, columns: Sequence[Column]) -> Pieces:
        """Raises ObjectMismatch for a value that does not fit its column in the map ``name``."""
        types = [column.type for column in columns]
        writer = RowWriter([c.name for c in columns], types, _BINARY, "UTC", framed=False)
        encoders = [encoder(name, column) for column in columns]
        waiting: list[Sequence[Any]] = []
        number = 0

        def flush() -> bytes:
            values = zip(*waiting, strict=True)
            arrays = [
                encoded_column(column, encode, each)
                for column, encode, each in zip(columns, encoders, values, strict=True)
            ]
            count = len(waiting)
            waiting.clear()
            return bytes(writer.rows(arrays, count))

        async for item in self._items:
            if isinstance(item, pa.RecordBatch):
                for start in range(0, item.num_rows, ROWS):
                    part = item.slice(start, ROWS)
                    yield bytes(writer.rows(_engine(name, columns, part), part.num_rows))
                continue
            number += 1
            if not isinstance(item, tuple | list) or len(item) != len(columns):
                raise ObjectMismatch(
                    f"row {number} of the COPY is {_described(item)}, not a tuple or list of "
                    f"{len(columns)} values",
                    detail="columns: " + ", ".join(str(column) for column in columns),
                )
            waiting.append(item)
            if len(waiting) == ROWS:
                yield flush()
        if waiting:
            yield flush()
        yield writer.tail()


def _described(item: object) -> str:
    if isinstance(item, tuple | list):
        return f"a {type(item).__name__} of {len(item)}"
    return f"of type {type(item).__name__}"


def _engine(name: str, columns: Sequence[Column], batch: pa.RecordBatch) -> list[pa.Array]:
    found = []
    for column, array in zip(columns, batch.columns, strict=True):
        try:
            found.append(to_engine(array, column.type))
        except (DataError, TypeMismatch) as error:
            raise ObjectMismatch(f'map "{name}", field "{column.name}": {error.message}') from error
    return found


async def source_of(source: Any) -> Rows | Pieces:
    """Raises InputError for what is no source; OSError's words as an InputError."""
    if isinstance(source, str | os.PathLike):
        return _of_file(source)
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return _each(data[start : start + PIECE] for start in range(0, len(data), PIECE))
    table = as_table(source)
    if table is not None:
        return Rows(_each(table.to_batches()), table.column_names)
    if hasattr(source, "read"):
        return _of_reader(source.read)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return Rows(_each(reader), reader.schema.names)
    if isinstance(source, AsyncIterable):
        return await _of_items(source.__aiter__())
    if isinstance(source, Iterable) and not isinstance(source, dict):
        return await _of_items(_each(source))
    raise InputError(
        f"copy_from cannot read from {type(source).__name__}",
        hint="Give a path, an open file, bytes, Arrow data, or an iterable of rows or bytes.",
    )


async def _of_items(items: AsyncIterator[Any]) -> Rows | Pieces:
    first = await anext(items, None)
    if first is None:
        return _each(())
    whole = _with_first(first, items)
    if isinstance(first, str | bytes | bytearray | memoryview):
        return _gathered(whole)
    return Rows(whole, first.schema.names if isinstance(first, pa.RecordBatch) else None)


async def _with_first(first: Any, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
    yield first
    async for item in items:
        yield item


async def _each(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def _of_file(path: str | os.PathLike[str]) -> Pieces:
    try:
        file = Path(path).open("rb")  # noqa: SIM115 (closed by the generator)
    except OSError as error:
        raise InputError(f'could not open file "{path}" for reading: {error.strerror}') from error

    async def pieces() -> Pieces:
        with file:
            try:
                while data := file.read(PIECE):
                    yield data
            except OSError as error:
                raise InputError(f'could not read file "{path}": {error.strerror}') from error

    return pieces()


async def _of_reader(read: Callable[[int], Any]) -> Pieces:
    while True:
        found = read(PIECE)
        data = _bytes(await found if inspect.isawaitable(found) else found)
        if not data:
            return
        yield data


async def _gathered(items: AsyncIterator[Any]) -> Pieces:
    """Small items together: each piece is a message."""
    waiting: list[bytes] = []
    size = 0
    async for item in items:
        data = _bytes(item)
        waiting.append(data)
        size += len(data)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _bytes(item: object) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes | bytearray | memoryview):
        return bytes(item)
    raise InputError(f"the data of a COPY is bytes or text, not {type(item).__name__}")
