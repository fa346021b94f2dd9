"""Map operations inside a transaction: they read its write set first, then the committed rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from remuda.catalog.users import Role
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, arrays_to_rows
from remuda.datatypes.violations import duplicate_key
from remuda.errors import NotSupported, SchemaChanged
from remuda.member.base.core import Call, Core
from remuda.member.maps.changes import Change
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.member.maps.reads import read_packed
from remuda.member.maps.writes import ALWAYS, IF_ABSENT
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.open_transaction import BLIND, OpenTransaction
from remuda.member.sessions.openings import Openings
from remuda.member.sessions.session import TransactionSessions
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.point_encoding import ROWS_BEGUN, encode_rows, field
from remuda.rpc.transport import Request
from remuda.transaction.own_writes import Key, Row, canonical_key

ROWS_AT_A_TIME: Final = 2_000
"""Of a batch that is put: about 20 ms of work between two turns of the loop."""


class TransactionMaps:
    def __init__(
        self,
        core: Core,
        maps: Maps,
        sessions: TransactionSessions,
        keys: KeyReader,
        openings: Openings,
    ) -> None:
        self._core = core
        self._openings = openings
        self._maps = maps
        self._sessions = sessions
        self._keys = keys

    def _find(self, call: Call, name: str) -> OpenTransaction:
        if not isinstance(call, Request):
            raise NotSupported(
                "requests of transactions go to the member that has the transaction",
                hint="Send all requests of a transaction over the connection that began it.",
            )
        found = self._sessions.find(name, call.channel, call.user)
        found.check()
        return found

    def on_get(self, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> None:
        if message.HasField("begin"):
            self._begin(call, message, found)
            return
        transaction = self._find(call, message.transaction)
        keys = found.unpack_keys(message.keys)
        if message.known:
            transaction.note_keys(found.schema, keys)
        self._core.serve(call, self._get(call, message, transaction, found, keys))

    def _begin(self, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> None:
        """A transaction that begins with a get: served at once if this member can do it alone."""
        keys = found.unpack_keys(message.keys)
        owner = self._maps.owner(found, keys, call)
        here = owner == self._core.number and not found.schema.replicated
        transaction = self._openings.begin(call, message.begin)
        try:
            if here and self._read_alone(call, transaction, found, keys):
                return
        except BaseException:
            self._sessions.roll_back(transaction)
            raise
        self._core.serve(call, self._begun(call, transaction, found, keys))

    def _read_alone(
        self, call: Call, transaction: OpenTransaction, found: OpenMap, keys: list[Key]
    ) -> bool:
        """Read at the clock of this member, the primary of the keys; False: nothing was done."""
        snapshots, core, store = self._sessions.snapshots, self._core, found.store
        if not snapshots.may_be_loose(transaction):
            return False
        at = core.timestamp()
        if store.pending_at_or_below(at) and self._maps.depend(found, keys, at):
            return False
        snapshots.loosen(transaction, at)
        transaction.note_keys(found.schema, keys)
        self._tell_begun(call, transaction, read_packed(found, keys, at, found.rows.pack))
        return True

    async def _begun(
        self, call: Call, transaction: OpenTransaction, found: OpenMap, keys: list[Key]
    ) -> None:
        try:
            at = await self._sessions.read_at(transaction)
            rows = await self.read(transaction, found.schema, keys, at)
        except BaseException:
            self._sessions.roll_back(transaction)
            raise
        pack = found.rows.pack
        self._tell_begun(call, transaction, [None if row is None else pack(row) for row in rows])

    def _tell_begun(
        self, call: Call, transaction: OpenTransaction, rows: list[bytes | None]
    ) -> None:
        status = self._openings.status(transaction)
        if transaction.loose:
            status.snapshot = transaction.snapshot
        body = encode_rows(rows, self._core.encoded_context())
        call.reply(call.rpc_type, body + field(ROWS_BEGUN, status.SerializeToString()))

    async def _get(
        self,
        call: Call,
        message: user_pb2.KeysRequest,
        transaction: OpenTransaction,
        found: OpenMap,
        keys: list[Key],
    ) -> None:
        if transaction.locks_reads:
            async with transaction.turn:
                rows = await self._locked(transaction, found.schema, keys)
        else:
            at = await self._sessions.read_at(transaction)
            rows = await self.read(transaction, found.schema, keys, at)
        self._tell(call, found, rows, with_rows=not message.keys_only)

    async def _locked(
        self, transaction: OpenTransaction, schema: MapSchema, keys: Sequence[Key]
    ) -> list[Row | None]:
        """Lock the keys, and read them as the transaction sees them."""
        self._sessions.still_open(transaction)
        owns = [transaction.own(schema.map_id, key) for key in keys]
        others = [key for key, (written, _) in zip(keys, owns, strict=True) if not written]
        stored = await self._sessions.lock_and_read(transaction, schema, others)
        await self._sessions.lock(transaction, schema, keys)
        transaction.asked = True
        rest = iter(stored)
        return [row if written else next(rest) for written, row in owns]

    async def _to_write(
        self, transaction: OpenTransaction, schema: MapSchema, keys: Sequence[Key]
    ) -> tuple[list[Row | None], int]:
        """Keys that are about to be written, as the transaction sees them, and the timestamp after
        which others must not change them; BLIND: that is known."""
        if transaction.pessimistic:
            return await self._locked(transaction, schema, keys), BLIND
        at = await self._sessions.read_at(transaction)
        return await self.read(transaction, schema, keys, at), at

    async def read(
        self, transaction: OpenTransaction, schema: MapSchema, keys: Sequence[Key], at: int
    ) -> list[Row | None]:
        """As the transaction sees them; they count as read."""
        transaction.note_keys(schema, keys)
        known: dict[Key, Row | None] = {}
        for key in keys:
            written, row = transaction.own(schema.map_id, key)
            if written:
                known[canonical_key(key)] = row
        others = [key for key in keys if canonical_key(key) not in known]
        stored = await self._keys.rows(schema, others, at)
        for key, row in zip(others, stored, strict=True):
            known[canonical_key(key)] = row
        return [known[canonical_key(key)] for key in keys]

    def on_put(self, call: Call, message: user_pb2.PutRequest, found: OpenMap) -> None:
        transaction = self._find(call, message.transaction)
        _require_no_ttl(message)
        transaction.check_writable("a put")
        rows = found.unpack_rows(message.rows)
        self._core.serve(call, self._put(call, message, transaction, found, rows))

    async def _put(
        self,
        call: Call,
        message: user_pb2.PutRequest,
        transaction: OpenTransaction,
        found: OpenMap,
        rows: list[Row],
    ) -> None:
        """As if the rows were put one after the other."""
        schema, condition = found.schema, message.condition
        blind = condition == ALWAYS and not message.want_old
        async with transaction.turn:
            since, before = BLIND, dict[Key, Row | None]()
            keys = [found.key_of(row) for row in rows]
            if not blind:
                there, since = await self._to_write(transaction, schema, keys)
                before = {canonical_key(k): row for k, row in zip(keys, there, strict=True)}
            elif transaction.pessimistic:
                await self._sessions.lock(transaction, schema, keys)
            chosen: dict[Key, Row | None] = {}
            olds: list[Row | None] = []
            for row in rows:
                key = canonical_key(found.key_of(row))
                old = chosen.get(key, before.get(key))
                olds.append(old)
                if condition == ALWAYS or (old is None) == (condition == IF_ABSENT):
                    chosen[key] = row
            self._write(transaction, schema, chosen, since)
        self._tell(call, found, olds, with_rows=message.want_old)

    def take_unsent(
        self, call: Call, transaction: OpenTransaction, message: user_pb2.TransactionEnd
    ) -> None:
        """The reads and puts that its client has made by itself, before the commit. Raises what
        gets and puts of it would have raised."""
        access = self._core.access
        for read in message.reads:
            found = self._maps.open(read.map, read.map_id, read.schema_version)
            access.require(call.user, Role.READ, found.schema.name)
            transaction.note_keys(found.schema, found.unpack_keys(read.keys))
        for put in message.puts:
            found = self._maps.open(put.map, put.map_id, put.schema_version)
            access.require(call.user, Role.WRITE, found.schema.name)
            transaction.check_writable("a put")
            rows: dict[Key, Row | None] = {}
            for row in found.unpack_rows(put.rows):
                rows[found.key_of(row)] = row
            self._write(transaction, found.schema, rows, BLIND)

    def on_remove(self, call: Call, message: user_pb2.KeysRequest, found: OpenMap) -> None:
        transaction = self._find(call, message.transaction)
        transaction.check_writable("a removal")
        keys = found.unpack_keys(message.keys)
        self._core.serve(call, self._remove(call, message, transaction, found, keys))

    async def _remove(
        self,
        call: Call,
        message: user_pb2.KeysRequest,
        transaction: OpenTransaction,
        found: OpenMap,
        keys: list[Key],
    ) -> None:
        async with transaction.turn:
            olds, at = await self._to_write(transaction, found.schema, keys)
            gone: dict[Key, Row | None] = {
                key: None for key, old in zip(keys, olds, strict=True) if old is not None
            }
            self._write(transaction, found.schema, gone, at)
        self._tell(call, found, olds, with_rows=message.want_old)

    def on_change(
        self, call: Call, name: str, found: OpenMap, keys: list[Key], change: Change, *,
        with_rows: bool,
    ) -> None:  # fmt: skip
        """A write that depends on what the entries are."""
        transaction = self._find(call, name)
        transaction.check_writable("a change of entries")
        work = self._change(call, transaction, found, keys, change, with_rows=with_rows)
        self._core.serve(call, work)

    async def _change(
        self,
        call: Call,
        transaction: OpenTransaction,
        found: OpenMap,
        keys: list[Key],
        change: Change,
        *,
        with_rows: bool,
    ) -> None:
        async with transaction.turn:
            there, at = await self._to_write(transaction, found.schema, keys)
            written, answer = change(range(len(keys)), there)
            chosen = {canonical_key(key): row for key, row in written.items()}
            self._write(transaction, found.schema, chosen, at)
        self._tell(call, found, answer, with_rows=with_rows)

    def on_put_batch(self, call: Call) -> None:
        message = user_pb2.PutBatchRequest.FromString(call.pbody)
        transaction = self._find(call, message.transaction)
        _require_no_ttl(message)
        transaction.check_writable("a put")
        found = self._maps.open(message.map, message.map_id, message.schema_version)
        batches = arrow_stream.decode(call.dbody)
        entered = self._core.constraints.entered
        batches = [entered(batch, found.schema) for batch in batches]
        self._core.serve(call, self._put_batch(call, transaction, found, batches))

    async def _rows(
        self, found: OpenMap, batches: Sequence[pa.RecordBatch]
    ) -> dict[Key, Row | None]:
        """By key; some at a time, as others wait meanwhile. Raises UniqueViolation."""
        types = [column.type for column in found.schema.columns]
        rows: dict[Key, Row | None] = {}
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS_AT_A_TIME):
                for row in arrays_to_rows(batch.slice(start, ROWS_AT_A_TIME).columns, types):
                    key = canonical_key(found.key_of(row))
                    if key in rows:
                        raise duplicate_key(found.schema, key)
                    rows[key] = row
                await asyncio.sleep(0)
        return rows

    async def _put_batch(
        self,
        call: Call,
        transaction: OpenTransaction,
        found: OpenMap,
        batches: Sequence[pa.RecordBatch],
    ) -> None:
        async with transaction.turn:
            rows = await self._rows(found, batches)
            if transaction.pessimistic:
                await self._sessions.lock(transaction, found.schema, rows)
            self._write(transaction, found.schema, rows, BLIND)
        count = user_pb2.Count(count=len(rows), context=self._core.context())
        call.reply(RpcType.MAP_PUT_BATCH, count)

    def _write(
        self,
        transaction: OpenTransaction,
        schema: MapSchema,
        entries: dict[Key, Row | None],
        since: int,
    ) -> None:
        """Raises SchemaChanged, LimitExceeded, and the errors of ``check`` and ``still_open``."""
        transaction.check()
        self._sessions.still_open(transaction)
        store = self._core.store(schema.map_id, schema.version)
        if store.schema.version != schema.version:
            raise SchemaChanged(f'map "{schema.name}" has changed')
        transaction.asked = True
        transaction.write(schema.map_id, schema.version, entries, since)

    def _tell(
        self,
        call: Call,
        found: OpenMap,
        rows: Sequence[Sequence[PhysicalValue] | None],
        *,
        with_rows: bool,
    ) -> None:
        packed = [
            None if row is None else found.rows.pack(row) if with_rows else b"" for row in rows
        ]
        call.reply(call.rpc_type, encode_rows(packed, self._core.encoded_context()))


def _require_no_ttl(message: user_pb2.PutRequest | user_pb2.PutBatchRequest) -> None:
    if message.HasField("ttl"):
        raise NotSupported(
            "an entry that is put in a transaction has the TTL of its map",
            hint="Put it outside of the transaction, or use set_ttl after its commit.",
        )
