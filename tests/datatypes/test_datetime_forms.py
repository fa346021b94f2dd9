"""Dates and times in many forms, beside what PostgreSQL 15 reads (``datetime_forms.golden``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remuda.datatypes.times.calendar import date_text, timestamp_text
from remuda.datatypes.times.datetimetext import parse_date, parse_time, parse_timestamp
from remuda.datatypes.times.intervals import clock_text
from remuda.errors import DatetimeOverflow, InputError, UnsupportedValue

GOLDEN = Path(__file__).with_name("datetime_forms.golden")
FORMS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def shown(text, kind):
    try:
        if kind == "date":
            return date_text(parse_date(text))
        if kind == "time":
            return clock_text(parse_time(text))
        found = timestamp_text(parse_timestamp(text, zoned=kind == "timestamptz"))
    except InputError as error:
        return {"error": error.sqlstate}
    if kind == "timestamptz":
        return found.removesuffix(" BC") + "+00" + " BC" * found.endswith(" BC")
    return found


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "time"])
def test_forms_are_read_as_in_postgresql(kind):
    wanted = {text: answers[kind] for text, answers in FORMS if kind in answers}
    assert len(wanted) > 200
    found = {text: shown(text, kind) for text in wanted}
    assert found == wanted


@pytest.mark.parametrize("text", ["infinity", "-infinity", "Infinity BC"])
def test_infinite_moments_are_refused(text):
    for read in (parse_date, lambda t: parse_timestamp(t, zoned=False)):
        with pytest.raises(UnsupportedValue):
            read(text)


@pytest.mark.parametrize("text", ["24:00", "23:59:60", "23:59:59.9999999"])
def test_the_end_of_the_day_is_no_time(text):
    """PostgreSQL has it; Arrow's and Python's times end before."""
    with pytest.raises(DatetimeOverflow):
        parse_time(text)


def test_the_last_moment_that_microseconds_since_1970_hold():
    assert parse_timestamp("294247-01-10 04:00:54.775807", zoned=False) == 2**63 - 1
    with pytest.raises(DatetimeOverflow):
        parse_timestamp("294247-01-10 04:00:54.775808", zoned=False)


def test_zones_keep_their_rules_at_dates_that_python_does_not_have():
    winter = parse_timestamp("12020-01-01 04:05 Europe/Berlin", zoned=True)
    assert winter == parse_timestamp("12020-01-01 04:05 +01", zoned=True)
    summer = parse_timestamp("12020-07-01 04:05 Europe/Berlin", zoned=True)
    assert summer == parse_timestamp("12020-07-01 04:05 +02", zoned=True)


def test_offsets_behind_names_count_to_the_west():
    assert parse_timestamp("2020-01-01 00:00 ABC+3", zoned=True) == parse_timestamp(
        "2020-01-01 00:00-03", zoned=True
    )
    with pytest.raises(InputError):
        parse_timestamp("Sat Oct 10 2020 03:04:05 GMT+0200", zoned=True)
