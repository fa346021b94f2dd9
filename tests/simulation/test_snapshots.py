"""Snapshots under storms: a few seeds here, many in ./run soak; and ways to break the rules,
each of which must turn one red.

``python tests/simulation/test_snapshots.py SEED`` runs one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_snapshots import run_seed

from remuda.member import snapshot_rows
from remuda.member.commit_participants import CommitParticipants
from remuda.member.cuts import Cuts
from remuda.member.snapshot_making import SnapshotMaking
from remuda.member.snapshot_restoring import SnapshotRestoring
from remuda.storage.transfer import Extraction

SEEDS = int(os.environ.get("REMUDA_SIMULATION_SNAPSHOT_SEEDS", "0"))
"""Besides the one of two members with logs that is always run."""
LOGGED = 9
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20


def test_snapshots_are_of_one_moment() -> None:
    ends: Counter[str] = Counter()
    for seed in (LOGGED, *range(SEEDS)):
        ends.update(run_seed(seed).ends)
    assert ends["increment"] > 1, ends
    assert ends["base"] > 1, ends
    assert ends["restore"] > 2, ends
    assert ends["put"] > 10, ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


Patch = Callable[[pytest.MonkeyPatch], None]


def rows_of_now(patch: pytest.MonkeyPatch) -> None:
    """Each object has the rows of when it is made."""
    original = Extraction.__init__

    def init(self: Extraction, view: Any, layouts: Any, partitions: Any, *_: Any) -> None:
        original(self, view, layouts, partitions)

    patch.setattr(Extraction, "__init__", init)
    patch.setattr(snapshot_rows, "write_rows", _without_the_moment(snapshot_rows.write_rows))


def _without_the_moment(write_rows: Callable[..., Any]) -> Callable[..., Any]:
    def write(store: Any, key: Any, message: Any, extraction: Any) -> Any:
        message.at = 2**62
        return write_rows(store, key, message, extraction)

    return write


def undecided_writes_are_left_out(patch: pytest.MonkeyPatch) -> None:
    """Nobody waits for what was prepared at or below T."""

    async def settled(*_: Any) -> None:
        return

    patch.setattr(CommitParticipants, "settled", settled)
    original = SnapshotMaking.__init__

    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self._rows._commits.settled = settled

    patch.setattr(SnapshotMaking, "__init__", init)


def own_clock_alone(patch: pytest.MonkeyPatch) -> None:
    """T is not above what the others have given out."""

    async def timestamp(self: SnapshotMaking, task: Any) -> int:
        task.reads_at = self._core.timestamp()
        return int(task.reads_at)

    patch.setattr(SnapshotMaking, "_timestamp", timestamp)


def cuts_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """The finish is noted although something at or below T is undecided."""
    patch.setattr(Cuts, "_pending", lambda _self, _timestamp: None)


def sides_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cuts, "_sides", lambda *_: (frozenset(), frozenset()))


def cut_at_the_own_clock(patch: pytest.MonkeyPatch) -> None:
    """T is not above the clocks of the others."""
    original = Cuts.take

    async def take(self: Cuts, version: int, clocks: Any) -> Any:
        for answer in clocks.values():
            answer.clock = clocks[self._core.number].clock
        return await original(self, version, clocks)

    patch.setattr(Cuts, "take", take)


def clocks_stay_below_the_cut(patch: pytest.MonkeyPatch) -> None:
    """Members do not move their clocks above T before they note the start."""
    original = Cuts._mark

    async def mark(self: Cuts, message: Any) -> Any:
        message.timestamp += 1 << 34  # some seconds ahead of everybody
        observe, self._core.observe_clock = self._core.observe_clock, lambda _clock: None
        try:
            return await original(self, message)
        finally:
            self._core.observe_clock = observe

    patch.setattr(Cuts, "_mark", mark)


def objects_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A restore publishes before everything is there."""
    original = SnapshotRestoring._fill

    async def fill(self: SnapshotRestoring, task: Any, maps: Any) -> None:
        for each in maps:
            del each.objects[1:]
        await original(self, task, maps)

    async def nothing(*_: Any) -> None:
        return

    patch.setattr(SnapshotRestoring, "_fill", fill)
    patch.setattr(SnapshotRestoring, "_check_rows", nothing)


def _caught(patch: pytest.MonkeyPatch, mutation: Patch, seeds: range) -> None:
    mutation(patch)
    with pytest.raises(Violation):
        for seed in seeds:
            run_seed(seed)


def test_rows_of_now_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _caught(monkeypatch, rows_of_now, range(20))


@pytest.mark.soak
@pytest.mark.parametrize(
    "mutation",
    [
        undecided_writes_are_left_out,
        own_clock_alone,
        objects_are_forgotten,
        cuts_do_not_wait,
        sides_are_not_noted,
        cut_at_the_own_clock,
        clocks_stay_below_the_cut,
    ],
)
def test_further_mutations_are_noticed(monkeypatch: pytest.MonkeyPatch, mutation: Patch) -> None:
    _caught(monkeypatch, mutation, range(60))


if __name__ == "__main__":
    print(run_seed(int(sys.argv[1])).ends)
