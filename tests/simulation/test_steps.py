"""Crashes between the steps of DDL, and of snapshots that are made, restored and given up: a few in
each run, every step in ``./run soak``; and ways to break the rules, each of which turns one red.

``python tests/simulation/test_steps.py 'restore a base' 17 all`` runs one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
sys.path.append(str(Path(__file__).parent.parent / "storage"))
import sim_power
import sim_steps
from sim_cluster import Violation
from sim_steps import STATEMENTS, Manner, counted, crash, kinds

from remuda.member.journal.group import GroupCommit
from remuda.member.snapshots.restoring import SnapshotRestoring
from remuda.storage.snapshot import expiring
from remuda.storage.snapshot.object_store import ObjectStore

FEW: tuple[tuple[str, float, Manner], ...] = (
    ("create", 0.4, "all"),
    ("drop", 0.7, "one"),
    ("restore a base", 0.6, "all"),
    ("restore an increment", 0.3, "one"),
    ("make an increment", 0.5, "all"),
    ("expire", 0.4, "all"),
)
"""Statement, which part of its steps is done, and what ends."""


def test_steps_are_what_they_claim_to_be() -> None:
    """A statement of each kind touches disks or the store, and is told to other members."""
    for what, kind in (("create", "disk"), ("restore an increment", "store"), ("expire", "store")):
        run = counted(what)
        assert run.acknowledged
        assert kinds(run)[kind] > 3
        assert any(step.startswith("frame") for step in run.steps)
        assert run.after != run.before


@pytest.mark.parametrize(("what", "done", "manner"), FEW)
def test_a_few_crashes(what: str, done: float, manner: Manner) -> None:
    run = crash(what, max(1, int(done * len(counted(what).steps))), manner)
    assert run.lost_power or run.life


def test_a_job_of_a_map_that_is_dropped_holds_no_takeover_up() -> None:
    """The coordinator of a restore is lost while its last job is decided: the others drop the map
    while they take over its partitions, and decide the job afterwards."""
    steps = counted("restore an increment").steps
    coordinator = steps[0].rpartition(" ")[2]
    deciding = steps.index(f"frame COMMIT_FINISH of {coordinator}") + 1
    for step in (deciding, deciding + 2):
        crash("restore an increment", step, "one")


def test_maps_of_a_restore_that_appear_after_it_has_failed_are_dropped() -> None:
    """The coordinator of the catalog is lost while it makes the maps of a restore: the restore
    fails and finds nothing to drop, and the maps appear when the others settle the catalog."""
    steps = counted("restore an increment").steps
    installs = [place for place, step in enumerate(steps, 1) if "frame CATALOG_INSTALL" in step]
    crash("restore an increment", installs[0], "one")


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("manner", ["all", "one"])
@pytest.mark.parametrize("what", STATEMENTS)
def test_a_crash_before_every_step(what: str, manner: Manner, size: int) -> None:
    if size == 1 and manner == "one":
        pytest.skip("the loss of the only member is the loss of all")
    for step in range(1, len(counted(what, size).steps) + 1):
        crash(what, step, manner, size)


Patch = pytest.MonkeyPatch


def nothing(*_: Any, **__: Any) -> None: ...


def maps_that_were_begun_stay(patch: Patch) -> None:
    """Nobody drops after a start what a restore before it has left."""
    patch.setattr(SnapshotRestoring, "begin", nothing)


def maps_of_lost_members_stay(patch: Patch) -> None:
    """Nobody drops what a member that was lost has left of its restore."""
    patch.setattr(SnapshotRestoring, "on_view", nothing)


def answers_do_not_wait(patch: Patch) -> None:
    """They go out before the record is on the disk."""
    patch.setattr(GroupCommit, "after", lambda _self, action: action())
    patch.setattr(sim_power, "DISK_WORK", (0.1,))


def objects_go_before_manifests(patch: Patch) -> None:
    """A cut that is given up loses its rows first."""
    carry_out = expiring.carry_out

    def reversed_order(store: ObjectStore, plan: expiring.ExpirePlan) -> None:
        for key in plan.objects:
            store.delete(key)
        carry_out(store, plan)

    patch.setattr(expiring, "carry_out", reversed_order)


MUTATIONS: dict[Callable[[Patch], None], tuple[str, Manner]] = {
    maps_that_were_begun_stay: ("restore a base", "all"),
    maps_of_lost_members_stay: ("restore a base", "one"),
    answers_do_not_wait: ("create", "all"),
    objects_go_before_manifests: ("drop a cut", "all"),
}
"""With a statement and what ends, which see it."""


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(each, marks=[pytest.mark.soak] if each is answers_do_not_wait else [])
        for each in MUTATIONS
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_a_broken_promise_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    monkeypatch.setattr(sim_steps, "_REFERENCES", {})
    mutation(monkeypatch)
    what, manner = MUTATIONS[mutation]
    steps = len(counted(what).steps)
    places = [steps, steps // 20, *(steps * part // 8 for part in (4, 2, 6, 1, 3, 5, 7))]
    with pytest.raises(Violation):
        for step in dict.fromkeys(max(1, place) for place in places):
            crash(what, step, manner)


if __name__ == "__main__":
    statement, number, ends = sys.argv[1:]
    print(crash(statement, int(number), ends).sim.useful_log())  # type: ignore[arg-type]
