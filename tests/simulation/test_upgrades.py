"""Storms around the end of an upgrade (``sim_upgrades``), and ways to break its rules, each of
which a seed notices (decision 0112).

``python tests/simulation/test_upgrades.py SEED`` runs one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_upgrades import run_seed

from remuda.cluster.membership import Membership
from remuda.datatypes.view import MemberInfo, View
from remuda.member.membership import forming
from remuda.member.statements import control
from remuda.release import Versions

Patch = pytest.MonkeyPatch


def test_upgrades_are_finished_in_storms() -> None:
    events: Counter[str] = Counter()
    for seed in (1, 3):
        events.update(run_seed(seed).events)
    wanted = {"not complete", "finished", "refused", "0.2.0 joined", "crash", "split", "leave"}
    assert events.keys() >= wanted, events
    assert events["finished at the end"] == 2


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_upgrades_are_finished_in_many_storms() -> None:
    for seed in range(400):
        run_seed(seed)


def versions_are_not_compared(patch: Patch) -> None:
    patch.setattr(Versions, "__contains__", lambda *_: True)


def nobody_is_refused(patch: Patch) -> None:
    patch.setattr(forming, "require_fit", lambda *_: None)


def the_version_rises_whoever_is_there(patch: Patch) -> None:
    def highest(view: View) -> int:
        return max(member.versions.highest for member in view.members)

    def version(self: Membership, _staying: Sequence[MemberInfo]) -> int:
        return max(self._wishes.version, self.view.version)

    patch.setattr(control, "to_follow", highest)
    patch.setattr(Membership, "_version", version)


def finishing_waits_for_members_of_the_release_before(patch: Patch) -> None:
    def highest(view: View) -> int:
        return max(member.versions.highest for member in view.members)

    patch.setattr(control, "to_follow", highest)


def the_version_follows_the_members(patch: Patch) -> None:
    def version(_: Membership, staying: Sequence[MemberInfo]) -> int:
        return min(info.versions.highest for info in staying)

    patch.setattr(Membership, "_version", version)


def a_view_without_a_wish_has_the_lowest_version(patch: Patch) -> None:
    def version(self: Membership, staying: Sequence[MemberInfo]) -> int:
        fits = all(self._wishes.version in info.versions for info in staying)
        wanted = self._wishes.version if fits else 0
        self._wishes.version = 0
        return wanted or min(info.versions.lowest for info in staying)

    patch.setattr(Membership, "_version", version)


MUTATIONS: dict[Callable[[Patch], None], int] = {
    versions_are_not_compared: 3,
    nobody_is_refused: 0,
    the_version_rises_whoever_is_there: 0,
    finishing_waits_for_members_of_the_release_before: 0,
    the_version_follows_the_members: 0,
    a_view_without_a_wish_has_the_lowest_version: 1,
}
"""With a seed that notices it."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_rule_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation):
        run_seed(MUTATIONS[mutation])


if __name__ == "__main__":
    run_seed(int(sys.argv[1]))
