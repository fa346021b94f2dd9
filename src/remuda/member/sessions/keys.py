"""Rows by key as they were at a timestamp, from the members that own them."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import MapSchema
from remuda.member.base.forwarding import LocalCall
from remuda.member.maps.maps import Maps
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.transaction.own_writes import Key, Row


class KeyReader:
    def __init__(self, maps: Maps) -> None:
        self._maps = maps

    def here(self, schema: MapSchema, keys: Sequence[Key], at: int) -> list[Row | None] | None:
        """The same, if this member has them all and nothing is to be waited for; or else None."""
        found = self._maps.open(schema.name, schema.map_id, schema.version)
        if not self._maps.serves_alone(found, keys, at):
            return None
        store = found.store
        rows = [store.get(key, at) for key in keys]
        store.count_reads(keys, rows, at)
        return rows

    async def rows(self, schema: MapSchema, keys: Sequence[Key], at: int) -> list[Row | None]:
        """In the order of ``keys``; None where there is no row. Raises SchemaChanged,
        SnapshotTooOld, MemberUnavailable."""
        if not keys:
            return []
        here = self.here(schema, keys, at)
        if here is not None:
            return here
        found = self._maps.open(schema.name, schema.map_id, schema.version)
        message = self._maps.keys_request(found, keys)
        message.read_timestamp = at
        call = LocalCall(RpcType.MAP_GET, message.SerializeToString())
        self._maps.serve(call)
        response = user_pb2.RowsResponse.FromString(await call.answered())
        unpack = found.rows.unpack
        return [unpack(entry.row) if entry.HasField("row") else None for entry in response.rows]
