"""How much a process imports that is started often: Python workers of Spark, and clients."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS = ("remuda", "pyspark_remuda")
CLIENT_MODULES = 105
"""Of a program that connects. The aim is 90: the number only falls."""


def imported_by(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def ours(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.split(".", 1)[0] in OURS)


def test_a_worker_of_spark_that_reads_a_cut_imports_neither_member_nor_client() -> None:
    """Spark starts many of them, each anew: they need the stores of a member, not its engine."""
    found = imported_by("import pyspark_remuda, remuda.spark.transfer.cut_reader")
    heavy = {"pandas", "sqlglot", "uvloop", "remuda.member", "remuda.planner", "remuda.execution"}
    heavy |= {"remuda.client.core", "remuda.client.blocking", "remuda.client.asynchronous"}
    assert found & heavy == set()
    assert len(ours(found)) <= 160


@pytest.mark.parametrize(
    "code", ["import remuda; remuda.connect", "import remuda.aio; remuda.aio.connect"]
)
def test_a_client_imports_no_engine(code: str) -> None:
    found = imported_by(code)
    heavy = {"pandas", "sqlglot", "uvloop", "remuda.member", "remuda.planner", "remuda.execution"}
    heavy |= {"remuda.sql", "remuda.storage", "remuda.plan", "remuda.catalog"}
    assert found & heavy == set()
    assert len(ours(found)) <= CLIENT_MODULES
