"""An error as plain data, and the place in a statement that it points to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a statement: ``line`` and ``column`` count from 1, ``offset`` from 0."""

    line: int
    column: int
    offset: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class ErrorSubject:
    """The objects that an error names, for programs that must not read its words; "" for none."""

    table: str = ""
    column: str = ""
    constraint: str = ""


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An error as plain data: what crosses the wire."""

    kind: str
    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""
    member: str = ""
    position: Position | None = None
    subject: ErrorSubject | None = None
    may_have_run: bool | None = None
    """None: as the class says."""


def caret_lines(statement: str, position: Position) -> list[str]:
    """``LINE n: <text>`` and a caret below the place, as psql prints it."""
    lines = statement.split("\n")  # as positions count lines: no other character ends one
    index = min(max(position.line, 1), len(lines)) - 1
    text = lines[index].rstrip("\r").replace("\t", " ")  # a tab would move the caret away
    column = min(max(position.column, 1), len(text) + 1)
    start = max(0, column - 1 - 60)
    shown = text[start : start + 120]
    prefix = f"LINE {index + 1}: " + ("..." if start else "")
    width = max(1, min(position.length, len(shown) - (column - 1 - start)))
    return [prefix + shown, " " * (len(prefix) + column - 1 - start) + "^" * width]
