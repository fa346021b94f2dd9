"""Writes that depend on what the entry is: computed values, and writes of what is expected.

They run at the primary of the key, decided in the step that prepares them
(``member.transactions.small_writes``), so nothing comes between what they have read and what they
write.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from remuda.errors import InputError, NotSupported, ProtocolError
from remuda.member.base.core import Call, Core
from remuda.member.base.forwarding import Forwarding
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import StagedWrite
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.member.maps.writes import one_of_several
from remuda.member.transactions.small_writes import PAUSE
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.session.client_session import ClientSession
from remuda.session.entry_changes import EntryChanges
from remuda.storage.maps.entry_version import entry_version
from remuda.transaction.own_writes import Key, Row

Changed: TypeAlias = tuple[dict[Key, Row | None], list[Row | None]]
"""The rows to write, by key (None: removed), and the rows to answer with."""
Before: TypeAlias = Sequence[Row | None]
Change: TypeAlias = Callable[[Sequence[int], Before], Changed]
"""From places in the request and the rows that are there to the rows that become of them."""
AnyChange: TypeAlias = user_pb2.ComputeRequest | user_pb2.CheckedWrite

MAP_COMPUTE = RpcType.MAP_COMPUTE
MAP_GET_VERSIONED = RpcType.MAP_GET_VERSIONED
MAP_CHECKED_WRITE = RpcType.MAP_CHECKED_WRITE
_BY_KEY = frozenset({"keys", "rows", "versions", "expected"})
"""The fields of requests that have one value for each key, or none."""


class ChangesInTransaction(Protocol):
    """``member.sessions.maps``."""

    def on_change(
        self, call: Call, name: str, found: OpenMap, keys: list[Key], change: Change, *,
        with_rows: bool,
    ) -> None: ...  # fmt: skip


class MapChanges(Wing):
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, forwarding: Forwarding, maps: Maps
    ) -> None:
        self._core = core
        self._forwarding = forwarding
        self._peers = peers
        self._commits = commits
        self._maps = maps
        self.known = EntryChanges()
        self._transactional: ChangesInTransaction | None = None

    def serve_transactions(self, served: ChangesInTransaction) -> None:
        """Requests in transactions go to ``served``."""
        self._transactional = served

    def routes(self) -> Routes:
        return Routes(
            calls={
                MAP_COMPUTE: self.on_compute,
                MAP_GET_VERSIONED: self.on_get_versioned,
                MAP_CHECKED_WRITE: self.on_checked_write,
            }
        )

    # --- computed values ----------------------------------------------------------------------

    def on_compute(self, call: Call) -> None:
        message = user_pb2.ComputeRequest.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self._maps.open(message.map, message.map_id, message.schema_version)
        keys = found.unpack_keys(message.keys)
        inserted = found.unpack_rows(message.rows)
        _same_length("rows", inserted, keys)
        for row, key in zip(inserted, keys, strict=False):
            if found.key_of(row) != key:
                raise InputError("a row to be inserted has another key than its entry")
        change = self._computing(call, message, found, keys, inserted)
        self._serve(call, message, found, keys, change, with_rows=True)

    def _computing(
        self,
        call: Call,
        message: user_pb2.ComputeRequest,
        found: OpenMap,
        keys: Sequence[Key],
        inserted: Sequence[Row],
    ) -> Change:
        compute = self.known.computing(
            found.schema, message.assignments, message.condition, message.parameter_types,
            message.parameters, self._core.world.clock.wall_micros(), ClientSession(user=call.user),
        )  # fmt: skip
        want_old = message.want_old

        def change_one(key: Key, place: int, row: Row | None) -> Changed:
            if row is not None:
                new = compute((row,))[0]
                if new is not None:
                    found.check.row(new)
                    new = found.completed([new])[0]
            else:
                new = inserted[place] if inserted else None
            if new is None:
                return {}, [None]
            return {key: new}, [row if want_old else new]

        def change(places: Sequence[int], before: Before) -> Changed:
            if len(places) == 1:
                return change_one(keys[places[0]], places[0], before[0])
            here = {keys[p]: (p, row) for p, row in zip(places, before, strict=True)}
            there = [(key, row) for key, (_, row) in here.items() if row is not None]
            written: dict[Key, Row | None] = {}
            computed: list[tuple[Key, Row]] = []
            for (key, _), row in zip(there, compute([row for _, row in there]), strict=True):
                if row is not None:
                    found.check.row(row)
                    computed.append((key, row))
            rows = found.completed([row for _, row in computed])
            written.update(zip((key for key, _ in computed), rows, strict=True))
            if inserted:
                for key, (place, row) in here.items():
                    if row is None:
                        written[key] = inserted[place]
            answer = [
                here[keys[p]][1] if want_old and keys[p] in written else written.get(keys[p])
                for p in places
            ]
            return written, answer

        return change

    # --- writes of what is expected -----------------------------------------------------------

    def on_checked_write(self, call: Call) -> None:
        message = user_pb2.CheckedWrite.FromString(call.pbody)
        self._core.observe_client(message.context)
        found = self._maps.open(message.map, message.map_id, message.schema_version)
        keys = found.unpack_keys(message.keys)
        rows = found.unpack_rows(message.rows)
        expected = [found.rows.unpack(packed) for packed in message.expected]
        for name, given in ("rows", rows), ("versions", message.versions), ("expected", expected):
            _same_length(name, given, keys)
        if message.transaction and message.versions:
            raise NotSupported(
                "versions of entries are not compared in a transaction",
                hint="Its commit checks that what it has read is as it was.",
            )
        change = self._checking(message, found, keys, rows, expected)
        self._serve(call, message, found, keys, change, with_rows=message.want_old)

    def _checking(
        self,
        message: user_pb2.CheckedWrite,
        found: OpenMap,
        keys: Sequence[Key],
        rows: Sequence[Row],
        expected: Sequence[Row],
    ) -> Change:
        core, schema, pack = self._core, found.schema, found.rows.pack
        versions = list(message.versions)

        def change(places: Sequence[int], before: Before) -> Changed:
            written: dict[Key, Row | None] = {}
            answer: list[Row | None] = []
            for place, old in zip(places, before, strict=True):
                key = keys[place]
                fits = old is not None and key not in written
                if fits and versions:
                    store = core.copy_of(schema.map_id, found.router.key_partition(key))
                    fits = entry_version(store, key, core.timestamp()) == versions[place]
                if fits and expected and old is not None:
                    # As bytes: NaN equals itself then.
                    fits = old == expected[place] or pack(old) == pack(expected[place])
                if fits:
                    written[key] = rows[place] if rows else None
                answer.append(old if fits else None)
            return written, answer

        return change

    # --- versions -----------------------------------------------------------------------------

    def on_get_versioned(self, call: Call) -> None:
        message = user_pb2.KeysRequest.FromString(call.pbody)
        core, maps = self._core, self._maps
        core.observe_client(message.context)
        found = maps.open(message.map, message.map_id, message.schema_version)
        keys = found.unpack_keys(message.keys)
        if message.transaction:
            raise NotSupported(
                "entries have no version in a transaction",
                hint="Its commit checks that what it has read is as it was: use get.",
            )
        if self.passed_on(call, message, found, keys):
            return
        at = core.timestamp()
        if found.store.pending_at_or_below(at) and maps.depend(found, keys, at):
            core.serve(call, self.again(call))
            return
        answer = user_pb2.RowsResponse(context=core.context())
        for key in keys:
            entry, row = answer.rows.add(), found.store.get(key, at)
            version = entry_version(found.store, key, at)
            if row is not None and version is not None:
                entry.row, entry.version = found.rows.pack(row), version
        call.reply(MAP_GET_VERSIONED, answer)

    async def again(self, call: Call) -> None:
        """Once more, when what is undecided now may be decided."""
        await asyncio.sleep(PAUSE)
        self._maps.serve(call)

    # --- shared -------------------------------------------------------------------------------

    def _serve(
        self,
        call: Call,
        message: AnyChange,
        found: OpenMap,
        keys: list[Key],
        change: Change,
        *,
        with_rows: bool,
    ) -> None:
        if message.transaction:
            if self._transactional is None:
                raise NotSupported(
                    f"member {self._core.number} is starting", hint="Try again in a moment."
                )
            self._transactional.on_change(
                call, message.transaction, found, keys, change, with_rows=with_rows
            )
            return

        def tell(rows: list[Row | None]) -> None:
            self._maps.tell(call, found, rows, with_rows)

        if found.schema.replicated:
            self._core.serve(call, self._change_replicated(found, keys, change, tell))
        elif not self.passed_on(call, message, found, keys):
            self._maps.writes.change(call, found, keys, change, tell, self._maps.serve)

    def passed_on(
        self,
        call: Call,
        message: AnyChange | user_pb2.KeysRequest,
        found: OpenMap,
        keys: list[Key],
    ) -> bool:
        """Whether other members have part in the answer. Each owner decides about its own keys."""
        owner = self._maps.owner(found, keys, call)
        if owner is None:
            self._core.serve(call, self._scatter(call, message, found, keys))
        elif owner != self._core.number:
            self._forwarding.pass_on(call, owner)
        return owner != self._core.number

    async def _scatter(
        self,
        call: Call,
        message: AnyChange | user_pb2.KeysRequest,
        found: OpenMap,
        keys: list[Key],
    ) -> None:
        """Ask each owner for its keys, and answer in the order of the request."""
        owners, groups = self._core.view.owners, dict[int, list[int]]()
        for place, key in enumerate(keys):
            groups.setdefault(owners[found.router.key_partition(key)], []).append(place)
        answer = user_pb2.RowsResponse(context=self._core.context())
        entries = [answer.rows.add() for _ in keys]
        for served, (owner, places) in enumerate(groups.items()):
            part = copy.deepcopy(message)
            for name in _BY_KEY & set(message.DESCRIPTOR.fields_by_name):
                values = getattr(message, name)
                if values:
                    del getattr(part, name)[:]
                    getattr(part, name).extend(values[place] for place in places)
            with one_of_several(served and call.rpc_type != MAP_GET_VERSIONED):
                body = await self._maps.ask(owner, call.rpc_type, part)
            rows = user_pb2.RowsResponse.FromString(body).rows
            for place, row in zip(places, rows, strict=True):
                entries[place].CopyFrom(row)
        call.reply(call.rpc_type, answer)

    async def _change_replicated(
        self,
        found: OpenMap,
        keys: list[Key],
        change: Change,
        tell: Callable[[list[Row | None]], None],
    ) -> None:
        """In the map's turn, on all members."""
        write = StagedWrite(self._core, self._peers, self._commits, found.schema)
        await self._commits.turn(found.schema.map_id, write.job)
        try:
            written, answer = change(range(len(keys)), await self._maps.read(found, keys))
            rows = [row for row in written.values() if row is not None]
            removed = tuple(key for key, row in written.items() if row is None)
            try:
                if rows:
                    await write.add(found.batch(rows))
                if written:
                    await write.commit(removed_keys=removed, in_turn=True)
            except BaseException:
                write.abort()
                raise
        finally:
            self._commits.end_turn(found.schema.map_id, write.job)
        tell(answer)


def _same_length(name: str, given: Sequence[object], keys: Sequence[Key]) -> None:
    """Raises ProtocolError."""
    if given and len(given) != len(keys):
        raise ProtocolError(f"the request has {len(keys)} keys and {len(given)} {name}")
