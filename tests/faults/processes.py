"""Member processes of one cluster that can be killed, frozen, stopped and added."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from namespaces import Namespaces

from remuda.client.embedded.ready import Ready, ReadyLines
from remuda.config import INSECURE_WORDS

START_TIMEOUT = 240.0
STOP_TIMEOUT = 60.0
CONTROL_PORT = 47_000
"""Of every member that has a network of its own."""


class DidNotStart(AssertionError):
    pass


@dataclass(eq=False)
class Member:
    """``place`` counts all members that the round has started."""

    place: int
    child: subprocess.Popen[bytes]
    log: Path
    ready: Ready | None = None
    paused: bool = False

    @property
    def number(self) -> int:
        return self.ready.number if self.ready else 0

    @property
    def alive(self) -> bool:
        return self.child.poll() is None

    def __str__(self) -> str:
        return f"member {self.number} (pid {self.child.pid})"


class Processes:
    """The members of one cluster; those that were killed are kept with the others."""

    def __init__(
        self,
        folder: Path,
        members: int,
        settings: Mapping[str, object],
        namespaces: Namespaces | None = None,
        *,
        durable: bool = False,
    ) -> None:
        """``durable``: each member keeps a log in a folder of its own."""
        self.durable = durable
        self.folder = folder
        self.settings = dict(settings)
        self.namespaces = namespaces
        self.members: list[Member] = []
        self._theirs, self._ours = os.pipe()
        """Members end when this process does, whatever ends it."""
        try:
            self._found(members)
        except BaseException:
            self.close()
            raise

    @property
    def live(self) -> list[Member]:
        """Those that run, frozen or not."""
        return [member for member in self.members if member.alive]

    @property
    def addresses(self) -> list[str]:
        return [member.ready.user for member in self.live if member.ready]

    # --- faults ---

    def kill(self, member: Member) -> None:
        member.child.kill()
        member.child.wait()

    def freeze(self, member: Member) -> None:
        member.child.send_signal(signal.SIGSTOP)
        member.paused = True

    def thaw(self, member: Member) -> None:
        member.child.send_signal(signal.SIGCONT)
        member.paused = False

    def stop(self, member: Member) -> int:
        """Ask it to leave; its exit status."""
        member.child.send_signal(signal.SIGTERM)
        return member.child.wait(STOP_TIMEOUT)

    def add(self) -> Member:
        """Start one more, which joins."""
        seed = next(m for m in self.live if m.ready is not None and not m.paused)
        assert seed.ready is not None
        member = self._spawn("--join", seed.ready.control)
        self._await([member])
        return member

    def close(self) -> None:
        for member in self.members:
            if member.alive:
                member.child.kill()
            member.child.wait()
            if member.child.stdout is not None:
                member.child.stdout.close()
        if self._ours >= 0:
            os.close(self._ours)
            os.close(self._theirs)
            self._ours = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- starting ---

    def _found(self, members: int) -> None:
        size = ("--cluster-size", str(members))
        if self.namespaces is not None:
            first = self._spawn(*size)
            seed = f"{self.namespaces.host(first.place)}:{CONTROL_PORT}"
            others = [self._spawn(*size, "--join", seed) for _ in range(members - 1)]
            self._await([first, *others])
            return
        # The first member's control socket exists before any process, so that all can start.
        with socket.create_server(("127.0.0.1", 0)) as control:
            seed = f"127.0.0.1:{control.getsockname()[1]}"
            first = self._spawn(
                *size, "--control-fd", str(control.fileno()), inherited=control.fileno()
            )
            others = [self._spawn(*size, "--join", seed) for _ in range(members - 1)]
            self._await([first, *others])

    def _spawn(self, *flags: str, inherited: int | None = None) -> Member:
        place = len(self.members) + 1
        log = self.folder / f"member-{place}.log"
        log.unlink(missing_ok=True)  # of an earlier round
        command = [sys.executable, "-P", "-m", "remuda.member", "--log-file", str(log)]
        command += ["--parent-pipe", str(self._theirs)]
        for name, value in self.settings.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        if self.durable:
            command += ["--data-dir", str(self.folder / f"data-{place}")]
        if self.namespaces is not None:
            command = [*self.namespaces.prefix(place), *command, "--insecure", INSECURE_WORDS]
            command += ["--host", self.namespaces.host(place)]
            command += ["--control-port", str(CONTROL_PORT)]
        with (self.folder / f"output-{place}.log").open("wb") as errors:
            child = subprocess.Popen(
                [*command, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=[self._theirs] if inherited is None else [self._theirs, inherited],
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        member = Member(place, child, log)
        self.members.append(member)
        return member

    def _await(self, members: list[Member]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        with ReadyLines([member.child.stdout for member in members]) as lines:
            while (event := lines.next(max(0.0, deadline - time.monotonic()))) is not None:
                index, ready, error = event
                member = members[index]
                if ready is None:
                    raise DidNotStart(f"member {member.place}: {error or _end_of(member.log)}")
                member.ready = ready
            if lines.missing:
                slow = members[lines.missing[0]]
                raise DidNotStart(
                    f"member {slow.place} was not ready in {START_TIMEOUT:g} s: {_end_of(slow.log)}"
                )


def _end_of(log: Path, lines: int = 15) -> str:
    if not log.exists():
        return "no log"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
