"""Numbers of sequences while members fail; and ways to break them, each of which must turn a storm
red.

``python tests/simulation/test_numbers.py SEED [LAST]`` runs some.
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
from sim_numbers import NumberStorm, dense
from sim_transactions import run_seed

from remuda.datatypes.sequences import SequenceState
from remuda.member.sequences import states
from remuda.member.sequences.states import Sequences
from remuda.member.transactions.small_writes import SmallWrite, SmallWrites
from remuda.transaction.number_blocks import NumberBlocks

SOAK_SEEDS = max(100, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20)
CAUGHT_WITHIN = 12
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch
Kind = Callable[[int, str | None], Any]
Seen = tuple[Kind, int]
"""The storm that notices it, and a seed that does."""


def run(seed: int, kind: Kind) -> NumberStorm:
    storm: Any = run_seed(seed, "serializable", kind)
    assert isinstance(storm, NumberStorm)
    return storm


def test_no_number_is_given_out_twice() -> None:
    ends: Counter[str] = Counter()
    asked = 0
    for kind in (dense, NumberStorm):
        storm = run(1, kind)
        asked += storm.asked
        ends.update(storm.ends)
    assert asked > 10, ends  # of other members
    assert ends["numbers well"] > 20, ends
    assert ends["numbers set"], ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_number_is_given_out_twice_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed, dense)
        run(seed, NumberStorm)


# --- broken sequences ---------------------------------------------------------------------------


def a_member_keeps_void_numbers(patch: Patch) -> Seen:
    patch.setattr(NumberBlocks, "_void", lambda *_: None)
    return dense, 1


def only_one_member_hears_that_numbers_are_void(patch: Patch) -> Seen:
    async def _void_everywhere(*_: object) -> None:
        return None

    patch.setattr(Sequences, "_void_everywhere", _void_everywhere)
    return dense, 1


def a_block_is_granted_before_its_backup_has_it(patch: Patch) -> Seen:
    """Only a loss of the owner in that moment shows it."""
    prepare = SmallWrites._prepare

    def _prepare(self: SmallWrites, write: SmallWrite) -> None:
        prepare(self, write)
        if write.prepared and write in self._running and not write.told:
            write.told = True
            write.answered([None])

    patch.setattr(SmallWrites, "_prepare", _prepare)
    return NumberStorm, 1


def the_owner_does_not_write_the_upper_bound(patch: Patch) -> Seen:
    taken = states.taken

    def without(options: Any, state: SequenceState, wanted: int) -> Any:
        found = taken(options, state, wanted)
        return None if found is None else (state, found[1])

    patch.setattr(states, "taken", without)
    return dense, 1


SLOW = pytest.mark.soak  # some seconds each; those beside them show that the judge judges
MUTATIONS = (
    pytest.param(a_member_keeps_void_numbers, marks=SLOW),
    only_one_member_hears_that_numbers_are_void,
    pytest.param(a_block_is_granted_before_its_backup_has_it, marks=SLOW),
    the_owner_does_not_write_the_upper_bound,
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_broken_sequence_is_noticed(
    mutation: Callable[[Patch], Seen], monkeypatch: Patch
) -> None:
    kind, known = mutation(monkeypatch)
    with pytest.raises(Violation, match="numbers"):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed, kind)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for each in (dense, NumberStorm):
            found = run(number, each)
            print(number, found.events, found.asked, dict(found.ends))
