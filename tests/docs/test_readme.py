"""The programs of the README run as they stand there, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@pytest.mark.cluster
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_reads_what_the_first_program_has_put() -> None:
    shown = re.search(r"\$ psql (.*?)\n(.*?)```", README, re.DOTALL)
    puts = re.search(r"@dataclass.*?(?=\n\n\nwith)", PROGRAMS[0], re.DOTALL)
    assert shown is not None
    assert puts is not None
    with remuda.start(members=1) as cluster:
        names: dict[str, Any] = {"dataclass": dataclass, "client": cluster.connect()}
        lines = [line.strip() for line in PROGRAMS[0].splitlines()]
        stores = [line for line in lines if re.match(r"flights(\.put| =)", line)]
        exec("\n".join([puts[0], *stores]), names)
        host, port = cluster.members[0].postgres.split(":")
        given = shlex.split(shown[1].replace("31432", port).replace("127.0.0.1", host))
        done = subprocess.run(
            ["psql", "-X", *given], capture_output=True, text=True, timeout=60, check=True
        )
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed == shown[2].splitlines()


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
