"""The end of a staged job: its commit, asked again when no answer came, or its abort."""

from __future__ import annotations

import time
from collections.abc import Iterable

from remuda.client import requests
from remuda.client.core import LOST, Core
from remuda.client.ports import COMMIT_TIMEOUT
from remuda.client.requests import JobTask

_ATTEMPTS = 3
_PAUSE = 0.1


async def commit_job(core: Core, job: str, tasks: Iterable[JobTask]) -> int:
    """The number of rows. Committing twice gives the same answer, so a lost connection is no reason
    to leave the caller in doubt: the coordinator is asked again, for ``COMMIT_TIMEOUT`` in all."""
    call = requests.job_commit(job, tasks, core.clock)
    coordinator = requests.job_coordinator(job)
    ends = time.monotonic() + max(COMMIT_TIMEOUT, core.settings.request_timeout)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            timeout = max(ends - time.monotonic(), _PAUSE)
            return await core.pool(coordinator).call(call, timeout=timeout)
        except LOST as error:
            if attempt == _ATTEMPTS or core.closed or time.monotonic() >= ends:
                error.add_note(f"It is not known whether job {job} was committed.")
                raise
            await core.ports.pause(_PAUSE * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


async def abort_job(core: Core, job: str) -> None:
    await core.call(requests.job_coordinator(job), requests.job_abort(job))
