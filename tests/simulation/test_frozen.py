"""Requests with a timeout while a member stands still: when they end, and what their errors say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_frozen import run_frozen

from remuda.client.core.core import Core

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 50


@pytest.mark.parametrize("seed", [1, 2], ids=["until it is dropped", "for a moment"])
def test_requests_end_within_their_timeout_and_a_heartbeat_timeout(seed: int) -> None:
    run = run_frozen(seed)
    failed = sum(count for end, count in run.ends.items() if "NoneType" not in end)
    assert 0 < failed < 0.5 * run.ends.total(), run.ends


def test_a_timeout_that_is_not_obeyed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Core, "with_timeout", lambda self, _seconds: self)
    with pytest.raises(Violation, match="with a timeout of"):
        for seed in (1, 3, 5):
            run_frozen(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_seeds() -> None:
    for seed in range(3, 3 + SOAK_SEEDS):
        run_frozen(seed)
