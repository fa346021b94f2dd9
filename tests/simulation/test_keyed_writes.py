"""Statements by key on the short way and the general one, judged by one specification; and ways to
break the short one, each of which must turn a storm red.

``python tests/simulation/test_keyed_writes.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import math
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
from sim_keyed_writes import KeyedStorm, dense
from sim_transactions import run_seed
from single_entries import Call, violations

from remuda.datatypes.timestamp import from_micros
from remuda.errors import RemudaError, ViewChanged
from remuda.member.maps import keyed_writes
from remuda.member.transactions.small_writes import SmallWrite, SmallWrites
from remuda.transaction.alone import AloneParts

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20
CAUGHT_WITHIN = 12
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch
Kind = Callable[[int, str | None], Any]
Seen = tuple[Kind, int]
"""The storm that notices it, and a seed that does."""


def run(seed: int, kind: Kind) -> KeyedStorm:
    storm: Any = run_seed(seed, "serializable", kind)
    assert isinstance(storm, KeyedStorm)
    return storm


def test_both_ways_meet_one_specification() -> None:
    ends: Counter[str] = Counter()
    asked = 0
    for kind in (dense, KeyedStorm):
        storm = run(1, kind)
        asked += storm.asked
        ends.update(storm.ends)
    assert asked > 20, ends  # of other members
    for name, number in (("short", 20), ("general", 10)):
        assert ends[f"{name} False"] > number, ends
    assert ends["short True"], ends  # the key was there


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_both_ways_meet_one_specification_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed, dense)
        run(seed, KeyedStorm)


# --- the judge ----------------------------------------------------------------------------------


def append(more: str) -> Callable[[Any], tuple[Any, Any]]:
    return lambda value: ((value or "") + more, (value or "") + more)


def look(value: Any) -> tuple[Any, Any]:
    return value, value


def test_calls_that_overlap_have_any_order_and_others_that_of_time() -> None:
    both = [Call(1, "a", append("a"), 0.0, 2.0, "ba"), Call(1, "b", append("b"), 1.0, 3.0, "b")]
    assert violations(both) == []
    apart = [Call(1, "a", append("a"), 0.0, 2.0, "ba"), Call(1, "b", append("b"), 2.5, 3.0, "b")]
    (found,) = violations(apart)
    assert "no order of 2 calls" in found


def test_an_unknown_call_may_take_effect_late_or_never() -> None:
    unknown = Call(1, "a", append("a"), 0.0, known=False)
    looks = [Call(1, "look", look, at, at + 1, value) for at, value in ((1.0, None), (3.0, "a"))]
    assert violations([unknown, *looks]) == []
    assert violations([unknown, looks[0]]) == []
    gone = Call(1, "look", look, 5.0, 6.0, None)
    assert violations([unknown, *looks, gone]) != []
    assert unknown.ended == math.inf


# --- broken short ways --------------------------------------------------------------------------


def the_owner_does_not_wait_for_what_is_prepared(patch: Patch) -> Seen:
    waits = SmallWrites._waits

    def _waits(self: SmallWrites, write: SmallWrite) -> bool:
        keys, write.keys = write.keys, ()
        try:
            return waits(self, write)
        finally:
            write.keys = keys

    patch.setattr(SmallWrites, "_waits", _waits)
    return dense, 3


def the_owner_reads_what_was_a_moment_ago(patch: Patch) -> Seen:
    prepare = SmallWrites._prepare

    def _prepare(self: SmallWrites, write: SmallWrite) -> None:
        decide, core = write.decide, self._core

        def by_old_rows(_rows: Any) -> Any:
            store = core.copy_of(write.schema.map_id, write.partition)
            at = core.timestamp() - from_micros(100_000)
            return decide([store.get(key, at) for key in write.keys])

        write.decide = by_old_rows
        prepare(self, write)

    patch.setattr(SmallWrites, "_prepare", _prepare)
    return dense, 1


def the_owner_answers_before_the_backup_has_it(patch: Patch) -> Seen:
    """Only a loss of the owner in that moment shows it."""
    prepare = SmallWrites._prepare

    def _prepare(self: SmallWrites, write: SmallWrite) -> None:
        decide = write.decide
        answers: list[Any] = []

        def noted(rows: Any) -> Any:
            found = decide(rows)
            answers.append(found[1])
            return found

        write.decide = noted
        prepare(self, write)
        if write.prepared and write in self._running and not write.told:
            write.told = True
            write.answered(answers[-1])

    patch.setattr(SmallWrites, "_prepare", _prepare)
    return KeyedStorm, 15


def a_write_is_visible_before_its_backup_has_it(patch: Patch) -> Seen:
    prepare = AloneParts.prepare_alone

    def prepare_alone(self: AloneParts, address: Any, work: object, timestamp: int) -> Any:
        prepare(self, address, work, timestamp)
        return []  # as without backups

    settle = AloneParts.settle_alone

    def settle_alone(self: AloneParts, address: Any, kept: tuple[int, ...]) -> Any:
        return settle(self, address, kept or self.layout.backups(address[1]))

    patch.setattr(AloneParts, "prepare_alone", prepare_alone)
    patch.setattr(AloneParts, "settle_alone", settle_alone)
    return KeyedStorm, 1


def a_statement_whose_end_is_not_known_runs_again(patch: Patch) -> Seen:
    def _unknown(_write: object, cause: RemudaError) -> RemudaError:
        return ViewChanged(cause.message)

    patch.setattr(keyed_writes, "_unknown", _unknown)
    return KeyedStorm, 12


SLOW = pytest.mark.soak  # some seconds each; those beside them show that the judges judge
MUTATIONS = (
    the_owner_does_not_wait_for_what_is_prepared,
    pytest.param(the_owner_reads_what_was_a_moment_ago, marks=SLOW),
    the_owner_answers_before_the_backup_has_it,
    pytest.param(a_write_is_visible_before_its_backup_has_it, marks=SLOW),
    pytest.param(a_statement_whose_end_is_not_known_runs_again, marks=SLOW),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_broken_short_way_is_noticed(
    mutation: Callable[[Patch], Seen], monkeypatch: Patch
) -> None:
    kind, known = mutation(monkeypatch)
    with pytest.raises(Violation, match=r"entries|lists"):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed, kind)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for each in (dense, KeyedStorm):
            found = run(number, each)
            print(number, found.events, found.asked, dict(found.ends))
