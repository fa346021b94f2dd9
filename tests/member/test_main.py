"""The main module of a member, without a member."""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from remuda.member import main as module


def test_the_collector_runs_in_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is off while the member's modules are imported."""
    running: list[tuple[bool, int]] = []

    def run(work: Coroutine[Any, Any, int]) -> int:
        work.close()
        running.append((gc.isenabled(), gc.get_threshold()[0]))
        return 0

    monkeypatch.setattr(module.uvloop, "run", run)
    monkeypatch.setattr(module.sys, "setswitchinterval", lambda _: None)
    before = gc.get_threshold()
    gc.disable()
    try:
        assert module.main(["--cluster-size", "1"]) == 0
    finally:
        gc.set_threshold(*before)
        gc.enable()
    assert running == [(True, module.GC_THRESHOLDS[0])]
