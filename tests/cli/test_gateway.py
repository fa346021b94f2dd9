"""``remuda gateway`` and ``remuda start --http-port``: wrong options, and both as processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from remuda.cli.main import main

PORTS = ["--user-port", "--control-port", "--data-port", "--metrics-port"]
ANY_PORT = [word for port in PORTS for word in (port, "0")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "0.0.0.0:0"], "can be reached from other machines"),
        (["--listen", "nowhere"], "--listen must be HOST:PORT"),
        (["--listen", "127.0.0.1:65536"], "--listen must be HOST:PORT"),
        (["--listen", "240.0.0.1:0", "--allow-remote"], "cannot listen on 240.0.0.1:0"),
    ],
)
def test_wrong_options(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        assert main(["gateway", *options]) == 1
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@contextmanager
def running(*words: str) -> Iterator[list[str]]:
    """The lines of a command until it is ready; ends it by Ctrl-C, which is no failure."""
    command = [sys.executable, "-m", "remuda.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                lines.append(line.strip())
                if line.startswith("ready"):
                    break
            yield lines
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            assert process.stdout.read().strip() == "stopping"


def rows(url: str) -> object:
    body = {"query": "SELECT count(*) AS n FROM sys.members"}
    return requests.post(f"{url}/query.json", json=body, timeout=60).json()["rows"]


@pytest.mark.cluster
def test_beside_members_and_alone(tmp_path: Path) -> None:
    start = ["start", "--members", "1", "--log-dir", str(tmp_path), *ANY_PORT, "--http-port", "0"]
    with running(*start) as lines:
        (rest,) = (line for line in lines if line.startswith("REST: "))
        assert rows(rest.removeprefix("REST: ").removesuffix("/query.json")) == [{"n": 1}]
        member = next(line for line in lines if line.startswith("ready")).split()[4]
        with running("gateway", "--connect", member, "--listen", "127.0.0.1:0") as more:
            assert rows(more[-1].split()[1]) == [{"n": 1}]
