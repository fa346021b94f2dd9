"""Where things stand in the text of a statement."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from remuda.errors import Position

_INTERVAL = re.compile(r"\binterval\b", re.IGNORECASE)


def position_at(text: str, start: int, length: int = 1) -> Position:
    """The position of ``length`` characters at offset ``start``; the end of the text is allowed."""
    start = min(start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line = text.count("\n", 0, start) + 1
    return Position(line, start - line_start + 1, start, max(1, length))


def position_of_token(text: str, token: Token) -> Position:
    return position_at(text, token.start, token.end - token.start + 1)


def end_of(text: str) -> Position:
    return position_at(text, len(text.rstrip()))


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """First and last offset of ``node``, or of its leftmost part that has a place."""
    meta = node._meta  # noqa: SLF001 - the property would allocate a dict for every node
    if meta is not None and "start" in meta:
        return meta["start"], meta["end"]
    if isinstance(node, exp.Column):
        return _column_span(node)
    best: tuple[int, int] | None = None
    pending = [node]
    while pending:
        current = pending.pop()
        for child in current.iter_expressions():
            meta = child._meta  # noqa: SLF001
            if meta is not None and "start" in meta:
                if best is None or meta["start"] < best[0]:
                    best = (meta["start"], meta["end"])
            else:
                pending.append(child)
    return best


def _column_span(node: exp.Column) -> tuple[int, int] | None:
    spans = [span for part in node.iter_expressions() if (span := span_of(part)) is not None]
    if not spans:
        return None
    return min(start for start, _ in spans), max(end for _, end in spans)


def position_of(text: str, node: exp.Expr | None) -> Position | None:
    span = None
    while node is not None and span is None:
        # A node without a place of its own and of its parts: take the nearest around it.
        span = span_of(node)
        if span is None and isinstance(node, exp.Interval):
            match = _INTERVAL.search(text)
            span = None if match is None else (match.start(), match.end() - 1)
        node = node.parent
    return None if span is None else position_at(text, span[0], span[1] - span[0] + 1)
