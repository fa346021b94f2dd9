"""Reads that take many requests at one timestamp: a Spark job, a report of several statements.

A reader makes up a name for the read, and has this member keep its timestamp: its lease. While
it is renewed, all members keep the versions that are visible there (``member.sessions.pins``);
when it is not, they go. A read whose lease has ended is remembered, so that a request that comes
late does not go on at another timestamp.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from remuda.errors import InputError, LimitExceeded, SnapshotTooOld
from remuda.member.base.core import Call, Core
from remuda.member.base.wing import Routes, Wing
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

LEASES_MAX: Final = 10_000
ENDED_KEPT: Final = 10_000
NAME_MAX: Final = 200
SECONDS_MAX: Final = 3600


@dataclass(slots=True)
class _Lease:
    at: int
    user: str
    ends: float
    """Monotonic seconds."""
    seconds: int


class ReadLeases(Wing):
    def __init__(self, core: Core) -> None:
        self._core = core
        self._leases: dict[str, _Lease] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()
        """Read -> seconds without a sign of life after which its lease ended; 0: given up."""

    def routes(self) -> Routes:
        return Routes(calls={RpcType.READ_LEASE: self.on_lease})

    def gauges(self) -> dict[str, int]:
        return {"read_leases": self.count}

    def on_lease(self, call: Call) -> None:
        message = user_pb2.ReadLease.FromString(call.pbody)
        if not 0 < len(message.run) <= NAME_MAX:
            raise InputError(f"the name of a read has 1 to {NAME_MAX} characters")
        if not 0 <= message.seconds <= SECONDS_MAX:
            raise InputError(f"a read is kept for at most {SECONDS_MAX} seconds")
        self._expire()
        at = message.at if message.HasField("at") else None
        found = self._lease(message.run, call.user, at, message.seconds)
        call.reply(RpcType.READ_LEASE, user_pb2.ReadLeased(at=found))

    def _lease(self, run: str, user: str, at: int | None, seconds: int) -> int | None:
        lease = self._leases.get(run)
        if not seconds:
            if lease is not None and self._core.access.owns(user, lease.user):
                self._end(run, 0)
            return None
        if lease is None:
            if run in self._ended:
                raise _over(self._ended[run])
            if at is None:
                return None
            if len(self._leases) >= LEASES_MAX:
                raise LimitExceeded(f"member {self._core.number} keeps {LEASES_MAX} reads already")
            self._core.observe_clock(at)
            lease = self._leases[run] = _Lease(at, user, 0.0, seconds)
        lease.ends = max(lease.ends, self._now() + seconds)
        lease.seconds = max(lease.seconds, seconds)
        return lease.at

    def oldest_read(self) -> int | None:
        """The lowest timestamp that a read is kept at."""
        self._expire()
        return min((lease.at for lease in self._leases.values()), default=None)

    def _expire(self) -> None:
        now = self._now()
        for run, lease in list(self._leases.items()):
            if lease.ends < now:
                self._end(run, lease.seconds)

    def _end(self, run: str, seconds: int) -> None:
        del self._leases[run]
        self._ended[run] = seconds
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    def _now(self) -> float:
        return self._core.world.clock.monotonic()

    @property
    def count(self) -> int:
        return len(self._leases)


def _over(seconds: int) -> SnapshotTooOld:
    why = f"nobody asked for it for {seconds} s" if seconds else "whoever read has given it up"
    return SnapshotTooOld(
        f"the read has ended: {why}",
        hint="Read again, from the start: the versions of its timestamp may be gone.",
    )
