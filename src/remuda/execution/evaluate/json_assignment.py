"""``SET j['a'][0] = value``: JSON with another value at a path of subscripts.

Unlike ``jsonb_set`` it makes the whole path, fills the gaps of arrays with null, and refuses to
write into a scalar. It stores the value at the path, or fails.
"""

from __future__ import annotations

import re
from typing import Any, Final

from remuda.datatypes.jsons import json_text, parse_json
from remuda.errors import InvalidParameterValue, InvalidText, LimitExceeded, NullNotAllowed
from remuda.execution.evaluate.lists import OwnNulls, by_row
from remuda.plan.expression import Call

ELEMENTS_MAX: Final = 1_000_000
"""Elements of an array up to which a subscript behind its end fills it with null."""

_ABSENT: Any = object()
_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+", re.ASCII)


def json_assignment(call: Call) -> OwnNulls:
    """Arguments: the JSON so far, the subscripts as texts, the value, and whether JSON that is
    NULL becomes an array."""

    def change(
        text: str | None, path: tuple[str | None, ...], new: str | None, array: bool
    ) -> str | None:
        steps = [step for step in path if step is not None]
        if len(steps) < len(path):
            raise NullNotAllowed("jsonb subscript in assignment must not be null")
        old = parse_json(text) if text is not None else [] if array else {}
        return json_text(_assigned(old, steps, 0, None if new is None else parse_json(new)))

    return by_row(change, call)


def _assigned(old: Any, path: list[str], depth: int, new: Any) -> Any:
    """``old`` with ``new`` at ``path[depth:]``."""
    if depth == len(path):
        return new
    step = path[depth]
    if old is _ABSENT:
        old = {} if _number(step) is None else []
    if isinstance(old, dict):
        return {**old, step: _assigned(old.get(step, _ABSENT), path, depth + 1, new)}
    if not isinstance(old, list):
        raise InvalidParameterValue(
            "cannot replace existing key",
            detail="The path assumes key is a composite object, but it is a scalar value.",
        )
    place = _number(step)
    if place is None:
        raise InvalidText(f'path element at position {depth + 1} is not an integer: "{step}"')
    index = place + len(old) if place < 0 else place
    if index < 0:
        raise InvalidParameterValue(
            f"path element at position {depth + 1} is out of range: {place}"
        )
    if index >= max(len(old), ELEMENTS_MAX):
        raise LimitExceeded(
            f"path element at position {depth + 1} is too large: {place}",
            hint=f"An assignment fills an array up to {ELEMENTS_MAX} elements.",
        )
    part = _assigned(old[index] if index < len(old) else _ABSENT, path, depth + 1, new)
    gap = [None] * (index - len(old))
    return [*old[:index], *gap, part, *old[index + 1 :]]


def _number(step: str) -> int | None:
    """Reads numbers as C's strtoint does."""
    found = int(step) if _NUMBER.fullmatch(step) else None
    return found if found is not None and -(2**31) <= found < 2**31 else None
