"""One Java process for all tests that need Spark, and a client that stands in for a grid."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.client.embedded.cluster import start

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


@pytest.fixture(scope="session", autouse=True)
def logs_of_other_tests_stay_text() -> Iterator[None]:
    """PySpark writes errors of queries into loggers that stop propagating. To those pytest adds
    its own handler, and they make it write JSON, for all later tests of the process."""
    errors = pytest.importorskip("pyspark.errors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors.PySparkException, "_log_exception", lambda _: None)
        yield


@pytest.fixture
def address(grid: Any) -> str:
    return ",".join(grid.addresses)
