"""Aligned plain text tables, as they go into files and pipes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from unicodedata import category, combining, east_asian_width

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS_OF_TEXT = {code: shown for code, shown in _CONTROLS.items() if code != ord("\n")}


def harmless(text: str) -> str:
    """``text`` as a terminal may get it: control characters, except the newline, escaped."""
    return text.translate(_CONTROLS_OF_TEXT)


def harmless_name(name: str) -> str:
    """The same for a name, which stays on one line."""
    return name.translate(_CONTROLS)


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Alignment(Enum):
    LEFT = "left"
    RIGHT = "right"


def text_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], alignments: Sequence[Alignment]
) -> str:
    """Header, rule and rows, each ending with a newline."""
    widths = column_widths(names, rows)
    return table_header(names, widths) + "".join(
        table_line(row, widths, alignments) for row in rows
    )


def column_widths(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    widths = [display_width(name) for name in names]
    for row in rows:
        for index, cell in enumerate(row):
            widths[index] = max(widths[index], *(display_width(part) for part in _lines(cell)))
    return widths


def table_header(names: Sequence[str], widths: Sequence[int]) -> str:
    """Names, centred, and the rule below."""
    cells = (
        " " * ((width - display_width(name)) // 2) + name
        for name, width in zip(names, widths, strict=True)
    )
    head = table_line(list(cells), widths, [Alignment.LEFT] * len(widths))
    return head + "+".join("-" * (width + 2) for width in widths) + "\n"


def table_line(row: Sequence[str], widths: Sequence[int], alignments: Sequence[Alignment]) -> str:
    """One row; a cell of several lines takes several lines."""
    parts = [_lines(cell) for cell in row]
    height = max(map(len, parts), default=1)
    lines = []
    for at in range(height):
        cells = (
            _pad(part[at] if at < len(part) else "", width, alignment)
            for part, width, alignment in zip(parts, widths, alignments, strict=True)
        )
        lines.append((" " + " | ".join(cells)).rstrip() + "\n")
    return "".join(lines)


def display_width(text: str) -> int:
    """Columns of a terminal that ``text`` takes: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if combining(character) or category(character) in ("Cf", "Mn")
        else 2
        if east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def _lines(cell: str) -> list[str]:
    return cell.split("\n")


def _pad(text: str, width: int, alignment: Alignment) -> str:
    space = " " * max(0, width - display_width(text))
    return space + text if alignment is Alignment.RIGHT else text + space
