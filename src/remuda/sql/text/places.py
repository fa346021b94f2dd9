"""Where things stand in the text of a statement."""

from __future__ import annotations

from remuda.errors import Position


def position_at(text: str, start: int, length: int = 1) -> Position:
    """The position of ``length`` characters at offset ``start``; the end of the text is allowed."""
    start = min(start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line = text.count("\n", 0, start) + 1
    return Position(line, start - line_start + 1, start, max(1, length))
