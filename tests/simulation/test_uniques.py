"""Unique values in bulk writes beside single writes and transactions while members fail (decision
0085); and ways to break the comparison, each of which must turn a storm red.

``python tests/simulation/test_uniques.py SEED [LAST]`` runs some.
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
from sim_transactions import run_seed
from sim_uniques import UniqueStorm, dense
from unique_rows import Judge, Look, Refusal, Write

from remuda.datatypes.timestamp import from_micros
from remuda.member.commits.job_checks import JobChecks
from remuda.member.commits.unique_comparison import UniqueComparison
from remuda.member.transactions.validation import Validation
from remuda.storage.maps.unique_values import JobValues

SOAK_SEEDS = max(100, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20)
CAUGHT_WITHIN = 12
"""Seeds that are tried when the known one shows nothing any more."""
Patch = pytest.MonkeyPatch
Kind = Callable[[int, str | None], Any]
Seen = tuple[Kind, int, str]
"""The storm that notices it, a seed that does, and a word of what it says."""


def run(seed: int, kind: Kind) -> UniqueStorm:
    storm: Any = run_seed(seed, "serializable", kind)
    assert isinstance(storm, UniqueStorm)
    return storm


def test_no_two_rows_have_one_value() -> None:
    ends: Counter[str] = Counter()
    checked = 0
    for kind in (dense, UniqueStorm):
        storm = run(1, kind)
        checked += storm.checked
        ends.update(storm.ends)
    assert checked > 20, ends
    for each in ("job done", "job refused", "insert refused", "update done", "put done"):
        assert ends[each], ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_two_rows_have_one_value_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        run(seed, dense)
        run(seed, UniqueStorm)


# --- the judge ----------------------------------------------------------------------------------


def judged(
    writes: list[Write], looks: list[Look] | None = None, refusals: list[Refusal] | None = None
) -> str:
    judge = Judge()
    judge.writes = {write.number: write for write in writes}
    judge.looks, judge.refusals = looks or [], refusals or []
    return "\n".join(judge.violations())


def test_what_readers_may_see() -> None:
    writes = [
        Write(1, "put", 0.0, {1: 5, 2: 6}, ended=1.0),
        Write(2, "put", 2.0, {1: 7}, ended=3.0),
        Write(3, "put", 0.0, {3: 9}, ended=1.0, failed=True),
        Write(4, "delete", 8.0, {2: None}, ended=9.0),
    ]

    def seen(at: float, **rows: tuple[int, int]) -> str:
        return judged(writes, [Look(at, at + 0.1, {int(k[1:]): row for k, row in rows.items()})])

    assert seen(1.5, k1=(5, 1), k2=(6, 1)) == ""
    assert seen(2.5, k1=(5, 1), k2=(6, 1)) == ""
    assert seen(2.5, k1=(7, 2), k2=(6, 1)) == ""
    assert seen(8.5, k1=(7, 2)) == ""
    assert "an older row" in seen(3.5, k1=(5, 1), k2=(6, 1))
    assert "lost" in seen(3.5, k1=(7, 2))
    assert "only a part" in seen(0.5, k2=(6, 1))
    assert "has failed" in seen(1.5, k1=(5, 1), k2=(6, 1), k3=(9, 3))
    assert "nobody has written" in seen(1.5, k1=(4, 1), k2=(6, 1))
    assert "two rows with one value" in seen(1.5, k1=(6, 1), k2=(6, 1))


def test_what_writers_may_be_told() -> None:
    def told(at: float, writes: list[Write], looks: list[Look] | None = None) -> str:
        return judged(writes, looks, [Refusal("", at, at + 0.1, 5, frozenset({7}))])

    put = Write(1, "put", 0.0, {1: 5}, ended=1.0)
    gone = Write(2, "delete", 2.0, {1: None}, ended=3.0)
    assert told(0.5, [put, gone]) == ""
    assert told(2.5, [put, gone]) == ""
    assert "nobody had" in told(3.5, [put, gone])
    assert "nobody had" in told(0.5, [Write(1, "put", 0.0, {7: 5}, ended=1.0)])
    assert told(9.0, [put]) == ""
    assert "nobody had" in told(9.0, [put], [Look(4.0, 5.0, {})])
    over = Write(1, "put", 0.0, {1: 5}, ended=1.0, ttl=1.0)
    assert told(2.2, [over]) == ""
    assert "nobody had" in told(3.0, [over])


# --- broken comparisons -------------------------------------------------------------------------


def rows_are_not_compared(patch: Patch) -> Seen:
    async def run(self: UniqueComparison) -> int:
        return sum(len(source.hashes) for source in (self._own, *self._others))

    patch.setattr(UniqueComparison, "run", run)
    return dense, 0, "two rows with one value"


def stored_rows_are_those_of_a_moment_ago(patch: Patch) -> Seen:
    made = JobValues.__init__

    def older(self: JobValues, *arguments: Any) -> None:
        *first, at = arguments
        made(self, *first, at - from_micros(300_000))

    patch.setattr(JobValues, "__init__", older)
    return dense, 0, "two rows with one value|nobody had"


def a_member_is_not_asked(patch: Patch) -> Seen:
    compare = JobChecks._compare

    async def without(self: JobChecks, message: Any) -> None:
        del message.members[-1]
        await compare(self, message)

    patch.setattr(JobChecks, "_compare", without)
    return dense, 0, "two rows with one value"


def who_looked_before_is_let_in(patch: Patch) -> Seen:
    check = Validation._check_unchanged

    def _check_unchanged(self: Validation, *arguments: Any) -> None:
        check(self, *arguments[:5])

    patch.setattr(Validation, "_check_unchanged", _check_unchanged)
    return dense, 0, "two rows with one value"


def rows_that_are_replaced_count(patch: Patch) -> Seen:
    made = JobValues.__init__

    def keeping(self: JobValues, *arguments: Any) -> None:
        rows, pinned, indexes, _, *others = arguments
        made(self, rows, pinned, indexes, {}, *others)

    patch.setattr(JobValues, "__init__", keeping)
    return dense, 0, "nobody had|was refused"


SLOW = pytest.mark.soak  # some seconds each; those beside them show that the judge judges
MUTATIONS = (
    rows_are_not_compared,
    pytest.param(stored_rows_are_those_of_a_moment_ago, marks=SLOW),
    pytest.param(a_member_is_not_asked, marks=SLOW),
    pytest.param(who_looked_before_is_let_in, marks=SLOW),
    rows_that_are_replaced_count,
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_broken_comparison_is_noticed(
    mutation: Callable[[Patch], Seen], monkeypatch: Patch
) -> None:
    kind, known, says = mutation(monkeypatch)
    with pytest.raises(Violation, match=says):
        for seed in (known, *range(CAUGHT_WITHIN)):
            run(seed, kind)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for each in (dense, UniqueStorm):
            found = run(number, each)
            print(number, found.events, found.checked, dict(found.ends))
