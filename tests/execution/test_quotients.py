"""Division of columns: every quotient rounded as PostgreSQL does, computed in any way."""

from __future__ import annotations

import random

import pytest

from remuda.datatypes.numeric import Numeric, at_scale, rounded, significant_scale
from remuda.datatypes.sql import BIGINT, QUOTIENT_STEP, computed_decimal, decimal
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import DivisionByZero, NumericOverflow
from remuda.execution.evaluate import quotients
from remuda.execution.evaluate.decimals import compact
from remuda.execution.evaluate.kernel import scalar_of
from remuda.execution.evaluate.quotients import divide

RESULT = computed_decimal(20, QUOTIENT_STEP, 0)


def expected(left, right, types):
    top, bottom = Numeric(left, types[0].scale or 0), Numeric(right, types[1].scale or 0)
    digits = min(20, max(significant_scale(top, bottom), top.scale, bottom.scale))
    shift = digits + bottom.scale - top.scale
    unscaled = rounded(left * 10 ** max(0, shift), right * 10 ** max(0, -shift))
    return at_scale(Numeric(unscaled, digits), 20).unscaled


def operands(rng, digits, zero):
    size = rng.randint(1, digits)
    value = rng.choice([rng.randint(0, 10**size - 1), 10 ** (size - 1), 10**size - 1])
    value = value if zero else value or 1
    return -value if rng.random() < 0.5 else value


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (decimal(9, 2), decimal(9, 2)),
        (decimal(18, 4), decimal(9, 2)),
        (decimal(9, 0), decimal(15, 15)),
        (decimal(18, 6), decimal(18, 0)),
        (decimal(15, 3), decimal(3, 1)),
        (decimal(38, 16), decimal(9, 2)),
        (decimal(5, 5), decimal(38, 10)),
        (BIGINT, decimal(4, 1)),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_quotients_of_columns(left, right, seed):
    rng = random.Random(seed)
    pairs = []
    while len(pairs) < 300:
        first = operands(rng, min(19, left.precision or 18) - seed, zero=True)
        second = operands(rng, min(19, right.precision or 18), zero=False)
        if abs(first * 10 ** (right.scale or 0) // (second * 10 ** (left.scale or 0))) < 10**17:
            pairs.append((first, second))
    tops = [None if rng.random() < 0.1 else first for first, _ in pairs]
    bottoms = [second for _, second in pairs]
    types = left, right
    found = divide(
        compact(values_to_array(tops, left)),
        compact(values_to_array(bottoms, right)),
        types,
        RESULT,
    )
    assert array_to_values(found, RESULT) == [
        None if top is None else expected(top, bottom, types)
        for top, bottom in zip(tops, bottoms, strict=True)
    ]
    one = divide(compact(values_to_array(tops, left)), scalar_of(bottoms[0], right), types, RESULT)
    for top, value in zip(tops, array_to_values(one, RESULT), strict=True):
        assert value == (None if top is None else expected(top, bottoms[0], types))


def test_short_columns_are_not_divided_row_by_row(monkeypatch):
    def refuse(*_):
        raise AssertionError("row by row")

    monkeypatch.setattr(quotients, "_by_rows", refuse)
    type_ = decimal(9, 2)
    top, bottom = values_to_array([100, 999_999_999, 1, 0], type_), [300, 1, 7, 700]
    found = divide(top, values_to_array(bottom, type_), (type_, type_), RESULT)
    assert array_to_values(found, RESULT)[0] == 33333333333333333333


def test_a_zero_below_null_does_not_count():
    type_ = decimal(9, 2)
    top = values_to_array([None, 100], type_)
    found = divide(top, values_to_array([0, 200], type_), (type_, type_), RESULT)
    assert array_to_values(found, RESULT) == [None, 5 * 10**19]
    with pytest.raises(DivisionByZero, match="division by zero"):
        divide(values_to_array([1], type_), values_to_array([0], type_), (type_, type_), RESULT)


def test_a_quotient_of_more_than_38_digits_is_refused():
    left, right = decimal(38, 0), decimal(9, 9)
    with pytest.raises(NumericOverflow, match="numeric field overflow"):
        divide(values_to_array([10**30], left), values_to_array([1], right), (left, right), RESULT)
