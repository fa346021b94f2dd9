"""Members as processes of their own: they find each other, and end when they should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.cluster


def spawn(*flags: str, pass_fds: tuple[int, ...] = (), **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "remuda.member", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=pass_fds,
        **more,
    )


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    message: dict[str, Any] = json.loads(process.stdout.readline())
    return message


@contextmanager
def one_member(*flags: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    process = spawn(*flags, **options)
    try:
        yield process, ready(process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.real_start
def test_a_member_says_where_it_is_and_ends_on_sigterm() -> None:
    with one_member("--cluster-size", "1", "--log-format", "json") as (process, message):
        assert message["ready"] is True
        assert message["member"] == 1
        assert all(message[kind].startswith("127.0.0.1:") for kind in ("user", "control", "data"))
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert {"time", "level", "member", "event"} <= set(lines[0])
        assert lines[-1]["event"] == "stopping"


def test_a_member_ends_with_its_parent() -> None:
    reading, writing = os.pipe()
    try:
        flags = ("--cluster-size", "1", "--parent-pipe", str(reading))
        with one_member(*flags, pass_fds=(reading,)) as (process, message):
            assert message["ready"] is True
            os.close(writing)
            assert process.wait() == 0
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--cluster-size", "0"), "cluster_size"),
        (("--cluster-size", "many"), "whole number"),
        (("--join", "nowhere"), "HOST:PORT"),
        (("--cluster-size", "2", "--join-timeout", "0.2"), "1 of 2 members"),
    ],
)
def test_a_member_that_cannot_start_says_why(flags: tuple[str, ...], part: str) -> None:
    with one_member(*flags) as (process, message):
        assert message["ready"] is False
        assert part in message["error"]
        assert process.wait() == 1
