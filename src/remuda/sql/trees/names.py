"""Names as they stand in statements."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier after case folding, and where it stands."""

    text: str
    position: Position
