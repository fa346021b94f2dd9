"""COPY as parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remuda.copying.options import Given
from remuda.errors import Position
from remuda.sql.trees import ast


@dataclass(frozen=True, slots=True)
class CopyTree:
    """``table`` with ``columns`` (none: all of them), or ``query``: one of both. ``incoming``: COPY
    FROM. ``outside`` is where PostgreSQL would read or write a file ("file") or run a program
    ("program"); "" for the client."""

    table: ast.Table | None
    columns: tuple[ast.Node, ...]
    query: ast.Node | None
    incoming: bool
    outside: str
    options: tuple[Given, ...]
    places: tuple[ast.Node, ...]
    """The columns that options list."""
    where: ast.Node | None
    position: Position | None
    """Of the name of the table, or of the query."""
    reads_only: Literal[False] = False
