"""No operation calls more Python functions than its budget allows: ``benchmarks/calls.toml``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from calls import Budget, all_counts, budgets, figures, this_python
from counted_loop import CountingLoop

TRAFFIC_MAX = {
    "get": (2, 125, 0),
    "put without backup": (2, 120, 0),
    "put": (4, 275, 0),
    "put with fsync log": (4, 275, 2),
    "16 puts at once": (34, 3_100, 0),  # one frame to their backup, and one back
    "16 puts with fsync log": (34, 3_100, 2),
    "compute": (4, 330, 0),
    "SELECT by key": (2, 240, 0),
    "UPDATE by key": (4, 380, 0),
    "INSERT by key": (4, 480, 0),
    "DELETE by key": (4, 310, 0),
    "door: own key as asyncpg reads": (7, 120, 0),  # three to the member, and its four in one write
    "door: own key as psycopg reads": (9, 235, 0),
    "door: another member's key": (9, 270, 0),
    "door: another member's key as psycopg reads": (11, 390, 0),
    "transaction of two puts": (6, 700, 0),
    "read-modify-write of two keys": (10, 1_060, 0),
    "INSERT by key of a child": (16, 1_250, 0),
    "two puts with locks": (16, 1_150, 0),
    "read-modify-write with locks": (16, 1_400, 0),
}
"""Messages, bytes at most, and syncs of one operation, between all processes."""


def test_operations_keep_to_their_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)  # of another test
    python, known = budgets()
    if this_python() != python:
        pytest.skip(f"{this_python()} calls differently: the budgets are those of {python}")
    found = {name: figures(counts) for name, counts in all_counts()}
    assert found.keys() == known.keys()
    over = {
        name: f"{each.calls} calls, {known[name].recorded} recorded"
        for name, each in found.items()
        if each.calls > known[name].allowed
    }
    assert not over, "benchmarks/calls.py --profile NAME shows the calls, --record accepts them"
    for name, (messages, size, syncs) in TRAFFIC_MAX.items():
        each = found[name]
        assert (each.messages, each.syncs) == (messages, syncs), name
        assert each.bytes <= size, name


def test_an_allowance_is_smaller_than_a_step_for_each_request() -> None:
    assert Budget(100).allowed == 105
    assert Budget(1000).allowed == 1020


def numbers() -> Iterator[int]:
    yield 1
    yield 2


async def resumed_twice() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_calls_and_resumptions_of_an_operation_count_and_others_do_not() -> None:
    loop = CountingLoop()
    background = 0

    async def upkeep() -> None:
        nonlocal background
        while True:
            background += 1
            await asyncio.sleep(0)

    async def operation(number: int) -> None:
        assert sum(numbers()) == number
        task = asyncio.ensure_future(resumed_twice())
        await task

    async def start() -> asyncio.Task[None]:
        return asyncio.ensure_future(upkeep())

    running = loop.complete(start())
    count = loop.count(operation, 3)
    running.cancel()
    found = {code.co_name: number for code, number in count.calls.items()}
    assert background > 2
    assert found["numbers"] == 3  # two numbers and the end
    assert found["resumed_twice"] == 3
    assert found["operation"] == 2
    assert "upkeep" not in found
