"""``setval`` and ALTER SEQUENCE whose answers are lost: the owner of the sequence's state knows the
repeated request again (decision 0081), so nothing is set a second time."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation, pbody
from sim_network import LOST, Fate, Sent
from sim_rules import Play, Scenario

from remuda.errors import OutcomeUnknown
from remuda.member.sequences import states
from remuda.member.state.routing import Router
from remuda.rpc.frame import REQUEST, RESPONSE
from remuda.rpc.messages import control_pb2

SOON = 8.0
"""Simulated seconds: a request is repeated after five."""
SETTINGS = ("SELECT setval('s', 100)", "ALTER SEQUENCE s RESTART WITH 101")


def owner(play: Play) -> int:
    """Of the state."""
    core = play.sim.members[1].core
    schema = core.schema("s")
    assert schema.sequence is not None
    partition = Router(schema).key_partition((schema.sequence.slot,))
    return core.view.owners[partition]


def the_answer_is_lost(play: Play) -> list[Sent]:
    """Of the first request that sets the state. Gives what was lost."""
    asked: set[tuple[str, str, int]] = set()
    lost: list[Sent] = []

    def rule(sent: Sent) -> Fate | None:
        if sent.name != "SEQUENCE" or lost:
            return None
        if sent.mode == REQUEST:
            if control_pb2.SequenceRequest.FromString(pbody(sent)).HasField("next_generation"):
                asked.add((sent.sender, sent.receiver, sent.identifier))
            return None
        if sent.mode == RESPONSE and (sent.receiver, sent.sender, sent.identifier) in asked:
            lost.append(sent)
            return LOST
        return None

    play.sim.network.rules.append(rule)
    return lost


class Run:
    """One client sets the sequence and loses the answer; another one, on another member, goes on
    in the meantime. ``given`` are the numbers of that one."""

    def __init__(self, play: Play, text: str) -> None:
        self.play, self.text = play, text
        self.given: list[int] = []

    async def take(self, client: Any) -> None:
        ((number,),) = await client.run("SELECT nextval('s')")
        self.given.append(number)

    async def run(self, meanwhile: Callable[[Run, Any], Awaitable[None]]) -> None:
        play = self.play
        here = await play.client(1)
        await here.run("CREATE SEQUENCE s")
        away = [number for number in play.sim.members if number != owner(play)]
        setting, other = [await play.client(number) for number in away[:2]]
        lost = the_answer_is_lost(play)
        result = await setting.start(self.text)
        await play.until(lambda: bool(lost), 1.0)
        await meanwhile(self, other)
        await play.until(result.done.is_set, SOON)
        await self.take(other)
        if len(set(self.given)) != len(self.given):
            raise Violation(f"a number was given out twice: {self.given}")
        if result.error is not None:
            raise result.error


async def nothing(run: Run, other: Any) -> None:
    pass


async def taking(run: Run, other: Any) -> None:
    for _ in range(3):
        await run.take(other)


async def losing_the_owner(run: Run, other: Any) -> None:
    await run.take(other)
    run.play.sim.crash(owner(run.play))


async def setting_it_too(run: Run, other: Any) -> None:
    await run.take(other)
    await other.run("SELECT setval('s', 500)")
    await run.take(other)


def played(text: str, meanwhile: Callable[[Run, Any], Awaitable[None]]) -> list[int]:
    given: list[int] = []

    async def play(play: Play) -> None:
        run = Run(play, text)
        try:
            await run.run(meanwhile)
        finally:
            given.extend(run.given)

    Scenario(1, play, 3, {"backups": 1}, 0.0).run()
    return given


@pytest.mark.parametrize("text", SETTINGS)
def test_a_setting_whose_answer_is_lost_counts_once(text: str) -> None:
    assert played(text, nothing) == [101]
    assert played(text, taking) == [101, 102, 103, 104]


def test_the_next_owner_knows_the_request_again() -> None:
    assert played(SETTINGS[1], losing_the_owner) == [101, 102]


async def unknown(play: Play) -> None:
    run = Run(play, SETTINGS[0])
    with pytest.raises(OutcomeUnknown, match="another statement has set it since"):
        await run.run(setting_it_too)
    assert run.given == [101, 501, 502]


def test_a_setting_is_not_repeated_after_another_one() -> None:
    Scenario(1, unknown, 3, {"backups": 1}, 0.0).run()


# --- broken owners -------------------------------------------------------------------------------


def test_an_owner_that_does_not_know_the_request_again(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = states._changed

    def forgetful(options: Any, state: Any, message: Any, answer: Any) -> Any:
        found = changed(options, state, message, answer)
        if message.HasField("generation") and found is state:
            answer.refused = True
        return found

    monkeypatch.setattr(states, "_changed", forgetful)
    with pytest.raises(Violation, match="given out twice"):
        played(SETTINGS[0], taking)


def test_a_setting_that_is_repeated_after_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "is_later", lambda *_: False)
    with pytest.raises(Violation, match="given out twice"):
        Scenario(1, unknown, 3, {"backups": 1}, 0.0).run()
