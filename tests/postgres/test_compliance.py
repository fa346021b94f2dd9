"""SQLAlchemy's dialect compliance suite at the door, by its own pytest plugin in a process of its
own. ``compliance/failures.txt`` names every test that fails, and why; the list only shrinks.
``compliance/requirements.py`` names the abilities that are missing as a whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUITE = Path(__file__).parent / "compliance"
QUICK = (
    "InsertBehaviorTest or ReturningTest or SimpleUpdateDeleteTest or CTETest or "
    "IsolationLevelTest or LastrowidTest"
)
"""For each run of the tests; all of them take minutes."""
NOTED = "ignore:Computed column"
"""SQLAlchemy tells every server before PostgreSQL 18 that its generated columns are STORED."""
ALONE = ("suite_of_sqlalchemy.py", "-q", "--maxfail=100000", "--tb=short", "-W", NOTED)
SCHEMAS = ("test_schema", "test_schema_2")
"""SQLAlchemy's suite wants these of whoever runs it."""


def expected_failures() -> dict[str, str]:
    """The reason of each, by Class::test."""
    found = {}
    for line in (SUITE / "failures.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition("  ")
            assert reason.strip(), f"{name} has no reason"
            found[name] = reason.strip()
    return found


def outcomes(door: dict[str, object], folder: Path, *options: str) -> dict[str, str]:
    """passed, failed or skipped of each test; of its setup as well."""
    report = folder / "report.xml"
    url = f"postgresql+psycopg://bob@{door['host']}:{door['port']}/shop"
    plugins = ("no:cacheprovider", "sqlalchemy.testing.plugin.pytestplugin", "definitions_outside")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", "."),
            *(part for plugin in plugins for part in ("-p", plugin)),
            *("--dburi", url, "--junitxml", str(report), *ALONE, *options),
        ],
        cwd=SUITE,
        env={**os.environ, "PYTHONPATH": str(SUITE)},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        group = case.attrib["classname"].rpartition(".")[2].partition("_postgresql")[0]
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        name = f"{group}::{case.attrib['name']}"
        found[name] = "failed" if failed else "skipped" if skipped else "passed"
    return found


def compare(found: dict[str, str]) -> None:
    expected = expected_failures()
    failed = {name for name, outcome in found.items() if outcome == "failed"}
    assert sorted(failed - expected.keys()) == [], "these have passed before"
    passed = {name for name, outcome in found.items() if outcome == "passed"}
    assert sorted(passed & expected.keys()) == [], "these pass: take them out of failures.txt"


@pytest.fixture(scope="module")
def prepared(cluster):
    with cluster.connect() as client:
        for name in SCHEMAS:
            client.sql(f"CREATE SCHEMA {name}")


@pytest.mark.usefixtures("prepared")
def test_the_tests_of_inserts_updates_and_levels(door, tmp_path):
    found = outcomes(door, tmp_path, "-k", QUICK)
    assert sum(outcome == "passed" for outcome in found.values()) > 50
    compare(found)


@pytest.mark.soak
@pytest.mark.usefixtures("prepared")
@pytest.mark.timeout(3600)
def test_all(door, tmp_path):
    found = outcomes(door, tmp_path)
    assert len(found) > 1500
    compare(found)
    assert expected_failures().keys() <= found.keys()
