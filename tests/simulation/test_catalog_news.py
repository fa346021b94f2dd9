"""Members that a change of the catalog has not reached: once its client was told, none of them
answers by the catalog that it had before; and ways to break that."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import FAST, Simulation, simulation

from remuda.errors import RemudaError, TransientError, UndefinedMap
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.state.catalog_news import CatalogNews

BEAT = float(FAST["heartbeat_timeout"])
Asked = Callable[[Simulation, Any, Any], Awaitable[Any]]


def played(works: Asked) -> Any:
    """The result of ``works``, with clients of members 1 (the coordinator) and 3."""
    with simulation(1, 3, backups=1) as sim:
        sim.form()

        async def play() -> Any:
            first, third = await sim.client(1), await sim.client(3)
            await first.run("CREATE TABLE t (id INT PRIMARY KEY)")
            await first.run("CREATE VIEW w AS SELECT 1 AS v")
            await first.run("INSERT INTO t VALUES (1)")
            try:
                return await works(sim, first, third)
            except RemudaError as error:
                return error
            finally:
                first.channel.close()
                third.channel.close()

        found = sim.complete(play())
        sim.settle()
        return found


async def change(client: Any) -> None:
    await client.run("CREATE TABLE n (id INT PRIMARY KEY)")
    await client.run("DROP VIEW w")
    await client.run("CREATE VIEW w AS SELECT 2 AS v")


async def frozen(sim: Simulation, first: Any, third: Any) -> Any:
    """Member 3 stands still until a view has dropped it. What it is asked meanwhile, it answers
    before it hears of that."""
    node = sim.nodes[3]
    node.frozen = True
    await asyncio.sleep(1.5 * BEAT)
    await change(first)
    asked = asyncio.ensure_future(third.run("SELECT count(*) FROM n"))
    await asyncio.sleep(0.1)
    sim.loop.thaw(node)
    return await asked


async def reset(sim: Simulation, first: Any, third: Any, question: str) -> Any:
    """The coordinator cannot reach member 3 for a moment, which the other one hears."""
    await third.run("SELECT v FROM w")  # its plan is cached
    sim.network.reset(sim.nodes[1], [sim.nodes[3]], 0.6)
    await asyncio.sleep(0.05)
    assert 3 in sim.members[1].core.lost
    await change(first)
    return await third.run(question)


async def reset_and_a_new_name(sim: Simulation, first: Any, third: Any) -> Any:
    return await reset(sim, first, third, "SELECT count(*) FROM n")


async def reset_and_an_old_name(sim: Simulation, first: Any, third: Any) -> Any:
    return await reset(sim, first, third, "SELECT v FROM w")


async def late_news(sim: Simulation, first: Any, third: Any) -> Any:
    """Nobody waits for the lease of member 3: what it hears from others must do."""
    sim.network.reset(sim.nodes[1], [sim.nodes[3]], 0.6)
    await asyncio.sleep(0.05)
    await change(first)
    service = sim.members[3].catalog
    while not service._catching_up:  # it has heard of it, and fetches it a little later
        await asyncio.sleep(0.01)
    return await third.run("SELECT v FROM w")


def nobody_waits(patch: pytest.MonkeyPatch) -> None:
    async def at_once(*_: Any) -> None: ...

    patch.setattr(CatalogService, "_until_no_older_lease", at_once)


def test_a_member_without_a_lease_does_not_say_that_a_map_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(played(frozen), TransientError)
    monkeypatch.setattr(CatalogNews, "complete", True)
    assert isinstance(played(frozen), UndefinedMap)


def test_a_change_waits_for_a_member_that_only_others_hear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert played(reset_and_a_new_name) == [(0,)]
    assert played(reset_and_an_old_name) == [(2,)]
    nobody_waits(monkeypatch)
    assert isinstance(played(reset_and_a_new_name), UndefinedMap)
    monkeypatch.setattr(CatalogNews, "told", lambda *_: None)
    assert played(reset_and_an_old_name) == [(1,)]


def test_a_member_that_hears_of_a_newer_catalog_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody_waits(monkeypatch)
    assert played(late_news) == [(2,)]
    monkeypatch.setattr(CatalogNews, "told", lambda *_: None)
    assert played(late_news) == [(1,)]
