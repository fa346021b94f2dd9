"""Beginning a staged job, its commit, asked again when no answer came, and its abort."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.client import requests
from remuda.client.core import Core
from remuda.client.deadline import Deadline
from remuda.client.ports import COMMIT_TIMEOUT
from remuda.client.requests import JobTask
from remuda.client.tries import LOST
from remuda.datatypes.schema import MapSchema
from remuda.errors import OutcomeUnknown

_ATTEMPTS = 3
_PAUSE = 0.1


async def commit_job(
    core: Core,
    job: str,
    tasks: Iterable[JobTask],
    ttl: int | None = None,
    deadline: Deadline | None = None,
) -> int:
    """The number of rows. Committing twice gives the same answer, so a lost connection is no reason
    to leave the caller in doubt: the coordinator is asked again, until the deadline
    (``COMMIT_TIMEOUT`` from now unless told)."""
    call = requests.job_commit(job, tasks, core.clock, ttl)
    coordinator = requests.job_coordinator(job)
    if deadline is None and core.settings.timeout is not None:
        deadline = core.deadline()
    elif deadline is None:
        deadline = Deadline(max(COMMIT_TIMEOUT, core.settings.request_timeout))
    doubt = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await core.pool(coordinator).call(call, deadline)
        except LOST as error:
            doubt = doubt or error.may_have_run
            pause = _PAUSE * 2**attempt
            if attempt == _ATTEMPTS or core.closed or deadline.left(pause) < pause:
                if not doubt:
                    raise
                unknown = OutcomeUnknown(error.message, member=error.member)
                unknown.add_note(f"It is not known whether job {job} was committed.")
                raise unknown from error
            await core.ports.pause(pause)
    raise AssertionError("the last attempt returns or raises")


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
