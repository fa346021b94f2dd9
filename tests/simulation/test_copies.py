"""Storms over a cluster with backups: a few seeds here, many in ./run soak; and ways to break the
rules, each of which must turn one red.

``python tests/simulation/test_copies.py SEED`` runs one.
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
from sim_copies import run_seed

from remuda.member.commits.commits import Commits
from remuda.member.commits.prepared_writes import PreparedWrites
from remuda.member.copies.giving import Giving
from remuda.storage.maps.map_store import MapStore

SEEDS = int(os.environ.get("REMUDA_SIMULATION_COPY_SEEDS", "3"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20


def test_no_acknowledged_write_is_lost() -> None:
    ends: Counter[str] = Counter()
    for seed in range(SEEDS):
        ends.update(run_seed(seed).ends)
    assert ends["batch"] > 10, ends
    assert ends["put"] > 10, ends
    assert ends["read"] > 10, ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


Patch = Callable[[pytest.MonkeyPatch], None]


def votes_of_later_views(patch: pytest.MonkeyPatch) -> None:
    """A vote counts whatever view it comes from."""
    original = Commits._vote

    def vote(self: Commits, leading: Any, member: int, told: Any) -> None:
        told.context.view = min(told.context.view, self._core.view.number)
        original(self, leading, member, told)

    patch.setattr(Commits, "_vote", vote)


def jobs_go_on_while_partitions_move(patch: pytest.MonkeyPatch) -> None:
    async def hold(_self: PreparedWrites) -> None:
        return

    patch.setattr(PreparedWrites, "hold", hold)
    patch.setattr(PreparedWrites, "release", lambda _self: None)


def receivers_are_not_told_of_small_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Giving, "receivers", lambda _self, _partition: ())


def no_last_round(patch: pytest.MonkeyPatch) -> None:
    original = Giving._finish

    async def finish(self: Giving, giving: Any) -> None:
        async def nothing(*_: Any) -> int:
            return 0

        self._round = nothing  # type: ignore[method-assign]
        try:
            await original(self, giving)
        finally:
            del self._round  # type: ignore[method-assign]

    patch.setattr(Giving, "_finish", finish)


def the_old_owner_keeps_its_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MapStore, "close_partitions", lambda _self, _partitions, _at: None)


def _caught(patch: pytest.MonkeyPatch, mutation: Patch, seeds: range) -> None:
    mutation(patch)
    with pytest.raises(Violation):
        for seed in seeds:
            run_seed(seed)


def test_a_missing_last_round_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _caught(monkeypatch, no_last_round, range(20))


@pytest.mark.soak
@pytest.mark.parametrize(
    "mutation",
    [
        votes_of_later_views,
        jobs_go_on_while_partitions_move,
        receivers_are_not_told_of_small_writes,
        the_old_owner_keeps_its_rows,
    ],
)
def test_further_mutations_are_noticed(monkeypatch: pytest.MonkeyPatch, mutation: Patch) -> None:
    _caught(monkeypatch, mutation, range(60))


if __name__ == "__main__":
    print(run_seed(int(sys.argv[1])).ends)
