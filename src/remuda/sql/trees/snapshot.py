"""Statements about snapshots, as they are read. They name nothing of the catalog that must be
bound: the maps of RESTORE are those of the snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class CreateSnapshotTree:
    """``increment``: the changes that the logs have since the cut before, where that is
    possible."""

    name: str
    position: Position
    increment: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ShowSnapshotsTree:
    """``name`` None: SHOW SNAPSHOTS, the cuts of all of them; else the maps of one's cuts."""

    name: str | None
    position: Position
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class VerifySnapshotTree:
    """``level``: 1 objects, 2 rows as well, 3 everything."""

    name: str
    position: Position
    level: int
    reads_only: Literal[True] = True


@dataclass(frozen=True, slots=True)
class RestoreSnapshotTree:
    """``cut`` None: the last one, or the one that reaches ``moment`` (a text) if there is one.
    ``maps``: (full name in the snapshot, new full name); empty: all. ``schemas``: those that are
    written in the new names.
    ``prefix`` goes in front of the names of all maps."""

    name: str
    position: Position
    cut: int | None = None
    maps: tuple[tuple[str, str], ...] = ()
    schemas: tuple[str, ...] = ()
    prefix: str = ""
    moment: str = ""
    dry_run: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class ExpireSnapshotTree:
    """``before``: a moment as text."""

    name: str
    position: Position
    before: str
    dry_run: bool = False
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class DropSnapshotTree:
    """``cuts`` empty: all of them."""

    name: str
    position: Position
    if_exists: bool = False
    cuts: tuple[int, ...] = ()
    cascade: bool = False
    dry_run: bool = False
    reads_only: Literal[False] = False


SnapshotTree: TypeAlias = (
    CreateSnapshotTree
    | ShowSnapshotsTree
    | VerifySnapshotTree
    | RestoreSnapshotTree
    | ExpireSnapshotTree
    | DropSnapshotTree
)


def tag_of(tree: SnapshotTree) -> str:
    """The tag of the statement when it has ended."""
    word = type(tree).__name__.removesuffix("Tree").removesuffix("s").removesuffix("Snapshot")
    return "SHOW" if word == "Show" else f"{word.upper()} SNAPSHOT"
