"""The text of a SQL/JSON path in PostgreSQL's canonical form."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.jsons import json_text, quoted
from remuda.execution.evaluate.json_path_syntax import (
    LEVEL_LAST,
    METHODS,
    Item,
    Path,
    parsed_path,
)

_RANKS: Final = {
    "||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "starts with": 2,
    "+": 3, "-": 3, "*": 4, "/": 4, "%": 4, "sign": 5,
}  # fmt: skip
_HIGHEST: Final = 6


def canonical_path(text: str) -> str:
    """The canonical form of a path; raises what ``parsed_path`` raises."""
    parsed = parsed_path(text)
    return ("" if parsed.lax else "strict ") + _path(parsed.path, in_parentheses=True)


def _path(path: Path, in_parentheses: bool = False) -> str:
    first, *steps = path
    shown = _first(first, bool(steps), in_parentheses)
    return shown + "".join(map(_step, steps))


def _rank(path: Path) -> int:
    return _RANKS.get(path[0].kind, _HIGHEST)


def _operand(path: Path, item: Item) -> str:
    return _path(path, in_parentheses=_rank(path) <= _RANKS.get(item.kind, _HIGHEST))


def _first(item: Item, followed: bool, in_parentheses: bool) -> str:
    kind = item.kind
    if kind == "literal":
        shown = json_text(item.value)
        number = not isinstance(item.value, str | bool | None)
        return f"({shown})" if number and followed else shown
    if kind == "variable":
        return "$" + quoted(item.value)
    if kind == "!":
        return f"!({_path(item.parts[0])})"
    if kind == "is unknown":
        return f"({_path(item.parts[0])}) is unknown"
    if kind == "exists":
        return f"exists ({_path(item.parts[0])})"
    if kind == "like_regex":
        flags = f' flag "{item.value.flags}"' if item.value.flags else ""
        shown = f"{_operand(item.parts[0], item)} like_regex {quoted(item.value.text)}{flags}"
    elif kind == "sign":
        shown = item.value + _operand(item.parts[0], item)
    elif kind in _RANKS:
        left, right = item.parts
        shown = f"{_operand(left, item)} {kind} {_operand(right, item)}"
    else:
        return kind
    return f"({shown})" if in_parentheses else shown


def _step(item: Item) -> str:
    kind = item.kind
    if kind == "key":
        return "." + quoted(item.value)
    if kind == "[]":
        bounds = zip(item.parts[::2], item.parts[1::2], strict=True)
        return "[" + ",".join(_path(a) + (f" to {_path(b)}" if b else "") for a, b in bounds) + "]"
    if kind == "**":
        return ".**" + _levels(*item.value)
    if kind == "?":
        return f"?({_path(item.parts[0])})"
    if kind in METHODS:
        template = "" if item.value is None else quoted(item.value)
        return f".{kind}({template})"
    return kind


def _levels(first: int, last: int) -> str:
    def level(number: int) -> str:
        return "last" if number == LEVEL_LAST else str(number)

    if (first, last) == (0, LEVEL_LAST):
        return ""
    return "{" + level(first) + ("" if first == last else f" to {level(last)}") + "}"
