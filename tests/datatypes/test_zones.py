"""Time zones: offsets at a moment and on the clocks there."""

from __future__ import annotations

import datetime as dt

import pytest

from remuda.datatypes.times.zones import zone
from remuda.errors import InvalidParameterValue

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a clock without a zone)
_HOUR = 3_600_000_000


def micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - _EPOCH) // dt.timedelta(microseconds=1)


def test_offsets_in_utc() -> None:
    berlin = zone("Europe/Berlin")
    assert berlin.at_utc(micros("2020-03-29T00:59")) == _HOUR
    assert berlin.at_utc(micros("2020-03-29T01:00")) == 2 * _HOUR
    assert zone("europe/berlin").at_utc(0) == _HOUR


def test_times_that_are_skipped_or_repeated_are_standard_time() -> None:
    berlin = zone("Europe/Berlin")
    assert berlin.at_local(micros("2020-03-29T02:30")) == _HOUR
    assert berlin.at_local(micros("2020-10-25T02:30")) == _HOUR
    assert berlin.at_local(micros("2020-07-01T12:00")) == 2 * _HOUR


def test_fixed_offsets() -> None:
    assert zone("+02").fixed == -2 * _HOUR  # PostgreSQL's AT TIME ZONE counts to the west
    assert zone("+02", posix=False).fixed == 2 * _HOUR
    assert zone("-05:30", posix=False).fixed == -5 * _HOUR - _HOUR // 2
    assert zone("PST").fixed == -8 * _HOUR
    assert zone("utc").fixed == 0


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "a b", "/etc/localtime"])
def test_unknown_zones(name: str) -> None:
    with pytest.raises(InvalidParameterValue, match="not recognized"):
        zone(name)


def test_moments_beyond_the_calendar() -> None:
    berlin = zone("Europe/Berlin")
    cycle = 146_097 * 86_400_000_000  # 400 years
    for cycles in (-30, 0, 1, 25, 700):
        summer = micros("9700-07-01T12:00") + cycles * cycle
        winter = micros("9700-01-01T12:00") + cycles * cycle
        local_mean_time = 53 * 60_000_000 + 28_000_000
        wanted = (local_mean_time,) * 2 if cycles < 0 else (2 * _HOUR, _HOUR)
        assert (berlin.at_utc(summer), berlin.at_local(winter)) == wanted
    assert zone("+01").at_utc(2**62) == -_HOUR
