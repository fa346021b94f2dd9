"""A process that has imported the modules of a member, and forks one for each request.

Importing these modules takes more than a second of processor time, a fork some milliseconds.
``forked_members.py`` starts this program and describes the other side. The program has no thread of
its own and no event loop, so a child continues from a state in which every start is possible.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import runpy
import socket
import sys
from dataclasses import dataclass
from itertools import pairwise

gc.disable()

import remuda.member.main  # noqa: E402
import remuda.member.member  # noqa: E402, F401

MODULE = "remuda.member"
REQUEST_BYTES = 1 << 20
DESCRIPTORS_MAX = 64


@dataclass(frozen=True)
class Request:
    """A member to start: what ``subprocess.Popen`` was asked for."""

    arguments: list[str]
    """Those after ``-m remuda.member``."""
    environment: dict[str, str]
    folder: str
    new_session: bool
    targets: list[int]
    """The numbers that the descriptors of the message have in the member."""


def serve(requests: socket.socket) -> tuple[Request, list[int]]:
    """Fork a member for each request until the other side ends. Returns in the member alone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, DESCRIPTORS_MAX)
        if not message:
            os._exit(0)
        request = Request(**json.loads(message))
        go_reader, go_writer = os.pipe()
        pid_reader, pid_writer = os.pipe()
        intermediate = os.fork()
        if intermediate == 0:
            member = os.fork()
            if member == 0:
                os.close(go_writer)
                os.read(go_reader, 1)
                return request, descriptors
            os.write(pid_writer, str(member).encode())
            os._exit(0)
        for descriptor in (*descriptors, go_reader, pid_writer):
            os.close(descriptor)
        pid = os.read(pid_reader, 32)
        os.close(pid_reader)
        # From the end of the intermediate process on, the member is a child of the test process.
        os.waitpid(intermediate, 0)
        os.close(go_writer)
        requests.send(pid)


def become(request: Request, descriptors: list[int]) -> None:
    """Take the descriptors, session, folder, environment and arguments of the request."""
    _place(descriptors, request.targets)
    if request.new_session:
        os.setsid()
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = ["-m", *request.arguments]
    sys.orig_argv = [sys.executable, "-P", "-m", MODULE, *request.arguments]


def _place(descriptors: list[int], targets: list[int]) -> None:
    """Give the descriptors their numbers, and close all others. They move out of the way first, for
    one may have the number that another one shall get."""
    above = max(targets) + 1
    away = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for descriptor in descriptors]
    for moved, target in zip(away, targets, strict=True):
        os.dup2(moved, target)
    ends = [-1, *sorted(targets), os.sysconf("SC_OPEN_MAX")]
    for below, next_kept in pairwise(ends):
        if below + 1 < next_kept:  # an empty range from 0 closes all
            os.closerange(below + 1, next_kept)


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        gc.collect()
        gc.freeze()
        become(*serve(requests))
        requests.detach()  # closed with the other descriptors that the member does not keep


main()
runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
