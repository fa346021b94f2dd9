"""The schema of a map: its columns, its key, and how it is laid over the members."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from remuda.datatypes.sql import SqlType

KEY_COLUMN = "__key"
VALUE_COLUMN = "this"


class ValueShape(Enum):
    """What ``get`` gives back: a row with named fields, or one bare value (column ``this``)."""

    ROW = "row"
    SCALAR = "scalar"


@dataclass(frozen=True)
class Column:
    """A column of a map or a result: its name as spelled, its SQL type, whether it may be NULL."""

    name: str
    type: SqlType
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


@dataclass(frozen=True)
class MapSchema:
    """An immutable schema; every change makes a new one with a higher ``version``.

    ``key`` names the key columns in order (never nullable). ``partition_by`` is the subset of
    ``key`` whose hash decides the partition; it is ``key`` itself unless the map names a
    partition attribute. ``map_id`` is unique for the life of the cluster: a map dropped and
    created again under the same name has another id.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    replicated: bool = False
    value_shape: ValueShape = ValueShape.ROW
    map_id: int = 0
    version: int = 1

    @cached_property
    def position(self) -> dict[str, int]:
        """Column name -> position in ``columns``."""
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def key_positions(self) -> tuple[int, ...]:
        """Positions of the key columns, in the order of ``key``."""
        return tuple(self.position[name] for name in self.key)

    @cached_property
    def partition_positions(self) -> tuple[int, ...]:
        """Positions of the columns whose hash decides the partition, in that order."""
        return tuple(self.position[name] for name in self.partition_by)

    @cached_property
    def value_positions(self) -> tuple[int, ...]:
        """Positions of the columns that are no key columns."""
        keys = set(self.key_positions)
        return tuple(i for i in range(len(self.columns)) if i not in keys)

    def column(self, name: str) -> Column:
        """The column called ``name``, exactly as it is spelled; KeyError without one."""
        return self.columns[self.position[name]]
