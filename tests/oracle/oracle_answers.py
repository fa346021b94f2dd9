"""A query's answers as values that can be compared between engines."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

Rows = list[tuple[str, ...]]


def canonical(value: object) -> str:
    """Numbers to nine digits whatever their type (a sum of floats depends on its order), DATE as
    TIMESTAMP."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int | float | Decimal):
        number = float(value)
        if math.isfinite(number):
            return "0" if number == 0 else f"{number:.9g}"
        return str(number)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"{value} 00:00:00"
    return repr(value) if isinstance(value, str) else str(value)


def rows_of(answer: Iterable[Sequence[object]], ordered: bool) -> Rows:
    rows = [tuple(canonical(value) for value in row) for row in answer]
    return rows if ordered else sorted(rows)


def difference(actual: Rows, expected: Rows) -> str:
    """ "" if equal; else what differs, briefly."""
    if actual == expected:
        return ""
    missing = list(expected)
    surplus = []
    for row in actual:
        if row in missing:
            missing.remove(row)
        else:
            surplus.append(row)
    return (
        f"{len(actual)} rows, not {len(expected)}; too many: {surplus[:3]} ({len(surplus)});"
        f" missing: {missing[:3]} ({len(missing)})"
    )
