"""The catalog changes while a member that has been named by a view does not know of it yet."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_network import LOST, Fate, Sent
from sim_rules import Play, Scenario

from remuda.member.membership import catalog_service
from remuda.rpc.frame import RESPONSE


def the_view_does_not_reach(play: Play, joining: str) -> None:
    """What tells a process that it is in a view now is lost for a while."""
    until = play.sim.loop.now + 2.0

    def rule(sent: Sent) -> Fate | None:
        if sent.receiver != joining or play.sim.loop.now > until:
            return None
        told = sent.name == "AGREE" or (sent.name == "JOIN" and sent.mode == RESPONSE)
        return LOST if told else None

    play.sim.network.rules.append(rule)


async def created(play: Play) -> None:
    """A table each 0.1 s, through a member that is not the coordinator of the catalog."""
    client = await play.client(2)
    the_view_does_not_reach(play, "m4")
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


def test_a_change_that_is_refused_there_would_meet_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run again, the statement finds its own map on the members that have it already."""
    monkeypatch.setattr(catalog_service, "VIEW_PATIENCE", -1.0)
    with pytest.raises(Violation, match='map "made1" already exists'):
        Scenario(1, created, 3, {"backups": 1}, 0.0).run()
