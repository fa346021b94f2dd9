"""The pieces of a text in Drill's dialect: words, names in backticks, texts, comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from remuda.errors import SqlSyntaxError
from remuda.sql.text.places import position_at

_PIECE: Final = re.compile(
    r"(?P<blank>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>'(?:[^']|'')*')"
    r'|(?P<quoted>"(?:[^"]|"")*")'
    r"|(?P<ticked>`(?:[^`]|``)*`)"
    r"|(?P<word>[^\W\d][\w$]*)"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_UNENDED: Final = {"'": "text", '"': "name", "`": "name"}


@dataclass(frozen=True, slots=True)
class Piece:
    """``kind`` is the name of a group of ``_PIECE``; ``text`` is as written."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """In upper case, if it is a bare word; "" for everything else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str | None:
        """Its name, without quotes. None: it is none."""
        match self.kind:
            case "word":
                return self.text
            case "quoted" | "ticked":
                quote = self.text[0]
                return self.text[1:-1].replace(quote * 2, quote)
            case _:
                return None


def pieces_of(text: str) -> list[Piece]:
    """Every character of ``text`` is in one piece. Raises SqlSyntaxError for a quote that nothing
    closes."""
    found: list[Piece] = []
    for match in _PIECE.finditer(text):
        kind = str(match.lastgroup)
        if kind == "sign" and match[0] in _UNENDED:
            raise SqlSyntaxError(
                f"the quoted {_UNENDED[match[0]]} does not end",
                position=position_at(text, match.start(), 1),
                statement=text,
            )
        found.append(Piece(kind, match[0]))
    return found


def without_blanks(pieces: Sequence[Piece]) -> list[Piece]:
    """Also without semicolons at the end."""
    found = [piece for piece in pieces if piece.kind != "blank"]
    while found and found[-1].text == ";":
        found.pop()
    return found
