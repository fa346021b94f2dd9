"""Statements that begin, end and divide transactions, as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from remuda.errors import Position
from remuda.transaction.isolation import Modes


@dataclass(frozen=True, slots=True)
class BeginTree:
    """``tag``: BEGIN or START TRANSACTION."""

    modes: Modes
    tag: str
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CommitTree:
    """``chain``: another transaction with the same modes begins at once."""

    chain: bool
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class RollbackTree:
    chain: bool
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class SavepointTree:
    name: str
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class RollbackToTree:
    name: str
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ReleaseTree:
    name: str
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class SetTransactionTree:
    """``session``: for the client's later transactions, not for this one."""

    modes: Modes
    session: bool
    position: Position
    reads_only: Literal[False] = False


TransactionTree: TypeAlias = (
    BeginTree
    | CommitTree
    | RollbackTree
    | SavepointTree
    | RollbackToTree
    | ReleaseTree
    | SetTransactionTree
)
