"""``remuda gateway`` and the same beside ``remuda start``: wrong options, and both as processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import requests

from remuda.cli import start_command
from remuda.cli.main import main
from remuda.errors import ConnectionRefused, NotSupported

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
        page = next(line for line in lines if line.startswith("console: ")).split()[1]
        assert "<title>Remuda" in requests.get(page, timeout=60).text
        member = next(line for line in lines if line.startswith("ready")).split()[4]
        with running("gateway", "--connect", member, "--listen", "127.0.0.1:0") as more:
            assert rows(more[-1].split()[1]) == [{"n": 1}]
        alone = ["--connect", member, "--listen", "127.0.0.1:0", "--no-console"]
        with running("gateway", *alone) as more:
            url = more[-1].split()[1]
            assert rows(url) == [{"n": 1}]
            assert requests.get(f"{url}/console/session", timeout=60).status_code == 404


class FakeCluster:
    members = ()
    connect_options: ClassVar[dict[str, str]] = {}


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_start_goes_on_without_a_console_that_cannot_be(
    taken_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But not without one at a port that was asked for."""
    cluster: Any = FakeCluster()
    monkeypatch.setattr(start_command, "HTTP_PORT", taken_port)
    with start_command._gateway(None, cluster, console=True) as address:
        assert address == ""
    told = capsys.readouterr().err
    assert told.startswith(f"no console: cannot listen on 127.0.0.1:{taken_port}")
    assert "--http-port" in told
    with (
        pytest.raises(ConnectionRefused, match="cannot listen"),
        start_command._gateway(taken_port, cluster, console=True),
    ):
        raise AssertionError("it serves")
    with start_command._gateway(None, cluster, console=False) as address:
        assert address == ""
    assert capsys.readouterr().err == ""


def test_a_start_without_the_packages_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(sys.modules):
        if name.startswith(("remuda.gateway", "remuda.cli.gateway_command")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    cluster: Any = FakeCluster()
    with start_command._gateway(None, cluster, console=True) as address:
        assert address == ""
    assert "needs the package aiohttp" in capsys.readouterr().err
    with (
        pytest.raises(NotSupported, match="needs the package aiohttp"),
        start_command._gateway(0, cluster, console=True),
    ):
        raise AssertionError("it serves")
