"""How much a process imports that is started often: Python workers of Spark, and clients."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OURS = ("remuda", "pyspark_remuda")
WORKER_MODULES = 155
"""Of a worker of Spark that reads a cut: the number only falls."""
CLIENT_MODULES = 91
"""Of a program that connects and runs statements: the number only falls."""

TOOL = Path(__file__).with_name("why_loaded.py")
WHY = f"{TOOL.name} prints why each module is loaded"


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
    heavy = {"pandas", "uvloop", "remuda.member", "remuda.planner", "remuda.execution"}
    heavy |= {"remuda.client.core", "remuda.client.blocking", "remuda.client.asynchronous"}
    assert found & heavy == set()
    assert len(ours(found)) <= WORKER_MODULES, WHY


@pytest.mark.parametrize(
    "code", ["import remuda; remuda.connect", "import remuda.aio; remuda.aio.connect"]
)
def test_a_client_imports_no_engine(code: str) -> None:
    found = imported_by(code)
    heavy = {"pandas", "uvloop", "remuda.member", "remuda.planner", "remuda.execution"}
    heavy |= {"remuda.sql", "remuda.storage", "remuda.plan", "remuda.catalog"}
    assert found & heavy == set()
    assert len(ours(found)) <= CLIENT_MODULES, WHY


def test_the_list_of_commands_imports_no_command() -> None:
    """`remuda --version` and `remuda sql` wait for the modules of no other command."""
    code = """
import remuda.cli.main
try:
    remuda.cli.main.main(["--version"])
except SystemExit:
    pass
"""
    found = imported_by(code)
    assert found & {"pyarrow", "numpy", "remuda.client", "remuda.cli.sql_command"} == set()
    found = imported_by("import remuda.cli.sql_command")
    assert found & {"pandas", "rich", "prompt_toolkit", "remuda.plan", "remuda.session"} == set()


def test_a_tool_prints_why_a_module_is_loaded() -> None:
    command = [sys.executable, str(TOOL), "import remuda.errors", "remuda.error_root", "remuda.sql"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    chain, missing = done.stdout.splitlines()
    assert chain == "remuda.error_root <- remuda.errors <- the program"
    assert missing == "remuda.sql is not loaded"
