"""Processes import nothing from the folder in which their caller happens to be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from poisoned import poisoned_folder

import remuda
from remuda.client.embedded.member_command import member_command, safe_environment

ROOT = Path(__file__).parents[2]


@pytest.mark.cluster
@pytest.mark.real_start
def test_a_member_starts_in_a_folder_with_modules_of_pythons_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, marker = poisoned_folder(tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}")  # an empty entry is the current folder
    with remuda.start(members=1) as cluster, cluster.connect() as client:
        assert client.sql("SELECT 1 + 1").fetchall() == [(2,)]
    assert not marker.exists(), marker.read_text()


def test_the_command_line_starts_in_such_a_folder(tmp_path: Path) -> None:
    """As ``./run`` makes the command ``remuda``."""
    folder, marker = poisoned_folder(tmp_path)
    command = [sys.executable, "-P", "-m", "remuda.cli.main", "--help"]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "usage" in told.stdout.lower(), told.stderr
    assert not marker.exists(), marker.read_text()


def test_every_command_of_run_takes_safe_paths() -> None:
    lines = [line for line in (ROOT / "run").read_text().splitlines() if "-m remuda" in line]
    assert len(lines) > 5
    assert [line for line in lines if not re.search(r'python" -P -m remuda', line)] == []


def test_a_source_tree_in_which_the_caller_stands_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being installed, and behind everything else."""
    (tmp_path / "csv.py").write_text("raise ImportError('the one of the caller')")
    (tmp_path / "remuda").symlink_to(ROOT / "src" / "remuda")
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "remuda" / "client" / "embedded" / "member_command.py"
    monkeypatch.setattr("remuda.client.embedded.member_command.__file__", str(module))
    monkeypatch.setattr(Path, "resolve", lambda self: self)
    command = [*member_command(), "--help"]
    assert command[1] == "-P"
    assert str(tmp_path) in command
    told = subprocess.run(
        command, env=safe_environment(), capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert "--data-dir" in told.stdout


def test_an_empty_entry_of_the_path_goes() -> None:
    found = safe_environment({"PYTHONPATH": ":/a::/b:", "OTHER": "x"})
    assert found == {"PYTHONPATH": "/a:/b", "PYTHONSAFEPATH": "1", "OTHER": "x"}
    assert safe_environment({}) == {"PYTHONSAFEPATH": "1"}
