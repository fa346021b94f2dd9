"""One lock that somebody holds or waits for, as the parts of a member tell of theirs."""

from __future__ import annotations

from typing import NamedTuple

from remuda.datatypes.values import PhysicalValue
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.transaction.locks import Mode

Key = tuple[PhysicalValue, ...]


class LockRow(NamedTuple):
    map_id: int
    key: Key | None
    """None: the map as a whole."""
    kind: str
    """"row": of a transaction that locks what it writes. "commit": of one that is committing, or of
    a single write. "write": a single write that waits. "map": the turn of an atomic write."""
    mode: Mode
    granted: bool
    owner: str
    """A transaction or a job; "": a single write."""
    client: str = ""
    """For people; "": not known here."""
    since: int = 0
    """Microseconds since 1970; 0: not known."""
    blockers: tuple[str, ...] = ()
    """The owners that a waiter waits for."""
    channel: ClientChannel | None = None
    """Of the client, if it is connected to this member."""
    statement: QueryId | None = None
    """That waits: one by key, perhaps of another member's client."""
