"""CREATE INDEX, DROP INDEX, SHOW INDEXES over the cluster.

An index is put into the catalog first: every member builds its part in the background, while it
serves. When all have done so, a second change of the catalog makes the index ready, and plans use
it from then on. So no plan can name an index that some member has not built.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import PutMap
from remuda.catalog.indexes import with_index, with_ready, without_index
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    DuplicateObject,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
    UndefinedObject,
)
from remuda.member.base.core import Core
from remuda.member.base.peers import REQUEST_TIMEOUT, Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round, listed
from remuda.member.base.wing import Routes, Wing
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.state.log import fields
from remuda.rpc.codec import decode_schema, encode_schema
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.session.answers import Answer
from remuda.session.index_answers import shown_indexes
from remuda.sql.scope.statements import CreateIndexStatement, DropIndexStatement

log = logging.getLogger(__name__)

ATTEMPTS: Final = 50
"""So often a change is made again because the catalog has changed meanwhile."""
PAUSE: Final = 0.002
BUILD_PAUSES: Final = (0.005, 0.02, 0.05, 0.1)
"""Seconds between two questions whether an index is built; the last one goes on."""


async def nothing_to_verify() -> None:
    """Any rows can have an index that is not unique."""


class IndexService(Wing):
    def __init__(self, core: Core, peers: Peers, catalog: CatalogService) -> None:
        self._core = core
        self._peers = peers
        self._catalog = catalog

    def routes(self) -> Routes:
        return Routes(
            control={RpcType.INDEX_STATUS: self.on_status, RpcType.INDEX_ROOM: self.on_room}
        )

    async def create(
        self,
        found: CreateIndexStatement,
        check: Callable[[], None],
        verify: Callable[[], Awaitable[None]] = nothing_to_verify,
    ) -> None:
        """Returns when plans use the index. ``check`` raises when the statement is cancelled, and
        ``verify`` when the rows that are there cannot have the index: then it is dropped again.
        Raises DuplicateObject, UndefinedMap, UndefinedColumn, StorageFull."""
        if found.exists:
            return
        map_id, name = found.schema.map_id, found.definition.name

        def added(schema: MapSchema) -> MapSchema:
            for other in self._core.catalog.shown.maps:
                beside = other.namespace == schema.namespace
                if beside and any(index.name == name for index in other.indexes):
                    raise DuplicateObject(f'index "{name}" exists already')
            return with_index(schema, found.definition)

        schema = self._core.catalog.find_id(map_id)
        if schema is not None:
            await self.admit(added(schema))
        await self._change(map_id, added)
        made = self._find(map_id, name)
        try:
            await verify()
            await self._built(map_id, made, check)
            await self._change(map_id, partial(with_ready, index_id=made.index_id))
        except BaseException:
            await self._withdraw(map_id, made)
            raise
        self._find(map_id, name)

    async def admit(self, schema: MapSchema) -> None:
        """Ask every member for room for the indexes that ``schema`` has and its map has not, before
        the catalog has them. Raises StorageFull."""
        core = self._core
        known = core.catalog.find_id(schema.map_id)
        if known is None or {i.name for i in schema.indexes} <= {i.name for i in known.indexes}:
            return
        message = control_pb2.IndexRoomRequest(context=core.context(), map=encode_schema(schema))
        others = [number for number in core.live_members() if number != core.number]
        core.room.admit_indexes(schema)
        await asyncio.gather(
            *(self._peers.request(number, RpcType.INDEX_ROOM, message) for number in others)
        )

    def on_room(self, request: Request) -> None:
        message = control_pb2.IndexRoomRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        self._core.room.admit_indexes(decode_schema(message.map))
        request.reply(RpcType.INDEX_ROOM, common_pb2.Ack(ok=True))

    async def make_ready(self, map_id: int, check: Callable[[], None]) -> None:
        """Returns when plans use all unique indexes of a map that is there."""
        schema = self._core.catalog.find_id(map_id)
        for index in () if schema is None else schema.uniques:
            if not index.ready:
                await self._built(map_id, index, check)
                await self._change(map_id, partial(with_ready, index_id=index.index_id))

    def complete(self, map_ids: Collection[int]) -> None:
        """Have plans use the indexes of these maps, which a transaction has made, when they are
        built."""
        for map_id in map_ids:
            schema = self._core.catalog.find_id(map_id)
            for index in () if schema is None else schema.indexes:
                if not index.ready:
                    self._core.spawn(self._complete(map_id, index), "an index of a transaction")

    async def _complete(self, map_id: int, index: IndexDefinition) -> None:
        try:
            await self._built(map_id, index, lambda: None)
            await self._change(map_id, partial(with_ready, index_id=index.index_id))
        except (UndefinedMap, UndefinedObject):
            pass  # somebody has dropped it meanwhile
        except RemudaError as error:
            log.warning("index not ready", extra=fields(error=error.message, index=index.name))

    async def drop(self, found: DropIndexStatement) -> None:
        """Raises UndefinedObject if an index has gone since the statement was bound."""
        for map_id, name in found.indexes:
            schema = self._core.catalog.find_id(map_id)
            there = schema is not None and any(index.name == name for index in schema.indexes)
            if there:
                await self._change(map_id, lambda s, name=name: without_index(s, name))  # type: ignore[misc]
            elif not found.if_exists:
                raise UndefinedObject(f'index "{name}" does not exist')

    async def shown(self, schema: MapSchema | None, seen: Catalog) -> Answer:
        """The indexes of a map, or of all maps that are ``seen``."""
        sizes: dict[int, int] = {}
        silent: set[int] = set()
        asked = [each for each in (seen.maps if schema is None else (schema,)) if each.indexes]
        for found in await asyncio.gather(*(self._statuses(e.map_id, PATIENCE) for e in asked)):
            silent.update(found.silent)
            for status in found.known.values():
                for number, size in zip(status.indexes, status.bytes, strict=True):
                    sizes[number] = sizes.get(number, 0) + size
        map_id = None if schema is None else schema.map_id
        return shown_indexes(seen, map_id, sizes, listed(sorted(silent)))

    # --- the catalog ----------------------------------------------------------------------------

    async def _change(self, map_id: int, change: Callable[[MapSchema], MapSchema]) -> None:
        for attempt in range(ATTEMPTS):
            catalog = self._core.catalog
            schema = catalog.find_id(map_id)
            if schema is None:
                raise UndefinedMap("the map was dropped meanwhile")
            try:
                await self._catalog.edit([PutMap(change(schema))], catalog.version)
            except SchemaChanged:
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(PAUSE * (attempt + 1))
            else:
                return

    def _find(self, map_id: int, name: str) -> IndexDefinition:
        schema = self._core.catalog.find_id(map_id)
        for index in () if schema is None else schema.indexes:
            if index.name == name:
                return index
        raise UndefinedObject(f'index "{name}" was dropped while it was built')

    async def _withdraw(self, map_id: int, made: IndexDefinition) -> None:
        schema = self._core.catalog.find_id(map_id)
        if schema is None or all(i.index_id != made.index_id for i in schema.indexes):
            return
        try:
            await self._change(map_id, lambda s: without_index(s, made.name))
        except RemudaError as error:
            log.warning("index not withdrawn", extra=fields(error=error.message, index=made.name))

    # --- the members ----------------------------------------------------------------------------

    async def _built(self, map_id: int, made: IndexDefinition, check: Callable[[], None]) -> None:
        pauses = iter(BUILD_PAUSES)
        pause = next(pauses)
        while True:
            check()
            self._find(map_id, made.name)
            statuses = (await self._statuses(map_id, REQUEST_TIMEOUT)).whole()
            if all(made.index_id in status.built for status in statuses.values()):
                return
            await asyncio.sleep(pause)
            pause = next(pauses, pause)

    async def _statuses(self, map_id: int, timeout: float) -> Gathered[control_pb2.IndexStatus]:
        core = self._core
        found = await in_one_round(
            core,
            self._peers,
            RpcType.INDEX_STATUS,
            control_pb2.IndexStatusRequest(context=core.context(), map_id=map_id),
            control_pb2.IndexStatus.FromString,
            timeout,
        )
        return found.with_own(core.number, self._status(map_id))

    def _status(self, map_id: int) -> control_pb2.IndexStatus:
        status = control_pb2.IndexStatus(context=self._core.context())
        store = self._core.stores.get(map_id)
        if store is not None:
            status.built.extend(store.indexes.built)
            for number, index in store.indexes.by_id.items():
                status.indexes.append(number)
                status.bytes.append(index.nbytes)
        return status

    def on_status(self, request: Request) -> None:
        message = control_pb2.IndexStatusRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        request.reply(RpcType.INDEX_STATUS, self._status(message.map_id))
