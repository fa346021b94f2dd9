"""How the values of one column are spread: shares of its rows by value, range and prefix.

Most common values count with their own share, the rest evenly. Ranges go by the equi-depth
histogram, linear within a bucket; without one, linear between minimum and maximum.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import Expression, Literal

RANGE = 1 / 3
_MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """``minimum`` and ``maximum`` shrink with predicates on the column; ``histogram`` and
    ``common`` stay those of the map, and are read between the two."""

    distinct: float
    null_fraction: float = 0.0
    minimum: PhysicalValue = None
    maximum: PhysicalValue = None
    width: float = 8.0
    histogram: tuple[PhysicalValue, ...] = ()
    common: tuple[tuple[PhysicalValue, float], ...] = ()


def value_in(expression: Expression, type_: SqlType) -> PhysicalValue:
    """The value of a literal in the units in which a column of ``type_`` holds its values; None
    for NULL and for what is no literal."""
    if not isinstance(expression, Literal) or expression.value is None:
        return None
    value, own = expression.value, expression.type
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if Kind.DECIMAL in (own.kind, type_.kind):
        number = value / 10 ** (own.scale or 0) if own.kind is Kind.DECIMAL else value
        return number * 10 ** (type_.scale or 0) if type_.kind is Kind.DECIMAL else number
    if own.kind is Kind.DATE and type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return value * _MICROS_PER_DAY
    if type_.kind is Kind.DATE and own.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return value / _MICROS_PER_DAY
    return value


def equal_share(known: ColumnEstimate, value: PhysicalValue) -> float:
    """The share of rows with this value; ``None`` for a value that is not known yet."""
    present = 1.0 - known.null_fraction
    if value is not None and known.common:
        listed = 0.0
        for common, share in known.common:
            if common == value:
                return share
            listed += share
        rest = known.distinct - len(known.common)
        if rest < 1:
            # Every value is listed: this one has come since, or is none at all.
            return min(share for _, share in known.common) / 2
        return max(present - listed, 0.0) / rest
    return present / max(known.distinct, 1.0)


def below_share(known: ColumnEstimate, value: PhysicalValue, inclusive: bool) -> float | None:
    """The share of the values (NULLs left out) below ``value``; None when nothing is known."""
    bounds = known.histogram
    if len(bounds) > 1 and _comparable(bounds[0], value):
        find = bisect_right if inclusive else bisect_left
        place = find(bounds, value)  # type: ignore[type-var]
        if place == 0:
            return 0.0
        if place == len(bounds):
            return 1.0
        within = _between(bounds[place - 1], bounds[place], value)
        return (place - 1 + within) / (len(bounds) - 1)
    low, high = known.minimum, known.maximum
    numbers = [v for v in (low, high, value) if isinstance(v, int | float)]
    if len(numbers) < 3 or numbers[1] <= numbers[0]:
        return None
    return min(1.0, max(0.0, (numbers[2] - numbers[0]) / (numbers[1] - numbers[0])))


def range_share(known: ColumnEstimate, function: str, value: PhysicalValue) -> float:
    """The share of rows for which ``column function value`` holds, of those between minimum and
    maximum."""
    below = None if value is None else below_share(known, value, function in ("<=", ">"))
    if below is None:
        return RANGE * (1.0 - known.null_fraction)
    first, last = 0.0, 1.0
    if known.histogram:
        first = below_share(known, known.minimum, inclusive=False) or 0.0
        end = below_share(known, known.maximum, inclusive=True)
        last = 1.0 if end is None else end
    span = max(last - first, 1e-9)
    inside = min(1.0, max(0.0, (below - first) / span))
    share = inside if function in ("<", "<=") else 1.0 - inside
    return max(share, 0.5 / max(known.distinct, 1.0)) * (1.0 - known.null_fraction)


def prefix_share(known: ColumnEstimate, prefix: str) -> float | None:
    """The share of texts that begin with ``prefix``; None when nothing is known."""
    bounds = known.histogram
    if len(bounds) < 2 or not isinstance(bounds[0], str):
        return None
    after = prefix + "\U0010ffff"
    first, last = bisect_left(bounds, prefix), bisect_right(bounds, after)  # type: ignore[type-var]
    share = (last - first) / (len(bounds) - 1)
    listed = sum(s for value, s in known.common if str(value).startswith(prefix))
    return max(min(share, 1.0), listed, 0.5 / (len(bounds) - 1)) * (1.0 - known.null_fraction)


def with_values(known: ColumnEstimate, values: list[PhysicalValue]) -> ColumnEstimate:
    """The column when it is confined to ``values`` (None: not known yet)."""
    distinct = min(known.distinct, float(len(values)))
    shares = [(v, equal_share(known, v)) for v in values if v is not None]
    total = sum(share for _, share in shares)
    common: tuple[tuple[PhysicalValue, float], ...] = ()
    if len(shares) == len(values) and total > 0 and known.common:
        common = tuple((value, share / total) for value, share in shares)
    numbers = [v for v, _ in shares if isinstance(v, int | float)]
    whole = bool(numbers) and len(numbers) == len(values)
    return replace(
        known,
        distinct=distinct,
        null_fraction=0.0,
        minimum=min(numbers) if whole else known.minimum,
        maximum=max(numbers) if whole else known.maximum,
        common=common,
        histogram=() if common else known.histogram,
    )


def within_range(known: ColumnEstimate, function: str, value: PhysicalValue) -> ColumnEstimate:
    """The column when ``column function value`` holds."""
    share = range_share(known, function, value) / max(1.0 - known.null_fraction, 1e-9)
    low, high = known.minimum, known.maximum
    common = known.common
    if value is not None and (low is None or _comparable(low, value)):
        if function in (">", ">="):
            low = value
        else:
            high = value
        common = tuple(
            (v, min(1.0, s / max(share, 1e-9))) for v, s in common if _inside(v, low, high)
        )
    return replace(
        known,
        distinct=max(1.0, known.distinct * share),
        null_fraction=0.0,
        minimum=low,
        maximum=high,
        common=common,
    )


def join_share(left: ColumnEstimate, right: ColumnEstimate) -> float:
    """The share of pairs that are equal: common values against common values, the rest as if the
    smaller domain lay in the larger one."""
    present = (1.0 - left.null_fraction) * (1.0 - right.null_fraction)
    even = present / max(left.distinct, right.distinct, 1.0)
    if not left.common or not right.common:
        return even
    others = dict(right.common)
    matched = ours = theirs = 0.0
    pairs = 0
    for value, share in left.common:
        other = others.get(value)
        if other is not None:
            matched += share * other
            ours += share
            theirs += other
            pairs += 1
    rest = max(left.distinct, right.distinct) - pairs
    if rest < 1:
        return min(matched, 1.0)
    left_rest = max(1.0 - left.null_fraction - ours, 0.0)
    right_rest = max(1.0 - right.null_fraction - theirs, 0.0)
    return min(matched + left_rest * right_rest / rest, 1.0)


def _comparable(a: PhysicalValue, b: PhysicalValue) -> bool:
    if isinstance(a, int | float):
        return isinstance(b, int | float)
    return a is not None and type(a) is type(b)


def _inside(value: PhysicalValue, low: PhysicalValue, high: PhysicalValue) -> bool:
    above = low is None or (_comparable(low, value) and value >= low)  # type: ignore[operator]
    return above and (high is None or (_comparable(high, value) and value <= high))  # type: ignore[operator]


def _between(low: PhysicalValue, high: PhysicalValue, value: PhysicalValue) -> float:
    numbers = [v for v in (low, high, value) if isinstance(v, int | float)]
    if len(numbers) == 3 and numbers[1] > numbers[0]:
        return min(1.0, max(0.0, (numbers[2] - numbers[0]) / (numbers[1] - numbers[0])))
    return 0.5
