"""The two engines, once per module and variant; DuckDB by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from oracle_engines import VARIANTS, Engines, filled, filled_duckdb


@pytest.fixture(scope="module", params=list(VARIANTS))
def engines(request: pytest.FixtureRequest, cluster_of: Any) -> Iterator[Engines]:
    with filled(cluster_of, request.param) as found:
        yield found


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with filled_duckdb() as found:
        yield found
