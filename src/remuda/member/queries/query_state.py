"""A member's knowledge of a query: its fragments here, the batches that came for it, the waiters
for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from remuda.errors import RemudaError
from remuda.execution.context import FragmentProfile
from remuda.execution.fragment import FragmentInstance
from remuda.plan.physical import PhysicalPlan
from remuda.query.ids import Endpoint, QueryId
from remuda.query.stream import Grant


@dataclass
class Running:
    """The fragments of one query on this member, by the edges they serve."""

    instances: tuple[FragmentInstance, ...]
    receives: dict[tuple[int, int], FragmentInstance] = field(default_factory=dict)
    sends: dict[tuple[int, int], FragmentInstance] = field(default_factory=dict)
    """By edge and instance."""
    edges: dict[int, int] = field(default_factory=dict)
    """The edge that a fragment, here or elsewhere, sends on."""
    map_ids: frozenset[int] = frozenset()
    read_timestamp: int = 0


@dataclass(frozen=True)
class Sent:
    """A query that has ended here, not long ago, and the members that its batches went to."""

    query: QueryId
    receivers: frozenset[int]
    ended: float


@dataclass
class Initiated:
    """A query that began here, and the listeners of its end."""

    query: QueryId
    plan: PhysicalPlan
    on_end: Callable[[RemudaError | None], None]
    profiles: list[FragmentProfile] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    """Goes off when the query's timeout is over."""
    starting: set[int] = field(default_factory=set)
    """Other members that have not said yet whether they run their part: one that refuses it makes
    the query fail, and it can be run anew only while its client has no row."""
    on_started: Callable[[], None] | None = None
    """Called when all have said so."""

    def started(self, member: int) -> None:
        """``member`` runs its part."""
        if member in self.starting:
            self.starting.remove(member)
            if not self.starting and self.on_started is not None:
                self.on_started()

    def ended(self) -> Callable[[RemudaError | None], None]:
        """Return what to call with the end, and forget all callbacks: the history of queries keeps
        this object, and a callback would keep the cursor with its pages."""
        on_end, self.on_end, self.on_started = self.on_end, _nothing, None
        return on_end


def _nothing(_error: RemudaError | None) -> None:
    pass


@dataclass(frozen=True)
class IncomingBatch:
    edge: int
    sender: Endpoint
    receivers: tuple[int, ...]
    """The instances here that it is for."""
    ordinal: int
    last: bool
    body: memoryview | bytes

    def __str__(self) -> str:
        return f"edge {self.edge} from {self.sender} ordinal {self.ordinal}"


@dataclass(frozen=True)
class IncomingFlowControl:
    edge: int
    receiver: Endpoint
    sender: int
    """The instance here that it is for."""
    grant: Grant
