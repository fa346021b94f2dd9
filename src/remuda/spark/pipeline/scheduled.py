"""Run again and again, as a schedule says. Clock and waiting are the caller's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from remuda.errors import RemudaError
from remuda.spark.pipeline.model import Schedule
from remuda.spark.pipeline.report import Tell


def next_start(schedule: Schedule, last: datetime, now: datetime) -> datetime:
    """When to start after the run that was started at ``last``, seen from ``now``.

    Starts that a long run has missed are left out.
    """
    if schedule.cron is not None:
        return schedule.cron.after(max(last, now))
    assert schedule.every is not None
    step = timedelta(seconds=schedule.every)
    passed = (now - last) // step
    return last + step * max(1, passed + bool((now - last) % step))


def repeat(
    schedule: Schedule,
    once: Callable[[], None],
    *,
    now: Callable[[], datetime],
    wait: Callable[[float], bool],
    tell: Tell,
) -> None:
    """Call ``once`` as often as the schedule says, until ``wait(seconds)`` is true.

    The first run starts at once when there is an interval, and at the first moment of a cron line.
    A run that fails is told, and the next one comes all the same.
    """
    start = now()
    if schedule.cron is not None:
        start = schedule.cron.after(start)
    while not wait(max(0.0, (start - now()).total_seconds())):
        try:
            once()
        except RemudaError as error:
            tell(f"this run failed: {error}")
        following = next_start(schedule, start, now())
        tell(f"next run at {following:%Y-%m-%d %H:%M:%S %Z}")
        start = following
