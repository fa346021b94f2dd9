"""A transfer of copies is given up: the receiver lets the rows go that have come, although the
message that says so is lost, and a late one ends nothing that has begun since."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation, pbody
from sim_network import LOST, Fate, Sent
from sim_rules import Play, Scenario

from remuda.errors import TransientError
from remuda.member.base.peers import Peers
from remuda.member.copies.giving import Giving
from remuda.rpc.frame import REQUEST
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType

GIVES = 1
"""The member whose first transfer fails."""


def withdraws(sent: Sent) -> str:
    """The transfer that is withdrawn; "" for every other message."""
    if sent.name != "COPY_BEGIN" or sent.mode != REQUEST:
        return ""
    message = control_pb2.CopyBegin.FromString(pbody(sent))
    return "" if message.partitions else message.transfer


def fails_once(patch: pytest.MonkeyPatch, *, ends: bool) -> list[str]:
    """The names of transfers that member ``GIVES`` begins. The first one fails when rows of it have
    come; ``ends``: it is also the last one."""
    begun: list[str] = []
    copy, choose = Giving._copy, Giving._next

    async def failing(self: Giving, giving: Any) -> None:
        await copy(self, giving)
        if self._core.number == GIVES:
            begun.append(giving.name)
            if len(begun) == 1:
                raise TransientError("the first transfer fails")

    def chosen(self: Giving) -> Any:
        over = ends and begun and self._core.number == GIVES
        return None if over else choose(self)

    patch.setattr(Giving, "_copy", failing)
    patch.setattr(Giving, "_next", chosen)
    return begun


async def left_behind(play: Play) -> int:
    """Transfers that are still open when nothing has been copied for a long time."""
    await play.sim.join(GIVES)
    await asyncio.sleep(20.0)
    members = play.sim.live().values()
    assert not any(each.giving.gauges()["copies_outgoing"] for each in members)
    return sum(each.receiving.gauges()["copies_incoming"] for each in members)


def lose_the_first_withdrawal(play: Play, begun: list[str]) -> list[Sent]:
    withdrawn: list[Sent] = []

    def rule(sent: Sent) -> Fate | None:
        if withdraws(sent) not in begun:
            return None
        withdrawn.append(sent)
        return LOST if len(withdrawn) == 1 else None

    play.sim.network.rules.append(rule)
    return withdrawn


def test_a_transfer_is_withdrawn_although_the_message_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = fails_once(monkeypatch, ends=True)

    async def play(play: Play) -> None:
        withdrawn = lose_the_first_withdrawal(play, begun)
        assert await left_behind(play) == 0
        assert len(withdrawn) > 1

    Scenario(1, play, 3, {"backups": 1}, 0.0).run()


def test_told_once_it_would_stay_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = fails_once(monkeypatch, ends=True)

    def tell_once(self, number, rpc_type, message, heard=lambda: None):
        self.request_nowait(number, rpc_type, message(), (), lambda _: heard())

    monkeypatch.setattr(Peers, "tell", tell_once)

    async def play(play: Play) -> None:
        lose_the_first_withdrawal(play, begun)
        assert await left_behind(play) == 1

    with pytest.raises(Violation, match="copies_incoming"):
        Scenario(1, play, 3, {"backups": 1}, 0.0).run()


def test_a_late_withdrawal_ends_nothing_that_has_begun_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = fails_once(monkeypatch, ends=False)
    copy = Giving._copy
    kept: list[bool] = []

    async def told_again(self: Giving, giving: Any) -> None:
        await copy(self, giving)
        if giving.name in begun[1:]:
            receiver = play_of[0].sim.members[giving.move.receiver]
            late = control_pb2.CopyBegin(context=self._core.context(), transfer=begun[0])
            await self._peers.request(receiver.core.number, RpcType.COPY_BEGIN, late)
            kept.append(receiver.receiving.coming(giving.name) == giving.move.partitions)

    monkeypatch.setattr(Giving, "_copy", told_again)
    play_of: list[Play] = []

    async def play(play: Play) -> None:
        play_of.append(play)
        assert await left_behind(play) == 0
        assert kept
        assert all(kept)

    Scenario(1, play, 3, {"backups": 1}, 0.0).run()
