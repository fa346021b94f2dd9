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
from sim_snapshots import AlteringSnapshotStorm, MovingSnapshotStorm, SnapshotStorm, run_seed

from remuda.member.snapshots import making
from remuda.member.snapshots import rows as snapshot_rows
from remuda.member.snapshots.cut_watch import CutWatch
from remuda.member.snapshots.cuts import Cuts
from remuda.member.snapshots.restoring import SnapshotRestoring
from remuda.snapshot.catalog import catalog_text
from remuda.storage.maps.transfer import Extraction

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


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_snapshots_are_of_one_moment_while_partitions_move() -> None:
    ends: Counter[str] = Counter()
    for seed in range(SOAK_SEEDS // 5):
        ends.update(run_seed(seed, MovingSnapshotStorm).ends)
    wanted = ("increment", "base", "ViewChanged", "restore", "restore while moving")
    assert all(ends[each] for each in wanted), ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_snapshots_are_of_one_moment_while_maps_are_altered() -> None:
    ends: Counter[str] = Counter()
    for seed in range(SOAK_SEEDS // 5):
        ends.update(run_seed(seed, AlteringSnapshotStorm).ends)
    wanted = ("increment", "base", "SchemaChanged", "alter", "restore")
    assert all(ends[each] for each in wanted), ends


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


def cuts_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """The finish is noted although something at or below T is undecided."""
    patch.setattr(Cuts, "_pending", lambda _self, _timestamp: None)


def sides_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CutWatch, "sides", lambda *_: (frozenset(), frozenset()))


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


def former_versions_are_not_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(making, "catalog_text", lambda catalog, _former=(): catalog_text(catalog))


def _caught(
    patch: pytest.MonkeyPatch,
    mutation: Patch,
    seeds: range,
    storm: type[SnapshotStorm] = SnapshotStorm,
) -> None:
    mutation(patch)
    with pytest.raises(Violation):
        for seed in seeds:
            run_seed(seed, storm)


def test_rows_of_now_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _caught(monkeypatch, rows_of_now, range(20))


@pytest.mark.soak
@pytest.mark.parametrize("mutation", [objects_are_forgotten, cuts_do_not_wait, sides_are_not_noted])
def test_further_mutations_are_noticed(monkeypatch: pytest.MonkeyPatch, mutation: Patch) -> None:
    _caught(monkeypatch, mutation, range(60))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_rows_of_unknown_versions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _caught(monkeypatch, former_versions_are_not_named, range(40), AlteringSnapshotStorm)


if __name__ == "__main__":
    print(run_seed(int(sys.argv[1])).ends)
