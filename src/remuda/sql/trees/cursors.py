"""Statements about cursors as they are read: DECLARE, FETCH, MOVE, CLOSE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class Declaration:
    """The options of DECLARE. ``scroll`` None: neither SCROLL nor NO SCROLL is written.
    ``insensitive``: INSENSITIVE is written, which every cursor is that does not lock rows."""

    name: str
    position: Position
    binary: bool = False
    insensitive: bool = False
    scroll: bool | None = None
    hold: bool = False


class Direction(Enum):
    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class FetchTree:
    """FETCH, or MOVE if it ``moves`` only. ``count`` None: ALL."""

    name: str
    position: Position
    direction: Direction
    count: int | None
    moves: bool
    reads_only: Literal[False] = False


@dataclass(frozen=True, slots=True)
class CloseTree:
    """``name`` None: ALL."""

    name: str | None
    position: Position
    reads_only: Literal[False] = False


CursorTree: TypeAlias = FetchTree | CloseTree
"""Those that name an open cursor."""
