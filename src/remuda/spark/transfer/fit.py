"""Lay the columns of a source over the columns of a map, or say exactly why they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import (
    DuplicateColumn,
    InvalidDefinition,
    NotSupported,
    TypeMismatch,
    UndefinedColumn,
)
from remuda.spark.transfer.types import fits

MADE: Final = -1
"""Instead of a position: the column is the key that rows of a map without one get as they come."""
COMPUTED: Final = -2
"""The column is a generated one, which members compute."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as a DataFrame or a file has it. ``type`` is None when SQL has no such type."""

    name: str
    type: SqlType | None
    shown: str
    """The type as the source calls it, for messages."""


def new_schema(
    name: str,
    columns: Sequence[SourceColumn],
    key: Sequence[str],
    *,
    replicated: bool = False,
    partition_by: Sequence[str] = (),
) -> MapSchema:
    """The schema of a map made for a source: its columns as they are, the key NOT NULL."""
    if not key:
        raise InvalidDefinition(
            f"map {name} does not exist and no key is named",
            hint="name the key columns (option key, --key), or CREATE TABLE first",
        )
    names = _distinct(name, columns)
    for wanted in (*key, *partition_by):
        if wanted not in names:
            raise UndefinedColumn(
                f"key column {wanted} of map {name} is not in the source",
                detail=f"the source has {', '.join(names)}",
                hint=_case_hint(wanted, names),
            )
    strangers = [column for column in partition_by if column not in key]
    if strangers:
        raise InvalidDefinition(f"partition column {strangers[0]} of map {name} is not in its key")
    made = []
    for column in columns:
        if column.type is None:
            raise NotSupported(
                f"column {column.name} of the source has type {column.shown}, "
                "which maps cannot hold",
                hint="leave the column out, or turn it into text or several columns",
            )
        made.append(Column(column.name, column.type, nullable=column.name not in key))
    return MapSchema(
        name=name,
        columns=tuple(made),
        key=tuple(key),
        partition_by=tuple(partition_by or key),
        replicated=replicated,
    )


def lossless(found: SourceColumn, expected: Column) -> bool:
    """Every value of the source's type has a place in the map's."""
    return found.type is not None and fits(found.type, expected.type)


def fit(
    schema: MapSchema,
    columns: Sequence[SourceColumn],
    accepts: Callable[[SourceColumn, Column], bool] = lossless,
) -> list[int]:
    """For each column of the map, the position of its source column, ``MADE`` or ``COMPUTED``.

    Every column of the map that users see must be there, and none beyond. ``accepts`` says which
    types go together; sources whose rows are refused one by one are less strict than ``lossless``.
    """
    names = _distinct(schema.name, columns)
    for name in names:
        if name not in schema.position:
            raise UndefinedColumn(
                f"map {schema.name} has no column {name}",
                detail=f"it has {', '.join(column.name for column in schema.shown)}",
                hint=_case_hint(name, list(schema.position)),
            )
    positions = []
    for column in schema.columns:
        if column.generated:  # also if the source has read it from a map
            positions.append(COMPUTED)
            continue
        if column.name not in names:
            if column.name == ROW_ID:
                positions.append(MADE)
                continue
            raise UndefinedColumn(
                f"column {column.name} of map {schema.name} ({column.type}) "
                "is missing in the source",
                hint=_case_hint(column.name, names)
                or "whole rows are written: add the column, with NULLs if need be",
            )
        position = names.index(column.name)
        found = columns[position]
        if not accepts(found, column):
            raise TypeMismatch(
                f"column {column.name} of map {schema.name}: expected {column.type}, "
                f"found {found.shown}",
                hint="cast the column in the source to the type of the map",
            )
        positions.append(position)
    return positions


def check_key(schema: MapSchema, key: Sequence[str]) -> None:
    """The key that the user names must be the one that the map has."""
    if key and schema.has_row_ids:
        raise InvalidDefinition(
            f"map {schema.name} exists without a key, not with ({', '.join(key)})"
        )
    if key and tuple(key) != schema.key:
        raise InvalidDefinition(
            f"map {schema.name} exists with key ({', '.join(schema.key)}), not ({', '.join(key)})"
        )


def check_replicated(schema: MapSchema, replicated: bool | None) -> None:
    if replicated is not None and replicated != schema.replicated:
        kind = "replicated" if schema.replicated else "partitioned"
        raise InvalidDefinition(f"map {schema.name} exists and is {kind}")


def _distinct(name: str, columns: Sequence[SourceColumn]) -> list[str]:
    names = [column.name for column in columns]
    for index, column in enumerate(names):
        if column in names[:index]:
            raise DuplicateColumn(f"the source for map {name} has two columns {column}")
    return names


def _case_hint(wanted: str, names: Sequence[str]) -> str:
    similar = [name for name in names if name.lower() == wanted.lower()]
    return f"names differ in case: {similar[0]}" if similar else ""
