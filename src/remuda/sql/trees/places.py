"""Where trees stand in the text of a statement."""

from __future__ import annotations

from remuda.errors import Position
from remuda.sql.text.places import position_at
from remuda.sql.trees import ast


def span_of(node: ast.Node) -> tuple[int, int] | None:
    """First and last offset of ``node``, or of its leftmost part that has a place."""
    if node.start >= 0:
        return node.start, node.end
    if type(node) is ast.Column:
        return _column_span(node)
    best: tuple[int, int] | None = None
    pending = [node]
    while pending:
        for child in pending.pop().children():
            if child.start < 0:
                pending.append(child)
            elif best is None or child.start < best[0]:
                best = (child.start, child.end)
    return best


def _column_span(node: ast.Node) -> tuple[int, int] | None:
    parts = [part for part in node.children() if part.start >= 0]
    if not parts:
        return None
    return min(part.start for part in parts), max(part.end for part in parts)


def position_of(text: str, node: ast.Node | None) -> Position | None:
    span = None if node is None else span_of(node)
    return None if span is None else position_at(text, span[0], span[1] - span[0] + 1)
