"""Transactions wait while partitions that they write are moved; none is refused for a move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from cluster_of_shells import KEYS, MAP, PARTITION, Cluster, Member, Violation, row_of

from remuda.errors import RemudaError, SerializationFailure
from remuda.member.copies.giving import HOLD_WAIT
from remuda.member.state.transaction_sets import ReadSet, Write
from remuda.member.transactions import admission
from remuda.member.transactions.admission import Admission

LONG = 12.0
"""Virtual seconds of the last round of a move on a busy machine."""

Scenario = Callable[["Moving"], Awaitable[None]]


class Moving(Cluster):
    """Members of one seed without faults, on which a scenario runs to its end."""

    def __init__(self, seed: int, scenario: Scenario) -> None:
        super().__init__(seed)
        self.scenario: Scenario = scenario

    @property
    def apart(self) -> tuple[int, int]:
        """Two keys whose partitions have different primaries."""
        owners = self.views[0].owners
        first = KEYS[0]
        return first, next(k for k in KEYS if owners[PARTITION[k]] != owners[PARTITION[first]])

    def primary(self, key: int) -> Member:
        return self.members[self.views[0].owners[PARTITION[key]]]

    def transmit(self, sender: int, to: int, frame: bytes) -> None:
        self.at(self.delay(), self.members[to].node, self.members[to].receive, frame)

    def delay(self) -> float:
        return self.random.uniform(0.0005, 0.02)

    async def passes(self, seconds: float) -> None:
        """Virtual ones."""
        over = asyncio.Event()
        self.at(seconds, self.director, over.set)
        await over.wait()

    def commit(self, near: Member, keys: tuple[int, ...]) -> asyncio.Task[Any]:
        writes = [Write(MAP, 1, (key,), row_of(key, (near.number,))) for key in keys]
        reads = ReadSet(near.core.timestamp())
        reads.keys[MAP] = {(key,) for key in keys}
        work = near.transactions.commit(writes, reads, 60.0)
        return near.node.context.run(self.loop.create_task, work)

    def _run(self) -> None:
        for member in self.members.values():
            self.at(0.0, member.node, member.start)

        playing: list[asyncio.Task[None]] = []

        def begin() -> None:
            playing.append(self.loop.create_task(self.scenario(self)))

        self.at(0.1, self.director, begin)
        self.loop.rest(90.0)
        if not playing[0].done():
            raise Violation("the scenario has not ended")
        playing[0].result()
        self.check()


def play(scenario: Scenario) -> None:
    seeds = (seed for seed in range(100) if Random(f"{seed}/run").randint(2, 4) > 1)
    for _, seed in zip(range(5), seeds, strict=False):
        Moving(seed, scenario).run()


async def waits_for_a_long_move(cluster: Moving) -> None:
    """Of one of its partitions. It holds the key of the other one meanwhile."""
    moved, other = cluster.apart
    giver = cluster.primary(moved)
    await giver.transactions.hold([PARTITION[moved]])
    committing = cluster.commit(cluster.primary(other), (moved, other))
    await cluster.passes(LONG)
    assert not committing.done()
    giver.transactions.release([PARTITION[moved]])
    assert await committing


async def move(cluster: Moving, member: Member, partition: int, holding: asyncio.Event) -> None:
    """As ``Giving._hold_writers`` does: it releases the partition while writes stay pending."""
    while True:
        holding.set()
        try:
            async with asyncio.timeout(HOLD_WAIT):
                await member.transactions.hold([partition])
        except TimeoutError:
            member.transactions.release([partition])
            await cluster.passes(HOLD_WAIT * member.core.world.chance.fraction())
        else:
            await cluster.passes(LONG)
            member.transactions.release([partition])
            return


async def two_moves_wait_for_two_transactions(cluster: Moving) -> None:
    """Each transaction holds the key that the other one's move waits for."""
    keys = cluster.apart
    held = [cluster.primary(key) for key in keys]
    moves = []
    committing = []
    for key, giver, near in zip(keys, held, reversed(held), strict=True):
        event = asyncio.Event()
        moves.append(
            giver.node.context.run(
                cluster.loop.create_task, move(cluster, giver, PARTITION[key], event)
            )
        )
        await event.wait()
        committing.append(cluster.commit(near, keys))
        await cluster.passes(0.05)
    for task in committing:
        try:
            assert await task
        except SerializationFailure as error:  # by the other transaction, which has won
            assert "being moved" not in error.message
    assert any(not task.exception() for task in committing)
    await asyncio.gather(*moves)


async def is_refused_by_a_bulk_write_after_a_move(cluster: Moving) -> None:
    """The time of a move does not count for what stands in the way afterwards, or before."""
    moved, other = cluster.apart
    giver = cluster.primary(moved)
    clock = giver.core.world.clock
    await giver.transactions.hold([PARTITION[moved]])
    committing = cluster.commit(cluster.primary(other), (moved, other))
    await cluster.passes(LONG)
    _, gates = giver.transactions.shell.admission.closing
    gates[MAP] += 1
    giver.transactions.release([PARTITION[moved]])
    released = clock.monotonic()
    with pytest.raises(SerializationFailure, match="a bulk write"):
        await committing
    waited = clock.monotonic() - released
    del gates[MAP]
    assert 0.9 * admission.WAIT_OF_SEVERAL < waited < 3 * admission.WAIT_OF_SEVERAL


async def is_refused_by_a_move_without_end(cluster: Moving) -> None:
    moved, other = cluster.apart
    giver = cluster.primary(moved)
    await giver.transactions.hold([PARTITION[moved]])
    with pytest.raises(RemudaError, match="is being moved") as refused:
        await cluster.commit(cluster.primary(other), (moved, other))
    assert refused.value.retryable
    giver.transactions.release([PARTITION[moved]])


SCENARIOS = (
    waits_for_a_long_move,
    two_moves_wait_for_two_transactions,
    is_refused_by_a_bulk_write_after_a_move,
    is_refused_by_a_move_without_end,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_a_transaction_of_several_parts(scenario: Scenario) -> None:
    play(scenario)


def test_a_short_patience_with_moves_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "WAIT_MAX", admission.WAIT_OF_SEVERAL)
    with pytest.raises(AssertionError):
        play(waits_for_a_long_move)


def test_a_long_patience_with_bulk_writes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused_at(_: Admission, waiting: admission.Waiting, *__: object) -> float:
        return waiting.until

    monkeypatch.setattr(Admission, "_refused_at", refused_at)
    with pytest.raises(AssertionError):
        play(is_refused_by_a_bulk_write_after_a_move)
