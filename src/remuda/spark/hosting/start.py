"""``start_cluster``: members on the executors of a Spark cluster.

One job of N endless tasks, in a plain stage (a barrier stage would end all members with the first
one that is lost). Each task starts a member as its child (``hosting.task``), and hears from the
driver where it belongs (``rendezvous``). A lost member is a failed task: Spark runs it again, and
the new member joins the others, which give it its share and make the lost backups anew.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.util import InheritableThread

import remuda
from remuda.client.blocking.client import Client
from remuda.client.embedded.started import StartedCluster
from remuda.config import is_loopback
from remuda.errors import InputError, MemberUnavailable, RemudaError
from remuda.spark.failures import explain
from remuda.spark.hosting.checks import (
    await_slots,
    check_count,
    check_retries,
    client_tls,
    context_of,
    settings_of_members,
    size_in_bytes,
    tls_of,
)
from remuda.spark.hosting.rendezvous import HostedMember, Loss, Rendezvous
from remuda.spark.hosting.rendezvous_server import RendezvousServer
from remuda.spark.hosting.scheduler import failures_of_group, slots_of, stopped
from remuda.spark.hosting.task import Hosting, host

log = logging.getLogger(__name__)

START_TIMEOUT: Final = 120.0
STOP_TIMEOUT: Final = 20.0
REPLACEMENTS: Final = 100
LOG_SIZE: Final = 64 * 1024
FAILED_TASKS: Final = 3
"""So many failed tasks before the cluster is formed are no accident."""
_LOOK: Final = 0.2
_CANCELLED: Final = "cancelled"


class HostedCluster(StartedCluster):
    """Members in the tasks of a Spark job. They end with it, with ``stop``, and with the driver.

    A context manager: leaving the block stops the members.
    """

    def __init__(
        self, server: RendezvousServer, job: _Job, members: int, tls: Mapping[str, str]
    ) -> None:
        super().__init__(tls)
        self._server = server
        self._job = job
        self._count = members
        self._stopped = False
        self._stopping = threading.Lock()
        atexit.register(self.stop)

    # --- who is there ---------------------------------------------------------------------------

    @property
    def members(self) -> tuple[HostedMember, ...]:
        """Those that serve now, by seat; fewer than were asked for while one is replaced."""
        found: tuple[HostedMember, ...] = self._server.look(lambda seen: seen.members)
        return found

    @property
    def address(self) -> str:
        """host:port of the user channel of a member that serves. Raises MemberUnavailable."""
        self.check()
        members = self.members
        if not members:
            raise MemberUnavailable("no member serves at this moment")
        return members[0].user

    @property
    def addresses(self) -> tuple[str, ...]:
        """host:port of the user channels of all members that serve now."""
        return tuple(member.user for member in self.members)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Members that have ended since the start, with the ends of their logs."""
        found: tuple[Loss, ...] = self._server.look(lambda seen: tuple(seen.losses))
        return found

    def connect(self, **options: Any) -> Client:
        """A client of this cluster; the options are those of ``remuda.connect``. Those of TLS are
        the cluster's own unless given. Raises MemberUnavailable when the cluster has ended."""
        self.check()
        return super().connect(**options)

    def logs(self, size: int = LOG_SIZE) -> dict[int, str]:
        """The last ``size`` bytes of the log of each member that serves, by seat."""
        if size < 1:
            raise InputError(f"size must be at least 1 byte, not {size}")
        return self._server.logs(size)

    def check(self) -> None:
        """Raises MemberUnavailable when the cluster has ended: stopped, lost as a whole, or its
        job was cancelled. One lost member is no error; ``losses`` has it."""
        if self._stopped:
            raise MemberUnavailable("the cluster was stopped")
        reason, tail = self._server.look(lambda seen: (seen.failure, seen.failure_log))
        if not reason and self._job.ended:
            reason = f"the Spark job of the members has ended: {self._job.outcome()}"
        if reason:
            raise MemberUnavailable(f"the hosted cluster has ended: {reason}", detail=tail)

    def wait_until_complete(self, timeout: float = START_TIMEOUT) -> None:
        """Return when every seat has a member that serves. Raises MemberUnavailable after
        ``timeout`` seconds, or when the cluster has ended."""
        deadline = time.monotonic() + timeout
        while not self._server.wait(lambda seen: len(seen.members) == self._count, _LOOK):
            self.check()
            if time.monotonic() >= deadline:
                raise MemberUnavailable(
                    f"{len(self.members)} of {self._count} members serve after {timeout:g} s",
                    detail="; ".join(map(str, self.losses[-3:])),
                    hint="Has Spark a free slot for the members that are missing?",
                )

    # --- the end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop all members and end the Spark job. Stopping twice does nothing."""
        with self._stopping:
            if self._stopped:
                return
            self._stopped = True
        atexit.unregister(self.stop)
        if not self._server.stop(STOP_TIMEOUT):
            log.warning("some tasks did not stop their members in time; the job is cancelled")
        self._job.end()
        self._server.close()

    def __repr__(self) -> str:
        return f"<HostedCluster of {len(self.members)} of {self._count} members in Spark>"


