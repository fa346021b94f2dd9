"""Views are agreed by majorities, and a dropped member's lease ends before anyone takes over.

Each mutation breaks one part of the rules; the same simulation must notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
from cluster_of_voters import LEASE, RETRY, Process, Violation, World, run, view_of

from remuda.cluster import agreement as ag
from remuda.cluster import decree, joiners
from remuda.cluster.agreement import Agreement
from remuda.cluster.joiners import Joiners
from remuda.cluster.lease import Lease, takeover_delay
from remuda.datatypes.view import MemberInfo

SEEDS = 40
MUTANT_SEEDS = 300
"""So many are tried until one shows what is wrong."""


def test_seeds() -> None:
    views = 0
    for seed in range(SEEDS):
        views += len(run(seed).views)
    assert views > 2 * SEEDS, "the runs must change views"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(SEEDS, 10_000):
        run(seed)


def test_a_seed_replays() -> None:
    assert run(7).log == run(7).log


# --- mutations ----------------------------------------------------------------------------------


def caught(world: type[World] = World, first: int = 0) -> bool:
    """``first``: a seed that is known to show what is wrong; then others are tried."""
    for seed in (first, *range(MUTANT_SEEDS)):
        try:
            run(seed, world)
        except (Violation, AssertionError):
            return True
    return False


def test_taking_over_at_once_is_caught() -> None:
    class Hasty(World):
        def takeover_at(self, process: Process) -> float:
            return 0.0

    assert caught(Hasty)


def test_half_as_a_majority_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decree, "majority", lambda voters: max(1, voters // 2))
    assert caught()


def test_answering_heartbeats_of_an_old_view_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Agreement, "answers", True)
    monkeypatch.setattr(Agreement, "_on_view_of", lambda self, sender, view: [])
    assert caught(first=26)


def test_a_lease_from_the_arrival_of_answers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Lease.until
    monkeypatch.setattr(Lease, "until", lambda self, now: keep(self, now) + LEASE)
    assert caught(first=11)


def test_a_view_with_joiners_that_nobody_met_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def admitted(self: Joiners, now: float, *_: object) -> tuple[MemberInfo, ...]:
        return tuple({info.uuid: info for info in self._joiners}.values())

    monkeypatch.setattr(Joiners, "admitted", admitted)
    assert caught()


def test_a_meeting_by_address_alone_is_caught() -> None:
    class ByAddress(World):
        def is_met(self, wanted: MemberInfo, found: Process | None) -> bool:
            return found is not None

    assert caught(ByAddress)


def test_a_meeting_of_another_incarnation_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Joiners.asked

    def asked_by_address(self: Joiners, now: float, info: MemberInfo) -> bool:
        taken = asked(self, now, info)
        for known, joiner in self._joiners.items():
            if known.control_port == info.control_port and taken:
                self._joiners[info].met |= joiner.met
        return taken

    monkeypatch.setattr(Joiners, "asked", asked_by_address)
    assert caught(first=27)


def test_a_meeting_by_a_minority_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joiners, "majority", lambda _voters: 1)
    assert caught()


# --- scripts ------------------------------------------------------------------------------------


class Script:
    """Machines whose messages are carried by hand."""

    def __init__(self, members: int) -> None:
        view = view_of(1, set(range(1, members + 1)))
        self.machines = {n: Agreement(n, view, retry=RETRY) for n in view.by_number}
        self.wire: deque[tuple[int, ag.Send]] = deque()

    def step(self, number: int, event: ag.Event, now: float = 0.0) -> list[str]:
        effects = self.machines[number].step(now, event)
        self.wire.extend((number, e) for e in effects if isinstance(e, ag.Send))
        return [str(effect) for effect in effects]

    def carry(self, wanted: Callable[[int, ag.Send], bool] = lambda *_: True) -> None:
        """Deliver all that is under way, and what follows, as long as it is ``wanted``; the rest
        is lost."""
        while self.wire:
            sender, send = self.wire.popleft()
            if wanted(sender, send):
                self.step(send.to, ag.Received(sender, send.message))

    def views(self) -> list[int]:
        return [machine.view.number for machine in self.machines.values()]


def test_the_oldest_proposes_and_all_install() -> None:
    script = Script(3)
    assert script.step(1, ag.Wish(view_of(2, {1, 2}))) == [
        "to 2: prepare 1.1 for view 2",
        "to 3: prepare 1.1 for view 2",
        "persist 1.1",
    ]
    script.carry()
    assert script.views() == [2, 2, 2]
    assert not script.machines[3].view.by_number.get(3), "3 knows that it is out"


def test_two_members_that_lose_each_other_stop() -> None:
    script = Script(2)
    script.step(1, ag.Wish(view_of(2, {1})))
    script.step(2, ag.Wish(view_of(2, {2})))
    script.carry(lambda sender, send: False)
    for number in (1, 2):
        script.step(number, ag.Tick(), now=10.0)
        script.carry(lambda sender, send: False)
    assert script.views() == [1, 1]


def test_a_lone_member_decides_alone() -> None:
    script = Script(1)
    script.step(1, ag.Wish(view_of(2, {1, 2})))
    assert script.views() == [2]


def test_what_may_have_been_decided_is_proposed_again() -> None:
    script = Script(3)
    script.step(1, ag.Wish(view_of(2, {1, 2})))
    # 2 accepts; nobody, not even 1, hears of it, and 1 is gone.
    script.carry(lambda sender, send: not isinstance(send.message, ag.Accepted) and send.to != 3)
    script.step(3, ag.Wish(view_of(2, {2, 3})), now=1.0)
    script.carry(lambda sender, send: 1 not in (sender, send.to))
    assert script.machines[2].view == view_of(2, {1, 2})
    assert script.machines[3].view == view_of(2, {1, 2})


def test_younger_members_wait_for_older_ones() -> None:
    script = Script(3)
    assert script.step(3, ag.Wish(view_of(2, {2, 3}), rank=1)) == []
    assert script.step(3, ag.Tick(), now=RETRY / 2) == []
    assert script.step(3, ag.Tick(), now=RETRY) != []


def test_who_is_behind_is_told() -> None:
    script = Script(3)
    script.step(1, ag.Wish(view_of(2, {1, 2})))
    script.carry(lambda sender, send: 3 not in (sender, send.to))
    assert script.views() == [2, 2, 1]
    assert script.step(1, ag.HeardOf(3, 1)) == ["to 3: decided view 2 [1 2]"]
    script.carry()
    assert script.views() == [2, 2, 2]
    script.machines[3].view = view_of(1, {1, 2, 3})
    assert script.step(3, ag.HeardOf(1, 2)) == ["to 1: ask for the view after 1"]
    script.carry()
    assert script.views() == [2, 2, 2]


def test_an_accepted_view_ends_the_answers() -> None:
    script = Script(3)
    script.step(1, ag.Wish(view_of(2, {1, 2})))
    script.carry(lambda sender, send: not isinstance(send.message, ag.Accepted) and send.to != 3)
    assert not script.machines[2].answers, "also not to 1, which view 2 keeps"
    assert script.machines[3].answers


def test_who_has_accepted_a_view_sees_to_it_that_it_is_decided() -> None:
    script = Script(3)
    script.step(1, ag.Wish(view_of(2, {1, 2})))
    script.carry(lambda sender, send: not isinstance(send.message, ag.Accepted) and send.to != 3)
    # 1 is gone, and nobody wishes for anything.
    script.step(2, ag.Tick(), now=10 * RETRY)
    script.carry(lambda sender, send: 1 not in (sender, send.to))
    assert script.machines[2].view == script.machines[3].view == view_of(2, {1, 2})


def test_a_lease_needs_a_majority() -> None:
    lease = Lease(1, (1, 2, 3, 4, 5), duration=10.0)
    assert not lease.valid(0.0)
    lease.on_answer(2, 1.0)
    assert not lease.valid(1.0), "2 of 5 have heard of it"
    lease.on_answer(3, 4.0)
    assert lease.until(4.0) == 11.0
    lease.on_answer(4, 3.0)
    assert lease.until(4.0) == 13.0
    lease.on_answer(4, 2.0)
    assert lease.until(4.0) == 13.0, "a late answer takes nothing away"
    assert lease.valid(12.9)
    assert not lease.valid(13.0)


def test_the_lease_of_the_old_view_holds_until_the_new_one_is_granted() -> None:
    lease = Lease(1, (1, 2, 3), duration=10.0, before=5.0)
    assert lease.valid(4.9)
    assert not lease.valid(5.0)
    lease.on_answer(3, 1.0)
    assert lease.until(5.0) == 11.0


def test_a_lone_member_always_has_its_lease() -> None:
    assert Lease(1, (1,), duration=10.0).valid(1e9)


def test_clocks_of_different_speed_are_waited_for() -> None:
    assert takeover_delay(10.0, 0.0) == 10.0
    assert takeover_delay(10.0, 0.05) > 11.0
