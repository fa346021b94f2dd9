"""Variables, spans of time, cron lines and schedules of pipelines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from remuda.errors import InputError
from remuda.spark.pipeline.cron import parse_cron
from remuda.spark.pipeline.durations import parse_duration
from remuda.spark.pipeline.model import Schedule
from remuda.spark.pipeline.scheduled import next_start, repeat
from remuda.spark.pipeline.variables import Values, names


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_variables_are_filled_in_and_hidden_again() -> None:
    values = Values({"USER": "bo", "PASSWORD": "hunter22"})
    assert values.fill("${USER}/${PASSWORD}@${HOST:-local}$${x}") == "bo/hunter22@local${x}"
    assert values.hide("cannot log in bo with hunter22") == "cannot log in bo with ${PASSWORD}"
    assert list(names("${A} ${B:-b} $${C}")) == ["A"]
    with pytest.raises(InputError, match="variable NONE of the environment is not set"):
        values.fill("x${NONE}")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10 min", 600), ("500ms", 0.5), ("1 h 30 min", 5400), ("2 Days", 172800), ("1.5 s", 1.5)],
)
def test_spans_of_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "min", "0 s", "5 weeks", "1 s x", "-1 s"])
def test_wrong_spans(text: str) -> None:
    with pytest.raises(InputError, match="no span of time"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("* * * * *", "2026-01-01 10:00:30", "2026-01-01 10:01"),
        ("*/10 * * * *", "2026-01-01 10:50", "2026-01-01 11:00"),
        ("5/20 * * * *", "2026-01-01 10:25", "2026-01-01 10:45"),
        ("0 8-18/5 * * mon-fri", "2026-01-02 18:00", "2026-01-05 08:00"),
        ("30 2 29 feb *", "2026-01-01 00:00", "2028-02-29 02:30"),
        ("0 0 13 * fri", "2026-01-01 00:00", "2026-01-02 00:00"),
        ("0 0 */2 * fri", "2026-01-01 00:00", "2026-01-09 00:00"),
        ("0 0 * * 7", "2026-01-01 00:00", "2026-01-04 00:00"),
        ("@daily", "2026-12-31 23:59", "2027-01-01 00:00"),
    ],
)
def test_cron(line: str, after: str, expected: str) -> None:
    assert parse_cron(line).after(at(after)) == at(expected)


def test_cron_and_changes_of_clocks() -> None:
    berlin = parse_cron("30 2 * * *", "Europe/Berlin")
    # 02:30 does not exist on 29 March 2026, and comes twice on 25 October.
    assert berlin.after(at("2026-03-28 12:00")) == at("2026-03-30 00:30")
    first = berlin.after(at("2026-10-24 12:00"))
    assert first == at("2026-10-25 00:30")
    assert berlin.after(first) == at("2026-10-26 01:30")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("60 * * * *", "'60' .* is no minute: 0 to 59"),
        ("* * * * mon-x", "no day of the week"),
        ("*/0 * * * *", "holds no minute"),
        ("5-1 * * * *", "holds no minute"),
        ("* * 31 feb *", "never comes"),
        ("a b c", "3 fields"),
        (", * * * *", "is no minute"),
    ],
)
def test_wrong_cron(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_cron(line)


def test_starts_that_a_long_run_missed_are_left_out() -> None:
    schedule = Schedule(every=60.0)
    start = at("2026-01-01 10:00")
    for ran, expected in [(10, 60), (60, 60), (61, 120), (200, 240)]:
        now = start + timedelta(seconds=ran)
        assert next_start(schedule, start, now) == start + timedelta(seconds=expected)


def test_a_run_that_fails_does_not_end_the_schedule() -> None:
    clock = at("2026-01-01 10:00")
    started: list[datetime] = []
    told: list[str] = []

    def wait(seconds: float) -> bool:
        nonlocal clock
        clock += timedelta(seconds=seconds)
        return len(started) == 3

    def once() -> None:
        nonlocal clock
        started.append(clock)
        clock += timedelta(seconds=90)
        if len(started) == 2:
            raise InputError("the disk is full")

    now: Callable[[], datetime] = lambda: clock  # noqa: E731
    repeat(Schedule(every=60.0), once, now=now, wait=wait, tell=told.append)
    assert started == [at("2026-01-01 10:00") + timedelta(minutes=2 * i) for i in range(3)]
    assert told[1] == "this run failed: the disk is full"
    assert told[0] == "next run at 2026-01-01 10:02:00 UTC"


def test_a_cron_line_waits_for_its_first_moment() -> None:
    waited: list[float] = []
    schedule = Schedule(cron=parse_cron("*/10 * * * *"))

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return True

    def never() -> None:
        raise AssertionError("ended before")

    repeat(schedule, never, now=lambda: at("2026-01-01 10:01"), wait=wait, tell=waited.append)  # type: ignore[arg-type]
    assert waited == [540.0]
