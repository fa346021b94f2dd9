"""Statements: what the parser hands to the binder, and what the binder hands to the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.plan.logical import Logical
from remuda.sql.syntax import Tree


class CatalogReader(Protocol):
    """The maps that a statement may name. ``version`` changes with every change of the catalog."""

    @property
    def version(self) -> int: ...

    def find(self, name: str) -> MapSchema | None: ...

    def names(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """One statement, not yet bound. ``text`` is its own text, ``start`` its offset in the script
    that it came from (0 when it was parsed alone); positions in errors refer to ``text``.

    ``parameters`` is the number of positional parameters: the count of ``?`` or the highest ``$n``.
    """

    text: str
    tree: Tree
    parameters: int
    start: int = 0

    @property
    def reads_only(self) -> bool:
        return self.tree.reads_only


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """``plan.output[i]`` is the result column called ``names[i]`` (names may repeat)."""

    plan: Logical
    names: tuple[str, ...]
    parameter_types: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateMapStatement:
    """``schema.map_id`` is 0: the catalog gives the id."""

    schema: MapSchema
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropMapStatement:
    """``schema`` is None only when the map does not exist and ``if_exists`` is set."""

    name: str
    schema: MapSchema | None
    if_exists: bool


InsertMode: TypeAlias = Literal["insert", "sink"]


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """Rows of ``source`` go into the map of ``schema``: ``source.output`` is all of its columns, in
    schema order, of the schema's types. Mode ``insert`` refuses keys that exist, ``sink`` replaces.

    The source may put out NULL for a column that is NOT NULL: whoever stores the row checks it.
    """

    schema: MapSchema
    source: Logical
    mode: InsertMode
    parameter_types: tuple[SqlType, ...] = ()


class Repeats(Enum):
    """What to do when a statement comes to the same row more than once."""

    NEVER = "never"
    """It cannot, or the owner of the row refuses it."""
    FIRST = "first"
    """The first time counts."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class ChangeStatement:
    """UPDATE, DELETE, and INSERT with ON CONFLICT or RETURNING.

    ``source.output`` is, in this order: all columns of the rows to write, of the schema's types in
    schema order, if it ``writes``; the key columns of the rows to remove if it ``removes``; the
    columns of RETURNING, whose names are ``returning``. A row that is both removed and written
    under the same key is replaced.
    """

    verb: Literal["INSERT", "SINK", "UPDATE", "DELETE"]
    schema: MapSchema
    source: Logical
    writes: bool
    removes: bool
    insert_only: bool
    """A row whose key exists (and is not removed) is refused."""
    reads_target: bool
    """The rows were made from what the map held: they must not have changed since."""
    repeats: Repeats
    returning: tuple[str, ...]
    parameter_types: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class TruncateStatement:
    schema: MapSchema


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    analyze: bool
    verbose: bool
    statement: BoundQuery | InsertStatement | ChangeStatement


class ShowKind(Enum):
    MAPS = "maps"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class ShowStatement:
    """SHOW MAPS | SHOW TABLES (``schema`` is None); SHOW COLUMNS FROM m | DESCRIBE m."""

    kind: ShowKind
    schema: MapSchema | None = None


BoundStatement: TypeAlias = (
    BoundQuery
    | CreateMapStatement
    | DropMapStatement
    | InsertStatement
    | ChangeStatement
    | TruncateStatement
    | ExplainStatement
    | ShowStatement
)
