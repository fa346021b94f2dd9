"""The demo, whole, as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from remuda.cli.demo.questions import QUESTIONS


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "remuda.cli.main", "demo", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=840)


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(900)  # it starts eleven members, and Spark
def test_demo_runs_to_its_end() -> None:
    result = demo("--scale", "0.01")
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr
    assert result.stderr == ""
    for question in QUESTIONS:
        assert question.title in result.stdout
    # Real answers of real data: they do not change.
    assert "| EWR    |  120835 |" in result.stdout
    assert "Frontier Airlines Inc." in result.stdout
    assert "column dep_dleay" in result.stdout.replace('"', "")
    assert "^" in result.stdout
    assert "| bob   |    130 |" in result.stdout
    assert "The same rows as before" in result.stdout
    assert "none that was acknowledged is lost" in result.stdout
    assert "as it was at the cut" in result.stdout
    assert "Everything is shut down" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--scale", "0"], "the scale must be"), (["--members", "0"], "members")],
)
def test_wrong_options(arguments: list[str], message: str) -> None:
    result = demo(*arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
