"""The two engines, once per module and variant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import VARIANTS, Engines, started


@pytest.fixture(scope="module", params=list(VARIANTS))
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    with started(request.param) as found:
        yield found
