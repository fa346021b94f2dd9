"""Where the arrays and objects of a JSON value lie in PostgreSQL's binary form of it.

``.keyvalue()`` of a jsonpath tells members of different objects apart by these places, in bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from remuda.datatypes.jsons import Json, ordered_keys

_HEADER: Final = 4
_ENTRY: Final = 4
_SHORT_SCALE_MAX: Final = 63
_SHORT_WEIGHTS: Final = range(-64, 64)


def offsets(value: Json) -> dict[int, int]:
    """``id`` of each array and object in ``value`` -> its place, in bytes from the outermost."""
    found: dict[int, int] = {}
    _place(value, 0, found)
    return found


def _aligned(at: int) -> int:
    return (at + 3) & ~3


def _place(value: Json, at: int, found: dict[int, int]) -> int:
    """The place behind ``value``, which begins at ``at`` or where the next number of four bytes
    would."""
    if isinstance(value, str):
        return at + len(value.encode())
    if value is None or isinstance(value, bool):
        return at
    at = _aligned(at)
    if not isinstance(value, dict | list):
        return at + _numeric_size(Decimal(value))
    found[id(value)] = at
    if isinstance(value, list):
        at += _HEADER + _ENTRY * len(value)
        members = value
    else:
        names = ordered_keys(value)
        at += _HEADER + 2 * _ENTRY * len(names) + sum(len(name.encode()) for name in names)
        members = [value[name] for name in names]
    for member in members:
        at = _place(member, at, found)
    return at


def _numeric_size(number: Decimal) -> int:
    """Bytes of a NUMERIC with its length: groups of four digits behind a short or long header."""
    scale = max(0, -int(number.as_tuple().exponent))
    whole, _, fraction = f"{abs(number):f}".partition(".")
    before = (len(whole) + 3) // 4
    digits = whole.rjust(before * 4, "0") + fraction.ljust((len(fraction) + 3) // 4 * 4, "0")
    groups = [digits[i : i + 4] != "0000" for i in range(0, len(digits), 4)]
    if True not in groups:
        return _HEADER + 2
    leading = groups.index(True)
    trailing = groups[::-1].index(True)
    weight = before - 1 - leading
    short = scale <= _SHORT_SCALE_MAX and weight in _SHORT_WEIGHTS
    return _HEADER + (2 if short else 4) + 2 * (len(groups) - leading - trailing)
