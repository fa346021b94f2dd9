"""``start``: a whole cluster on this machine, as child processes of this one."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from remuda.client.embedded.member_command import member_command, safe_environment
from remuda.client.embedded.ready import Ready, ReadyLines
from remuda.client.embedded.started import StartedCluster
from remuda.client.network.address import format_address
from remuda.config import MemberConfig, check_exposure, member_config
from remuda.errors import InputError, MemberUnavailable
from remuda.limits import MEMBERS_MAX

START_TIMEOUT = 60.0
STOP_TIMEOUT = 10.0
_LOG_LINES_SHOWN = 15
_WORKERS_MAX = 8
_PORT_STEP = 10


class Cluster(StartedCluster):
    """Members that this process started. They stop with it, also when it is killed.

    A context manager: leaving the block stops the members.
    """

    def __init__(
        self,
        processes: Sequence[_MemberProcess],
        members: Sequence[Ready],
        tls: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(tls)
        self._processes = tuple(processes)
        self.members = tuple(members)
        """The word of each member when it was ready: its number and its three addresses."""
        atexit.register(self.stop)

    @property
    def address(self) -> str:
        """host:port of the first member's user channel."""
        return self.members[0].user

    @property
    def addresses(self) -> tuple[str, ...]:
        """host:port of every member's user channel."""
        return tuple(member.user for member in self.members)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids, in the order of ``members``."""
        return tuple(process.child.pid for process in self._processes)

    def check(self) -> None:
        """MemberUnavailable, with the end of its log, when a member has died."""
        for process in self._processes:
            if process.child.poll() is not None:
                raise process.died()

    def dead(self) -> dict[int, MemberUnavailable]:
        """The members that have died, by number, with the end of their logs."""
        return {
            process.number: process.died()
            for process in self._processes
            if process.child.poll() is not None
        }

    def stop(self) -> None:
        """Stop all members and wait until they are gone. Stopping twice does nothing."""
        atexit.unregister(self.stop)
        _stop(self._processes)

    def __repr__(self) -> str:
        return f"<Cluster of {len(self.members)} members at {self.address}>"


def start(
    members: int = 3,
    *,
    host: str = "127.0.0.1",
    user_port: int = 0,
    control_port: int = 0,
    data_port: int = 0,
    metrics_port: int = 0,
    postgres_port: int = 0,
    log_dir: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    timeout: float = START_TIMEOUT,
) -> Cluster:
    """Start member processes on this machine that form one cluster; returns when all serve.

    Ports of 0 are any free ones; else member 1 gets the given ports, member 2 each port plus 10,
    and so on. With a ``metrics_port`` of -1 they have no pages for operators, with a
    ``postgres_port`` of -1 they serve no clients of PostgreSQL. ``log_dir`` keeps the members' logs
    (``member-1.log``, ...); without it they are removed with the cluster. ``config`` is a TOML
    file, and ``settings`` are values by name, with settings for all members (``remuda member
    --help`` lists them). A member that does not start within ``timeout`` seconds raises
    MemberUnavailable with the end of its log, and leaves no process behind; wrong settings raise
    InputError.
    """
    if not isinstance(members, int) or not 1 <= members <= MEMBERS_MAX:
        raise InputError(f"a cluster has 1 to {MEMBERS_MAX} members, not {members!r}")
    if not timeout > 0:
        raise InputError(f"timeout must be above 0 seconds, not {timeout:g}")
    ports = user_port, control_port, data_port, metrics_port, postgres_port
    merged = _check_settings(config, settings, members, ports, host)
    logs, scratch = _log_directory(log_dir)
    deadline = time.monotonic() + timeout
    processes: list[_MemberProcess] = []
    try:
        with _bound_socket(host, control_port) as control:
            plan = _Plan(
                members=members,
                host=host,
                ports=ports,
                logs=logs,
                options=_options(config, settings, timeout, members),
                data=merged.data_dir,
                control=control,
                scratch=scratch,
            )
            for index in range(members):
                processes.append(_spawn(plan, index))  # noqa: PERF401  (kept when one fails)
        ready = _await_ready(processes, deadline, timeout)
    except BaseException:
        _stop(processes, graceful=False)
        raise
    for process, member in zip(processes, ready, strict=True):
        process.named(member.number)
    ready.sort(key=lambda member: member.number)
    processes.sort(key=lambda process: process.number)
    return Cluster(processes, ready, _client_options(merged))


Ports: TypeAlias = tuple[int, int, int, int, int]
"""Of users, control, data, metrics and PostgreSQL's clients."""


