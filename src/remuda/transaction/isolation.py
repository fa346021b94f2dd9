"""Isolation levels: how much a transaction may see of others, by the names of the SQL standard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from remuda.errors import NotSupported


class Isolation(Enum):
    READ_UNCOMMITTED = "read uncommitted"
    """READ COMMITTED under the name that the client has asked for, as in PostgreSQL."""
    READ_COMMITTED = "read committed"
    """Each statement reads at a timestamp of its own. Keys that are written are checked against
    what their statement had read, so no update is lost within a statement."""
    REPEATABLE_READ = "repeatable read"
    """Snapshot isolation: everything is read at one timestamp, and of two transactions that write
    one key at the same time one fails."""
    SERIALIZABLE = "serializable"
    """As if transactions ran one after the other, in an order that real time agrees with: at the
    commit, what was read is checked as well."""

    @property
    def moves_on(self) -> bool:
        """Whether each statement reads at a timestamp of its own."""
        return self in (Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED)


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes that BEGIN and SET TRANSACTION name; None: not named."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    pessimistic: bool | None = None
    """Whether it locks the keys that it writes, and those that it gets by key, before."""
    deferrable: bool | None = None
    """Kept and shown only: a snapshot is always safe to read, so no transaction waits for one."""

    def over(self, other: Modes) -> Modes:
        """These modes, and those of ``other`` where these name none."""
        return Modes(
            self.isolation or other.isolation,
            other.read_only if self.read_only is None else self.read_only,
            other.pessimistic if self.pessimistic is None else self.pessimistic,
            other.deferrable if self.deferrable is None else self.deferrable,
        )

    def locking(self, defaults: Modes) -> Modes:
        """These modes for a transaction that locks: READ COMMITTED or REPEATABLE READ, the latter
        if neither they nor ``defaults`` say which. Raises NotSupported for SERIALIZABLE."""
        level = self.isolation
        if level is Isolation.SERIALIZABLE:
            raise NotSupported(
                "pessimistic transactions are READ COMMITTED or REPEATABLE READ",
                hint="SERIALIZABLE is for optimistic ones.",
            )
        if level is None and defaults.isolation is not None and defaults.isolation.moves_on:
            level = defaults.isolation
        return replace(self, isolation=level or Isolation.REPEATABLE_READ, pessimistic=True)


NO_MODES: Final = Modes()
