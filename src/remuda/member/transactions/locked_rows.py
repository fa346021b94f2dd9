"""Rows that their primary reads in the step in which it locks them for a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.member.base.core import Core
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Key, Row
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2

Found = dict[Key, tuple[int, Row | None]]
"""Rows that were read under their locks, and when."""


def read(
    core: Core, router: Router, message: control_pb2.KeyLock, granted: control_pb2.KeyLock
) -> None:
    """Fill the answer with the rows of the keys, as of a new timestamp: nothing that others have
    prepared concerns them, and a write that is prepared from now on gets a later one. No rows, if
    this member does not serve one of the keys right now, the map has another version, or a bulk
    write of it is not decided."""
    store = core.stores.get(message.map_id)
    if store is None or store.schema.version != message.read_version or store.job_pending:
        return
    keys = [codec.decode_row(row) for row in message.keys]
    for partition in map(router.key_partition, keys):
        if core.view.owners[partition] != core.number or not core.readiness.serves(partition):
            return
    at = core.timestamp()
    rows = [store.get(key, at) for key in keys]
    store.count_reads(keys, rows, at)
    granted.read_at = at
    for row in rows:
        entry = granted.rows.add()
        if row is not None:
            codec.fill_row(entry.row, row)


def found(granted: control_pb2.KeyLock, keys: Sequence[Key]) -> Found:
    """The rows in an answer to a request for ``keys``."""
    at, decode = granted.read_at, codec.decode_row
    if not at:
        return {}
    rows = [decode(entry.row) if entry.HasField("row") else None for entry in granted.rows]
    return {key: (at, row) for key, row in zip(keys, rows, strict=True)}