def ports_of(first: Ports, index: int) -> Ports:
    """Those of the member after ``index`` others: 0 stays any free one, -1 none."""
    user, control, data, metrics, postgres = (p + _PORT_STEP * index if p > 0 else p for p in first)
    return user, control, data, metrics, postgres


class _MemberProcess:
    """One child process, the pipe that ties it to this process, and its log."""

    def __init__(
        self,
        number: int,
        child: subprocess.Popen[bytes],
        lifeline: int,
        log: Path,
        scratch: tempfile.TemporaryDirectory[str] | None,
        *,
        log_kept: bool,
    ) -> None:
        self.number = number
        self.child = child
        self.log = log
        self._log_kept = log_kept
        self._lifeline: int | None = lifeline
        self._scratch = scratch

    def named(self, number: int) -> None:
        """The member has its number: members join in any order. Its log goes by it from now on."""
        self.number = number
        with contextlib.suppress(OSError):  # the log keeps its first name, and is none the worse
            self.log = self.log.rename(self.log.with_name(f"member-{number}.log"))

    def let_go(self) -> None:
        """Close the lifeline: the member sees the end of the pipe and leaves."""
        if self._lifeline is not None:
            lifeline, self._lifeline = self._lifeline, None
            os.close(lifeline)

    def clean(self) -> None:
        if self.child.stdout is not None:
            self.child.stdout.close()
        if self._scratch is not None:
            with contextlib.suppress(OSError):  # someone looks at the logs: they may stay
                self._scratch.cleanup()

    def died(self, reason: str = "") -> MemberUnavailable:
        status = self.child.poll()
        what = reason or f"it ended with status {status}"
        return MemberUnavailable(
            f"member {self.number} failed: {what}",
            detail=self.log_tail(),
            member=str(self.number),
        )

    def log_tail(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            return f"no log: {error}"
        name = str(self.log) if self._log_kept else "its log"  # which goes with the cluster
        shown = lines[-_LOG_LINES_SHOWN:]
        return "\n".join([f"the end of {name}:", *shown]) if shown else f"{name} is empty"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The settings that all members of a new cluster share."""

    members: int
    host: str
    ports: Ports
    logs: Path
    options: list[str]
    data: str
    """The folder of the members' folders; "": they keep no logs."""
    control: socket.socket  # the first member's, already bound
    scratch: tempfile.TemporaryDirectory[str] | None

    def command(self, index: int, log: Path, lifeline: int) -> list[str]:
        """The first member gets the bound control socket that the others join."""
        user, control, data, metrics, postgres = ports_of(self.ports, index)
        if index == 0:
            place = ["--control-fd", str(self.control.fileno())]
        else:
            join = format_address(self.host, self.control.getsockname()[1])
            place = ["--join", join, "--control-port", str(control)]
        if self.data:
            place += ["--data-dir", str(Path(self.data) / f"member-{index + 1}")]
        return [
            *member_command(),
            "--cluster-size", str(self.members),
            "--host", self.host,
            "--user-port", str(user),
            "--data-port", str(data),
            "--metrics-port", str(metrics),
            "--postgres-port", str(postgres),
            "--parent-pipe", str(lifeline),
            "--log-file", str(log),
            *place,
            *self.options,
        ]  # fmt: skip


def _check_settings(
    config: str | os.PathLike[str] | None,
    settings: Mapping[str, object] | None,
    members: int,
    ports: Ports,
    host: str,
) -> MemberConfig:
    """Tell what is wrong with the settings here: a member could only fail to start."""
    highest = ports_of(ports, members - 1)
    names = ("user_port", "control_port", "data_port", "metrics_port", "postgres_port")
    merged = member_config(
        flags=dict(settings or {})
        | dict(zip(names, highest, strict=True))
        | {"host": host, "cluster_size": members},
        environment=os.environ,
        file=None if config is None else Path(config),
    )
    if merged.join:
        raise InputError(
            "the setting join has no place here: all members of this cluster start together",
            hint='"remuda member" starts one that joins another machine\'s cluster.',
        )
    check_exposure(merged)
    return merged


def _client_options(merged: MemberConfig) -> dict[str, str]:
    """How clients reach members with these settings."""
    if not merged.tls_certificate:
        return {}
    options = {"ca": merged.tls_ca, "server_name": merged.tls_server_name}
    if merged.tls_client_certificates == "all":
        options |= {"certificate": merged.tls_certificate, "key": merged.tls_key}
    return options


def _options(
    config: str | os.PathLike[str] | None,
    settings: Mapping[str, object] | None,
    timeout: float,
    members: int,
) -> list[str]:
    """Flags of a member; the member itself checks names and values."""
    given: dict[str, object] = {"join_timeout": timeout} | dict(settings or {})
    if config is None and "REMUDA_WORKERS" not in os.environ:
        given.setdefault("workers", _workers(members))
    options = [] if config is None else ["--config", os.fspath(config)]
    given.pop("data_dir", None)  # each member has a folder of its own
    for name, value in given.items():
        options += [f"--{name.replace('_', '-')}", str(value)]
    return options


def _workers(members: int) -> int:
    """A member's share of the cores. More threads than some do not help: the interpreter runs one
    of them at a time outside of kernels."""
    return max(1, min(_WORKERS_MAX, (os.cpu_count() or 1) // members))


def _spawn(plan: _Plan, index: int) -> _MemberProcess:
    """Start one member, tied to this process by a pipe."""
    log = plan.logs / f"starting-{index + 1}.log"
    theirs, ours = os.pipe()
    inherited = [theirs, plan.control.fileno()] if index == 0 else [theirs]
    try:
        with log.open("ab") as errors:
            child = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                plan.command(index, log, theirs),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=inherited,
                env=safe_environment(),
                start_new_session=True,  # Ctrl-C is for this process, which stops the members
            )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    scratch = plan.scratch if index == 0 else None
    return _MemberProcess(index + 1, child, ours, log, scratch, log_kept=plan.scratch is None)


def _log_directory(
    log_dir: str | os.PathLike[str] | None,
) -> tuple[Path, tempfile.TemporaryDirectory[str] | None]:
    if log_dir is None:
        scratch = tempfile.TemporaryDirectory(prefix="remuda-", ignore_cleanup_errors=True)
        return Path(scratch.name), scratch
    path = Path(log_dir)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the log directory {path} cannot be made: {error}") from error
    return path, None


def _bound_socket(host: str, port: int) -> socket.socket:
    """The first member's control socket: bound here, so that all members can start at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise InputError(
            f"the control port {format_address(host, port)} cannot be bound: {error}"
        ) from error
    return bound


def _await_ready(
    processes: Sequence[_MemberProcess], deadline: float, timeout: float
) -> list[Ready]:
    """One ready line per member, read side by side until the deadline."""
    with ReadyLines([process.child.stdout for process in processes]) as lines:
        while (event := lines.next(max(0.0, deadline - time.monotonic()))) is not None:
            index, ready, error = event
            if ready is None:
                raise _failed(processes[index], error)
        silent = lines.missing
    if silent:
        raise processes[silent[0]].died(f"it was not ready within {timeout:g} s")
    return lines.ready


def _failed(process: _MemberProcess, error: str) -> MemberUnavailable:
    if error:
        return process.died(error)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.child.wait(timeout=1.0)  # its output has ended: its status follows at once
    return process.died()


def _stop(processes: Sequence[_MemberProcess], graceful: bool = True) -> None:
    for process in processes:
        process.let_go()
    deadline = time.monotonic() + (STOP_TIMEOUT if graceful else 0.5)
    for process in processes:
        try:
            process.child.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.child.kill()
            process.child.wait()
    for process in processes:
        process.clean()
