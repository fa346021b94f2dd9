"""Beginning a staged job, its commit, asked again when no answer came, and its abort."""

from __future__ import annotations

import time
from collections.abc import Iterable

from remuda.client import requests
from remuda.client.core import Core
from remuda.client.ports import COMMIT_TIMEOUT
from remuda.client.requests import JobTask
from remuda.client.tries import LOST
from remuda.datatypes.schema import MapSchema
from remuda.errors import OutcomeUnknown

_ATTEMPTS = 3
_PAUSE = 0.1


async def commit_job(core: Core, job: str, tasks: Iterable[JobTask], ttl: int | None = None) -> int:
    """The number of rows. Committing twice gives the same answer, so a lost connection is no reason
    to leave the caller in doubt: the coordinator is asked again, for ``COMMIT_TIMEOUT`` in all."""
    call = requests.job_commit(job, tasks, core.clock, ttl)
    coordinator = requests.job_coordinator(job)
    ends = time.monotonic() + max(COMMIT_TIMEOUT, core.settings.request_timeout)
    doubt = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            timeout = max(ends - time.monotonic(), _PAUSE)
            return await core.pool(coordinator).call(call, timeout=timeout)
        except LOST as error:
            doubt = doubt or error.may_have_run
            if attempt == _ATTEMPTS or core.closed or time.monotonic() >= ends:
                if not doubt:
                    raise
                unknown = OutcomeUnknown(error.message, member=error.member)
                unknown.add_note(f"It is not known whether job {job} was committed.")
                raise unknown from error
            await core.ports.pause(_PAUSE * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


async def begin_job(  # noqa: PLR0917 (what the job is)
    core: Core,
    map_name: str,
    overwrite: bool,
    label: str,
    insert_only: bool = False,
    job: str | None = None,
) -> tuple[str, MapSchema]:
    """Its name, and the map as it is now. A job whose caller is cancelled before the answer is
    there is aborted when it comes. ``job``: the name that it has or gets; it may be begun."""
    if job is not None:
        call = requests.job_begin(map_name, overwrite, label, insert_only, job)
        return await core.call(requests.job_coordinator(job), call)

    async def undo(begun: tuple[str, MapSchema]) -> None:
        await abort_job(core, begun[0])

    work = core.call(None, requests.job_begin(map_name, overwrite, label, insert_only))
    return await core.ports.whole(work, undo)


async def abort_job(core: Core, job: str) -> None:
    await core.call(requests.job_coordinator(job), requests.job_abort(job))
