"""Requests for a key whose last write is in doubt, because its transaction has a part in partitions
that are unreachable: they are told so, instead of waiting."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, simulation
from sim_network import LOST, Fate, Sent
from test_donors import SPLIT, load, until

from remuda.errors import OutcomeUnknown, PartitionsUnreachable
from remuda.member.doubts import Doubts
from remuda.member.routing import Router
from remuda.member.transaction_sets import Write
from remuda.member.transactions import Transactions

AWAY = {4, 5}
SOON = 1.0
"""Simulated seconds: far less than any timeout."""


def keys_of(sim: Simulation) -> tuple[int, int]:
    """A key that only members 4 and 5 have, and one that they do not have."""
    core = sim.members[1].core
    router = Router(core.schema("t"))
    rows = {key: core.view.replicas[router.key_partition((key,))] for key in range(300)}
    there = next(key for key, row in rows.items() if AWAY.issuperset(row))
    here = next(key for key, row in rows.items() if AWAY.isdisjoint(row))
    return there, here


def votes_vanish(sim: Simulation) -> None:
    """Members 4 and 5 prepare, and nobody hears it."""
    silent = {str(sim.nodes[number]) for number in AWAY}

    def rule(sent: Sent) -> Fate | None:
        return LOST if sent.name == "PARTS" and sent.sender in silent else None

    sim.network.rules.append(rule)


async def leave_in_doubt(sim: Simulation) -> int:
    """A transaction over both keys is prepared when the split begins; the key that is here."""
    there, here = keys_of(sim)
    votes_vanish(sim)
    one = sim.members[1]
    schema = one.core.schema("t")
    writes = [Write(schema.map_id, schema.version, (key,), (key, 2), None) for key in (there, here)]
    committing = one.transactions.commit(writes, None)
    writing = one.node.context.run(sim.loop.create_task, committing)  # type: ignore[attr-defined]
    await asyncio.sleep(0.5)
    sim.split(AWAY, SPLIT)
    core = one.core
    await until(lambda: set(core.view.by_number) == {1, 2, 3} and core.ready)
    assert core.view.unreachable
    with pytest.raises(OutcomeUnknown):
        await writing
    return here


async def ask(sim: Simulation, key: int) -> None:
    for number in (1, 2, 3):
        client = await sim.client(number)
        for text in (
            f"SELECT v FROM t WHERE id = {key}",
            f"SELECT v + 1 FROM t WHERE id IN ({key}, {key})",
            f"UPDATE t SET v = 7 WHERE id = {key}",
        ):
            with pytest.raises(PartitionsUnreachable) as caught:
                async with asyncio.timeout(SOON):
                    await client.run(text)
            assert caught.value.retryable, text
        with pytest.raises(PartitionsUnreachable) as caught:
            async with asyncio.timeout(SOON):
                await client.put(sim.members[1].core.schema("t"), key, 9)
        assert "whose end is not known: it has a part in partition" in str(caught.value)
        assert not caught.value.may_have_run
        client.channel.close()


async def work(sim: Simulation) -> None:
    key = await leave_in_doubt(sim)
    await ask(sim, key)
    sim.network.rules.clear()
    one = sim.members[1].core
    await until(lambda: not one.view.absent)
    client = await sim.client(1)
    ((value,),) = await client.run(f"SELECT v FROM t WHERE id = {key}")
    assert value in {1, 2}
    client.channel.close()


def play() -> None:
    with simulation(1, 5, backups=1) as sim:
        sim.form()
        sim.complete(load(sim))
        sim.complete(work(sim))
        sim.settle(60.0)
        sim.verdict()


def test_they_are_told_that_partitions_are_unreachable() -> None:
    play()


def test_without_that_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transactions, "require_decidable", lambda *_: None)
    monkeypatch.setattr(Doubts, "at_or_below", lambda *_: False)
    with pytest.raises(TimeoutError):
        play()
