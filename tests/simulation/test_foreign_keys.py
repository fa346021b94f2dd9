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
from sim_foreign_keys import ForeignKeyStorm, dense
from sim_transactions import run_seed

from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks

LEVELS = ("read committed", "repeatable read", "serializable", "pessimistic repeatable read")
SOAK_SEEDS = max(50, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 40)
CAUGHT_WITHIN = 12
CHILDREN = ("child", "put_child", "child_by_value", "move_child")
ENDS = ("delete", "remove")
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
    for makers in (CHILDREN, ENDS):
        for end in ("done", "refused"):
            assert any(ends[f"{maker} {end}"] for maker in makers), ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("level", LEVELS)
def test_no_child_is_without_its_parent_in_many_storms(level: str) -> None:
    for seed in range(SOAK_SEEDS):
        run(seed, level, dense)
        run(seed, level, ForeignKeyStorm)


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


FIRST: dict[Callable[[Patch], None], int] = {
    children_read_no_guard: 12,
    deletes_validate_no_children: 0,
}
"""Seeds from which a storm notices it soon; of all seeds a third does."""


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
