"""Children beside deletes of their parents at every isolation level while members fail (decision
0108); and ways to break foreign keys, each of which must turn a storm red.

``python tests/simulation/test_foreign_keys.py SEED [LAST]`` runs some.
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
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_foreign_keys import ForeignKeyStorm, dense, dense_loads, loads
from sim_transactions import run_seed

from remuda.member.commits.job_checks import JobChecks
from remuda.member.statements.checks.cascades import Cascades
from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks

LEVELS = ("read committed", "repeatable read", "serializable", "pessimistic repeatable read")
SOAK_SEEDS = max(50, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 40)
CAUGHT_WITHIN = 12
CHILDREN = ("child", "put_child", "child_by_value", "move_child")
ENDS = ("delete", "remove")
LOADS = ("load", "load_by_value")
Patch = pytest.MonkeyPatch
Kind = Callable[[int, str | None], Any]


def run(seed: int, level: str, kind: Kind) -> ForeignKeyStorm:
    storm: Any = run_seed(seed, level, kind)
    assert isinstance(storm, ForeignKeyStorm)
    return storm


@pytest.mark.parametrize("level", LEVELS)
def test_no_child_is_without_its_parent(level: str) -> None:
    ends: Counter[str] = Counter()
    for kind in (dense, ForeignKeyStorm):
        ends.update(run(1, level, kind).ends)
    ends.update(run(1, level, dense_loads if level in LEVELS[:2] else loads).ends)
    for makers in (CHILDREN, ENDS, LOADS):
        for end in ("done", "refused"):
            assert any(ends[f"{maker} {end}"] for maker in makers), ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("level", LEVELS)
def test_no_child_is_without_its_parent_in_many_storms(level: str) -> None:
    for seed in range(SOAK_SEEDS):
        for kind in (dense, ForeignKeyStorm, dense_loads, loads):
            run(seed, level, kind)


# --- broken foreign keys --------------------------------------------------------------------------


def _without(patch: Patch, what: str) -> None:
    checked = ForeignKeyChecks._checked

    async def _checked(self: ForeignKeyChecks, own: Any, at: int) -> Any:
        found = await checked(self, own, at)
        getattr(found, what).clear()
        return found

    patch.setattr(ForeignKeyChecks, "_checked", _checked)


def children_read_no_guard(patch: Patch) -> None:
    _without(patch, "reads")


def deletes_validate_no_children(patch: Patch) -> None:
    _without(patch, "scans")


def deletes_write_no_guard(patch: Patch) -> None:
    _without(patch, "taken")


def nothing_follows(patch: Patch) -> None:
    """Children that are to follow stay as they are."""
    refuse = ForeignKeyChecks.refuse_children

    async def refuse_children(
        self: ForeignKeyChecks, parent: Any, child: Any, foreign: Any, *more: Any
    ) -> None:
        if foreign.on_delete.refuses:
            await refuse(self, parent, child, foreign, *more)

    patch.setattr(ForeignKeyChecks, "refuse_children", refuse_children)
    patch.setattr(Cascades, "follows", lambda *_: False)


def followed_keys_validate_no_children(patch: Patch) -> None:
    """Children that came since those that follow were looked for."""
    checked = ForeignKeyChecks._checked

    async def _checked(self: ForeignKeyChecks, own: Any, at: int) -> Any:
        found = await checked(self, own, at)
        found.scans = [s for s in found.scans if not _follows(self._core.store(s.map_id, 0).schema)]
        return found

    patch.setattr(ForeignKeyChecks, "_checked", _checked)


def _follows(child: Any) -> bool:
    return any(not key.on_delete.refuses for key in child.foreign_keys)


FIRST: dict[Callable[[Patch], None], int] = {
    children_read_no_guard: 12,
    deletes_validate_no_children: 0,
    deletes_write_no_guard: 0,
    nothing_follows: 3,
    followed_keys_validate_no_children: 4,
}
"""Seeds from which a storm notices it soon; of all seeds a third does."""


def jobs_look_for_no_parents(patch: Patch) -> None:
    async def _find_parents(_self: JobChecks, *_: Any) -> None:
        return None

    patch.setattr(JobChecks, "_find_parents", _find_parents)


def jobs_look_before_their_commit(patch: Patch) -> None:
    """At a time at which others may still take the parents away."""
    require = ForeignKeyChecks.require_parents

    async def require_parents(
        self: ForeignKeyChecks, child: Any, foreign: Any, named: Any, at: int
    ) -> None:
        await require(self, child, foreign, named, at - BEFORE)

    patch.setattr(ForeignKeyChecks, "require_parents", require_parents)


BEFORE = 1 << 27
FIRST_OF_LOADS: dict[Callable[[Patch], None], int] = {
    jobs_look_for_no_parents: 0,
    jobs_look_before_their_commit: 2,
}


@pytest.mark.parametrize("mutation", FIRST_OF_LOADS, ids=lambda each: each.__name__)
def test_a_bulk_write_that_is_not_checked_is_noticed(
    mutation: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutation(monkeypatch)
    first = FIRST_OF_LOADS[mutation]
    with pytest.raises(Violation, match="children without parents"):
        for seed in range(first, first + CAUGHT_WITHIN):
            run(seed, "read committed", dense_loads)


@pytest.mark.parametrize("mutation", FIRST, ids=lambda each: each.__name__)
def test_a_broken_foreign_key_is_noticed(
    mutation: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation, match="children without parents"):
        for seed in range(FIRST[mutation], FIRST[mutation] + CAUGHT_WITHIN):
            run(seed, "read committed", dense)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for level in LEVELS:
            for each in (dense, ForeignKeyStorm):
                found = run(number, level, each)
                print(number, level, found.events, dict(found.ends))
