"""Text to values, as CAST reads it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    decimal,
    varchar,
)
from remuda.datatypes.texts.text import parse_text, rescale
from remuda.errors import InvalidDatetime, InvalidText, NumericOverflow, StringTooLong

GOOD = [
    ("12", INTEGER, 12),
    (" -7 ", BIGINT, -7),
    ("127", TINYINT, 127),
    ("1.5", DOUBLE, 1.5),
    ("1e3", DOUBLE, 1000.0),
    ("-Infinity", DOUBLE, float("-inf")),
    ("1.005", decimal(5, 2), 101),
    ("-1.005", decimal(5, 2), -101),
    ("1e2", decimal(5, 2), 10000),
    ("999.994", decimal(5, 2), 99999),
    ("0.0001", decimal(5, 2), 0),
    ("yes", BOOLEAN, True),
    ("F", BOOLEAN, False),
    ("1970-01-02", DATE, 1),
    ("1969-12-31", DATE, -1),
    ("00:00:01.5", TIME, 1_500_000),
    ("10:00", TIME, 36_000_000_000),
    ("1970-01-01 00:00:01", TIMESTAMP, 1_000_000),
    ("1970-01-01T00:00:01", TIMESTAMP, 1_000_000),
    ("1970-01-02", TIMESTAMP, 86_400_000_000),
    ("1970-01-01 02:00+02", TIMESTAMPTZ, 0),
    ("1970-01-01 00:00:00-00:30", TIMESTAMPTZ, 1_800_000_000),
    ("1970-01-01 00:00Z", TIMESTAMPTZ, 0),
    ("\\x6162", BYTEA, b"ab"),
    ("ab", BYTEA, b"ab"),
    ("abc  ", varchar(3), "abc"),
]

BAD = [
    ("1.5", INTEGER, InvalidText),
    ("", INTEGER, InvalidText),
    ("128", TINYINT, NumericOverflow),
    ("9" * 50, BIGINT, NumericOverflow),
    ("abc", DOUBLE, InvalidText),
    ("1_0", decimal(5, 2), InvalidText),
    ("1000", decimal(5, 2), NumericOverflow),
    ("999.995", decimal(5, 2), NumericOverflow),
    ("1e999999999", decimal(5, 2), NumericOverflow),
    ("nan", decimal(5, 2), NumericOverflow),
    ("maybe", BOOLEAN, InvalidText),
    ("2013-02-30", DATE, InvalidDatetime),
    ("tomorrow", DATE, InvalidDatetime),
    ("25:00", TIME, InvalidDatetime),
    ("\\xzz", BYTEA, InvalidText),
    ("abcd", varchar(3), StringTooLong),
]


@pytest.mark.parametrize(("text", "target", "value"), GOOD)
def test_good(text, target, value):
    found = parse_text(text, target)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("text", "target", "error"), BAD)
def test_bad(text, target, error):
    with pytest.raises(error):
        parse_text(text, target)


@given(st.datetimes())
def test_timestamps_round_trip(moment):
    micros = parse_text(moment.isoformat(sep=" "), TIMESTAMP)
    assert datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros) == moment  # noqa: DTZ001


@given(st.integers(-(10**15), 10**15), st.integers(0, 10), st.integers(0, 10))
def test_rescale_rounds_half_away_from_zero(unscaled, source, target):
    exact = Decimal(unscaled).scaleb(-source)
    expected = exact.quantize(Decimal(1).scaleb(-target), rounding="ROUND_HALF_UP")
    assert rescale(unscaled, source, target) == int(expected.scaleb(target))
