"""Turns: atomic writes of one map come one after the other (decision 0006)."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from remuda.datatypes.view import View
from remuda.errors import JobAborted, JobInterrupted

ENDED_KEPT = 10_000


def coordinator_of(job: str) -> int:
    """The member that coordinates a job: the prefix of its id. Raises JobAborted for no job id."""
    prefix = job.partition("-")[0] if isinstance(job, str) else ""  # no UTF-8: protobuf's bytes
    if not prefix.isascii() or not prefix.isdigit():
        raise JobAborted(f"{job!r} is not the id of a job")
    return int(prefix)


def require_coordinator(job: str, view: View) -> None:
    """Raises JobInterrupted when ``view`` does not have the coordinator of the job."""
    coordinator = coordinator_of(job)
    if coordinator not in view.by_number:
        raise JobInterrupted(
            f"job {job} has ended: member {coordinator}, which has begun it, has left the cluster",
            hint="Write the rows again.",
        )


class Turns:
    """One atomic write per map at a time, in the order of arrival (kept on the map's home)."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[tuple[str, Callable[[], None]]]] = {}
        self._ended: OrderedDict[tuple[int, str], None] = OrderedDict()
        """Ended before they were taken: the two messages came by different connections."""

    def take(self, map_id: int, job: str, granted: Callable[[], None]) -> None:
        """Raises JobAborted for a turn that has been ended: nobody would end it again; and for what
        is not the id of a job."""
        coordinator_of(job)
        if (map_id, job) in self._ended:
            raise JobAborted(f"job {job} has given its turn up")
        queue = self._queues.setdefault(map_id, deque())
        queue.append((job, granted))
        if len(queue) == 1:
            granted()

    def end(self, map_id: int, job: str) -> None:
        """The holder is through, or someone who waits gives up."""
        queue = self._queues.get(map_id, deque())
        remaining = deque(entry for entry in queue if entry[0] != job)
        if len(remaining) == len(queue):
            self._remember(map_id, job)
            return
        holder = queue[0][0]
        if not remaining:
            del self._queues[map_id]
            return
        self._queues[map_id] = remaining
        if remaining[0][0] != holder:
            remaining[0][1]()

    def _remember(self, map_id: int, job: str) -> None:
        self._ended[map_id, job] = None
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    def member_lost(self, number: int) -> None:
        for map_id, queue in list(self._queues.items()):
            for job in {entry[0] for entry in queue}:
                if coordinator_of(job) == number:
                    self.end(map_id, job)

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())
