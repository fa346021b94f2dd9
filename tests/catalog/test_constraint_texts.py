"""Conditions as ``pg_get_constraintdef`` shows them: what is expected is what PostgreSQL 15 shows
for the same condition of a table, with and without ``pretty``."""

from __future__ import annotations

import pytest

from remuda.catalog.definition_text import constraint_text
from remuda.datatypes.schema import Check, Column, MapSchema
from remuda.datatypes.sql import BIGINT

SCHEMA = MapSchema("t", (Column("id", BIGINT),), ("id",), ("id",))
TEXTS = {
    "a > 0": ("CHECK ((a > 0))", "CHECK (a > 0)"),
    "((a > 0))": ("CHECK ((a > 0))", "CHECK (a > 0)"),
    "k": ("CHECK (k)", "CHECK (k)"),
    '"k )"': ('CHECK ("k )")', 'CHECK ("k )")'),
    "(k)": ("CHECK (k)", "CHECK (k)"),
    "k IS TRUE": ("CHECK ((k IS TRUE))", "CHECK (k IS TRUE)"),
    "NOT k": ("CHECK ((NOT k))", "CHECK (NOT k)"),
    "isfinite(d)": ("CHECK (isfinite(d))", "CHECK (isfinite(d))"),
    "abs(a) < 5": ("CHECK ((abs(a) < 5))", "CHECK (abs(a) < 5)"),
    "t > now()": ("CHECK ((t > now()))", "CHECK (t > now())"),
    "starts_with(s, ')')": ("CHECK (starts_with(s, ')'))", "CHECK (starts_with(s, ')'))"),
    "a <> b": ("CHECK ((a <> b))", "CHECK (a <> b)"),
}


@pytest.mark.parametrize("condition", TEXTS)
def test_a_condition_has_the_parentheses_of_postgresql(condition):
    check = Check("c", condition)
    found = constraint_text(SCHEMA, check), constraint_text(SCHEMA, check, pretty=True)
    assert found == TEXTS[condition]


def test_parentheses_that_do_not_enclose_all_stay():
    for condition in ("(a > 0) OR (b > 0)", "NOT (a = 1)", "not(a)", "')' = s"):
        assert constraint_text(SCHEMA, Check("c", condition)) == f"CHECK (({condition}))"
