"""Cuts input into statements: at semicolons outside of quotes, comments and dollar quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<end>;)
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<quote>['"])
    | (?P<dollar>\$[A-Za-z_]*\$)
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Split:
    """Whole statements without their semicolons, and the unfinished rest."""

    statements: tuple[str, ...]
    rest: str


def split(text: str) -> Split:
    statements = []
    start = at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        if token.lastgroup == "end":
            if not is_empty(text[start : token.start()]):
                statements.append(text[start : token.start()].strip())
            start = at = token.end()
            continue
        end = _skip(text, token)
        if end is None:  # a quote or comment that is still open
            return Split(tuple(statements), text[start:])
        at = end
    return Split(tuple(statements), text[start:])


def is_empty(text: str) -> bool:
    """Whether there is nothing but space and comments."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup not in ("line", "block"):
            return False
        end = _skip(text, token)
        if end is None:
            return token.lastgroup == "line"
        at = end
    return True


def _skip(text: str, token: re.Match[str]) -> int | None:
    """Where a quoted part or comment ends; None when it does not."""
    group = token.lastgroup
    if group == "line":
        return token.end()
    if group == "block":
        return _skip_comment(text, token.end())
    mark = token.group()
    end = text.find(mark, token.end())
    return None if end < 0 else end + len(mark)


def _skip_comment(text: str, at: int) -> int | None:
    """Block comments nest, as in PostgreSQL."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, at)
        if edge is None:
            return None
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
    return at
