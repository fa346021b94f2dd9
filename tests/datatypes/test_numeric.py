"""The scale of inexact results: PostgreSQL 15's own answers, over generated operands."""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.datatypes.numeric import (
    Numeric,
    at_scale,
    divide,
    exponential,
    logarithm,
    natural_logarithm,
    power,
    shown_scale,
    square_root,
)
from remuda.datatypes.sql import LOGARITHM_STEP, QUOTIENT_STEP, ROOT_STEP
from remuda.datatypes.texts.valuetext import decimal_text
from remuda.errors import NumericOverflow, RemudaError

ANSWERS = Path(__file__).parent.parent / "data" / "postgresql_numeric.tsv"
FUNCTIONS = {
    "/": divide,
    "sqrt": square_root,
    "exp": exponential,
    "ln": natural_logarithm,
    "log": logarithm,
    "log10": lambda value: logarithm(Numeric(10, 0), value),
    "power": power,
}
STEPS = {"/": QUOTIENT_STEP, "sqrt": ROOT_STEP, "exp": LOGARITHM_STEP, "ln": LOGARITHM_STEP}


def parsed(text: str) -> Numeric:
    whole, _, fraction = text.partition(".")
    return Numeric(int(whole + fraction), len(fraction))


def answers() -> list[tuple[str, list[str], str]]:
    rows = [line.split("\t") for line in ANSWERS.read_text().splitlines()]
    return [(row[0], row[1:-1], row[-1]) for row in rows]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_of_postgresql(function):
    compared = 0
    for name, arguments, expected in answers():
        if name != function:
            continue
        try:
            found = decimal_text(*FUNCTIONS[name](*map(parsed, arguments)))
        except RemudaError as error:
            found = f"ERROR {error.sqlstate}"
        assert found == expected, (name, arguments)
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("function", STEPS)
def test_a_value_shows_the_digits_that_postgresql_gave_it(function):
    """Of a value alone: equal but for quotients whose operands begin with equal groups."""
    same = total = 0
    for name, arguments, expected in answers():
        if name != function or expected.startswith("ERROR"):
            continue
        least = max(parsed(argument).scale for argument in arguments)
        value = parsed(expected)
        wide = at_scale(value, 60)
        shown = shown_scale(wide.unscaled, 60, STEPS[name], least)
        assert at_scale(at_scale(wide, shown), 60) == wide, "no digit may be lost"
        same += shown == value.scale
        total += 1
    assert same >= 0.9 * total


def test_no_digit_that_counts_is_hidden():
    assert shown_scale(3_3333333333_3333333333, 20, QUOTIENT_STEP, 0) == 20
    assert shown_scale(3_3333333333_3333330000, 20, QUOTIENT_STEP, 0) == 16
    assert shown_scale(10**20, 20, QUOTIENT_STEP, 0) == 20
    assert shown_scale(0, 20, ROOT_STEP, 0) == 15


@pytest.mark.parametrize(
    "compute",
    [
        lambda: exponential(Numeric(5000, 0)),
        lambda: power(Numeric(10, 0), Numeric(3000, 0)),
        lambda: power(Numeric(10, 0), Numeric(30005, 1)),
    ],
)
def test_results_that_fit_no_type_are_not_computed(compute):
    with pytest.raises(NumericOverflow, match="value overflows numeric format"):
        compute()
