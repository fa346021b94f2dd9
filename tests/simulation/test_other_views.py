"""The catalog changes, and transactions read, while a member that has been named by a view does not
know of it yet."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_network import LOST, Fate, Sent
from sim_rules import Play, Scenario

from remuda.member.sessions import snapshots
from remuda.rpc.frame import RESPONSE


def the_view_does_not_reach(play: Play, joining: str, seconds: float) -> None:
    """What tells a process that it is in a view now is lost for a while."""
    until = play.sim.loop.now + seconds

    def rule(sent: Sent) -> Fate | None:
        if sent.receiver != joining or play.sim.loop.now > until:
            return None
        told = sent.name == "AGREE" or (sent.name == "JOIN" and sent.mode == RESPONSE)
        return LOST if told else None

    play.sim.network.rules.append(rule)


async def created(play: Play) -> None:
    """A table each 0.1 s, through a member that is not the coordinator of the catalog."""
    client = await play.client(2)
    the_view_does_not_reach(play, "m4", 2.0)
    joined = asyncio.ensure_future(play.sim.join(1))
    for number in range(30):
        await client.run(f"CREATE TABLE made{number} (id BIGINT PRIMARY KEY)")
        await asyncio.sleep(0.1)
    await joined
    await asyncio.sleep(5.0)
    names = [len(member.core.catalog.maps) for member in play.sim.live().values()]
    assert names == [31] * 4


def test_a_member_in_another_view_gets_the_change_when_it_comes_to_this_one() -> None:
    Scenario(1, created, 3, {"backups": 1}, 0.0).run()


async def asks_for_the_clocks(play: Play) -> None:
    """As an open transaction does before a statement: its client could not begin it again."""
    member = play.sim.members[1]
    the_view_does_not_reach(play, "m4", 0.25)
    joined = asyncio.ensure_future(play.sim.join(1))
    await play.until(lambda: 4 in member.core.view.by_number, 2.0)
    before = member.core.clock.last
    asked = member.node.context.run(  # type: ignore[attr-defined]
        play.sim.loop.create_task, member.open.sessions.snapshots.now()
    )
    assert await asked > before
    await joined


def test_a_transaction_reads_on_while_a_member_is_in_another_view() -> None:
    Scenario(1, asks_for_the_clocks, 3, {"backups": 1}, 0.0).run()


def test_without_a_further_round_its_client_gets_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshots, "VIEW_ATTEMPTS", 0)
    with pytest.raises(Violation, match="ViewChanged"):
        Scenario(1, asks_for_the_clocks, 3, {"backups": 1}, 0.0).run()
