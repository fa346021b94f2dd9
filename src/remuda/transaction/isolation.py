"""What a transaction may see of others, by the names of the SQL standard."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Isolation(Enum):
    READ_COMMITTED = "read committed"
    """Each statement reads at a timestamp of its own. Keys that are written are checked against
    what their statement had read, so no update is lost within a statement."""
    REPEATABLE_READ = "repeatable read"
    """Snapshot isolation: everything is read at one timestamp, and of two transactions that write
    one key at the same time one fails."""
    SERIALIZABLE = "serializable"
    """As if transactions ran one after the other, in an order that real time agrees with: at the
    commit, what was read is checked as well."""


@dataclass(frozen=True, slots=True)
class Modes:
    """What BEGIN and SET TRANSACTION say; None: nothing."""

    isolation: Isolation | None = None
    read_only: bool | None = None

    def over(self, other: Modes) -> Modes:
        """What this says, and ``other`` where this says nothing."""
        return Modes(
            self.isolation or other.isolation,
            other.read_only if self.read_only is None else self.read_only,
        )


NO_MODES: Final = Modes()
