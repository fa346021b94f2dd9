"""How an access by indexes looks in EXPLAIN: names of indexes, points, ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.plan.expression import ColumnId, Expression
from remuda.plan.index_access import (
    IndexAccess,
    IndexEqual,
    IndexIntersection,
    IndexPrefix,
    IndexProbe,
    IndexRange,
    IndexTest,
    IndexUnion,
)
from remuda.plan.printing import expression_text

CHOICES_SHOWN = 8

Name = Callable[[ColumnId, str | None], str]


def access_text(access: IndexAccess, name: Name) -> str:
    match access:
        case IndexUnion(parts=parts):
            return f"({' or '.join(access_text(part, name) for part in parts)})"
        case IndexIntersection(parts=parts):
            return f"({' and '.join(access_text(part, name) for part in parts)})"
        case IndexProbe(choices=choices):
            return f"{access.index} ({_choices(access, choices, name)})"


def _choices(probe: IndexProbe, choices: Sequence[Sequence[IndexTest]], name: Name) -> str:
    if any(not tests for tests in choices):
        return "all"
    shown = [_tests(probe.columns, tests, name) for tests in choices[:CHOICES_SHOWN]]
    if len(choices) > CHOICES_SHOWN:
        shown.append(f"… {len(choices)} in all")
    text = " or ".join(shown)
    return f"not {text}" if probe.negated else text


def _tests(columns: Sequence[str], tests: Sequence[IndexTest], name: Name) -> str:
    parts = [_test(column, test, name) for column, test in zip(columns, tests, strict=False)]
    return ", ".join(parts)


def _test(column: str, test: IndexTest, name: Name) -> str:
    def text(value: Expression) -> str:
        return expression_text(value, name)

    match test:
        case IndexEqual(value=None):
            return f"{column} IS NULL"
        case IndexEqual(value=Expression() as value):
            return f"{column} = {text(value)}"
        case IndexPrefix(prefix=prefix):
            return f"{column} begins with {text(prefix)}"
        case IndexRange(low=None, high=None):
            return f"{column} IS NOT NULL"
        case IndexRange(low=low, high=high):
            above = " >= " if test.low_inclusive else " > "
            below = " <= " if test.high_inclusive else " < "
            if low is None and high is not None:
                return column + below + text(high)
            if high is None and low is not None:
                return column + above + text(low)
            assert low is not None
            assert high is not None
            flipped = " <= " if test.low_inclusive else " < "
            return text(low) + flipped + column + below + text(high)
        case _:
            return column
