"""Names as they stand in statements."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.errors import Position


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier after case folding, and where it stands. ``schema``: that of a relation or an
    index that is written with one; ``database``: the name in front of that."""

    text: str
    position: Position
    schema: str = ""
    database: str = ""

    @property
    def shown(self) -> str:
        """As messages have it."""
        return f"{self.schema}.{self.text}" if self.schema else self.text
