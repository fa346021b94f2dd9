"""INTERVAL values: text in and out, arithmetic; the expected texts are PostgreSQL's."""

from __future__ import annotations

import datetime as dt
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.times.intervals import (
    Interval,
    divided,
    interval_text,
    justify_days,
    justify_hours,
    justify_interval,
    pack,
    scaled,
    unpack,
)
from remuda.datatypes.times.intervaltext import parse_interval
from remuda.errors import IntervalFieldOverflow, IntervalOverflow, InvalidDatetime

TEXTS = [
    ("1 year 2 mons 3 days 04:05:06", (), "1 year 2 mons 3 days 04:05:06"),
    ("-1 day +02:03", (), "-1 days +02:03:00"),
    ("@ 1 minute", (), "00:01:00"),
    ("1 day ago", (), "-1 days"),
    ("1-2 3 4:05:06", (), "1 year 2 mons 3 days 04:05:06"),
    ("-1-2", (), "-1 years -2 mons"),
    ("P1Y2M3DT4H5M6.5S", (), "1 year 2 mons 3 days 04:05:06.5"),
    ("P0001-02-03T04:05:06", (), "1 year 2 mons 3 days 04:05:06"),
    ("1.5 months", (), "1 mon 15 days"),
    ("1.5 days", (), "1 day 12:00:00"),
    ("90", (), "00:01:30"),
    ("90", ("minute",), "01:30:00"),
    ("1-2", ("year", "month"), "1 year 2 mons"),
    ("4:05", ("minute", "second"), "00:04:05"),
    ("1 day 02:03", ("day",), "1 day"),
    ("1 year 3 mons", ("year",), "1 year"),
]


@pytest.mark.parametrize(("text", "fields", "expected"), TEXTS)
def test_texts(text: str, fields: tuple[str, ...], expected: str) -> None:
    value = parse_interval(text, fields)
    assert interval_text(*unpack(value)) == expected
    assert parse_interval(expected) == value


BAD = ["", "x", "1 day 2 days", "1 foo", "P", "1 day hour", "-", "1:2:3:4", "@", "day", "PxD"]


@pytest.mark.parametrize("text", BAD)
def test_bad_texts(text: str) -> None:
    with pytest.raises(InvalidDatetime, match="invalid input syntax for type interval"):
        parse_interval(text)


@pytest.mark.parametrize(
    "text", ["99999999999 days", "200000000 years", "1:60", "1e30 hours", "0-12", "9" * 40]
)
def test_texts_out_of_range(text: str) -> None:
    with pytest.raises(IntervalFieldOverflow) as raised:
        parse_interval(text)
    assert raised.value.sqlstate == "22015"


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(10**17), 10**17),
)
def test_every_value_is_read_back_from_its_text(months: int, days: int, micros: int) -> None:
    value = pack(months, days, micros)
    assert unpack(value) == (months, days, micros)
    assert parse_interval(interval_text(months, days, micros)) == value


def test_products_and_quotients() -> None:
    month = parse_interval("1 month")
    assert interval_text(*unpack(divided(month, 4))) == "7 days 12:00:00"
    assert (
        interval_text(*unpack(scaled(parse_interval("1 mon 15 days"), 1.5)))
        == "1 mon 37 days 12:00:00"
    )
    with pytest.raises(IntervalOverflow):
        scaled(month, 1e300)
    with pytest.raises(IntervalOverflow):
        pack(2**31, 0, 0)


def test_justified() -> None:
    assert justify_days(0, 65, -3) == (2, 5, -3)
    assert justify_hours(0, -1, 50 * 3_600_000_000) == (0, 1, 2 * 3_600_000_000)
    assert justify_interval(1, 0, -3_600_000_000) == (0, 29, 23 * 3_600_000_000)


def test_python_objects() -> None:
    span = Interval(14, -3, 5_000_000)
    assert str(span) == "1 year 2 mons -3 days +00:00:05"
    assert span == Interval(14, -3, 5_000_000) != Interval(14, -3, 5)
    assert len({span, Interval(14, -3, 5_000_000)}) == 1
    assert pickle.loads(pickle.dumps(span)) == span
    assert Interval.of(dt.timedelta(days=2, seconds=3)).to_timedelta() == dt.timedelta(2, 3)
    with pytest.raises(ValueError, match="months"):
        span.to_timedelta()
    with pytest.raises(ValueError, match="out of range"):
        Interval(2**31)
    with pytest.raises(AttributeError):
        span.days = 1
