"""The two engines, once per module and variant; DuckDB by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import VARIANTS, Engines, filled_duckdb, started


@pytest.fixture(scope="module", params=list(VARIANTS))
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    with started(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with filled_duckdb() as found:
        yield found
