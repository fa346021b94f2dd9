"""A run of tests ends although a test, its teardown or a thread waits for ever."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from imports_of_tests import TESTS

CONFTEST = """
from files_together import FilesTogether


def pytest_xdist_make_scheduler(config, log):
    return FilesTogether(config, log)
"""
WAITS_IN_TEARDOWN = """
import fcntl
import subprocess
import sys
import threading

import pytest


@pytest.fixture
def never_ends():
    with open("held", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        child = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
        subprocess.Popen(child, pass_fds=[held.fileno()])
    yield
    threading.Event().wait()


def test_before():
    pass


@pytest.mark.timeout(300)
def test_fails_and_waits(never_ends):
    raise AssertionError


def test_after():
    pass
"""
LEAVES_A_THREAD = """
import threading


def test_leaves_a_thread():
    threading.Thread(target=threading.Event().wait).start()
"""
ENDS_EARLY = """
import os


def test_ends_early():
    with open("early", "w") as early:
        early.write(str(os.getpid()))
"""
ENDS_LATE = """
import os
import select


def test_the_other_process_stays():
    with open("early") as early:
        process = os.pidfd_open(int(early.read()))
    assert select.select([process], [], [], 3.0)[0] == []
"""
LONGEST = 280.0
"""Seconds that the runs below get: they take two, but the guard may be broken."""


def run(folder: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "hang_guard", "--hang-grace", "0.3"]
    environment = dict(os.environ, PYTHONPATH=str(TESTS / "selection"))
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def test_a_failed_test_with_an_endless_teardown_crashes_by_name_and_the_others_run(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, WAITS_IN_TEARDOWN, "-n", "1")
    assert "crashed while running 'test_it.py::test_fails_and_waits'" in done.stdout
    assert done.stdout.count("replacing crashed worker") == 1
    assert "2 failed, 2 passed" in done.stdout
    assert "in never_ends" in done.stderr
    with (tmp_path / "held").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the fixture's child has it until it is killed


def test_a_process_ends_although_a_thread_does_not(tmp_path: Path) -> None:
    done = run(tmp_path, LEAVES_A_THREAD, "-n", "0")
    assert "1 passed" in done.stdout
    assert done.returncode == 1
    assert "Timeout (0:00:00" in done.stderr


def test_a_process_that_is_done_waits_for_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "early")
    (tmp_path / "test_early.py").write_text(ENDS_EARLY)
    done = run(tmp_path, ENDS_LATE, "-n", "2", "--dist", "loadfile")
    assert "2 passed" in done.stdout
    assert "node down" not in done.stdout
