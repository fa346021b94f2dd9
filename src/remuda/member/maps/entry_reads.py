"""Reads of one entry that another member owns, for PostgreSQL's clients: one message there and back
(ENTRY_READ), and the owner writes the entry as the client receives it. The member that has the
client hands the bytes on.

The owner answers only if nothing undecided concerns its map, and if it serves all that its view
gives it. Otherwise it declines, and the read goes the way of a get (``Maps.read``), which waits and
follows the key from view to view. So does a read whose answer is late or lost, or that meets an
owner in another view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from remuda.errors import MemberUnavailable, RemudaError
from remuda.member.base.core import Core, bug
from remuda.member.base.peers import Peers
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.postgres.rows import RowForm
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.point_encoding import encode_entry_read, encode_entry_row
from remuda.rpc.transport import Request
from remuda.transaction.own_writes import Key, Row

ENTRY_READ: Final = RpcType.ENTRY_READ
PATIENCE: Final = 0.5
"""Seconds that an owner has at least; after twice as many the read has gone the other way."""
WRITERS_MAX: Final = 1000
DECLINED: Final = control_pb2.EntryRow(declined=True).SerializeToString()

Writer = Callable[[Row], bytes]
OnEntry = Callable[[bytes | RemudaError | None], None]
"""Called once with the DataRow message; None: there is no such entry."""


class EntryReads:
    def __init__(self, core: Core, peers: Peers, maps: Maps) -> None:
        self._core = core
        self._peers = peers
        self._maps = maps
        self._writers: dict[tuple[int, int, bytes], Writer] = {}
        self._asked: dict[int, _Asked] = {}
        self._number = 0
        self._timed = False

    # --- the member that has the client -------------------------------------------------------

    def ask(self, owner: int, found: OpenMap, key: Key, form: bytes, answer: OnEntry) -> None:
        """The entry of ``key``, in the form of a serialized ``EntryForm``."""
        self._number = number = self._number + 1
        self._asked[number] = asked = _Asked(self, number, found, key, form, answer)
        if not self._timed:
            self._timed = True
            asyncio.get_running_loop().call_later(PATIENCE, self._tick)
        schema = found.schema
        message = encode_entry_read(
            self._core.encoded_context(), schema.map_id, schema.version, found.keys.pack(key), form
        )
        self._peers.request_nowait(owner, ENTRY_READ, message, (), asked.answered)

    def _tick(self) -> None:
        """One timer for all: a timer for each read costs more than the rest of it."""
        for asked in list(self._asked.values()):
            if asked.old:
                asked.answered(MemberUnavailable("no answer"))
            asked.old = True
        self._timed = bool(self._asked)
        if self._timed:
            asyncio.get_running_loop().call_later(PATIENCE, self._tick)

    def received(self, asked: _Asked, reply: Reply | RemudaError) -> None:
        del self._asked[asked.number]
        if not isinstance(reply, RemudaError):
            try:
                message = control_pb2.EntryRow.FromString(reply.pbody)
                self._core.observe_clock(message.clock)
            except RemudaError as error:
                asked.answer(error)
                return
            except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
                asked.answer(bug(error, "the answer to a read by key"))
                return
            if not message.declined:
                asked.answer(message.row or None)
                return
        self._core.spawn(self._read(asked), "entry read")

    async def _read(self, asked: _Asked) -> None:
        found = asked.found
        row: bytes | None = None
        try:
            (entry,) = await self._maps.read(found, [asked.key])
            if entry is not None:
                row = self._writer(found, asked.form)(entry)
        except RemudaError as error:
            asked.answer(error)
        except Exception as error:  # noqa: BLE001 (a task: nobody else would answer)
            asked.answer(bug(error, "a read by key"))
        else:
            asked.answer(row)

    # --- the owner ----------------------------------------------------------------------------

    def on_read(self, request: Request) -> None:
        """ENTRY_READ. Raises what ``observe_member`` raises."""
        core = self._core
        message = control_pb2.EntryRead.FromString(request.pbody)
        core.observe_member(message.context)
        found = self._maps.known(message.map_id, message.schema_version)
        if found is None or not core.readiness.ready:
            request.reply(ENTRY_READ, DECLINED)
            return
        key, store, at = found.keys.unpack(message.key), found.store, core.timestamp()
        owner = core.view.owners[found.router.key_partition(key)]
        if owner != core.number or store.pending_at_or_below(at):
            request.reply(ENTRY_READ, DECLINED)
            return
        row, form = store.get(key, at), message.form
        store.counters.looked_up += 1
        if row is None:
            data = None
        else:
            known = self._writers.get((message.map_id, message.schema_version, form))
            data = (known or self._writer(found, form))(row)
        request.reply(ENTRY_READ, encode_entry_row(core.clock.last, data))

    def _writer(self, found: OpenMap, form: bytes) -> Writer:
        schema = found.schema
        key = schema.map_id, schema.version, form
        writer = self._writers.get(key)
        if writer is None:
            if len(self._writers) >= WRITERS_MAX:
                self._writers.clear()
            asked = control_pb2.EntryForm.FromString(form)
            types = [schema.columns[position].type for position in asked.positions]
            made = RowForm(types, tuple(asked.formats), asked.zone)
            writer = self._writers[key] = made.writer(tuple(asked.positions))
        return writer


class _Asked:
    """A read until it is answered."""

    __slots__ = ("_reads", "answer", "form", "found", "key", "number", "old", "over")

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        reads: EntryReads,
        number: int,
        found: OpenMap,
        key: Key,
        form: bytes,
        answer: OnEntry,
    ) -> None:
        self._reads = reads
        self.number = number
        self.found = found
        self.key = key
        self.form = form
        self.answer = answer
        self.old = False
        """It has waited when the timer went off."""
        self.over = False

    def answered(self, reply: Reply | RemudaError) -> None:
        if not self.over:  # otherwise it is too late
            self.over = True
            self._reads.received(self, reply)
