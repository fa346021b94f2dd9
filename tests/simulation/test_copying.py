"""COPY by Remuda's own clients, alone and in transactions, while members fail (decision 0080); and
ways to break it, each of which must turn a storm red.

``python tests/simulation/test_copying.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_copying import CopyStorm
from sim_transactions import run_seed

from remuda.errors import SerializationFailure
from remuda.member.queries.copy_port import CopyInput
from remuda.member.sessions.bulk_write import BulkWrite

SOAK_SEEDS = max(100, int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20)
ENDS = ("copy done", "copy in a transaction", "copy refused", "unloaded")


def run(seed: int) -> CopyStorm:
    storm: Any = run_seed(seed, None, CopyStorm)
    assert isinstance(storm, CopyStorm)
    return storm


def test_all_rows_or_none() -> None:
    ends: Counter[str] = Counter()
    for seed in (1, 2):
        ends.update(run(seed).ends)
    for each in ENDS:
        assert ends[each], ends


def test_a_lost_piece_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storm judges the rows: a member that forgets a piece of the data turns it red."""
    real, count = CopyInput.put, [0]

    def put(self: CopyInput, data: bytes) -> None:
        count[0] += 1
        if count[0] % 50 or not data.endswith(b"\n"):
            real(self, data)

    monkeypatch.setattr(CopyInput, "put", put)
    with pytest.raises(Violation):
        for seed in range(1, 6):
            run(seed)


async def neither_commits_nor_drops(self: BulkWrite, limit: float | None) -> int:
    del limit
    return self._core.timestamp()


async def commits_and_says_it_has_failed(self: BulkWrite, limit: float | None) -> int:
    await BULK_COMMIT(self, limit)
    raise SerializationFailure("the transaction is told that it has failed")


BULK_COMMIT = BulkWrite.commit


@pytest.mark.parametrize("broken", [neither_commits_nor_drops, commits_and_says_it_has_failed])
def test_a_bulk_write_of_a_transaction_that_is_half_done_is_noticed(
    monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    monkeypatch.setattr(BulkWrite, "commit", broken)
    with pytest.raises(Violation):
        for seed in (1, 3, 5):
            run(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_storms() -> None:
    for seed in range(1, SOAK_SEEDS):
        run(seed)


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[-1]) + 1):
        print(seed, dict(run(seed).ends))
