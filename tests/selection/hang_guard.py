"""A run of tests ends in every case: a process of tests that waits for ever is ended, by name.

pytest-timeout fails a test once its time is over. It cannot bound the teardown of a test that has
failed (pytest and pytest-timeout cancel their timers at a failure), a wait inside of C code, or a
thread that outlives the tests. Here a second timer follows the whole of each test, the collection
and the end of the process. It needs neither the interpreter's lock nor a signal: when it fires, it
writes the stacks of all threads to stderr and ends the process. With several processes, xdist
reports the test as crashed and goes on with a new process, and the processes that the ended one had
started are killed.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

GRACE = 120.0
"""Seconds that a test gets after its own time, and those for its teardown and the process's end."""
COLLECTION = 600.0
SILENCE, SILENCE_OF_LONG_TESTS = 1800.0, 21600.0
"""Seconds without a word from any process, after which the controlling one ends."""
SLACK = 60.0
"""Seconds that a timer may end late. It is a thread: a new one for each of thousands of tests would
cost a minute of waiting for threads to begin and to end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hang-grace",
        type=float,
        default=GRACE,
        metavar="SECONDS",
        help="end a process of tests when a teardown, or its own end, takes longer",
    )


def pytest_configure(config: pytest.Config) -> None:
    controls = not hasattr(config, "workerinput") and config.getoption("numprocesses", None)
    guard = ControllingGuard(config) if controls else TestsGuard(config)
    config.pluginmanager.register(guard, "hang-guard-of-process")


class _Timer:
    """The one timer of faulthandler. It writes to stderr as it was before pytest captures it."""

    def __init__(self, config: pytest.Config) -> None:
        self._stderr = os.dup(sys.stderr.fileno())
        self._off = False
        self._config = config
        self._ends = 0.0

    def start(self, seconds: float) -> None:
        """End the process after these seconds and at most ``SLACK`` more (twice them, if they are
        few). A timer that runs already and does so stays."""
        late = min(SLACK, seconds)
        now = time.monotonic()
        if self._off or seconds <= self._ends - now <= seconds + late:
            return
        # The end of the process leaves out what Python has not written yet.
        self._config.get_terminal_writer().flush()
        faulthandler.dump_traceback_later(seconds + late, file=self._stderr, exit=True)
        self._ends = now + seconds + late

    def was_cancelled(self) -> None:
        self._ends = 0.0

    def switch_off(self) -> None:
        """Nothing ends the process from now on."""
        self._off = True
        faulthandler.cancel_dump_traceback_later()


class TestsGuard:
    """Bounds what a process does that runs tests: alone, or one of several."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._timer = _Timer(config)
        self._grace: float = config.getoption("--hang-grace")
        self._is_one_of_several = hasattr(config, "workerinput")

    def pytest_collection(self) -> None:
        self._timer.start(COLLECTION)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        if seconds := timeout_of(item):
            self._timer.start(seconds + GRACE)

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """A test has failed, and pytest has cancelled the timer: the teardown follows."""
        self._timer.was_cancelled()
        if isinstance(node, pytest.Item) and timeout_of(node):
            self._timer.start(self._grace)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._timer.start(GRACE)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """A process alone has to end, whatever its threads do: nothing stops its timer. One of
        several waits for the others, for as long as they take; then the controlling one ends it."""
        if self._is_one_of_several:
            self._timer.switch_off()
        else:
            self._timer.start(self._grace)

    def pytest_enter_pdb(self) -> None:
        """A person debugs."""
        self._timer.switch_off()


def timeout_of(item: pytest.Item) -> float:
    """Seconds of pytest-timeout for the item; 0: none."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    option = item.config.getoption("timeout", None)
    return float(item.config.getini("timeout") or 0.0 if option is None else option)


class ControllingGuard:
    """Bounds the silence of all processes of tests, and ends what an ended one has started."""

    def __init__(self, config: pytest.Config) -> None:
        self._timer = _Timer(config)
        self._grace: float = config.getoption("--hang-grace")
        long = config.getoption("--soak", False)
        self._silence = SILENCE_OF_LONG_TESTS if long else SILENCE

    def _heard(self) -> None:
        self._timer.start(self._silence)

    def pytest_sessionstart(self) -> None:
        self._heard()

    def pytest_runtest_logstart(self) -> None:
        self._heard()

    def pytest_runtest_logfinish(self) -> None:
        self._heard()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            end_processes_of(node.workerinput["testrunuid"], node.workerinput["workerid"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._timer.start(GRACE)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self._timer.start(self._grace)


def end_processes_of(run: str, worker: str) -> None:
    """Kill the processes that a process of tests has started: xdist names both in its environment,
    which they inherit. The process itself began without the names, so this does not find it."""
    named = {f"PYTEST_XDIST_TESTRUNUID={run}".encode(), f"PYTEST_XDIST_WORKER={worker}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended by itself, or belongs to somebody else
            if named <= set((folder / "environ").read_bytes().split(b"\0")):
                os.kill(int(folder.name), signal.SIGKILL)
