"""Statements about the client's session as they are read: settings, prepared statements; those of
transactions are in ``trees.transaction``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from remuda.datatypes.sql import SqlType
from remuda.errors import Position
from remuda.sql.trees import ast
from remuda.sql.trees.cursors import CursorTree
from remuda.sql.trees.names import Name
from remuda.sql.trees.transaction import TransactionTree

ROLE: Final = "role"
"""The setting of SET ROLE and SET SESSION AUTHORIZATION."""
NO_ROLE: Final = "none"


@dataclass(frozen=True, slots=True)
class SetTree:
    """SET and RESET. ``name`` None: RESET ALL; ``value`` None: the default. ``local``: for the
    current transaction, which ends with the statement. ``tag``: its command tag."""

    name: str | None
    position: Position
    value: str | None
    local: bool = False
    tag: Literal["SET", "RESET"] = "SET"
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ShowSettingTree:
    """``name`` None: SHOW ALL."""

    name: str | None
    position: Position
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class PrepareTree:
    """``statement`` keeps its place in the text: blanks stand before it.
    ``types``: as declared, Kind.NULL for unknown; None for no list. ``parameters``: how many the
    statement has."""

    name: str
    position: Position
    types: tuple[SqlType, ...] | None
    statement: str
    parameters: int
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ExecuteTree:
    """``prefix``: the words before EXECUTE (EXPLAIN with its options), "" for nothing."""

    name: str
    position: Position
    arguments: tuple[ast.Node, ...]
    prefix: str = ""
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DeallocateTree:
    """``name`` None: ALL."""

    name: str | None
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DiscardTree:
    what: Literal["ALL", "PLANS", "SEQUENCES", "TEMP"]
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ListenTree:
    channel: str
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class UnlistenTree:
    """``channel`` None: all."""

    channel: str | None
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class NotifyTree:
    channel: str
    payload: str
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class SetConstraintsTree:
    """SET CONSTRAINTS; ``names`` None: ALL."""

    names: tuple[Name, ...] | None
    deferred: bool
    keys: frozenset[tuple[int, str]] = frozenset()
    """The foreign keys of these names: the map, and the name of the constraint."""
    reads_only: Literal[False] = False


SessionTree: TypeAlias = (
    SetTree
    | ShowSettingTree
    | PrepareTree
    | ExecuteTree
    | DeallocateTree
    | DiscardTree
    | CursorTree
    | ListenTree
    | UnlistenTree
    | NotifyTree
    | SetConstraintsTree
    | TransactionTree
)
