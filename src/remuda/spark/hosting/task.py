"""The program of a Spark task that hosts a member: the member is a process of its own, the child of
the task's Python worker, and lives no longer than that.

The task asks the driver for the member's place, starts it, and then waits: for the member's end
(then the task fails, and Spark runs it again, perhaps elsewhere), or for the driver's word to stop
it. When the driver cannot be reached any more, it stops the member and ends.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

import remuda
from remuda.client.embedded.member_command import member_command, safe_environment
from remuda.client.embedded.ready import Ready, parse_ready
from remuda.client.network.address import format_address
from remuda.errors import ConnectionBroken, InputError, MemberUnavailable
from remuda.rpc.tls import TlsFiles
from remuda.spark.hosting.rendezvous import Arrival
from remuda.spark.hosting.rendezvous_line import dial

STOP_TIMEOUT: Final = 15.0
RECONNECT_TIMEOUT: Final = 20.0
RECONNECT_PAUSE: Final = 0.5
READY_LINE_MAX: Final = 64 * 1024
LOG_TAIL: Final = 16 * 1024
"""Bytes of its log that a member which ended leaves with the driver."""
_SHOWN_LINES: Final = 15
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Hosting:
    """The word to all tasks; it travels with them. ``settings`` are those of the members;
    ``tls`` protects the line to the driver."""

    driver_host: str
    driver_port: int
    secret: bytes
    tls: TlsFiles | None
    members: int
    settings: Mapping[str, str]
    host: str = ""
    data_dir: str = ""
    start_timeout: float = 120.0


def host(hosting: Hosting, seats: Iterator[int]) -> Iterator[int]:
    """Hold each seat of this task (it has one) until the cluster is stopped."""
    from pyspark import TaskContext  # noqa: PLC0415 (this module is read without Spark, too)

    context = TaskContext.get()
    attempt = 0 if context is None else int(context.taskAttemptId())
    for seat in seats:
        with HostTask(hosting, seat, attempt) as task:
            task.run()
        yield seat


class HostTask:
    """One member in one seat. A context manager: afterwards the member's process is gone."""

    def __init__(self, hosting: Hosting, seat: int, attempt: int) -> None:
        self._hosting = hosting
        self._line = dial(hosting.driver_host, hosting.driver_port, hosting.secret, hosting.tls)
        self._host = hosting.host or self._line.local_host
        self._scratch = Path(tempfile.mkdtemp(prefix=f"remuda-seat-{seat}-", dir=_scratch()))
        self._log = self._scratch / "member.log"
        self._folder = Path(hosting.data_dir) / f"member-{seat + 1}" if hosting.data_dir else None
        self._control = _bound(self._host)
        self._child: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._ready: Ready | None = None
        self._arrival = Arrival(
            seat=seat,
            attempt=attempt,
            control=format_address(self._host, self._control.getsockname()[1]),
            host=self._host,
            version=remuda.__version__,
            pid=os.getpid(),
            has_log=self._folder is not None and (self._folder / "member.json").exists(),
        )

    def run(self) -> None:
        """Returns when the driver wants no member here (any more). Raises MemberUnavailable when
        the member has ended by itself, or the driver is gone."""
        join = self._place()
        if join is None:
            return
        self._spawn(join)
        with selectors.DefaultSelector() as selector:
            assert self._child is not None
            assert self._child.stdout is not None
            selector.register(self._child.stdout, selectors.EVENT_READ, "member")
            selector.register(self._line, selectors.EVENT_READ, "driver")
            said = b""
            while True:
                wanted = {key.data for key, _ in selector.select()}
                if "driver" in wanted and not self._hear(selector):
                    return
                if "member" in wanted:
                    piece = os.read(self._child.stdout.fileno(), 4096)
                    if not piece:
                        self._ended(said)
                    said = (said + piece)[:READY_LINE_MAX]
                    if self._ready is None and b"\n" in said:
                        self._announce(said)

    # --- the driver -----------------------------------------------------------------------------

    def _place(self) -> str | None:
        """Where to join ("" for nowhere); None: no member is wanted."""
        self._line.send({"kind": "hello", "arrival": asdict(self._arrival)})
        while True:
            said = self._line.receive(self._hosting.start_timeout)
            match said["kind"]:
                case "place":
                    return str(said["join"])
                case "refused" | "stop":
                    return None

    def _hear(self, selector: selectors.BaseSelector) -> bool:
        """The driver's word; False: stop. A broken line is made again."""
        try:
            while self._line.look():
                said = self._line.receive()
                match said["kind"]:
                    case "stop":
                        self._stop(STOP_TIMEOUT)
                        self._say_ended("it was stopped")
                        return False
                    case "logs":
                        self._line.send({"kind": "log", "text": self._tail(int(said["size"]))})
        except ConnectionBroken as broken:
            selector.unregister(self._line)
            self._line.close()
            self._reconnect(broken)
            selector.register(self._line, selectors.EVENT_READ, "driver")
        return True

    def _reconnect(self, broken: ConnectionBroken) -> None:
        """Raises MemberUnavailable when the driver stays away, or the member did not serve yet."""
        deadline = time.monotonic() + RECONNECT_TIMEOUT
        hosting = self._hosting
        while self._ready is not None and time.monotonic() < deadline:
            try:
                self._line = dial(
                    hosting.driver_host, hosting.driver_port, hosting.secret, hosting.tls
                )
                self._line.send(
                    {
                        "kind": "back",
                        "arrival": asdict(self._arrival),
                        "member": asdict(self._ready),
                        "pid": self._pid,
                    }
                )
            except ConnectionBroken:
                time.sleep(RECONNECT_PAUSE)
            else:
                return
        raise MemberUnavailable(
            "the member is stopped: its driver is gone", detail=broken.message
        ) from broken

    def _announce(self, said: bytes) -> None:
        ready, error = parse_ready(said.split(b"\n", 1)[0])
        if ready is None:
            self._fail(error)
            return
        self._ready = ready
        message = {"kind": "ready", "member": asdict(ready), "pid": self._pid}
        with suppress(ConnectionBroken):  # seen, and mended, when the line is read
            self._line.send(message)

    def _ended(self, said: bytes) -> None:
        assert self._child is not None
        status = self._child.wait()
        if self._ready is None and said.strip():
            _, error = parse_ready(said.split(b"\n", 1)[0])
            if error:
                self._fail(error)
        if status < 0:
            self._fail(f"it was killed by {signal.Signals(-status).name}")
        self._fail(f"it ended with status {status}")

    def _fail(self, reason: str) -> None:
        self._say_ended(reason)
        raise MemberUnavailable(
            f"the member in seat {self._arrival.seat} on {self._host} failed: {reason}",
            detail="\n".join(self._tail(LOG_TAIL).splitlines()[-_SHOWN_LINES:]),
        )

    def _say_ended(self, reason: str) -> None:
        with suppress(ConnectionBroken):
            self._line.send({"kind": "ended", "reason": reason, "log": self._tail(LOG_TAIL)})

    # --- the member -----------------------------------------------------------------------------

    @property
    def _pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def _spawn(self, join: str) -> None:
        theirs, self._lifeline = os.pipe()
        own = os.getpid()
        try:
            with self._log.open("ab") as errors:
                self._child = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                    self._command(join, theirs),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    pass_fds=[theirs, self._control.fileno()],
                    env=_environment(),
                    start_new_session=True,
                    preexec_fn=lambda: _die_with(own),  # noqa: PLW1509  (this worker has one thread)
                )
        finally:
            os.close(theirs)
            self._control.close()

    def _command(self, join: str, lifeline: int) -> list[str]:
        settings = dict(self._hosting.settings)
        settings["labels"] = _labels(settings.get("labels", ""), self._host)
        if self._folder is not None:
            settings["data_dir"] = str(self._folder)
        settings |= {
            "cluster_size": str(self._hosting.members),
            "host": self._host,
            "control_fd": str(self._control.fileno()),
            "parent_pipe": str(lifeline),
            "log_file": str(self._log),
        }
        if join:
            settings["join"] = join
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        return [*member_command(), *flags]

    def _stop(self, timeout: float) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._child is None:
            return
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _tail(self, size: int) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - size))
                return file.read(size).decode("utf-8", "replace")
        except OSError as problem:
            return f"no log: {problem}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(1.0)
        self._control.close()
        self._line.close()
        if self._child is not None and self._child.stdout is not None:
            self._child.stdout.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _bound(host: str) -> socket.socket:
    """The member's control socket: others can be told of it before the member runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.bind((host, 0))
        bound.listen(512)
    except OSError as problem:
        bound.close()
        raise InputError(f"no member can listen at {host} on this executor: {problem}") from problem
    return bound


def _scratch() -> str | None:
    """A folder of Spark's: it goes with the executor, also when the task is killed."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return folder if folder and Path(folder).is_dir() else None


def _labels(given: str, host: str) -> str:
    """Copies of a partition go to different machines, and then to different executors: the end of
    one is the end of all of its members."""
    names = {part.partition("=")[0].strip() for part in given.split(",")}
    found = [given] if given.strip() else []
    if "rack" not in names:
        found.append(f"rack={host}")
    if "hosted" not in names:
        found.append("hosted=spark")
    if "host" not in names:
        found.append(f"host={host}:executor-{os.getppid()}")
    return ",".join(found)


def _environment() -> dict[str, str]:
    """Packages that Spark has brought along are found by the member, too, but not the folder in
    which the worker was started: it is that of the driver's caller where Spark runs locally."""
    paths = [path for path in sys.path if path and Path(path) != Path.cwd()]
    return safe_environment({**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


def _die_with(parent: int) -> None:
    """In the child, before it becomes the member: it is killed when its parent ends, however."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)
