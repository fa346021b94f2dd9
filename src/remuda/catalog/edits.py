"""Changes of the catalog that are made together or not at all. ALTER, DROP, CREATE VIEW and COMMENT
come down to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from remuda.datatypes.schema import MapSchema, Namespace, ViewDefinition
from remuda.datatypes.sql import EnumType


@dataclass(frozen=True, slots=True)
class PutMap:
    """A new map (``map_id`` is 0), or another schema for the map of that id, perhaps renamed.
    Columns without an id are new ones."""

    schema: MapSchema


@dataclass(frozen=True, slots=True)
class DropMap:
    name: str


@dataclass(frozen=True, slots=True)
class PutView:
    """A new view, or another definition for the view of that id."""

    view: ViewDefinition


@dataclass(frozen=True, slots=True)
class DropView:
    name: str


@dataclass(frozen=True, slots=True)
class PutNamespace:
    """A new schema (``oid`` is 0), or another name, owner or comment for the schema of that OID.
    Further edits move its relations when it gets another name."""

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class DropNamespace:
    """The relations that are in it are dropped by further edits, or refuse it."""

    name: str


@dataclass(frozen=True, slots=True)
class PutType:
    """A new enum (``oid`` is 0), or another definition for the enum of that OID, which its columns
    get in the same version."""

    enum: EnumType


@dataclass(frozen=True, slots=True)
class DropType:
    oid: int


class DecidedTransaction(NamedTuple):
    """The end of a transaction with definitions, as the catalog has decided: its near member, and
    the timestamp by which that names it. It is kept as long as somebody may ask."""

    began: int
    member: int
    timestamp: int = 0
    """At which its rows commit; 0: it has rolled back."""

    def same(self, other: DecidedTransaction) -> bool:
        """Whether both are of one transaction."""
        return self[:2] == other[:2]


Edit: TypeAlias = (
    PutMap | DropMap | PutView | DropView | PutNamespace | DropNamespace | PutType | DropType
)
