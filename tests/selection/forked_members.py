"""Members as forks of a process that has imported their modules (``fork_server.py``).

An interpreter that imports a member's modules takes more than a second of processor time, and the
suite starts hundreds. ``ForkedStarts`` takes the place of that interpreter below
``subprocess.Popen``. The member is a real process and a child of the test process, with its own
number, signals, exit status and output. It runs ``remuda.member`` as ``python -P -m`` does.

Started for real are: all other commands, members with an environment of their own (other than the
variables of members and of Spark), and those of tests with the mark ``real_start``, which are about
the start itself.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

SERVERS = 2
"""Each has its own seed for the hashes of texts: members of a cluster must not agree on them."""
COMMAND = [sys.executable, "-P", "-m", "remuda.member"]
PR_SET_CHILD_SUBREAPER = 36
UNUSUAL = {
    "executable": None, "preexec_fn": None, "close_fds": True, "cwd": None, "shell": False,
    "restore_signals": True, "gid": None, "gids": None, "uid": None, "umask": -1,
    "process_group": -1,
}  # fmt: skip
"""The arguments of ``Popen`` which must have these values for a fork."""
WITHOUT_EFFECT = {"PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTEST_CURRENT_TEST"}
"""Variables that a member started with ``-P`` does not depend on."""
READ_LATER = ("REMUDA_", "SPARK_", "PYSPARK_")
"""How variables begin that a member reads itself, or that a Spark session leaves in the process of
the tests: no interpreter and no import of a member depends on them."""


class ForkServer:
    """One process that forks members on request. It ends with this one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = Path(__file__).with_name("fork_server.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(program), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )

    def fork(self, request: Mapping[str, object], descriptors: list[int]) -> int:
        """The process id of a new member, which is a child of this process."""
        with _adopting():
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
            answer = self._requests.recv(32)
        if not answer:
            raise RuntimeError(f"the fork server ended with status {self._process.wait()}")
        return int(answer)

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


@contextmanager
def _adopting() -> Iterator[None]:
    """Processes below this one that lose their parent meanwhile become its children. At other times
    they go to the process that adopts all, which clears them away when they end."""
    _subreaper(True)
    try:
        yield
    finally:
        _subreaper(False)


def _subreaper(on: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class ForkedStarts:
    """Stands below ``subprocess.Popen``: forks members, and starts everything else for real."""

    def __init__(self) -> None:
        self.active = False
        self.forked = 0
        """How many members were forked so far."""
        self._lock = threading.Lock()
        self._servers: list[ForkServer] = []
        self._next: Iterator[ForkServer] = iter(())
        self._environment: dict[str, str] = {}
        self._real: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]
        self._signature = inspect.signature(self._real)

    def install(self) -> None:
        """From now on members are forked while ``active`` is true."""
        if not sys.platform.startswith("linux"):
            return  # no process can adopt the children of others
        starts = self
        # Not that of the first start: the test that starts a member may have variables of its own,
        # and all that follow would start their members for real.
        self._environment = dict(os.environ)

        def execute_child(popen: Any, *arguments: Any) -> None:
            given = starts._signature.bind(popen, *arguments).arguments
            if starts._may_fork(given):
                starts._fork(popen, given)
            else:
                starts._real(popen, *arguments)

        subprocess.Popen._execute_child = execute_child  # type: ignore[attr-defined]

    def close(self) -> None:
        subprocess.Popen._execute_child = self._real  # type: ignore[attr-defined]
        for server in self._servers:
            server.close()
        self._servers.clear()

    def _may_fork(self, given: Mapping[str, Any]) -> bool:
        if not self.active or not isinstance(given["args"], list):
            return False
        if given["args"][: len(COMMAND)] != COMMAND:
            return False
        if any(given[name] != value for name, value in UNUSUAL.items()):
            return False
        own = os.environ if given["env"] is None else given["env"]
        return _essential(own) == _essential(self._environment)

    def _fork(self, popen: Any, given: Mapping[str, Any]) -> None:
        environment = dict(os.environ if given["env"] is None else given["env"])
        sys.audit("subprocess.Popen", sys.executable, given["args"], None, environment)
        targets = {
            number: number if own == -1 else own
            for number, own in enumerate((given["p2cread"], given["c2pwrite"], given["errwrite"]))
        } | {number: number for number in given["pass_fds"]}
        request = {
            "arguments": given["args"][len(COMMAND) :],
            "environment": environment,
            "folder": str(Path.cwd()),
            "new_session": bool(given["start_new_session"]),
            "targets": list(targets),
        }
        with self._lock:
            popen.pid = self._server().fork(request, list(targets.values()))
            self.forked += 1
        popen._child_created = True
        popen._close_pipe_fds(*(given[name] for name in PIPES))

    def _server(self) -> ForkServer:
        if not self._servers:
            self._servers = [ForkServer(self._environment) for _ in range(SERVERS)]
            self._next = cycle(self._servers)
        return next(self._next)


PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def _essential(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables on which the start of an interpreter may depend."""
    return {
        name: value
        for name, value in environment.items()
        if name not in WITHOUT_EFFECT and not name.startswith(READ_LATER)
    }
