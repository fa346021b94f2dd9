"""One Java process for all tests that need Spark, and a client that stands in for a grid."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.client.embedded import start

# Modules that tests share lie beside them: pytest imports in importlib mode, which adds no path.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session with two cores whose tasks may fail twice before the job fails."""
    session = pytest.importorskip("remuda.spark.session")
    made = session.session("remuda tests", master="local[2,3]", quick=True)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def grid() -> Iterator[Any]:
    """A cluster of three members of its own for the tests of Spark."""
    with start(members=3) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def logs_of_later_tests_are_text() -> Iterator[None]:
    """PySpark's loggers of query contexts stop propagating when they are used first; pytest then
    hands them its own handler, and they set its formatter to one that writes JSON."""
    yield
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).propagate = True


@pytest.fixture
def address(grid: Any) -> str:
    return ",".join(grid.addresses)
