"""Cuts under load and faults: each that is reported restorable holds whole transactions, all that
were answered before it and none that began after it (``test_logged_cuts`` runs the seeds of the
suite). Mutations of the rules are noticed."""

from __future__ import annotations

import pytest
from cluster_of_copies import Violation, run
from cluster_with_cuts import ClusterWithCuts, MemberWithCuts, Signed
from cut_model import (
    Committed,
    LocalCut,
    LogFinish,
    LogStart,
    TellDone,
    commits_of_cut,
)

from remuda.transaction.parts import Address

MUTANT_SEEDS = 600
LATE_SEEDS = 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(1000, 11_000):
        run(seed, ClusterWithCuts)


# --- mutations ----------------------------------------------------------------------------------


def caught(
    member: type[MemberWithCuts] = MemberWithCuts, *, first: int = 0, **changed: object
) -> bool:
    """By a seed from ``first`` on."""

    class Changed(ClusterWithCuts):
        def make_member(self, number: int) -> MemberWithCuts:
            return member(self, number, self.views[0])

    for name, method in changed.items():
        setattr(Changed, name, method)
    for seed in range(first, first + MUTANT_SEEDS):
        try:
            run(seed, Changed)
        except Violation as found:
            return "cut " in str(found)
    return False


def test_a_clock_that_is_not_advanced_past_the_cut_is_caught() -> None:
    class Slow(MemberWithCuts):
        def advance_clock(self, timestamp: int) -> None:
            pass

        def sign(self, message: object) -> Signed:
            return Signed(self.cut_version, self.cut_timestamp, 0, message)

    assert caught(Slow)


def test_waiting_for_nobody_is_caught() -> None:
    class Hasty(MemberWithCuts):
        def collected(self) -> dict[Address, int]:
            return {}

    assert caught(Hasty)


def test_a_cut_that_begins_late_does_no_harm() -> None:
    """Behind the payload of the message that bears it: what has committed above it by then is named
    by its finish (decision 0027). Without that name it is caught: ``test_forgetting...``."""

    class Late(MemberWithCuts):
        def receive(self, sender: int, message: object) -> None:
            assert isinstance(message, Signed)
            super().receive(sender, Signed(0, 0, message.clock, message.message))
            if message.version > self.cut_version:
                self.take_cut(message.version, message.timestamp)

    class WithLate(ClusterWithCuts):
        def make_member(self, number: int) -> MemberWithCuts:
            return Late(self, number, self.views[0])

    assert sum(len(run(seed, WithLate).cuts.restorable) for seed in range(LATE_SEEDS)) > LATE_SEEDS


def test_classifying_by_the_order_of_the_log_is_caught() -> None:
    class ByOrder(LocalCut[Address]):
        def on_end(self, part: Address, commit: int | None, *, recovered: bool):  # type: ignore[no-untyped-def]
            end = None if commit is None else min(commit, self.timestamp)
            return super().on_end(part, end, recovered=recovered)

    def make_local(self, version, timestamp, prepared, recent):  # type: ignore[no-untyped-def]
        return ByOrder(version, timestamp, prepared, recent)

    assert caught(make_local=make_local, first=150)


def test_forgetting_what_committed_early_is_caught() -> None:
    def make_local(self, version, timestamp, prepared, recent):  # type: ignore[no-untyped-def]
        return LocalCut(version, timestamp, prepared, {})

    assert caught(make_local=make_local)


# --- scripts ------------------------------------------------------------------------------------


def texts(effects: list[object]) -> list[str]:
    return [str(effect) for effect in effects]


def test_a_cut_waits_for_what_is_prepared_below_it() -> None:
    local = LocalCut(3, 100, {"a": 90, "b": 100, "c": 101}, {"d": 99, "e": 120})
    assert texts(local.begin()) == ["cut 3 at 100 starts"]
    assert local.on_end("c", 130, recovered=False) == []
    assert local.on_end("a", 95, recovered=False) == []
    (finish, done) = local.on_end("b", 140, recovered=False)
    assert finish == LogFinish(3, frozenset({"a"}), frozenset({"e"}))
    assert done == TellDone(3)


def test_what_is_rolled_back_is_on_neither_side() -> None:
    local = LocalCut(3, 100, {"a": 90}, {})
    local.begin()
    (finish, _) = local.on_end("a", None, recovered=True)
    assert finish == LogFinish(3, frozenset(), frozenset())


def test_a_recovered_commit_aborts_the_cut() -> None:
    local = LocalCut(3, 100, {"a": 90}, {})
    local.begin()
    assert local.on_end("a", 95, recovered=True) == [TellDone(3, "a recovery decided on a commit")]
    assert local.on_end("a", 95, recovered=False) == []


def test_what_a_log_says() -> None:
    early, late = Committed("early", 50, 1), Committed("late", 130, 2)
    inside, outside = Committed("inside", 90, 3), Committed("outside", 140, 4)
    log = [
        early,
        late,
        LogStart(2, 80),
        LogStart(3, 100),
        outside,
        inside,
        LogFinish(3, frozenset({"inside"}), frozenset({"late"})),
        Committed("next", 150, 5),
    ]
    assert commits_of_cut(log, 3) == [early, inside]
    assert commits_of_cut(log, 2) is None, "started, never finished"
