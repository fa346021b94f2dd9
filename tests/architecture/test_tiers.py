"""The unit tier stays fast and apart, a near run finds the tests of a change, and sleeps vanish."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_costs import read_costs
from imports_of_tests import TESTS, every_test_file
from near_tests import ROOT, near_tests
from tests.syntax_trees import syntax_tree
from unit_tier import OUTSIDE, UnitGuard, forbidden_imports, in_unit_tier

UNIT_FILES = [file for file in every_test_file() if in_unit_tier(file)]
UNIT_SECONDS = 80
"""Work of the tier by tests/selection/costs.txt: two processes have a minute."""
SLEEPS = 167
"""Calls of sleep with a time, outside tests/simulation, where time is virtual. The number only
falls: a test that waits for an event tells nothing about time and does not depend on the load."""


def test_unit_tests_import_neither_processes_nor_the_oracles() -> None:
    """Name a file that must in OUTSIDE of tests/selection/unit_tier.py."""
    found = {str(file.relative_to(TESTS)): forbidden_imports(file) for file in UNIT_FILES}
    assert {name: packages for name, packages in found.items() if packages} == {}


def test_the_files_outside_the_unit_tier_exist() -> None:
    assert [name for name in sorted(OUTSIDE) if not (TESTS / name).exists()] == []


def test_the_unit_tier_takes_less_than_a_minute() -> None:
    costs = read_costs()
    work = sum(costs.get(str(file.relative_to(ROOT)), 0.0) for file in UNIT_FILES)
    assert work <= UNIT_SECONDS, "move the longest files to OUTSIDE of tests/selection/unit_tier"


@pytest.fixture
def guard(request: pytest.FixtureRequest) -> Iterator[UnitGuard]:
    found = UnitGuard.of(request.config)
    found.active = True
    yield found
    found.active = False


def test_a_unit_test_that_starts_a_process_fails(guard: UnitGuard) -> None:
    with pytest.raises(RuntimeError, match="starts a process"):
        subprocess.run([sys.executable, "-c", ""], check=True)
    guard.active = False
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)


def test_a_unit_test_that_imports_pyspark_fails(
    guard: UnitGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".", 1)[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(RuntimeError, match="imports pyspark"):
        importlib.import_module("pyspark")


def near(name: str, seconds: float = 20.0) -> list[str]:
    files = near_tests([ROOT / name], seconds).files
    return [str(file.relative_to(TESTS)) for file in files]


def test_a_change_of_the_planner_runs_its_tests_first() -> None:
    files = near("src/remuda/planner/rules/filters.py", seconds=200.0)
    assert "planner/test_rules.py" in files
    own = sum(1 for file in every_test_file() if file.parent == TESTS / "planner")
    assert all(name.startswith("planner/") for name in files[:own])


def test_a_module_that_tests_share_runs_all_of_them() -> None:
    assert "simulation/test_power.py" in near("tests/simulation/sim_power.py")


def test_a_changed_test_file_runs_whatever_it_takes() -> None:
    assert near("tests/slt/test_slt.py", seconds=0.1) == ["slt/test_slt.py"]


def test_a_page_has_no_near_tests() -> None:
    assert near("CHANGELOG.md") == []


def sleeps(file: Path) -> int:
    """Calls of a function named sleep with another time than the constant 0."""
    calls = [
        node
        for node in ast.walk(syntax_tree(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]
    named = [
        call
        for call in calls
        if "sleep" in (getattr(call.func, "attr", None), getattr(call.func, "id", None))
    ]
    return sum(
        1
        for call in named
        if not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
    )


def test_sleeps_only_vanish() -> None:
    files = [file for file in TESTS.rglob("*.py") if not file.is_relative_to(TESTS / "simulation")]
    found = sum(sleeps(file) for file in files)
    assert found <= SLEEPS, "wait for an event or for a state, not for a time"
    assert found == SLEEPS, f"good: lower SLEEPS to {found}"
