"""Members of tests are forked from a process that has imported their modules, and are real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forked_members import COMMAND

pytestmark = pytest.mark.cluster
FORK_SERVER = "fork_server.py"


@contextmanager
def member(*flags: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [*COMMAND, "--cluster-size", "1", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    message: dict[str, Any] = json.loads(process.stdout.readline())
    return message


def command_line(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/cmdline").read_text()


on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="members are forked on Linux only"
)


@on_linux
def test_a_forked_member_is_a_child_of_its_own(tmp_path: Path) -> None:
    """It has its own number, session, output and settings, and ends as it is told."""
    errors = tmp_path / "errors"
    with errors.open("wb") as stream, member(
        "--log-format", "json", stderr=stream, start_new_session=True,
        env={**os.environ, "REMUDA_LABELS": "rack=a"},
    ) as process:  # fmt: skip
        assert told(process)["ready"] is True
        assert FORK_SERVER in command_line(process)
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert os.getsid(process.pid) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    events = [json.loads(line)["event"] for line in errors.read_text().splitlines()]
    assert "stopping" in events


@on_linux
def test_a_forked_member_that_cannot_start_says_why() -> None:
    with member("--join", "nowhere") as process:
        assert "HOST:PORT" in told(process)["error"]
        assert process.wait() == 1
    with member(env={**os.environ, "REMUDA_JOIN": "nowhere"}) as process:
        assert "HOST:PORT" in told(process)["error"]


@on_linux
def test_a_forked_member_that_is_killed_says_so() -> None:
    with member() as process:
        told(process)
        process.kill()
        assert process.wait() == -signal.SIGKILL


@on_linux
def test_a_forked_member_keeps_the_descriptors_that_it_is_given_and_no_other() -> None:
    reading, writing = os.pipe()
    try:
        with member("--parent-pipe", str(reading), pass_fds=(reading,)) as process:
            assert told(process)["ready"] is True
            kept = os.readlink(f"/proc/{process.pid}/fd/{reading}")
            assert kept == os.readlink(f"/proc/self/fd/{reading}")
            os.close(writing)
            assert process.wait() == 0
    finally:
        os.close(reading)


@on_linux
def test_members_are_forked_beside_a_spark_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session leaves variables in the process of the tests, for all tests that follow."""
    with member() as process:
        told(process)
    monkeypatch.setenv("SPARK_BUFFER_SIZE", "4711")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "python")
    with member() as process:
        assert told(process)["ready"] is True
        assert FORK_SERVER in command_line(process)


@pytest.mark.real_start
def test_a_marked_test_starts_its_members_for_real() -> None:
    with member() as process:
        assert told(process)["ready"] is True
        assert "remuda.member" in command_line(process)


def test_a_member_with_an_environment_of_its_own_starts_for_real() -> None:
    """The interpreter reads its variables at its start."""
    with member(env={**os.environ, "PYTHONHASHSEED": "7"}) as process:
        assert told(process)["ready"] is True
        assert "remuda.member" in command_line(process)
