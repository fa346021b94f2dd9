"""Whether a staged job was committed, asked long afterwards: of its coordinator, and of all members
that may have taken part in it."""

from __future__ import annotations

from remuda.client.core.core import Core
from remuda.client.network.deadline import Deadline
from remuda.client.requests import requests
from remuda.client.requests.requests import Call
from remuda.errors import JobInterrupted, TransientError
from remuda.rpc.messages import user_pb2

_PAUSE = 0.1


async def job_committed(core: Core, job: str, deadline: Deadline | None = None) -> bool:
    """Raises TransientError when a member does not answer until the deadline (as long as a request
    may take, unless told): then it is not known."""
    deadline = deadline or core.deadline()
    while True:
        try:
            states = await _states(core, job, deadline)
        except TransientError:
            if core.closed or deadline.passed:
                raise
        else:
            if user_pb2.JOB_COMMITTED in states:
                return True
            if user_pb2.JOB_OPEN not in states:
                return False
        await core.ports.pause(_PAUSE)


def without_coordinator(job: str) -> JobInterrupted:
    """The error of a job that was rolled back because its coordinator has left the cluster."""
    return JobInterrupted(
        f"job {job} was aborted: member {requests.job_coordinator(job)}, which has begun it, has "
        "left the cluster",
        detail="It was rolled back: nothing of it took effect.",
        hint="Write the rows again.",
    )


async def _states(core: Core, job: str, deadline: Deadline) -> set[int]:
    view = (await core.refresh(deadline)).view
    coordinator = requests.job_coordinator(job)
    if coordinator in view.by_number:  # what is not being committed yet will never be
        await core.pool(coordinator).call(requests.job_abort(job), deadline)
    call = Call(
        user_pb2.JOB_OUTCOME,
        user_pb2.JobOutcomeRequest(job=job),
        lambda pbody: int(user_pb2.JobOutcome.FromString(pbody).state),
    )
    found = set()
    for member in view.by_number:
        found.add(await core.pool(member).call(call, deadline))
    return found
