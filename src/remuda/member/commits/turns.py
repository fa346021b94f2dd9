"""Turns: atomic writes of one map come one after the other (decision 0006)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

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
    """One atomic write per map at a time, in the order of arrival (kept on the map's home).

    A turn is a job and a number, because a job that tries again takes another turn. Messages may be
    lost, repeated and overtaken: a turn that is asked for again keeps its place, and one that has
    been ended is refused for good, as nobody would end it again."""

    def __init__(self) -> None:
        self._queues: dict[int, dict[tuple[str, int], Callable[[], None]]] = {}
        """By map: turns and what grants them; the first one is taken."""
        self._ended: OrderedDict[tuple[int, str, int], None] = OrderedDict()

    def take(self, map_id: int, job: str, granted: Callable[[], None], number: int = 0) -> None:
        """Raises JobAborted for a turn that has been ended, and for what is not the id of a job."""
        coordinator_of(job)
        if (map_id, job, number) in self._ended:
            raise JobAborted(f"job {job} has given its turn up")
        queue = self._queues.setdefault(map_id, {})
        queue[job, number] = granted
        if next(iter(queue)) == (job, number):
            granted()

    def end(self, map_id: int, job: str, number: int = 0) -> None:
        """The holder is through, or someone who waits gives up."""
        self._remember(map_id, job, number)
        queue = self._queues.get(map_id, {})
        if (job, number) not in queue:
            return
        held = next(iter(queue)) == (job, number)
        del queue[job, number]
        if not queue:
            del self._queues[map_id]
        elif held:
            next(iter(queue.values()))()

    def queues(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """By map id: the job that has the turn, and those that wait behind it."""
        for map_id, queue in self._queues.items():
            yield map_id, tuple(job for job, _ in queue)

    def _remember(self, map_id: int, job: str, number: int) -> None:
        self._ended[map_id, job, number] = None
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    def member_lost(self, number: int) -> None:
        for map_id, queue in list(self._queues.items()):
            for job, turn in list(queue):
                if coordinator_of(job) == number:
                    self.end(map_id, job, turn)

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())
