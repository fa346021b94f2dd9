"""Definitions in transactions while members fail; and ways to break them, each of which must turn a
storm red.

``python tests/simulation/test_own_definitions.py SEED [LAST]`` runs some.
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
from sim_own_definitions import AlterStorm, DefinitionStorm, ReferenceStorm
from sim_transactions import run_seed

from remuda.catalog.catalog import Catalog
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.transaction_definitions import TransactionDefinitions
from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks

SOAK_SEEDS = max(50, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 40)
CAUGHT_WITHIN = 30
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch


def run(
    seed: int, level: str | None = None, kind: type[DefinitionStorm] = DefinitionStorm
) -> DefinitionStorm:
    storm: Any = run_seed(seed, level, kind)
    assert isinstance(storm, DefinitionStorm)
    return storm


def test_definitions_commit_with_their_rows_or_not_at_all() -> None:
    ends: Counter[str] = Counter()
    for seed in (16, 19):
        ends.update(run(seed).ends)
    assert ends["makers well"] > 20, ends
    assert ends["swappers well"] > 20, ends
    assert ends["movers well"] > 20, ends
    assert ends["swappers beaten"] > 5, ends


def test_rows_of_new_children_have_their_parents() -> None:
    ends = run(5, kind=ReferenceStorm).ends
    assert ends["namers well"] > 3, ends
    assert ends["namers beaten"] > 2, ends
    assert ends["parents deleted"] > 5, ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_definitions_commit_with_their_rows_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed)


# --- broken definitions -------------------------------------------------------------------------


def commits_are_not_noted(patch: Patch) -> int:
    """An answer is lost, and the second edit finds the names of the first one."""
    patch.setattr(Catalog, "deciding", lambda self, *_: self)
    return 7


def edits_of_an_older_catalog_are_made(patch: Patch) -> int:
    serialize = CatalogService._serialize

    async def whatever(self: Any, change: Any) -> bool:
        if change.edits.HasField("decides"):
            change.edits.version = self._core.catalog.version
        return await serialize(self, change)

    patch.setattr(CatalogService, "_serialize", whatever)
    return 1


def maps_of_failed_transactions_stay(patch: Patch) -> int:
    patch.setattr(TransactionDefinitions, "_look_for_left", lambda *_: None)
    return 0


def the_coordinator_leaves_maps_of_lost_members(patch: Patch) -> int:
    is_left = TransactionDefinitions._is_left

    def own_only(self: Any, schema: Any) -> bool:
        return is_left(self, schema) and schema.name.split(" ")[1] == str(self._core.number)

    patch.setattr(TransactionDefinitions, "_is_left", own_only)
    return 28


def rollback_to_keeps_definitions(patch: Patch) -> int:
    rolled_back_to = OpenTransaction.roll_back_to

    def keeping(self: OpenTransaction, name: str) -> None:
        kept = self.definitions
        rolled_back_to(self, name)
        self.definitions = kept

    patch.setattr(OpenTransaction, "roll_back_to", keeping)
    return 0


@pytest.mark.parametrize(
    "mutation",
    [
        commits_are_not_noted,
        pytest.param(edits_of_an_older_catalog_are_made, marks=pytest.mark.soak),
        pytest.param(maps_of_failed_transactions_stay, marks=pytest.mark.soak),
        the_coordinator_leaves_maps_of_lost_members,
        pytest.param(rollback_to_keeps_definitions, marks=pytest.mark.soak),
    ],
    ids=lambda each: each.__name__,
)
def test_broken_definitions_are_noticed(
    mutation: Callable[[Patch], int], monkeypatch: Patch
) -> None:
    known = mutation(monkeypatch)
    with pytest.raises(Violation):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed)


def test_altered_tables_keep_the_rows_of_others() -> None:
    ends = run(4, kind=AlterStorm).ends
    assert ends["alterers well"] > 10, ends
    assert ends["alterers beaten"] > 10, ends
    assert ends["writers well"] > 30, ends


def test_rows_that_others_write_beside_an_altered_table_are_noticed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(OpenTransaction, "note_table", lambda *_: None)
    with pytest.raises(Violation):
        for seed in (2, *range(CAUGHT_WITHIN)):
            run(seed, kind=AlterStorm)


def test_children_that_others_do_not_know_of_are_noticed(monkeypatch: Patch) -> None:
    """Who deletes a row does not look for children of a foreign key that has not committed."""
    monkeypatch.setattr(ForeignKeyChecks, "_is_unknown", lambda *_: False)
    with pytest.raises(Violation):
        for seed in (5, *range(CAUGHT_WITHIN)):
            run(seed, kind=ReferenceStorm)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        print(number, dict(run(number).ends))
