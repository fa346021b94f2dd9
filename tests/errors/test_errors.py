"""How errors show the place in a statement."""

from __future__ import annotations

import pytest

from remuda.errors import Position, SqlSyntaxError, caret_lines


@pytest.mark.parametrize(
    ("statement", "position", "lines"),
    [
        ("SELEC 1", Position(1, 1, 0, 5), ["LINE 1: SELEC 1", "        ^^^^^"]),
        ("SELECT 1,\n\tx", Position(2, 2, 11), ["LINE 2:  x", "         ^"]),
        ("SELECT 1,\r\nx\r\n", Position(2, 1, 11), ["LINE 2: x", "        ^"]),
        # Only a newline ends a line where positions are counted.
        ("SELECT '\u2028\x0b\x85',\nx", Position(2, 1, 13), ["LINE 2: x", "        ^"]),
        ("SELECT", Position(1, 7, 6), ["LINE 1: SELECT", "              ^"]),
    ],
)
def test_the_caret_is_below_the_place(statement: str, position: Position, lines: list[str]) -> None:
    assert caret_lines(statement, position) == lines
    error = SqlSyntaxError("wrong", position=position, statement=statement)
    assert str(error).split("\n") == ["wrong", *lines]
