"""How long entries live on: asking, and setting it anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.datatypes.map_options import DURATION_MAX
from remuda.datatypes.timestamp import FOREVER, to_micros
from remuda.errors import InputError, NotSupported
from remuda.member.base.core import Call, Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import StagedWrite
from remuda.member.maps.changes import MapChanges
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.maps.expiring_rows import end_of
from remuda.transaction.own_writes import Key, Row


class MapExpiry(Wing):
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, maps: Maps, changes: MapChanges
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._maps = maps
        self._changes = changes

    def routes(self) -> Routes:
        return Routes(calls={RpcType.MAP_TTL: self.on_ttl, RpcType.MAP_SET_TTL: self.on_set_ttl})

    def _asked(self, call: Call) -> tuple[user_pb2.KeysRequest, OpenMap, list[Key]]:
        message = user_pb2.KeysRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        if message.transaction:
            raise NotSupported(
                "a transaction neither asks nor sets how long an entry lives",
                hint="Do it outside of the transaction.",
            )
        found = self._maps.open(message.map, message.map_id, message.schema_version)
        return message, found, found.unpack_keys(message.keys)

    def on_ttl(self, call: Call) -> None:
        message, found, keys = self._asked(call)
        if self._changes.passed_on(call, message, found, keys):
            return
        core, store = self._core, found.store
        at = core.timestamp()
        if store.pending_at_or_below(at) and self._maps.depend(found, keys, at):
            core.serve(call, self._changes.again(call))
            return
        answer = user_pb2.RowsResponse(context=core.context())
        for key in keys:
            entry, end = answer.rows.add(), end_of(store, key, at)
            if end is not None:
                entry.row = b""
            if end is not None and end != FOREVER:
                entry.ttl = max(1, to_micros(end) - to_micros(at))
        call.reply(RpcType.MAP_TTL, answer)

    def on_set_ttl(self, call: Call) -> None:
        """The entry is written once more, with another time to live."""
        message, found, keys = self._asked(call)
        ttl = message.ttl
        if not 0 <= ttl <= DURATION_MAX:
            raise InputError(f"a TTL has 0 to {DURATION_MAX} microseconds, not {ttl}")

        def change(
            places: Sequence[int], before: list[Row | None]
        ) -> tuple[dict[Key, Row | None], list[Row | None]]:
            written: dict[Key, Row | None] = {
                keys[place]: row
                for place, row in zip(places, before, strict=True)
                if row is not None
            }
            return written, list(before)

        def tell(rows: list[Row | None]) -> None:
            self._maps.tell(call, found, rows, False)

        if found.schema.replicated:
            self._core.serve(call, self._set_replicated(found, keys, ttl, tell))
        elif not self._changes.passed_on(call, message, found, keys):
            self._maps.writes.change(call, found, keys, change, tell, self._maps.serve, ttl)

    async def _set_replicated(
        self,
        found: OpenMap,
        keys: list[Key],
        ttl: int,
        tell: Callable[[list[Row | None]], None],
    ) -> None:
        """In the map's turn, on all members."""
        write = StagedWrite(self._core, self._peers, self._commits, found.schema)
        await self._commits.turn(found.schema.map_id, write.job)
        try:
            rows = await self._maps.read(found, keys)
            there = list({key: row for key, row in zip(keys, rows, strict=True) if row}.values())
            try:
                if there:
                    await write.add(found.batch(there))
                    await write.commit(in_turn=True, ttl=ttl)
            except BaseException:
                write.abort()
                raise
        finally:
            self._commits.end_turn(found.schema.map_id, write.job)
        tell(rows)
