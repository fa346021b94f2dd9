"""ARRAY and ROW as text, in PostgreSQL's form: ``{1,NULL,"a b"}`` and ``(1,,"a b")``."""

from __future__ import annotations

import re
from typing import Final

from remuda.errors import InvalidText, UnsupportedValue

_TO_QUOTE = re.compile(r'[{}",\\\s]|\A\Z|\Anull\Z', re.IGNORECASE)
_TO_QUOTE_IN_ROW = re.compile(r'[()",\\\s]|\A\Z')
_BOUNDS = re.compile(r"\s*\[([+-]?[0-9]+):([+-]?[0-9]+)\]\s*=\s*")
_BLANKS: Final = " \t\n\r\v\f"


def array_text(items: list[str | None]) -> str:
    """The texts of the elements as one array."""
    return "{" + ",".join("NULL" if item is None else _quoted(item) for item in items) + "}"


def _quoted(item: str) -> str:
    if _TO_QUOTE.search(item) is None:
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


def row_text(items: list[str | None]) -> str:
    """The texts of the fields as one row; NULL is nothing at all."""
    return "(" + ",".join("" if item is None else _quoted_in_row(item) for item in items) + ")"


def _quoted_in_row(item: str) -> str:
    if _TO_QUOTE_IN_ROW.search(item) is None:
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '""') + '"'


def split_array(text: str) -> list[str | None]:
    """The texts of the elements of ``{...}``; None for NULL.

    Raises InvalidText, and UnsupportedValue for several dimensions or another lower bound than 1.
    """
    return _Splitter(text).elements()


class _Splitter:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def elements(self) -> list[str | None]:
        bounds = _BOUNDS.match(self.text)
        if bounds is not None:
            if int(bounds[1]) != 1:
                raise UnsupportedValue("arrays begin at 1: other lower bounds are not supported")
            self.at = bounds.end()
        self._skip_blanks()
        if self._peek() != "{":
            raise self._bad('Array value must start with "{" or dimension information.')
        self.at += 1
        self._skip_blanks()
        found: list[str | None] = []
        if self._peek() == "}":
            self.at += 1
        else:
            while True:
                found.append(self._element())
                mark = self._peek()
                self.at += 1
                if mark == "}":
                    break
                if mark != ",":
                    raise self._bad("Unexpected end of input." if not mark else "")
        self._skip_blanks()
        if self.at != len(self.text):
            raise self._bad("Junk after closing right brace.")
        if bounds is not None and int(bounds[2]) != len(found):
            raise self._bad("Specified array dimensions do not match array contents.")
        return found

    def _element(self) -> str | None:
        self._skip_blanks()
        mark = self._peek()
        if mark == "{":
            raise UnsupportedValue("arrays of more than one dimension are not supported")
        if mark == '"':
            item = self._quoted_element()
            self._skip_blanks()
            return item
        parts: list[str] = []
        kept = 0  # up to here no blank is cut: what was escaped stays
        while (mark := self._peek()) not in (",", "}", ""):
            if mark in '"{':
                raise self._bad(f'Unexpected "{mark}" character.')
            if mark == "\\":
                self.at += 1
                mark = self._peek()
                kept = len(parts) + 1
            parts.append(mark)
            self.at += 1
        while len(parts) > kept and parts[-1] in _BLANKS:
            parts.pop()
        item = "".join(parts)
        if not item:
            shown = self._peek()
            raise self._bad(f'Unexpected "{shown}" character.' if shown else "")
        return None if item.lower() == "null" and not kept else item

    def _quoted_element(self) -> str:
        self.at += 1
        parts: list[str] = []
        while (mark := self._peek()) != '"':
            if mark == "\\":
                self.at += 1
                mark = self._peek()
            if not mark:
                raise self._bad("Unexpected end of input.")
            parts.append(mark)
            self.at += 1
        self.at += 1
        return "".join(parts)

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1

    def _bad(self, detail: str) -> InvalidText:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return InvalidText(f'malformed array literal: "{shown}"', detail=detail)
