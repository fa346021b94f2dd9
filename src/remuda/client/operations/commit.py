"""Beginning a staged job, its commit, asked again when no answer came, and its abort."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable

from remuda.client.core.core import Core
from remuda.client.core.tries import LOST
from remuda.client.network.deadline import Deadline
from remuda.client.network.ports import COMMIT_TIMEOUT
from remuda.client.operations.job_outcome import job_committed, without_coordinator
from remuda.client.requests import requests
from remuda.client.requests.requests import JobTask
from remuda.datatypes.schema import MapSchema
from remuda.errors import OutcomeUnknown, QueryTimeout, TransientError

_ATTEMPTS = 3
"""So often the commit is sent when the connection breaks each time."""
_PATIENCE = 15.0
"""Seconds that a coordinator is asked again that takes no connection: by then it is back, or a view
has dropped it."""
_PAUSE = 0.1
_LONGEST_PAUSE = 0.5


async def commit_job(
    core: Core,
    job: str,
    tasks: Iterable[JobTask],
    ttl: int | None = None,
    deadline: Deadline | None = None,
) -> int:
    """The number of rows. Committing twice gives the same answer, so a lost connection is no reason
    to leave the caller in doubt: the coordinator is asked again, until the deadline
    (``COMMIT_TIMEOUT`` from now unless told). When it has left the cluster, the others say how the
    job has ended. Raises JobInterrupted when it was rolled back for that."""
    tasks = tuple(tasks)
    call = requests.job_commit(job, tasks, core.clock, ttl)
    coordinator = requests.job_coordinator(job)
    if deadline is None and core.settings.timeout is not None:
        deadline = core.deadline()
    elif deadline is None:
        deadline = Deadline(max(COMMIT_TIMEOUT, core.settings.request_timeout))
    sent = 0
    patience: Deadline | None = None
    for attempt in itertools.count(1):
        try:
            return await core.pool(coordinator).call(call, deadline)
        except LOST as error:
            sent += error.may_have_run
            if await _has_left(core, coordinator, deadline):
                return await _ended_without(core, job, tasks, deadline)
            patience = patience or Deadline(_PATIENCE)
            pause = min(_PAUSE * 2**attempt, _LONGEST_PAUSE)
            late = patience.left(pause) < pause or deadline.left(pause) < pause
            if sent >= _ATTEMPTS or late or core.closed:
                if not sent:
                    raise
                unknown = OutcomeUnknown(error.message, member=error.member)
                unknown.add_note(f"It is not known whether job {job} was committed.")
                raise unknown from error
            await core.ports.pause(pause)
    raise AssertionError("unreachable")


async def _has_left(core: Core, coordinator: int | None, deadline: Deadline) -> bool:
    """Whether the newest view that can be learned does not have the coordinator."""
    if core.closed or coordinator is None:
        return False
    with contextlib.suppress(*LOST, QueryTimeout):  # then it is not known, and asked again
        await core.refresh(deadline)
        return coordinator not in core.view.by_number
    return False


async def _ended_without(
    core: Core, job: str, tasks: tuple[JobTask, ...], deadline: Deadline
) -> int:
    """How a job ended whose coordinator has left the cluster."""
    try:
        committed = await job_committed(core, job, deadline)
    except TransientError as error:
        unknown = OutcomeUnknown(
            error.message,
            detail=f"It is not known whether job {job} was committed.",
            hint="Read the map before you write the rows again.",
            member=error.member,
        )
        raise unknown from error
    if committed:
        return sum({task.task: task.rows for task in tasks}.values())
    raise without_coordinator(job)


async def begin_job(  # noqa: PLR0917 (what the job is)
    core: Core,
    map_name: str,
    overwrite: bool,
    label: str,
    insert_only: bool = False,
    job: str | None = None,
    deadline: Deadline | None = None,
) -> tuple[str, MapSchema]:
    """Its name, and the map as it is now. A job whose caller is cancelled before the answer is
    there is aborted when it comes. ``job``: the name that it has or gets; it may be begun."""
    if job is not None:
        call = requests.job_begin(map_name, overwrite, label, insert_only, job)
        return await core.call(requests.job_coordinator(job), call, deadline=deadline)

    async def undo(begun: tuple[str, MapSchema]) -> None:
        await abort_job(core, begun[0])

    call = requests.job_begin(map_name, overwrite, label, insert_only)
    return await core.ports.whole(core.call(None, call, deadline=deadline), undo)


async def abort_job(core: Core, job: str, deadline: Deadline | None = None) -> None:
    await core.call(requests.job_coordinator(job), requests.job_abort(job), deadline=deadline)
