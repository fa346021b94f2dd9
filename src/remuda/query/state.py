"""A member's memory of one query (see ``query.registry``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from remuda.errors import RemudaError
from remuda.query.effects import Effect
from remuda.query.ids import QueryId, instance_text


class Phase(Enum):
    EARLY = auto()
    RUNNING = auto()
    CANCELLED = auto()


@dataclass(slots=True)
class QueryState:
    """One query on this member."""

    id: QueryId
    phase: Phase
    moved: float
    """When something last happened to it here."""
    asked: float
    """When it was last checked."""
    early: list[Effect] = field(default_factory=list)
    early_size: int = 0
    participants: tuple[int, ...] = ()
    instances: tuple[tuple[int, int], ...] = ()
    """(fragment, instance) of all that run here."""
    remaining: set[tuple[int, int]] = field(default_factory=set)
    """Those that have not ended."""
    # CANCELLED on a participant: what to tell the initiator until it answers
    since: float = 0.0
    untold: RemudaError | None = None
    # on the initiator
    root: int = -1
    deadline: float | None = None
    timeout: float = 0.0
    profiled: bool = False
    owed: dict[int, int] = field(default_factory=dict)
    """How many FRAGMENT_DONE of other members have not come yet."""
    root_done: bool = False
    reported: set[tuple[int, int, int]] = field(default_factory=set)
    """(member, fragment, instance)"""

    def line(self) -> str:
        parts = [str(self.id), self.phase.name.lower()]
        if self.early:
            parts.append(f"early {len(self.early)} ({self.early_size} bytes)")
        if self.remaining:
            left = ", ".join(instance_text(*which) for which in sorted(self.remaining))
            parts.append(f"fragments [{left}]")
        if self.untold is not None:
            parts.append("untold")
        return " ".join(parts)
