"""Entries of a map at its primary, as they were at a timestamp that nothing undecided concerns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from remuda.datatypes.timestamp import FOREVER
from remuda.transaction.own_writes import Key, Row

if TYPE_CHECKING:
    from remuda.member.base.core import Core
    from remuda.member.maps.open_map import OpenMap
    from remuda.member.transactions.transactions import Transactions


def read_packed(
    found: OpenMap,
    keys: Sequence[Key],
    at: int,
    pack: Callable[[Row], bytes],
    *,
    counted: bool = True,
) -> list[bytes | None]:
    """The rows of ``keys``; ``counted``: as uses of the entries."""
    store = found.store
    rows: list[bytes | None] = []
    for key in keys:
        row = store.get(key, at)
        rows.append(None if row is None else pack(row))
    if counted:  # ``count_reads`` written out: the way of every get
        store.counters.get(len(rows), rows.count(None), at)
        if store.accesses is not None:
            store.accesses.touch_all(keys, rows, at)
    return rows


def outdated(
    core: Core, transactions: Transactions, found: OpenMap, keys: Sequence[Key], at: int
) -> bool:
    """Whether something newer than ``at`` is there for one of the keys, or may come with a write
    that is not decided yet."""
    store = found.store
    if at < store.floor or store.job_pending:
        return True
    now = core.timestamp() if store.expiring else 0
    for key in keys:
        if store.changed_after(key, at, now):
            return True
    if not store.pending_at_or_below(FOREVER - 1):
        return False
    # What has the timestamp FOREVER is decided, and to be seen in the store.
    return transactions.awaited_key(found.schema.map_id, keys, FOREVER - 1) is not None


def present(_row: Row) -> bytes:
    """The stand-in for a row that was not asked for."""
    return b""
