"""One statement for many rows of parameters; an INSERT of rows as one statement over arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remuda.client.core.core import Core
from remuda.client.requests.requests import NO_OPTIONS
from remuda.client.values.values import typed_parameters
from remuda.datatypes import sql
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import DataError, InputError, TypeMismatch, WrongParameters

if TYPE_CHECKING:
    from remuda.client.asynchronous.prepared import Statement

_ROWS = 10_000
_SIZE = 8 * 1024 * 1024
"""Rows, and bytes of text and binary values, of one INSERT at most."""
_MARK = r"(?:\?|\$[0-9]+)"
_INSERT = re.compile(
    rf"""\s*(insert\s+into\s+
        (?:"(?:[^"]|"")*"|[\w.])+\s*                 # the map
        (?:\((?:"(?:[^"]|"")*"|[^()"'])*\))?)\s*     # its columns
        \bvalues\s*\(\s*({_MARK}(?:\s*,\s*{_MARK})*)\s*\)\s*;?\s*""",
    re.IGNORECASE | re.VERBOSE,
)


async def execute_many(core: Core, statement: Statement, rows: Iterable[Sequence[Any]]) -> int:
    """Run ``statement`` once per row; the number of rows that were written, -1 if it writes none.

    ``INSERT INTO m VALUES (?, ?)`` with nothing but parameters inserts up to ``_ROWS`` rows at a
    time, all of them or none; any other statement runs row after row, and so does a row whose
    values have other types than the columns: the member converts it, as in ``Client.sql``.
    """
    types = statement.parameter_types
    columns = _inserted(statement.text, len(types))
    if columns is None or any(t.kind in (Kind.ARRAY, Kind.ROW) for t in types):
        return await _one_by_one(statement, rows)
    inserted = 0
    for chunk in _chunks(rows, types):
        if isinstance(chunk, _Unlike):
            inserted += await chunk.insert(statement)
        else:
            inserted += await _insert(core, columns, types, chunk)
    return inserted


@dataclass(frozen=True)
class _Unlike:
    """A row whose values have other types than the columns. ``number`` counts from 1."""

    number: int
    row: Sequence[Any]

    async def insert(self, statement: Statement) -> int:
        try:
            reader = await statement.run((self.row,), None)
            await reader.close()
        except (DataError, InputError) as error:
            raise type(error)(f"row {self.number}: {error.message}", hint=error.hint) from error
        return reader.rowcount


def _inserted(text: str, count: int) -> tuple[str, list[int]] | None:
    """The beginning of an INSERT of bare parameters, and the number of the parameter that each of
    its columns gets; None for every other statement."""
    match = _INSERT.fullmatch(text)
    if match is None:
        return None
    marks = [mark.strip() for mark in match[2].split(",")]
    if all(mark == "?" for mark in marks):
        numbers = list(range(1, len(marks) + 1))
    elif "?" in marks:
        return None
    else:
        numbers = [int(mark[1:]) for mark in marks]
    return (match[1], numbers) if set(numbers) == set(range(1, count + 1)) else None


async def _insert(
    core: Core,
    columns: tuple[str, list[int]],
    types: tuple[SqlType, ...],
    rows: Sequence[Sequence[PhysicalValue]],
) -> int:
    begin, numbers = columns
    names = [f"__p{number}" for number in range(1, len(types) + 1)]
    listed = ", ".join(f"__p{number}" for number in numbers)
    marks = ", ".join("?" for _ in types)
    source = f"unnest({marks}) AS __rows ({', '.join(names)})"
    text = f"{begin} SELECT {listed} FROM {source}"  # noqa: S608  (the user's own text, and names)
    arrays: list[PhysicalValue] = list(zip(*rows, strict=True))
    array_types = tuple(sql.array(declared) for declared in types)
    reader = await core.execute(text, arrays, array_types, NO_OPTIONS)
    await reader.close()
    return reader.rowcount


def _chunks(
    rows: Iterable[Sequence[Any]], types: tuple[SqlType, ...]
) -> Iterator[list[list[PhysicalValue]] | _Unlike]:
    """The rows as physical values, in chunks that fit one statement; those between that have other
    types by themselves."""
    chunk: list[list[PhysicalValue]] = []
    size = 0
    for number, row in enumerate(rows, start=1):
        values = _sequence(row)
        try:
            physical = typed_parameters(values, types)
        except WrongParameters as error:
            raise type(error)(f"row {number}: {error.message}") from error
        except (DataError, TypeMismatch):
            if chunk:
                yield chunk
                chunk, size = [], 0
            yield _Unlike(number, values)
            continue
        chunk.append(physical)
        size += sum(len(value) for value in physical if isinstance(value, str | bytes))
        if len(chunk) == _ROWS or size >= _SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


async def _one_by_one(statement: Statement, rows: Iterable[Sequence[Any]]) -> int:
    affected = 0
    for row in rows:
        reader = await statement.run((_sequence(row),), None)
        await reader.close()
        count = reader.rowcount
        affected = -1 if affected < 0 or count < 0 else affected + count
    return affected


def _sequence(row: Any) -> Sequence[Any]:
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise InputError(
            f"the parameters of a row are a sequence, found {type(row).__name__}",
            hint="Like (1, 'a') or [1, 'a'].",
        )
    return tuple(row)
