"""Members that leave and return with their folders while users write and others are killed: a few
seeds here, many in ./run soak; and ways to break it, each of which must turn one red.

``python tests/simulation/test_returns.py SEED [LAST]`` runs some.
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
sys.path.append(str(Path(__file__).parent.parent / "storage"))
from sim_cluster import Violation
from sim_returns import ReturnStorm, run_seed

from remuda.member.copies import differences as copy_differences
from remuda.member.copies.differences import Differences
from remuda.member.membership.former_copies import Comparison

SEEDS = int(os.environ.get("REMUDA_SIMULATION_RETURN_SEEDS", "1"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20
CAUGHT_WITHIN = 10
"""Seeds that are tried until one sees a mutation."""


def test_members_return_while_users_write() -> None:
    ends: Counter[str] = Counter()
    compared = 0
    for seed in range(SEEDS):
        storm = run_seed(seed)
        ends.update(storm.ends)
        compared += storm.compared
    assert compared, "no former copy was of use"
    assert ends["entries well"] > 50 * SEEDS


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_returns() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


def test_storms_are_what_they_claim_to_be() -> None:
    storms = [ReturnStorm(seed) for seed in range(50)]
    assert {storm.kills for storm in storms} == {False, True}
    assert {work.name for storm in storms for work in storm.works} == {
        "entries",
        "bank",
        "registers",
    }


Patch = pytest.MonkeyPatch


def a_changed_key_is_missed(patch: Patch) -> None:
    """One bucket whose digests differ is taken for equal."""
    original = copy_differences.differing
    patch.setattr(copy_differences, "differing", lambda mine, theirs: original(mine, theirs)[1:])


def a_copy_serves_before_it_has_the_difference(patch: Patch) -> None:
    """The receiver has taken what it had, and what it lacks never comes."""
    original = Differences.lacking

    async def lacking(self: Differences, *given: Any) -> Any:
        await original(self, *given)
        return iter(())

    patch.setattr(Differences, "lacking", lacking)


def a_missed_removal_is_kept(patch: Patch) -> None:
    """The receiver takes what the present copy has not, as well."""
    patch.setattr(Comparison, "good", lambda self: self.inventory.versions(self.void | ~self.void))


MUTATIONS: list[Callable[[Patch], None]] = [
    a_changed_key_is_missed,
    a_copy_serves_before_it_has_the_difference,
    a_missed_removal_is_kept,
]


@pytest.mark.soak
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_return_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises(Violation, match=r"differs on members|entry \d+ is"):
        for seed in range(CAUGHT_WITHIN):
            run_seed(seed)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        storm = run_seed(number)
        print(number, storm.size, storm.rounds, storm.killed, storm.compared, dict(storm.ends))
