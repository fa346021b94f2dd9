"""The function catalog: result types and NULL rules."""

from __future__ import annotations

import pytest

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOGARITHM_STEP,
    NULL,
    QUOTIENT_STEP,
    REAL,
    ROOT_STEP,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    computed_decimal,
    decimal,
)
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    SCALAR_FUNCTIONS,
    callable_names,
    extract_signature,
)
from remuda.plan.functions.datetime_fields import EXTRACT_FIELDS

MONEY = decimal(15, 2)
AVERAGE = computed_decimal(20, QUOTIENT_STEP, 2)

RESULTS = [
    ("+", (MONEY, MONEY), decimal(16, 2)),
    ("+", (decimal(7, 4), MONEY), decimal(18, 4)),
    ("-", (decimal(38, 2), MONEY), decimal(38, 2)),
    ("*", (MONEY, decimal(16, 2)), decimal(31, 4)),
    ("*", (decimal(31, 4), decimal(16, 2)), decimal(38, 6)),
    ("/", (MONEY, MONEY), computed_decimal(20, QUOTIENT_STEP, 2)),
    ("/", (BIGINT, MONEY), computed_decimal(17, QUOTIENT_STEP, 2)),
    ("/", (decimal(38, 0), MONEY), computed_decimal(19, QUOTIENT_STEP, 2)),
    ("/", (decimal(38, 30), MONEY), computed_decimal(30, QUOTIENT_STEP, 30)),
    ("+", (computed_decimal(20, QUOTIENT_STEP, 2), MONEY), AVERAGE),
    ("sqrt", (MONEY,), computed_decimal(20, ROOT_STEP, 2)),
    ("sqrt", (INTEGER,), DOUBLE),
    ("power", (MONEY, INTEGER), computed_decimal(16, LOGARITHM_STEP, 2)),
    ("power", (MONEY, DOUBLE), DOUBLE),
    ("ln", (NULL,), DOUBLE),
    ("log", (INTEGER, INTEGER), computed_decimal(20, LOGARITHM_STEP, 0)),
    ("/", (INTEGER, INTEGER), INTEGER),
    ("/", (INTEGER, BIGINT), BIGINT),
    ("%", (MONEY, decimal(3, 0)), decimal(5, 2)),
    ("%", (DOUBLE, DOUBLE), None),
    ("+", (SMALLINT, REAL), DOUBLE),
    ("+", (REAL, REAL), REAL),
    ("+", (DATE, INTEGER), DATE),
    ("+", (DATE, BIGINT), None),
    ("-", (DATE, DATE), INTEGER),
    ("+", (VARCHAR, INTEGER), None),
    ("+", (NULL, NULL), None),
    ("=", (INTEGER, MONEY), BOOLEAN),
    ("=", (VARCHAR, INTEGER), None),
    ("and", (BOOLEAN, NULL, BOOLEAN), BOOLEAN),
    ("and", (BOOLEAN, INTEGER), None),
    ("coalesce", (INTEGER, BIGINT), BIGINT),
    ("||", (VARCHAR, INTEGER), VARCHAR),
    ("||", (INTEGER, INTEGER), None),
    ("upper", (INTEGER,), None),
    ("upper", (NULL,), VARCHAR),
    ("ceil", (MONEY,), decimal(14, 0)),
    ("ceil", (INTEGER,), DOUBLE),
    ("date_trunc", (VARCHAR, DATE), TIMESTAMPTZ),
    ("add_interval", (DATE, BIGINT, BIGINT, BIGINT), TIMESTAMP),
    ("substring", (VARCHAR, INTEGER), VARCHAR),
    ("substring", (VARCHAR,), None),
    ("current_date", (), DATE),
]


@pytest.mark.parametrize(("name", "types", "result"), RESULTS)
def test_results(name, types, result):
    signature = SCALAR_FUNCTIONS[name].resolve(types)
    assert (None if signature is None else signature.result) == result
    if signature is not None:
        assert len(signature.arguments) == len(types)


AGGREGATES = [
    ("sum", SMALLINT, BIGINT),
    ("sum", INTEGER, BIGINT),
    ("sum", BIGINT, decimal(38, 0)),
    ("sum", MONEY, decimal(38, 2)),
    ("sum", REAL, REAL),
    ("sum", DOUBLE, DOUBLE),
    ("sum", VARCHAR, None),
    ("avg", INTEGER, computed_decimal(20, QUOTIENT_STEP, 0)),
    ("avg", BIGINT, computed_decimal(19, QUOTIENT_STEP, 0)),
    ("sum", AVERAGE, AVERAGE),
    ("avg", decimal(30, 20), computed_decimal(20, QUOTIENT_STEP, 20)),
    ("avg", REAL, DOUBLE),
    ("count", VARCHAR, BIGINT),
    ("min", DATE, DATE),
    ("max", BOOLEAN, None),
]


@pytest.mark.parametrize(("name", "argument", "result"), AGGREGATES)
def test_aggregates(name, argument, result):
    signature = AGGREGATE_FUNCTIONS[name].resolve((argument,))
    assert (None if signature is None else signature.result) == result


def test_every_alias_leads_to_a_function():
    assert set(ALIASES.values()) <= set(SCALAR_FUNCTIONS)
    assert not set(ALIASES) & set(SCALAR_FUNCTIONS)


def test_names_do_not_clash():
    assert not set(SCALAR_FUNCTIONS) & set(AGGREGATE_FUNCTIONS)
    assert "add_interval" not in callable_names()
    assert {"count", "upper", "ceiling"} <= set(callable_names())


@pytest.mark.parametrize("field", EXTRACT_FIELDS)
def test_extract_from_timestamp(field):
    signature = extract_signature(field, TIMESTAMP)
    assert signature is not None
    assert signature.result == EXTRACT_FIELDS[field]
