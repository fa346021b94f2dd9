"""Secondary indexes as definitions: which columns of a map, in which order, in which kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from remuda.datatypes.sql import Kind, SqlType


class IndexKind(Enum):
    """SORTED serves equality, ranges, prefixes and order; HASH equality of all of its columns;
    BITMAP equality and inequality of columns with few different values."""

    SORTED = "sorted"
    HASH = "hash"
    BITMAP = "bitmap"


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    name: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.name} DESC" if self.descending else self.name


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index of a map. ``index_id`` is unique for the life of the cluster.

    Plans use an index once it is ``ready``: built on every member. Its NULLs come last (first where
    a column is descending), as in PostgreSQL.
    """

    name: str
    kind: IndexKind
    columns: tuple[IndexedColumn, ...]
    index_id: int = 0
    ready: bool = False
    unique: bool = False
    """No two rows have the same values in all of its columns."""
    constraint: bool = False
    """Of a unique one: UNIQUE in the definition of the map has made it."""
    nulls_distinct: bool = True
    """Of a unique one: rows with a NULL among the values are never the same."""
    oid: int = field(default=0, compare=False, repr=False)
    constraint_oid: int = field(default=0, compare=False, repr=False)
    """Of the constraint that has made it."""
    comment: str = field(default="", compare=False, repr=False)
    constraint_comment: str = field(default="", compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def __str__(self) -> str:
        return f"{self.kind.value} ({', '.join(map(str, self.columns))})"


_WORDS: Final = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.REAL,
        Kind.DOUBLE,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
    }
)
_STRINGS: Final = frozenset({Kind.CHAR, Kind.VARCHAR, Kind.BYTEA, Kind.UUID, Kind.ENUM})


def is_word(sql_type: SqlType) -> bool:
    """Whether values of the type are kept as one 64-bit integer each in an index."""
    return sql_type.kind in _WORDS or sql_type.is_short_decimal


def can_be_indexed(sql_type: SqlType) -> bool:
    return is_word(sql_type) or sql_type.kind in _STRINGS or sql_type.kind is Kind.DECIMAL
