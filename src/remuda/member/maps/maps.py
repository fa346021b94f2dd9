"""Key operations: get, put, remove, size, put_batch. The hot path of a member, on the loop.

Any member answers any key: requests for keys of another one are forwarded to it. A request for keys
of several owners is answered here from their answers; a write that touches several members commits
atomically.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from google.protobuf.message import Message

from remuda.datatypes.timestamp import FOREVER, expiry
from remuda.datatypes.view import View
from remuda.errors import NotServed, RemudaError, ViewChanged
from remuda.member.base.core import Call, Core, bug, nothing_done
from remuda.member.base.forwarding import ForwardedCall, Forwarding, LocalCall
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import StagedWrite
from remuda.member.maps.column_gets import get_columns, with_keys
from remuda.member.maps.column_puts import ColumnPuts
from remuda.member.maps.open_map import OpenMap
from remuda.member.maps.reads import outdated, present, read_packed
from remuda.member.maps.writes import ALWAYS, IF_ABSENT, MapWrites, chosen, one_of_several, ttl_of
from remuda.member.transactions.transactions import Transactions
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.point_encoding import ROWS_OUTDATED, encode_rows
from remuda.transaction.own_writes import Key, Row

MAP_GET = RpcType.MAP_GET
IF_PRESENT = user_pb2.PutRequest.IF_PRESENT


class InTransaction(Protocol):
    """Serves the requests that belong to a transaction (``member.sessions.maps``)."""

    def on_get(self, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> None: ...

    def on_put(self, call: Call, message: user_pb2.PutRequest, found: OpenMap) -> None: ...

    def on_remove(self, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> None: ...

    def on_put_batch(self, call: Call) -> None: ...


class Maps(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        forwarding: Forwarding,
        transactions: Transactions,
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._forwarding = forwarding
        self._transactions = transactions
        self.writes = MapWrites(core, transactions)
        columns = ColumnPuts(core, peers, commits, forwarding, transactions, self)
        self.on_put_batch = columns.on_put_batch
        self._open: dict[int, OpenMap] = {}
        self._transactional: InTransaction | None = None

    def open(self, name: str, map_id: int = 0, version: int = 0) -> OpenMap:
        """Raises UndefinedMap, SchemaChanged."""
        if map_id:
            known = self._open.get(map_id)
            if known is not None and known.schema.version == version:
                return known
        schema = self._core.schema(name, map_id, version)
        known = self._open.get(schema.map_id)
        if known is None or known.schema is not schema:
            store = self._core.store(schema.map_id, schema.version)
            known = self._open[schema.map_id] = OpenMap(schema, store, self._core.constraints)
        return known

    def known(self, map_id: int, version: int) -> OpenMap | None:
        """A map that was opened before, in this version."""
        found = self._open.get(map_id)
        return None if found is None or found.schema.version != version else found

    def _asked(self, message: user_pb2.KeysRequest | user_pb2.PutRequest) -> OpenMap:
        """``open`` for a request; its text is not even looked at when the map is known."""
        known = self._open.get(message.map_id)
        if known is not None and known.schema.version == message.schema_version:
            return known
        return self.open(message.map, message.map_id, message.schema_version)

    def serve_transactions(self, served: InTransaction) -> None:
        """Requests in transactions go to ``served``."""
        self._transactional = served

    def routes(self) -> Routes:
        return Routes(
            calls={
                RpcType.MAP_GET: self.on_get,
                RpcType.MAP_PUT: self.on_put,
                RpcType.MAP_REMOVE: self.on_remove,
                RpcType.MAP_SIZE: self.on_size,
                RpcType.MAP_PUT_BATCH: self.on_put_batch,
            }
        )

    def in_transaction(self) -> InTransaction:
        if self._transactional is None:
            raise NotServed(f"member {self._core.number} is starting")
        return self._transactional

    def serve_in_transaction(self, call: Call) -> None:
        """A batch of rows that belongs to a transaction."""
        self.in_transaction().on_put_batch(call)

    def forget(self, map_id: int) -> None:
        self._open.pop(map_id, None)

    def serve(self, call: Call) -> None:
        """Serve a call that does not come straight from a channel, or once more: not before this
        member is ready, since it may have become the owner of the keys a moment ago."""
        self._forwarding.handle(call)

    # --- get ----------------------------------------------------------------------------------

    def on_get(self, call: Call) -> None:
        message = user_pb2.KeysRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self._asked(message)
        if message.transaction or message.HasField("begin"):
            self.in_transaction().on_get(call, with_keys(message, found), found)
            return
        if message.HasField("key_batch"):
            if get_columns(self._core, call, message, found):
                return
            with_keys(message, found)
        keys = found.unpack_keys(message.keys)
        partitions = list(map(found.router.key_partition, keys))
        owner = self.owner_of(found, partitions, call)
        if owner is None:
            self._core.serve(call, self._scatter(call, message, message.keys, partitions))
        elif owner != self._core.number:
            self._forwarding.pass_on(call, owner)
        else:
            self._get_here(call, message, found, keys)

    def _get_here(
        self, call: Call, message: user_pb2.KeysRequest, found: OpenMap, keys: list[Key]
    ) -> None:
        core = self._core
        at = message.read_timestamp
        if at:
            core.observe_read(at)
        else:
            at = core.timestamp()
        store = found.store
        if store.pending_at_or_below(at) and self._get_waits(call, message, found, keys, at):
            return
        if message.newest and outdated(core, self._transactions, found, keys, at):
            call.reply(MAP_GET, encode_rows((), core.encoded_context()) + ROWS_OUTDATED)
            return
        pack = present if message.keys_only else found.rows.pack
        rows = read_packed(found, keys, at, pack, counted=not message.for_write)
        call.reply(MAP_GET, encode_rows(rows, core.encoded_context()))

    def _get_waits(
        self,
        call: Call,
        message: user_pb2.KeysRequest,
        found: OpenMap,
        keys: list[Key],
        at: int,
    ) -> bool:
        """Something of the map is undecided at or below ``at``: whether the keys depend on it. Then
        the request is served later, perhaps by another primary."""
        view = self._core.view

        def again() -> None:
            if view is self._core.view and self._core.ready:  # it may have lost its lease
                self._get_here(call, message, found, keys)
            else:
                self.serve(call)

        if found.store.job_pending:
            self._core.require_decidable(found.schema.map_id)
            self._later(found, again, call)
            return True
        key = self._transactions.awaited_key(found.schema.map_id, keys, at)
        if key is None:
            return False
        self._transactions.require_decidable(found.schema, [key])
        retry = self._retry(found, again, call)
        self._transactions.pending.when_readable(found.schema.map_id, key, retry)
        return True

    async def _scatter(
        self,
        call: Call,
        message: user_pb2.KeysRequest | user_pb2.PutRequest,
        items: Sequence[bytes],
        partitions: list[int],
    ) -> None:
        """Ask each owner for its items, and answer in the order of the request."""
        owners = self._core.view.owners
        groups: dict[int, list[int]] = {}
        for index, partition in enumerate(partitions):
            groups.setdefault(owners[partition], []).append(index)
        answers: list[user_pb2.OptionalRow] = [user_pb2.OptionalRow()] * len(partitions)
        for served, (owner, indexes) in enumerate(groups.items()):
            part = copy.deepcopy(message)
            field = part.rows if isinstance(part, user_pb2.PutRequest) else part.keys
            del field[:]
            field.extend(items[index] for index in indexes)
            with one_of_several(served and call.rpc_type != MAP_GET):
                body = await self.ask(owner, call.rpc_type, part)
            rows = user_pb2.RowsResponse.FromString(body).rows
            for index, row in zip(indexes, rows, strict=True):
                answers[index] = row
        response = user_pb2.RowsResponse(context=self._core.context())
        response.rows.extend(answers)
        call.reply(call.rpc_type, response)

    async def ask(self, owner: int, rpc_type: int, message: Message) -> bytes:
        if owner != self._core.number:
            return await self._forwarding.ask(owner, rpc_type, message)
        answer = LocalCall(rpc_type, message.SerializeToString())
        self.serve(answer)
        return await answer.answer

    def read_elsewhere(
        self,
        owner: int,
        found: OpenMap,
        keys: Sequence[Key],
        on_rows: Callable[[list[Row] | RemudaError], None],
    ) -> None:
        """The existing rows of ``keys``, all owned by another member."""

        async def again() -> None:
            rows: list[Row] | RemudaError
            try:
                rows = [row for row in await self.read(found, list(keys)) if row is not None]
            except RemudaError as error:
                rows = error
            except Exception as error:  # noqa: BLE001 (a task: nobody else would answer)
                rows = bug(error, "a read by key")
            on_rows(rows)

        def answered(body: bytes | RemudaError) -> None:
            if isinstance(body, ViewChanged):
                self._core.spawn(again(), "read in the next view")
                return
            if isinstance(body, RemudaError):
                on_rows(body)
                return
            rows: list[Row] | RemudaError
            try:
                entries = user_pb2.RowsResponse.FromString(body).rows
                rows = [found.rows.unpack(e.row) for e in entries if e.HasField("row")]
            except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
                rows = bug(error, f"the answer of member {owner}")
            on_rows(rows)

        self._forwarding.ask_nowait(owner, MAP_GET, found.keys_request(keys), answered)

    def keys_request(self, found: OpenMap, keys: Sequence[Key]) -> user_pb2.KeysRequest:
        return user_pb2.KeysRequest(
            map=found.schema.name,
            map_id=found.schema.map_id,
            schema_version=found.schema.version,
            context=self._core.context(),
            keys=[found.keys.pack(key) for key in keys],
        )

    # --- put ----------------------------------------------------------------------------------

    def on_put(self, call: Call) -> None:
        message = user_pb2.PutRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self._asked(message)
        if message.transaction:
            self.in_transaction().on_put(call, message, found)
            return
        rows = found.unpack_rows(message.rows)
        if found.schema.replicated:
            self._core.serve(call, self._put_atomically(call, message, found, rows))
            return
        keys = list(map(found.key_of, rows))
        partitions = list(map(found.router.key_partition, keys))
        owner = self.owner_of(found, partitions, call)
        if owner is None and message.condition == ALWAYS:
            self._core.serve(call, self._put_atomically(call, message, found, rows))
        elif owner is None:
            # A condition concerns one key: each owner decides about its own.
            self._core.serve(call, self._scatter(call, message, message.rows, partitions))
        elif owner != self._core.number:
            self._forwarding.pass_on(call, owner)
        else:
            self._put_here(call, message, found, rows, keys, partitions)

    def _put_here(  # noqa: PLR0917 (a request, and what was found out about it)
        self,
        call: Call,
        message: user_pb2.PutRequest,
        found: OpenMap,
        rows: list[Row],
        keys: list[Key],
        partitions: list[int],
    ) -> None:
        core, store, condition = self._core, found.store, message.condition
        want_old = message.want_old
        store.counters.put(len(rows), core.clock.last)
        if found.schema.concerns_others or not self._transactions.direct(store):
            tell = partial(self.tell, call, found, want_old=want_old)
            ttl = ttl_of(message) if message.HasField("ttl") else None
            if len(rows) == 1:
                self.writes.put_one(
                    call, condition, found, (keys[0], rows[0]), partitions[0], tell, self.serve,
                    ttl, want_old=want_old,
                )  # fmt: skip
                return
            keyed = list(zip(keys, rows, strict=True))
            self.writes.put(call, condition, found, keyed, partitions, tell, self.serve, ttl)
            return
        core.room.admit_direct(store, rows)
        olds: list[Row | None] = []
        ttl = ttl_of(message) if message.HasField("ttl") else store.schema.options.ttl
        for key, row in zip(keys, rows, strict=True):
            at = core.timestamp()
            until = expiry(at, ttl) if ttl else FOREVER
            if condition == ALWAYS:
                old = (
                    store.put(row, at, until)
                    if want_old
                    else (() if store.set(row, at, until) else None)
                )
            else:
                old = store.get(key, at)
                if (old is None) == (condition == IF_ABSENT):
                    store.set(row, at, until)
            olds.append(old)
        self.tell(call, found, olds, want_old)

    async def _put_atomically(
        self, call: Call, message: user_pb2.PutRequest, found: OpenMap, rows: list[Row]
    ) -> None:
        """Rows of several members: all or none. Old rows are those of just before."""
        schema = found.schema
        keyed = [(found.key_of(row), row) for row in rows]
        found.store.counters.put(len(rows), self._core.clock.last)
        if not schema.replicated or schema.uniques:
            read = partial(self.read, found)
            olds = await self.writes.put_atomically(
                found, message.condition, keyed, read, ttl_of(message)
            )
            self.tell(call, found, olds, message.want_old)
            return
        job = self._commits.new_job()
        with nothing_done:
            await self._commits.turn(schema.map_id, job)
            try:
                before = await self.read(found, [key for key, _ in keyed])
                stored, olds = chosen(message.condition, keyed, before)
                await self._store(found, list(stored.values()), ttl_of(message))
            finally:
                self._commits.end_turn(schema.map_id, job)
        self.tell(call, found, olds, message.want_old)

    async def _store(self, found: OpenMap, rows: Sequence[Row], ttl: int | None) -> None:
        if not rows:
            return
        write = StagedWrite(self._core, self._peers, self._commits, found.schema)
        try:
            await write.add(found.batch(rows))
            await write.commit(in_turn=True, ttl=ttl)
        except BaseException:
            write.abort()
            raise

    async def read(self, found: OpenMap, keys: list[Key]) -> list[Row | None]:
        """The rows as they are now, wherever they are, for a write that depends on them."""
        message = self.keys_request(found, keys)
        message.for_write = True
        answer = LocalCall(RpcType.MAP_GET, message.SerializeToString())
        self.serve(answer)
        response = user_pb2.RowsResponse.FromString(await answer.answered())
        return [
            found.rows.unpack(entry.row) if entry.HasField("row") else None
            for entry in response.rows
        ]

    # --- remove -------------------------------------------------------------------------------

    def on_remove(self, call: Call) -> None:
        message = user_pb2.KeysRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self._asked(message)
        if message.transaction:
            self.in_transaction().on_remove(call, message, found)
            return
        keys = found.unpack_keys(message.keys)
        if found.schema.replicated:
            self._core.serve(call, self._remove_replicated(call, message, found, keys))
            return
        owner = self.owner(found, keys, call)
        if owner is None:
            partitions = [found.router.key_partition(key) for key in keys]
            self._core.serve(call, self._scatter(call, message, message.keys, partitions))
        elif owner != self._core.number:
            self._forwarding.pass_on(call, owner)
        else:
            self._remove_here(call, message, found, keys)

    def _remove_here(
        self, call: Call, message: user_pb2.KeysRequest, found: OpenMap, keys: list[Key]
    ) -> None:
        store, core = found.store, self._core
        store.counters.remove(len(keys), core.clock.last)
        if found.schema.children or not self._transactions.direct(store):
            self.writes.remove(
                call,
                found,
                keys,
                lambda olds: self.tell(call, found, olds, message.want_old),
                self.serve,
            )
            return
        olds: list[Row | None]
        if message.want_old:
            olds = [store.remove(key, core.timestamp()) for key in keys]
        else:
            olds = [() if store.discard(key, core.timestamp()) else None for key in keys]
        self.tell(call, found, olds, message.want_old)

    async def _remove_replicated(
        self, call: Call, message: user_pb2.KeysRequest, found: OpenMap, keys: list[Key]
    ) -> None:
        schema = found.schema
        write = StagedWrite(self._core, self._peers, self._commits, schema)
        await self._commits.turn(schema.map_id, write.job)
        try:
            olds = await self.read(found, keys)
            await write.commit(removed_keys=tuple(keys), in_turn=True)
        finally:
            self._commits.end_turn(schema.map_id, write.job)
        self.tell(call, found, olds, message.want_old)

    # --- sizes ---------------------------------------------------------------------------------

    def on_size(self, call: Call) -> None:
        message = user_pb2.MapName.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self.open(message.name)
        if isinstance(call, ForwardedCall):
            self._core.serve(call, self._size_here(call, found))
        else:
            self._core.serve(call, self._size(call, message, found))

    async def _size_here(self, call: Call, found: OpenMap) -> None:
        at, view = self._core.timestamp(), self._core.view
        await self._commits.settled(found.schema.map_id, at)
        self._require_view(view)
        count = found.store.size(at)
        call.reply(RpcType.MAP_SIZE, user_pb2.Count(count=count, context=self._core.context()))

    async def _size(self, call: Call, message: user_pb2.MapName, found: OpenMap) -> None:
        core, view = self._core, self._core.view
        message.context.CopyFrom(core.context())
        total = 0
        if not found.schema.replicated:
            core.require_all_reached()
            for member in core.view.members:
                if member.number != core.number:
                    body = await self._forwarding.ask(member.number, RpcType.MAP_SIZE, message)
                    total += user_pb2.Count.FromString(body).count
        at = core.timestamp()
        await self._commits.settled(found.schema.map_id, at)
        self._require_view(view)
        total += found.store.size(at)
        call.reply(RpcType.MAP_SIZE, user_pb2.Count(count=total, context=core.context()))

    def _require_view(self, view: View) -> None:
        """Raises ViewChanged: rows that have moved meanwhile would count twice, or not at all."""
        if self._core.view is not view:
            raise ViewChanged("the view has changed while entries were counted", hint="Try again.")

    # --- shared -------------------------------------------------------------------------------

    def owner(self, found: OpenMap, keys: Sequence[Key], call: Call) -> int | None:
        """The one member that owns all keys; None if there are several."""
        return self.owner_of(found, list(map(found.router.key_partition, keys)), call)

    def serves_alone(self, found: OpenMap, keys: Sequence[Key], at: int) -> bool:
        """Whether this member may read the keys at ``at`` in its own store, at once."""
        core = self._core
        if not core.readiness.ready or core.readiness.holds:
            return False
        if not found.schema.replicated:
            owners, partition = core.view.owners, found.router.key_partition
            if any(owners[partition(key)] != core.number for key in keys):
                return False
        return not (found.store.pending_at_or_below(at) and self.depend(found, keys, at))

    def owner_of(self, found: OpenMap, partitions: Sequence[int], call: Call) -> int | None:
        """The same for the partitions of the keys."""
        core = self._core
        if found.schema.replicated or not partitions:
            return core.number
        owners = core.view.owners
        owner: int | None = owners[partitions[0]]
        if len(partitions) > 1 and any(owners[partition] != owner for partition in partitions):
            owner = None
        if owner == core.number:
            if core.readiness.holds:
                core.readiness.require_partitions(partitions)
        elif isinstance(call, ForwardedCall):
            raise ViewChanged(f"member {core.number} does not own the keys of the request")
        return owner

    def tell(self, call: Call, found: OpenMap, olds: Sequence[Row | None], want_old: bool) -> None:
        """Answer with the rows of before: themselves when asked for, otherwise empty ones."""
        rows: list[bytes | None] = []
        for old in olds:
            if old is None:
                rows.append(None)
            else:
                rows.append(found.rows.pack(old) if want_old else b"")
        call.reply(call.rpc_type, encode_rows(rows, self._core.encoded_context()))

    def depend(self, found: OpenMap, keys: Sequence[Key], at: int) -> bool:
        """Something of the map is undecided at or below ``at``: whether these keys depend on it.
        Raises PartitionsUnreachable when it is in doubt."""
        if found.store.job_pending:
            self._core.require_decidable(found.schema.map_id)
            return True
        key = self._transactions.awaited_key(found.schema.map_id, keys, at)
        if key is not None:
            self._transactions.require_decidable(found.schema, [key])
        return key is not None

    def _later(self, found: OpenMap, again: Callable[[], None], call: Call) -> None:
        """Call ``again`` when the prepared write of the map is decided."""
        retry = self._retry(found, again, call)
        self._commits.when_settled(found.schema.map_id, retry)

    def _retry(self, found: OpenMap, again: Callable[[], None], call: Call) -> Callable[[], None]:
        def retry() -> None:
            try:
                self._core.store(found.schema.map_id, found.schema.version)
                again()
            except RemudaError as error:
                call.fail(error)
            except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
                call.fail(bug(error, f"request {call.rpc_type}"))

        return retry
