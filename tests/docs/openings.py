"""Find clauses whose subject is *what*, *who*, *whoever* or *whatever*, in the project's prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORDS = r"(?:what|who|whoever|whatever)\b(?!'s)"
_OPENING = re.compile(rf"^\W*{_WORDS}", re.IGNORECASE)
_LATER = re.compile(rf"(?:[;:]|,\s(?:and|but|so|or|then))\s+{_WORDS}", re.IGNORECASE)
_DOCSTRING = re.compile(r'^ *r?"""(.*?)"""', re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_SENTENCE = re.compile(r"(?<=[.!?])[*)_\"]*\s+(?=\W*[A-Z])")


def paragraphs(markdown: str) -> Iterator[str]:
    """The prose of a page: paragraphs, list items and cells with sentences, no code."""
    gathered: list[str] = []
    fenced = False
    for line in [*markdown.splitlines(), ""]:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        ends = fenced or not line.strip() or line.startswith(("#", "|", "```", "    "))
        if (ends or _MARKER.match(line)) and gathered:
            yield " ".join(gathered)
            gathered = []
        if line.startswith("|") and not fenced:
            yield from (cell for cell in line.strip("|").split("|") if cell.rstrip().endswith("."))
        elif not ends:
            gathered.append(_MARKER.sub("", line).strip())


def docstrings(module: str) -> Iterator[str]:
    """The paragraphs of the strings that stand as statements in the text of a module."""
    for found in _DOCSTRING.finditer(module):
        yield from paragraphs("\n".join(line.strip() for line in found[1].splitlines()))


def banned(prose: str) -> list[str]:
    """The sentences of a paragraph in which a clause opens with such a word; questions may."""
    plain = re.sub(r"``?[^`]*``?", "Code", prose)
    return [
        sentence
        for sentence in _SENTENCE.split(plain)
        if not sentence.rstrip("*_) ").endswith("?")
        and (_OPENING.match(sentence) or _LATER.search(sentence))
    ]
