"""Pages of changes, from any member, in pieces of any size: each change once, in order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from remuda.client.requests.feeds import FeedPage, FeedPositions
from remuda.member.changes.change_logs import EVERYTHING, Positions
from remuda.storage.maps.change_log import Changes

PARTITIONS = range(6)


def changes_of(rng: random.Random) -> Changes:
    """Some at the same time, some of the same partition, some keys with one hash."""
    places = sorted(
        (rng.randrange(1, 12), rng.choice(PARTITIONS), rng.choice([0, 1, 2, 2**63, EVERYTHING]))
        for _ in range(rng.randrange(1, 80))
    )
    count = np.arange(len(places))
    times, partitions, hashes = zip(*places, strict=True)
    return Changes(
        [],
        np.array(times),
        np.array(partitions, dtype=np.uint16),
        np.array(hashes, dtype=np.uint64),
        count,
        count,
    )


def as_asked(known: FeedPositions, partitions: list[int]) -> Positions:
    """What a request makes of the positions of a client."""
    positions = Positions()
    for (time, hash_), some in known.groups(partitions):
        positions.set(some, time, EVERYTHING if hash_ is None else hash_)
    return positions


@pytest.mark.parametrize("seed", range(200))
def test_each_change_once(seed: int) -> None:
    rng = random.Random(seed)
    everything = changes_of(rng)
    known = FeedPositions(0, PARTITIONS)
    told: list[int] = []
    high = 0
    while len(told) < len(everything):
        high = min(high + rng.randrange(3), 12)  # what is closed on the member that is asked
        closed = max(0, high - rng.randrange(3))
        asked = rng.sample(PARTITIONS, rng.randrange(1, 7))
        positions = as_asked(known, asked)
        begun = everything.after(positions.start)  # nothing before it is new
        assert not len(positions.new(everything.slice(0, begun)))
        news = positions.new(everything.where(everything.times <= closed))
        taken = news.first(rng.randrange(1, 9))
        told += taken.new.tolist()
        through: tuple[int, int | None, int] = (closed, None, 0)
        if len(taken) < len(news):
            through = taken.place(len(taken) - 1)
        known.advance(asked, FeedPage((), [], through, 7))
    assert sorted(told) == list(range(len(everything)))
    for partition in PARTITIONS:
        mine = [number for number in told if everything.partitions[number] == partition]
        assert mine == sorted(mine)
    assert known.low <= 12
