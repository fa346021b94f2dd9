"""Puts of many rows as columns: an Arrow batch that the owners of its rows store together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from remuda.datatypes.values import arrays_to_rows
from remuda.member.base.core import Call, Core, nothing_done
from remuda.member.commits.writes import SEARCHED_MAX, StagedWrite, through_views
from remuda.member.maps.writes import ALWAYS, ttl_of
from remuda.member.state.lifetimes import refuse_lifetime
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

if TYPE_CHECKING:
    from remuda.member.base.forwarding import Forwarding
    from remuda.member.base.peers import Peers
    from remuda.member.commits.commits import Commits
    from remuda.member.maps.open_map import OpenMap
    from remuda.member.maps.writes import MapWrites
    from remuda.member.transactions.transactions import Transactions
    from remuda.transaction.own_writes import Key, Row


WITH_PREPARE_MAX = 8192
"""So many rows go to their owners with the question whether they can commit. Of more, each map has
its turn for a shorter time if they are staged before."""


class Entries(Protocol):
    """The requests by key of a member (``member.maps.maps``), for those batches that they serve."""

    writes: MapWrites

    def open(self, name: str, map_id: int = 0, version: int = 0) -> OpenMap: ...

    def serve(self, call: Call) -> None: ...

    def serve_in_transaction(self, call: Call) -> None: ...

    async def read(self, found: OpenMap, keys: list[Key]) -> list[Row | None]: ...


class ColumnPuts:
    def __init__(  # noqa: PLR0917 (what a write of many members needs)
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        forwarding: Forwarding,
        transactions: Transactions,
        maps: Entries,
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._forwarding = forwarding
        self._transactions = transactions
        self._maps = maps

    def on_put_batch(self, call: Call) -> None:
        message = user_pb2.PutBatchRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        if message.transaction:
            self._maps.serve_in_transaction(call)
            return
        self._core.departure.require_staying()
        found = self._maps.open(message.map, message.map_id, message.schema_version)
        batches = arrow_stream.decode(call.dbody)
        entered = self._core.constraints.entered
        batches = [entered(batch, found.schema) for batch in batches]
        self._core.serve(call, self._put_batch(call, message, found, batches))

    async def _put_batch(
        self,
        call: Call,
        message: user_pb2.PutBatchRequest,
        found: OpenMap,
        batches: list[pa.RecordBatch],
    ) -> None:
        core, view = self._core, self._core.view
        rows = sum(batch.num_rows for batch in batches)
        checked = bool(found.schema.uniques or found.schema.foreign_keys)
        refuse_lifetime(found.schema, ttl_of(message))
        if not found.schema.takes_bulk or (checked and rows <= SEARCHED_MAX):
            await self._put_checked(call, message, found, batches)
            return
        members = core.live_members()
        owners = {o for batch in batches for o in found.router.owners(batch, view, members)}
        if owners <= {core.number} and not (checked or self._transactions.backed):
            await self._commits.settled(found.schema.map_id)
            core.store(found.schema.map_id, found.schema.version)  # altered meanwhile?
            if core.view is not view or not core.ready:
                self._maps.serve(call)
                return
        if owners <= {core.number} and not checked and self._transactions.direct(found.store):
            at = core.timestamp()
            ttl = ttl_of(message)
            ttl = found.store.schema.options.ttl if ttl is None else ttl
            for batch in batches:  # all of them first: all rows are put or none
                core.room.admit_rows(found.schema, batch, primary=True)
            for batch in batches:
                found.store.upsert_batch(batch, at, ttl)
        elif len(owners) == 1 and owners != {core.number}:
            self._forwarding.pass_on(call, owners.pop())
            return
        else:
            await through_views(lambda _attempt: self._put_staged(found, batches, ttl_of(message)))
        found.store.counters.put(rows, core.clock.last)
        call.reply(RpcType.MAP_PUT_BATCH, user_pb2.Count(count=rows, context=core.context()))

    async def _put_checked(
        self,
        call: Call,
        message: user_pb2.PutBatchRequest,
        found: OpenMap,
        batches: list[pa.RecordBatch],
    ) -> None:
        """Rows as a transaction, which looks for the values of each one, and for its parents."""
        types = [column.type for column in found.schema.columns]
        keyed = [
            (found.key_of(row), row)
            for batch in batches
            for row in arrays_to_rows(batch.columns, types)
        ]
        read = partial(self._maps.read, found)
        await self._maps.writes.put_atomically(found, ALWAYS, keyed, read, ttl_of(message))
        found.store.counters.put(len(keyed), self._core.clock.last)
        count = user_pb2.Count(count=len(keyed), context=self._core.context())
        call.reply(RpcType.MAP_PUT_BATCH, count)

    async def _put_staged(
        self, found: OpenMap, batches: list[pa.RecordBatch], ttl: int | None
    ) -> None:
        write = StagedWrite(self._core, self._peers, self._commits, found.schema)
        try:
            with nothing_done:
                if len(batches) == 1 and batches[0].num_rows <= WITH_PREPARE_MAX:
                    await write.put(batches[0], ttl)
                    return
                for batch in batches:
                    await write.add(batch)
                await write.commit(ttl=ttl)
        except BaseException:
            write.abort()
            raise
