"""Messages that come twice, or late: nothing runs twice, nothing that has ended begins again, and
the connection that carries them stays."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_network import Fate, Sent
from sim_rules import JOIN, PAIRS, Play, Scenario
from sim_users import connected, running, users_of

from remuda.rpc.frame import REQUEST, RESPONSE


@pytest.mark.parametrize("later", [0.0005, 0.3], ids=["while it runs", "after its end"])
def test_a_start_that_comes_twice_runs_once_and_is_answered_once(later: float) -> None:
    """A second answer would break the connection, and every request that waits on it."""

    async def play(play: Play) -> None:
        client = await play.client(1)
        play.fate("QUERY_START", Fate((0.0, later)))
        for _ in range(2):
            assert sorted(await play.gives(client, JOIN)) == PAIRS
            await asyncio.sleep(1.0)
        starts = play.sent("QUERY_START")
        assert len(starts) == 4
        assert not any(start.one_way for start in starts)
        answered = [[one.mode for one in play.seen if _answers(one, start)] for start in starts]
        assert answered == [[RESPONSE]] * len(starts)
        assert not play.sent("HANDSHAKE"), "a connection was opened anew"
        assert all(play.idle(number) for number in play.sim.members)

    def _answers(one, start) -> bool:
        back = (one.sender, one.receiver) == (start.receiver, start.sender)
        return back and one.mode != 0 and one.identifier == start.identifier != 0

    Scenario(1, play, 3, {}, 0.0).run()


def test_a_lock_that_is_asked_for_after_its_release_is_not_given() -> None:
    """As over another connection: the transaction has ended, and nobody would free the key."""

    async def lock_and_commit(client) -> None:
        for key in range(6):
            async with client.transaction(concurrency="pessimistic") as transaction:
                await transaction.map("t").get(key)  # locked here: it begins at the owner
                row = await transaction.map("t").get(key + 1)
                await transaction.map("t").put(key + 1, row)

    async def play(play: Play) -> None:
        asked: list[Sent] = []

        def twice(sent: Sent) -> Fate | None:
            if sent.name != "KEY_LOCK" or sent.mode != REQUEST:
                return None
            asked.append(sent)
            return Fate((0.0, 0.3))

        play.sim.network.rules.append(twice)
        with users_of(play.sim):
            client = await connected(play.sim, "user")
            await asyncio.shield(running(play.sim, client, lock_and_commit(client)))
            await asyncio.sleep(1.0)
            await client.close()
        assert len(asked) > 2
        assert [m.gauges()["key_locks"] for m in play.sim.members.values()] == [0, 0, 0]

    Scenario(18, play, 3, {"backups": 1}, 0.0).run()