def start_cluster(
    spark: Any,
    members: int = 3,
    *,
    backups: int = 1,
    memory: int | str | None = None,
    data_dir: str = "",
    settings: Mapping[str, object] | None = None,
    config: str | os.PathLike[str] | None = None,
    host: str = "",
    rendezvous_host: str = "",
    rendezvous_port: int = 0,
    spare_slots: int = 1,
    replacements: int = REPLACEMENTS,
    timeout: float = START_TIMEOUT,
) -> HostedCluster:
    """Start ``members`` members on the executors of ``spark``; returns when all serve.

    Each takes a task slot for as long as it lives; ``spare_slots`` must be left for other jobs.
    ``backups``: copies of each partition besides the primary. ``memory``: bytes (or "4g") that all
    statements together may hold on a member (setting ``member_memory``). ``settings`` and the TOML
    file ``config`` (read here) hold further settings of members; files that they name must be on
    every executor's machine, and those of TLS here as well. ``host``: the address at which members
    listen; by default that by which an executor reaches the driver. ``rendezvous_host`` and
    ``_port``: where the driver listens for its tasks (default: spark.driver.host, any port).

    ``data_dir``: a folder on the executors' machines in which each member keeps its log. Spark may
    run a task on another machine next time: a file that only a folder there has is not found then.
    Use it with a file system that all executors share, or with executors that stay where they are.

    Raises InputError, NotSupported (Spark Connect), ResourceError (too few slots),
    MemberUnavailable (a member does not start: why, with the end of its log). Nothing is left
    running then.
    """
    check_count(members)
    if not timeout > 0:
        raise InputError(f"timeout must be above 0 seconds, not {timeout:g}")
    context = context_of(spark)
    driver = rendezvous_host or str(context.getConf().get("spark.driver.host", "") or "127.0.0.1")
    given = dict(settings or {}) | {"backups": backups}
    if memory is not None:
        given["member_memory"] = size_in_bytes(memory, "memory")
    merged, texts = settings_of_members(
        config=None if config is None else Path(config),
        settings=given,
        members=members,
        host=host or driver,
        data_dir=data_dir,
    )
    check_retries(context, replacements)
    deadline = time.monotonic() + timeout
    while True:
        await_slots(context, members, spare_slots, max(deadline - time.monotonic(), 1.0))
        secret = secrets.token_bytes(32)
        server = RendezvousServer(
            Rendezvous(members, remuda.__version__),
            host=_bind_host(context, driver, rendezvous_host),
            port=rendezvous_port,
            secret=secret,
            tls=tls_of(merged),
        )
        hosting = Hosting(
            driver_host=driver,
            driver_port=server.port,
            secret=secret,
            tls=tls_of(merged),
            members=members,
            settings={"join_timeout": str(timeout)} | texts,
            host=host,
            data_dir=data_dir,
        )
        job = _Job(context, hosting)
        cluster = HostedCluster(server, job, members, client_tls(merged))
        try:
            job.start()
            _await_formed(server, job, members, deadline=deadline, timeout=timeout)
        except BaseException as problem:
            cancelled = job.cancelled
            cluster.stop()
            if cancelled or not _begin_anew(problem, server, deadline):
                raise
        else:
            return cluster


def _begin_anew(problem: BaseException, server: RendezvousServer, deadline: float) -> bool:
    """An executor was lost while the members found each other: Spark has another, or makes one."""
    broke_off: bool = server.look(lambda seen: seen.broke_off)
    in_time = time.monotonic() < deadline
    if not (broke_off and in_time and isinstance(problem, MemberUnavailable)):
        return False
    log.warning("%s; all members begin anew", problem.message)
    return True


