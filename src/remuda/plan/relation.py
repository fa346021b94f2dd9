"""The root of relational algebra: a node with columns, which have ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from remuda.datatypes.sql import SqlType

ColumnId: TypeAlias = int


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column that an operator puts out."""

    id: ColumnId
    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Logical:
    """``output`` lists the columns in order; every other node refers to them by id."""

    output: tuple[OutputColumn, ...]
    _ids: frozenset[ColumnId] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def column_ids(self) -> frozenset[ColumnId]:
        """The ids of ``output``; computed once, because rules ask for them all the time."""
        found = self._ids
        if found is None:
            found = frozenset([column.id for column in self.output])
            object.__setattr__(self, "_ids", found)
        return found
