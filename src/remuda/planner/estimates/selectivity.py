"""Which share of the rows a predicate lets pass."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    columns_of,
    conjuncts,
)
from remuda.planner.estimates.distribution import (
    RANGE,
    ColumnEstimate,
    equal_share,
    join_share,
    prefix_share,
    range_share,
    value_in,
    with_values,
    within_range,
)

UNKNOWN = 0.25
"""Hazelcast's default for predicates that nothing is known about."""
EQUAL = 0.1
ELEMENTS = 10.0
"""How long an array is that a parameter brings."""
LIKE = 0.1
LIKE_PREFIX = 0.05

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}

Columns = Mapping[ColumnId, ColumnEstimate]


def selectivity(condition: Expression, columns: Columns) -> float:
    match condition:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call(function="and"):
            return _all_of(condition, columns)
        case Call(function="or", arguments=arguments):
            missed = 1.0
            for part in arguments:
                missed *= 1.0 - selectivity(part, columns)
            return 1.0 - missed
        case Call(function="not", arguments=(operand,)):
            return 1.0 - selectivity(operand, columns)
        case InList() | Call(function="any_of"):
            return _listed(condition, columns)
        case Call(function="is_null" | "is_not_null" as test, arguments=(operand,)):
            known = _column(operand, columns)
            nulls = known.null_fraction if known else 0.05
            return nulls if test == "is_null" else 1.0 - nulls
        case Call(function="like" | "ilike" as function, arguments=(operand, pattern, *_)):
            return _like(operand, pattern, columns, function == "like")
        case Call(function="sampled", arguments=(Literal(value=value), *_)):
            return min(1.0, max(0.0, float(str(value)) / 100))
        case Call(function="starts_with", arguments=(operand, prefix)):
            return _prefix(operand, prefix, columns)
        case Call(function=function, arguments=(left, right)) if function in _FLIPPED:
            return _comparison(function, left, right, columns)
        case ColumnRef(column=column) if column in columns:
            return equal_share(columns[column], True)
        case _:
            return UNKNOWN


def _listed(condition: Expression, columns: Columns) -> float:
    """``a IN (...)``, ``a = ANY (array)``"""
    match condition:
        case InList(operand=operand, values=values):
            return min(1.0, sum(_equality(operand, value, columns) for value in values))
        case Call(arguments=(Literal(value="="), operand, array)):
            return min(1.0, ELEMENTS * _equality(operand, array, columns))
        case _:
            return UNKNOWN


def _all_of(condition: Expression, columns: Columns) -> float:
    """Two bounds of one column are an interval, and not independent of each other."""
    result = 1.0
    known = dict(columns)
    for part in conjuncts(condition):
        result *= selectivity(part, known)
        restrict(part, known)
    return result


def restrict(condition: Expression, columns: MutableMapping[ColumnId, ColumnEstimate]) -> None:
    """Narrow the domains of the columns that ``condition`` (one conjunct) is about."""
    match condition:
        case Call(function="=", arguments=(left, right)):
            for side, other in ((left, right), (right, left)):
                if not columns_of(other):
                    _confine(side, (other,), columns)
        case InList(operand=operand, values=values):
            _confine(operand, values, columns)
        case Call(function="<" | "<=" | ">" | ">=" as function, arguments=(left, right)):
            for side, other, op in ((left, right, function), (right, left, _FLIPPED[function])):
                ref = _ref(side)
                if ref is not None and ref.column in columns and not columns_of(other):
                    value = value_in(other, ref.type)
                    columns[ref.column] = within_range(columns[ref.column], op, value)
        case Call(function="is_not_null", arguments=(operand,)):
            ref = _ref(operand)
            if ref is not None and ref.column in columns:
                columns[ref.column] = replace(columns[ref.column], null_fraction=0.0)


def _confine(
    operand: Expression,
    values: tuple[Expression, ...],
    columns: MutableMapping[ColumnId, ColumnEstimate],
) -> None:
    ref = _ref(operand)
    if ref is not None and ref.column in columns:
        found = [value_in(value, ref.type) for value in values]
        columns[ref.column] = with_values(columns[ref.column], found)


def _ref(expression: Expression) -> ColumnRef | None:
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression if isinstance(expression, ColumnRef) else None


def _column(expression: Expression, columns: Columns) -> ColumnEstimate | None:
    ref = _ref(expression)
    return None if ref is None else columns.get(ref.column)


def _equality(operand: Expression, value: Expression, columns: Columns) -> float:
    ref = _ref(operand)
    known = None if ref is None else columns.get(ref.column)
    if ref is None or known is None:
        return EQUAL
    return equal_share(known, value_in(value, ref.type))


def _comparison(function: str, left: Expression, right: Expression, columns: Columns) -> float:
    if columns_of(left) and columns_of(right):
        if function == "=":
            first, second = _column(left, columns), _column(right, columns)
            if first is not None and second is not None:
                return join_share(first, second)
            return EQUAL if first is second else 1.0 / max((first or second).distinct, 1.0)  # type: ignore[union-attr]
        return 0.9 if function == "<>" else RANGE
    if not columns_of(left):
        left, right, function = right, left, _FLIPPED[function]
    if function in ("=", "<>"):
        equal = _equality(left, right, columns)
        return equal if function == "=" else 1.0 - equal
    ref = _ref(left)
    known = None if ref is None else columns.get(ref.column)
    if ref is None or known is None:
        return RANGE
    return range_share(known, function, value_in(right, ref.type))


def _like(operand: Expression, pattern: Expression, columns: Columns, exact: bool) -> float:
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return LIKE
    text = pattern.value
    prefix = text[: min((i for i, c in enumerate(text) if c in "%_\\"), default=len(text))]
    if not prefix:
        return 1.0 if text == "%" else LIKE
    known = _column(operand, columns)
    share = prefix_share(known, prefix) if known is not None and exact else None
    if share is None:
        return LIKE_PREFIX
    return share if text[len(prefix) :] == "%" else share * (2 * LIKE)


def _prefix(operand: Expression, prefix: Expression, columns: Columns) -> float:
    known = _column(operand, columns)
    if known is None or not isinstance(prefix, Literal) or not isinstance(prefix.value, str):
        return LIKE_PREFIX
    share = prefix_share(known, prefix.value)
    return LIKE_PREFIX if share is None else share
