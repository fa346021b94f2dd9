"""Seeds of random tests: a few in every run, the rest in ``./run soak``."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(of_every_run: int, of_soak: int) -> list[Any]:
    """Parameters for ``pytest.mark.parametrize``: the seeds below ``of_soak``, of which those from
    ``of_every_run`` on are marked ``soak``."""
    long = (pytest.param(seed, marks=pytest.mark.soak) for seed in range(of_every_run, of_soak))
    return [*range(of_every_run), *long]
