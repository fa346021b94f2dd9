"""One timestamp for everything that a Spark job reads, kept while the job runs (design rule 19).

A job is one execution of a query of Spark: all its tasks, of all the maps that it reads, agree on a
timestamp when the first of them begins. They meet at the two oldest members of the grid: the first
one to come proposes the time that it is there, everybody else gets that one. While tasks run, they
renew the lease; a while after the last one it ends by itself, and the members may forget.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from pyspark import TaskContext

from remuda.client.blocking.client import Client
from remuda.client.blocking.tool_access import read_lease
from remuda.datatypes.view import View
from remuda.errors import MemberUnavailable, RemudaError, SnapshotTooOld, TransientError
from remuda.spark.transfer.options import LEASE_SECONDS

KEEPERS: Final = 2
"""Members that know the timestamp of a job: one may be lost."""
_RENEWALS: Final = 4
"""Per lease."""
_EXECUTION: Final = ("spark.sql.execution.query.id", "spark.connect.execution.id")
"""Local properties of tasks that name one execution of one query, among all of all sessions."""


def run_name(ticket: str) -> str:
    """The job that this task belongs to. ``ticket`` names the read that was planned: enough where
    Spark says nothing better."""
    context = TaskContext.get()
    if context is None:
        return f"{ticket}/driver"
    for name in _EXECUTION:
        found = context.getLocalProperty(name)
        if found:
            return f"spark/{found}"
    return f"{ticket}/{context.stageId()}"


def newest(client: Client, view: View) -> int:
    """A timestamp at or above all that any member has given out (design rule 15)."""
    return max(client.cluster_info(member.number).clock for member in view.members)


def agree(client: Client, run: str, proposed: int | None, seconds: int) -> int:
    """The timestamp of the read ``run``, now kept for ``seconds``.

    The last keeper decides: where members were lost in between, two tasks may come with different
    timestamps from the first one, and one of them has not read yet. Raises SnapshotTooOld when the
    read is over, TransientError when no keeper answers.
    """
    at: int | None = None
    lost: TransientError | None = None
    view = client.cluster_info().view
    for member in sorted(view.by_number)[:KEEPERS]:
        try:
            known = read_lease(client, run, at, seconds=seconds, member=member)
            if known is None:
                proposed = newest(client, view) if proposed is None else proposed
                known = read_lease(client, run, proposed, seconds=seconds, member=member)
            at = known
        except SnapshotTooOld:
            raise
        except TransientError as error:
            lost = error
    if at is None:
        raise lost or MemberUnavailable("no member of the grid keeps the timestamp of the read")
    return at


class ReadTime:
    """The timestamp of a read, renewed by a thread of its own until ``close``.

    ``release`` gives it up at once (who made it up alone may); otherwise it ends ``seconds`` later,
    since other tasks of the job may need it.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        run: str,
        *,
        proposed: int | None = None,
        seconds: int = LEASE_SECONDS,
    ) -> None:
        self.run = run
        self.seconds = seconds
        self._client = connect()
        self._done = threading.Event()
        try:
            self.at = agree(self._client, run, proposed, seconds)
        except BaseException:
            self._client.close()
            raise
        self._thread = threading.Thread(target=self._renew, name="remuda-read-lease", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        while not self._done.wait(self.seconds / _RENEWALS):
            # What cannot be renewed now may be the next time; a read whose versions are gone is
            # refused by the members that are asked for them.
            with contextlib.suppress(RemudaError):
                agree(self._client, self.run, self.at, self.seconds)

    def close(self, *, release: bool = False) -> None:
        """Stop renewing. Closing twice does nothing."""
        if self._done.is_set():
            return
        self._done.set()
        self._thread.join()
        try:
            if release:
                self._release()
        finally:
            self._client.close()

    def _release(self) -> None:
        with contextlib.suppress(RemudaError):
            for member in self._client.cluster_info().view.members:
                with contextlib.suppress(RemudaError):
                    read_lease(self._client, self.run, seconds=0, member=member.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def ticket() -> str:
    """A name that no other read has."""
    return uuid.uuid4().hex
