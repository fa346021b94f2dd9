"""The form in which a statement about the cluster itself, or about the work of others, comes from
the parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class AcceptLossTree:
    """Partitions whose every copy is lost begin again without a row."""

    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DrainTree:
    """The member gives everything away and leaves the cluster."""

    member: int
    position: Position
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class FinishUpgradeTree:
    """The cluster works in the version of its members' release from now on."""

    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ResetStatementsTree:
    """All members forget what sys.statement_statistics has."""

    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class LogLevelTree:
    """``part`` "": all that have no level of their own; ``member`` None: all members."""

    part: str
    level: str
    member: int | None
    position: Position
    reads_only: Literal[False] = False


ClusterTree: TypeAlias = (
    AcceptLossTree | DrainTree | FinishUpgradeTree | ResetStatementsTree | LogLevelTree
)


@dataclass(frozen=True, slots=True)
class CancelTree:
    """End a statement that runs, or an open transaction (``transaction``), of anybody."""

    name: str
    transaction: bool
    position: Position
    reads_only: Literal[False] = False

    @property
    def tag(self) -> str:
        return "CANCEL TRANSACTION" if self.transaction else "CANCEL QUERY"
