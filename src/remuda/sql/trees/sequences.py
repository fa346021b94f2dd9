"""Statements about sequences as they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from remuda.datatypes.schema import Identity
from remuda.errors import Position
from remuda.sql.trees.names import Name


@dataclass(slots=True)
class SequenceClauses:
    """The clauses of a statement; None: it has none of the kind. A bound that is "no" is the
    default of the type. ``owner`` is (table, column), or () for OWNED BY NONE."""

    type: Name | None = None
    start: int | None = None
    increment: int | None = None
    minimum: int | Literal["no"] | None = None
    maximum: int | Literal["no"] | None = None
    cache: int | None = None
    cycle: bool | None = None
    owner: tuple[Name, ...] | None = None
    name: Name | None = None
    """Of the sequence of an identity column."""
    restarts: bool = False
    restart: int | None = None
    """None with ``restarts``: where it has started."""
    positions: dict[str, Position] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdentityClause:
    """GENERATED ALWAYS or BY DEFAULT AS IDENTITY; ``kind`` None: as it is."""

    kind: Identity | None
    clauses: SequenceClauses
    position: Position


@dataclass(frozen=True, slots=True)
class CreateSequenceTree:
    name: Name
    if_not_exists: bool
    clauses: SequenceClauses
    temporary: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class AlterSequenceTree:
    name: Name
    if_exists: bool
    clauses: SequenceClauses
    reads_only: Literal[False] = False
