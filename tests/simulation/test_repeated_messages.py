"""Messages of queries that come twice, as storms send them: nothing runs twice, and the connection
that carries them stays."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_network import Fate
from sim_rules import JOIN, PAIRS, Play, Scenario

from remuda.rpc.frame import RESPONSE


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
