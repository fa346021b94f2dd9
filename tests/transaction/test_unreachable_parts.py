"""Transactions with parts in partitions that are unreachable, and come back. Each mutation of the
rules must be noticed by the same simulation."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_of_copies import ViewOfCopies, Violation, run
from cluster_with_returns import ReturningCluster
from histories import Outcome

from remuda.errors import PartitionsUnreachable
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.parts import Parts
from remuda.transaction.states import State, TransactionId

SEEDS = 100
MUTANT_SEEDS = 1500
T = TransactionId(100, near=9)


def test_what_comes_back_is_settled_with_the_others() -> None:
    returned, committed = 0, 0
    for seed in range(SEEDS):
        cluster = run(seed, ReturningCluster)
        assert isinstance(cluster, ReturningCluster)
        returned += cluster.returned
        committed += sum(client.outcome is Outcome.COMMITTED for client in cluster.clients)
    assert returned > SEEDS // 3
    assert committed > 3 * SEEDS


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(SEEDS, 20_000):
        run(seed, ReturningCluster)


def caught(first: int = 0) -> None:
    """``first``: a seed that is known to show what is wrong; then others are tried."""
    with pytest.raises((Violation, AssertionError)):
        for seed in (first, *range(MUTANT_SEEDS)):
            run(seed, ReturningCluster)


def test_what_is_away_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ViewOfCopies, "unreachable", lambda _self, _partition: False)
    caught()


def test_a_transaction_that_the_majority_has_rolled_back_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The receiver believes that what comes back prepared has committed."""
    take = Parts.take

    def trusting(self: Parts, given: tx.GivenPart) -> list[tx.Effect]:
        out = take(self, given)
        if given.state is not State.PREPARED:
            return out
        address = (given.transaction, given.partition)
        return [*out, *self._end(address, self._parts[address], given.timestamp)]

    monkeypatch.setattr(Parts, "take", trusting)
    caught(29)


def test_ends_that_do_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Parts.given
    monkeypatch.setattr(
        Parts,
        "given",
        lambda self, partitions: [
            each for each in given(self, partitions) if each.state is State.PREPARED
        ],
    )
    caught(328)


def test_what_was_prepared_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Parts.given
    monkeypatch.setattr(
        Parts,
        "given",
        lambda self, partitions: [
            each for each in given(self, partitions) if each.state is not State.PREPARED
        ],
    )
    caught(387)


def layout(number: int, *, away: frozenset[int]) -> ViewOfCopies:
    return ViewOfCopies(number, frozenset({1, 2}), ((1,), () if away else (2,)), away)


def test_the_user_hears_that_nobody_knows_and_the_transaction_goes_on() -> None:
    name = TransactionId(100, near=1)
    near = Near(1, name, {0: "w", 1: "w"}, layout(1, away=frozenset()), resend=1.0)
    near.prepare(0.0)
    near.on_vote(0.0, tx.Vote(name, 0, 7))
    out: list[Any] = near.on_layout(0.0, layout(2, away=frozenset({1})))
    assert [(each.state, type(each.cause)) for each in out] == [
        (State.UNKNOWN, PartitionsUnreachable)
    ]
    assert near.in_doubt
    assert not near.done
    again = near.on_layout(0.0, layout(3, away=frozenset()))
    assert [str(each) for each in again] == ["to 2: prepare 1:100 parts [1]"]
    assert [str(each) for each in near.on_vote(0.0, tx.Vote(name, 1, 9))] == [
        "to 1: finish 1:100 part 0 committed at 9",
        "to 2: finish 1:100 part 1 committed at 9",
    ]


def test_ends_of_others_are_forgotten_meanwhile() -> None:
    parts = Parts(1, layout(1, away=frozenset({1})), resend=1.0)
    later = TransactionId(200, near=2)
    doubtful = TransactionId(100, near=2)
    for name in (doubtful, later):
        parts.on_message(2, tx.Finish(name, 0, None))
    parts.forget(2, 300, frozenset({100}))
    assert (doubtful, 0) in parts
    assert (later, 0) not in parts
