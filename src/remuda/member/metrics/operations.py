"""Requests of clients, counted by kind and outcome, and timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from remuda.errors import RemudaError
from remuda.member.metrics.families import Family, Histogram, Sample
from remuda.rpc.messages.user_pb2 import RpcType

OK: Final = "ok"


class OperationTimer:
    """One kind of request."""

    __slots__ = ("_clock", "histogram", "outcomes")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.histogram = Histogram()
        self.outcomes: Counter[str] = Counter()

    def ended(self, began: float, error: RemudaError | None) -> None:
        """A request that came at ``began`` is answered. The time between is the member's alone:
        reading the frame and the way to the client are not in it."""
        self.histogram.observe(self._clock() - began)
        self.outcomes[OK if error is None else error.sqlstate] += 1


class Operations(dict[int, OperationTimer]):
    """The timer of each kind of request, made when one of it comes first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.clock = clock

    def __missing__(self, rpc_type: int) -> OperationTimer:
        timer = self[rpc_type] = OperationTimer(self.clock)
        return timer

    def families(self) -> Iterator[Family]:
        named = sorted((operation_name(kind), timer) for kind, timer in self.items())
        yield Family(
            "remuda_operations_total",
            "counter",
            "Requests of clients by kind and outcome: ok, or the SQLSTATE of the error.",
            [
                Sample({"operation": name, "outcome": outcome}, count)
                for name, timer in named
                for outcome, count in sorted(timer.outcomes.items())
            ],
        )
        yield Family(
            "remuda_operation_duration_seconds",
            "histogram",
            "Time from the arrival of a request of a client to its answer.",
            [
                sample
                for name, timer in named
                for sample in timer.histogram.samples({"operation": name})
            ],
        )


def operation_name(rpc_type: int) -> str:
    """``map_get`` for MAP_GET; requests that do not exist are one kind, however many come."""
    known = RpcType.DESCRIPTOR.values_by_number.get(rpc_type)
    return "unknown" if known is None else known.name.lower()
