"""The programs of the README run as they stand there, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.programs import ROOT, output_of, programs_of

import remuda

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = programs_of("README.md")


@pytest.mark.cluster
def test_first_program(tmp_path: Path) -> None:
    output = output_of(PROGRAMS[0], tmp_path)
    assert "Flight(carrier='AA', origin='JFK', delay=33.5)" in output
    assert "AA 33.5" in output
    assert "UA -1.0" in output
    assert "('UA', -4.0)" in output


@pytest.mark.spark
@pytest.mark.cluster
def test_first_spark_program(tmp_path: Path) -> None:
    output = output_of(PROGRAMS[1], tmp_path)
    assert "500.0" in output
    assert output.splitlines()[-1].strip() == "9"


@pytest.mark.cluster
def test_shell_session() -> None:
    """Each statement of the shell session prints what stands below it."""
    session = re.search(
        r"\./run sql\n(remuda> .*?)remuda> \\q\n\$ \./run (.*?)```", README, re.DOTALL
    )
    assert session is not None
    steps = [step.partition("\n") for step in session[1].split("remuda> ")[1:]]
    command, _, output = session[2].partition("\n")
    with remuda.start(members=3) as cluster:
        for statement, _, expected in steps:
            assert shell(cluster, ["sql", "-c", statement]) == expected
        assert shell(cluster, shlex.split(command)) == output


def shell(cluster: remuda.Cluster, arguments: list[str]) -> str:
    """What a command prints, its errors included."""
    command = [sys.executable, "-m", "remuda.cli.main", *arguments, "--connect", cluster.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return "".join(f"{line.rstrip()}\n" for line in (done.stdout + done.stderr).splitlines())


def test_links() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
