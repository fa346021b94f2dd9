"""Notifications while members fail; and ways to break them, each of which must turn a storm red.

``python tests/simulation/test_notifications.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_notifications import Letters, LettersStorm
from sim_transactions import run_seed

from remuda.member.changes.change_logs import ChangeLogs
from remuda.member.notifications import service
from remuda.member.notifications.pending import PendingNotifications
from remuda.transaction import notifications
from remuda.transaction.notifications import OwnNotifications
from remuda.transaction.notifications import Sent as SentPart

SOAK_SEEDS = max(50, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 40)
CAUGHT_WITHIN = 30
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch


def run(seed: int) -> LettersStorm:
    storm: Any = run_seed(seed, "serializable", LettersStorm)
    assert isinstance(storm, LettersStorm)
    return storm


def work_of(storm: LettersStorm) -> Letters:
    (work,) = storm.works
    assert isinstance(work, Letters)
    return work


def test_every_session_hears_every_commit_in_one_order() -> None:
    work = work_of(run(5))
    assert len(work.kept) > 10
    assert len(work.listeners) >= 3
    assert all(len(listener.heard) > 10 for listener in work.listeners[:3])


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_session_hears_every_commit_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed)


# --- broken notifications -----------------------------------------------------------------------


def the_order_is_that_of_tags(patch: Patch) -> int:
    def order(sent: Any) -> list[SentPart]:
        return sorted(sent, key=lambda each: (each.tag, each.place))

    patch.setattr(notifications, "in_order", order)
    return 1


def told_before_the_commit(patch: Patch) -> int:
    """As it is prepared, to the sessions of its own member."""
    prepared = PendingNotifications.prepared

    async def early(self: PendingNotifications) -> Any:
        part = SentPart(1 << 62, 0, 0, 0, tuple(self.own.sent))
        for inbox in list(self._service._inboxes):
            inbox.hear(part)
        return await prepared(self)

    patch.setattr(PendingNotifications, "prepared", early)
    return 1


def told_after_a_rollback_to_a_savepoint(patch: Patch) -> int:
    patch.setattr(OwnNotifications, "rolled_back_to", lambda *_: None)
    return 1


def lost_at_a_failover(patch: Patch) -> int:
    """Another primary of the queue begins with what is committed from then on."""
    asked = service.Notifications._asked
    views: dict[Any, int] = {}

    async def anew(self: Any, schema: Any, after: int, wait: float) -> Any:
        view = self._core.view.number
        if wait and views.setdefault(self, view) != view:
            views[self] = view
            return await asked(self, schema, 0, 0.0)
        return await asked(self, schema, after, wait)

    patch.setattr(service.Notifications, "_asked", anew)
    return 1


def undecided_commits_are_passed_over(patch: Patch) -> int:
    after = ChangeLogs.after

    async def hasty(self: ChangeLogs, schema: Any, partition: int, timestamp: int) -> Any:
        changes, _ = await after(self, schema, partition, timestamp)
        return changes, self._core.timestamp()

    patch.setattr(ChangeLogs, "after", hasty)
    return 1


def listens_from_its_own_clock(patch: Patch) -> int:
    """And not from that of the queue's primary."""

    async def since(self: Any, own: OwnNotifications) -> int:
        await self._map()
        return int(self._core.timestamp()) + (1 << 32)

    patch.setattr(service.Notifications, "since", since)
    return 1


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(the_order_is_that_of_tags, marks=pytest.mark.soak),
        told_before_the_commit,
        pytest.param(told_after_a_rollback_to_a_savepoint, marks=pytest.mark.soak),
        lost_at_a_failover,
        pytest.param(undecided_commits_are_passed_over, marks=pytest.mark.soak),
        pytest.param(listens_from_its_own_clock, marks=pytest.mark.soak),
    ],
    ids=lambda each: each.__name__,
)
def test_broken_notifications_are_noticed(
    mutation: Callable[[Patch], int], monkeypatch: Patch
) -> None:
    known = mutation(monkeypatch)
    with pytest.raises(Violation, match="letters"):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        found = run(number)
        work = work_of(found)
        heard = [len(each.heard) for each in work.listeners]
        print(number, found.events, len(work.kept), heard, dict(found.ends))