def _bind_host(context: SparkContext, driver: str, given: str) -> str:
    """The driver may be known by a name or address that its machine itself does not have."""
    if given or is_loopback(driver):
        return given or driver
    return str(context.getConf().get("spark.driver.bindAddress", "") or driver)


def _await_formed(
    server: RendezvousServer, job: _Job, members: int, *, deadline: float, timeout: float
) -> None:
    """Raises MemberUnavailable, or the error of a task."""
    context = job.context
    while not server.wait(lambda seen: seen.formed or bool(seen.failure), _LOOK):
        if job.ended:
            raise job.failure()
        if stopped(context):
            raise MemberUnavailable("the SparkContext was stopped while members started")
        failures = failures_of_group(context, job.group)
        if len(failures) >= FAILED_TASKS:
            raise _unfit(failures[-1])
        if time.monotonic() >= deadline:
            raise _late(context, server, members, timeout, failures)
    reason, tail = server.look(lambda seen: (seen.failure, seen.failure_log))
    if reason:
        raise MemberUnavailable(f"the hosted cluster does not start: {reason}", detail=tail)


def _late(
    context: SparkContext, server: RendezvousServer, members: int, timeout: float, failed: list[str]
) -> RemudaError:
    arrived, serve = server.look(lambda seen: (seen.arrived, len(seen.members)))
    if failed:
        return _unfit(failed[-1])
    slots = slots_of(context)
    what = (
        f"{serve} of {members} members serve"
        if arrived == members
        else f"{arrived} of {members} tasks run"
    )
    return MemberUnavailable(
        f"the hosted cluster was not complete within {timeout:g} s: {what}",
        detail=f"Spark has {slots.total} task slots, {slots.busy} busy",
        hint="Do the executors reach the driver's rendezvous port (rendezvous_port), and members "
        "each other?"
        if arrived == members
        else "Are the other slots taken by other jobs?",
    )


def _unfit(text: str) -> RemudaError:
    """Why tasks fail on the executors, from what Spark says of one."""
    error = explain(RuntimeError(text))
    if "No module named" in text:
        name = text.partition("No module named")[2].split("\n")[0].strip(" '\"")
        return InputError(
            f"the executors lack the Python package {name}",
            detail=error.message,
            hint="Install remuda with the same packages as here on every executor, or set "
            "spark.pyspark.python to an environment that has them.",
        )
    if "PYTHON_VERSION_MISMATCH" in text or "different version" in text:
        return InputError(
            "the executors run another version of Python than the driver",
            detail=error.message,
            hint="Set PYSPARK_PYTHON (or spark.pyspark.python) to the same minor version on all.",
        )
    return MemberUnavailable(
        "the tasks that host members fail on the executors", detail=error.message, hint=error.hint
    )


class _Job:
    """The Spark job that the members live in, and the thread that waits for it."""

    def __init__(self, context: SparkContext, hosting: Hosting) -> None:
        self.group = f"remuda-members-{secrets.token_hex(8)}"
        self.context = context
        self._hosting = hosting
        self._error: BaseException | None = None
        self._thread = InheritableThread(target=self._run, name="remuda members", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def cancelled(self) -> bool:
        """Whether somebody did not want it any more: Spark says so before it ends the tasks."""
        return self._error is not None and _CANCELLED in str(self._error)

    def failure(self) -> RemudaError:
        """Raised for a job that has ended while it should not."""
        if self._error is None:
            return MemberUnavailable("the Spark job of the members has ended by itself")
        return _unfit(str(self._error))

    def outcome(self) -> str:
        return "by itself" if self._error is None else self.failure().message

    def end(self) -> None:
        """Cancel what is left of it."""
        context = self.context
        if not self.ended:
            self._thread.join(1.0)  # the tasks have said that they end
        if not self.ended and not stopped(context):
            context.cancelJobGroup(self.group)
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        context, count = self.context, self._hosting.members
        try:
            context.setJobGroup(self.group, f"{count} members of Remuda", interruptOnCancel=True)
            seats = context.parallelize(range(count), count)
            seats.mapPartitions(partial(host, self._hosting)).collect()
        except Exception as error:  # noqa: BLE001 (Py4J's, Spark's: ``failure`` tells)
            self._error = error
