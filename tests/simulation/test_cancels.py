"""CancelRequests of PostgreSQL's clients reach their session, and no other one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cancels import CANCELED, KINDS, CancelRun
from sim_cluster import Violation

from remuda.member.postgres.wing import PostgresWing

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 50


@pytest.mark.parametrize("seed", [1, 2])
def test_a_cancel_reaches_its_session_alone(seed: int) -> None:
    ends = CancelRun(seed).run().ends
    assert ends["right", CANCELED] == 1
    assert ends.total() == len(KINDS)


def _by_number_alone(self, pid: int, _secret: int) -> None:
    for backend in self.backends:
        if backend.client.pid == pid:
            backend.cancel()


def _here(self, pid: int, secret: int) -> None:
    self._cancel_here(pid, secret)


MUTATIONS = {
    "the secret is not compared": ("_cancel_here", _by_number_alone),
    "no other member is asked": ("cancel", _here),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_cancel_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresWing, *MUTATIONS[name])
    with pytest.raises(Violation, match="a cancel"):
        for seed in range(1, 8):
            CancelRun(seed).run()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_seeds() -> None:
    for seed in range(3, 3 + SOAK_SEEDS):
        CancelRun(seed).run()
