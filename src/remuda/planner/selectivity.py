"""Which share of the rows a predicate lets pass."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace

from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    columns_of,
)

UNKNOWN = 0.25
"""Hazelcast's default for predicates that nothing is known about."""
RANGE = 1 / 3
LIKE = 0.1
LIKE_PREFIX = 0.05

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    distinct: float
    null_fraction: float = 0.0
    minimum: PhysicalValue = None
    maximum: PhysicalValue = None
    width: float = 8.0


Columns = Mapping[ColumnId, ColumnEstimate]


def selectivity(condition: Expression, columns: Columns) -> float:
    match condition:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call(function="and", arguments=arguments):
            result = 1.0
            for part in arguments:
                result *= selectivity(part, columns)
            return result
        case Call(function="or", arguments=arguments):
            missed = 1.0
            for part in arguments:
                missed *= 1.0 - selectivity(part, columns)
            return 1.0 - missed
        case Call(function="not", arguments=(operand,)):
            return 1.0 - selectivity(operand, columns)
        case InList(operand=operand, values=values):
            return min(1.0, len(values) * _equality(operand, columns))
        case Call(function="is_null" | "is_not_null" as test, arguments=(operand,)):
            known = _column(operand, columns)
            nulls = known.null_fraction if known else 0.05
            return nulls if test == "is_null" else 1.0 - nulls
        case Call(function="like" | "ilike", arguments=(_, pattern, *_)):
            return _like(pattern)
        case Call(function="starts_with"):
            return LIKE_PREFIX
        case Call(function=function, arguments=(left, right)) if function in _FLIPPED:
            return _comparison(function, left, right, columns)
        case _:
            return UNKNOWN


def restrict(condition: Expression, columns: MutableMapping[ColumnId, ColumnEstimate]) -> None:
    """Narrow the domains of the columns that ``condition`` (one conjunct) is about."""
    match condition:
        case Call(function="=", arguments=(left, right)):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, ColumnRef) and not columns_of(other):
                    _narrow(side.column, 1.0, columns)
        case InList(operand=ColumnRef(column=column), values=values):
            _narrow(column, float(len(values)), columns)
        case Call(function="<" | "<=" | ">" | ">=" as function, arguments=(left, right)):
            for side, other, op in ((left, right, function), (right, left, _FLIPPED[function])):
                if isinstance(side, ColumnRef) and not columns_of(other):
                    _narrow_range(side.column, op, other, columns)


def _narrow(
    column: ColumnId, distinct: float, columns: MutableMapping[ColumnId, ColumnEstimate]
) -> None:
    known = columns.get(column)
    if known is not None:
        columns[column] = replace(known, distinct=min(known.distinct, distinct), null_fraction=0.0)


def _narrow_range(
    column: ColumnId,
    function: str,
    value: Expression,
    columns: MutableMapping[ColumnId, ColumnEstimate],
) -> None:
    known = columns.get(column)
    if known is None:
        return
    share = _range_share(function, known, value)
    bound = value.value if isinstance(value, Literal) else None
    low = bound if function in (">", ">=") and bound is not None else known.minimum
    high = bound if function in ("<", "<=") and bound is not None else known.maximum
    columns[column] = replace(
        known,
        distinct=max(1.0, known.distinct * share),
        minimum=low,
        maximum=high,
        null_fraction=0.0,
    )


def _column(expression: Expression, columns: Columns) -> ColumnEstimate | None:
    while isinstance(expression, Cast):
        expression = expression.operand
    return columns.get(expression.column) if isinstance(expression, ColumnRef) else None


def _equality(operand: Expression, columns: Columns) -> float:
    known = _column(operand, columns)
    if known is None:
        return 0.1
    return (1.0 - known.null_fraction) / max(known.distinct, 1.0)


def _comparison(function: str, left: Expression, right: Expression, columns: Columns) -> float:
    if columns_of(left) and columns_of(right):
        if function == "=":
            return min(_equality(left, columns), _equality(right, columns))
        return 0.9 if function == "<>" else RANGE
    if not columns_of(left):
        left, right, function = right, left, _FLIPPED[function]
    if function in ("=", "<>"):
        equal = _equality(left, columns)
        return equal if function == "=" else 1.0 - equal
    known = _column(left, columns)
    if known is None:
        return RANGE
    return _range_share(function, known, right) * (1.0 - known.null_fraction)


def _range_share(function: str, known: ColumnEstimate, value: Expression) -> float:
    """The share of the interval [minimum, maximum] that lies on the right side of ``value``."""
    low, high = known.minimum, known.maximum
    bound = value.value if isinstance(value, Literal) else None
    numbers = [v for v in (low, high, bound) if isinstance(v, int | float)]
    if len(numbers) < 3 or numbers[1] <= numbers[0]:
        return RANGE
    minimum, maximum, limit = (float(v) for v in numbers)
    below = min(1.0, max(0.0, (limit - minimum) / (maximum - minimum)))
    share = below if function in ("<", "<=") else 1.0 - below
    return max(share, 1.0 / max(known.distinct, 1.0))


def _like(pattern: Expression) -> float:
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        return LIKE if pattern.value.startswith(("%", "_")) else LIKE_PREFIX
    return LIKE
