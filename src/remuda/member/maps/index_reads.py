"""The short way of a SELECT that a secondary index serves with few rows: one message to each member
that may have some, no operators, no fragments, no channels (decision 0072).

The initiator reads at its own clock T, without asking for those of others first (design rule 15). A
member whose clock is past T answers only if none of the entries that the index names has changed
after T, or may still change: then the state at T is that of now, so nothing is missing that was
committed before the statement came. A member that cannot
answer so sends the whole statement the general way, which has a round of clocks, waits and streams.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.limits import MIB
from remuda.member.base.core import Core, bug
from remuda.member.base.peers import Peers
from remuda.member.maps.index_asks import IndexAsk, Wanted, exactly
from remuda.member.maps.maps import Maps
from remuda.member.transactions.transactions import Transactions
from remuda.planner.index_read import IndexRead
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.packing import RowPacker, packer
from remuda.rpc.transport import Request
from remuda.session.planning import PlannedQuery
from remuda.storage.indexes.few_rows import Declined
from remuda.storage.indexes.keys import Span
from remuda.storage.indexes.sorted import SortedIndex
from remuda.storage.indexes.tail import inside
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.own_writes import Row

VERSIONS_MAX: Final = 256
"""A member that finds more of them has others stream the rows."""
SIZE_MAX: Final = MIB // 4
"""Bytes of the rows of one member, packed; more are streamed."""
PATIENCE: Final = 0.5
"""Seconds until a statement whose members do not answer goes the general way."""
CROWDED_SKIPS: Final = 15
"""So often a statement that found too many rows goes the general way at once."""
CROWDED_KEPT: Final = 1000
ASKS_KEPT: Final = 1000
INDEX_READ: Final = RpcType.INDEX_READ
"""Read once: an enumeration's attribute is a slow lookup."""

Answer = Callable[[list[Row] | RemudaError], None]


class IndexReads:
    def __init__(self, core: Core, peers: Peers, maps: Maps, transactions: Transactions) -> None:
        self._core = core
        self._peers = peers
        self._maps = maps
        self._pending = transactions.pending
        self._count = core.measures.by_fingerprint.read
        self._packers: dict[tuple[int, int, tuple[int, ...]], RowPacker] = {}
        self._crowded: OrderedDict[str, int] = OrderedDict()
        """By text: how often it is still left out."""
        self._asked: dict[Asked, None] = {}
        self._asks: dict[int, IndexAsk] = {}
        """By the identity of the read, which is kept with it: hashing one takes long."""

    # --- the initiator ------------------------------------------------------------------------

    def run(
        self,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        answer: Answer,
        general: Callable[[], None],
        *,
        text: str,
        user: str,
    ) -> bool:
        """Call ``answer`` with the columns that the read needs of each entry that was found, at
        once or when the others have answered; or else ``general``, if the statement must go the
        general way after all. False: neither, it is not for this path."""
        core, read = self._core, query.indexed
        assert read is not None
        if query.locking or not core.readiness.ready or core.view.absent:
            return False
        if self._crowded and self.leaves_out(text):
            return False

        def settled(rows: list[Row] | Declined | RemudaError) -> None:
            if isinstance(rows, list):
                answer(rows)
                return
            if isinstance(rows, Declined):
                self.declined(rows, text)
            general()

        declined = self.begin(read, values, core.timestamp(), read.fetched, settled)
        if declined is not None:
            self.declined(declined, text)
            return False
        self._count(text, user)
        return True

    def begin(
        self,
        read: IndexRead,
        values: tuple[PhysicalValue, ...],
        at: int,
        positions: tuple[int, ...],
        settled: Callable[[list[Row] | Declined | RemudaError], None],
    ) -> Declined | None:
        """Read the entries at ``at``, as this member is ready. ``positions``: the columns that are
        wanted, first those that ``read`` fetches. ``settled`` is called with them, at once or when
        the others have answered, or with why there are none. Declined: it is not called."""
        core = self._core
        members = core.view.primaries if read.gathered else (core.number,)
        if core.lost and not core.lost.keys().isdisjoint(members):
            return Declined.UNREADY  # the other path waits
        store = self._maps.open(read.map_name, read.map_id, read.schema_version).store
        index = store.indexes.by_id.get(read.access.index_id)
        if not isinstance(index, SortedIndex):
            return Declined.UNCOVERED
        ask = self._ask_of(read, len(values))
        spans = ask.spans(index.form, values)
        if spans is None:
            return Declined.UNCOVERED
        wanted = ask.wanted(values)
        mine: list[Row] = []
        if core.number in members:
            found = self._here(store, read.access.index_id, spans, at, positions, newest=False)
            if isinstance(found, Declined):
                return found
            mine = found
        others = [number for number in members if number != core.number]
        if not others:
            settled(exactly(mine, wanted))
            return None

        def ended(rows: list[Row] | Declined | RemudaError) -> None:
            self._asked.pop(asked, None)
            settled(exactly(rows, wanted) if isinstance(rows, list) else rows)

        asked = Asked(core, at, mine, len(others), self._packer(store, positions), ended)
        self._asked[asked] = None
        message = control_pb2.IndexRead(
            context=core.context(),
            map_id=read.map_id,
            schema_version=read.schema_version,
            index_id=read.access.index_id,
            read_timestamp=at,
            positions=positions,
        )
        _send(message, spans)
        for number in others:
            try:
                self._peers.request_nowait(number, INDEX_READ, message, (), asked.answered)
            except RemudaError as error:  # its connection has just broken
                asked.answered(error)
        return None

    def wanted(self, read: IndexRead, values: tuple[PhysicalValue, ...]) -> Wanted | None:
        """See ``IndexAsk.wanted``."""
        return self._ask_of(read, len(values)).wanted(values)

    def _ask_of(self, read: IndexRead, parameters: int) -> IndexAsk:
        known = self._asks.get(id(read))
        if known is None:
            if len(self._asks) >= ASKS_KEPT:
                self._asks.clear()
            known = self._asks[id(read)] = IndexAsk(read, parameters)
        return known

    def leaves_out(self, text: str) -> bool:
        """Whether the statement has found too many rows before."""
        left = self._crowded.get(text)
        if left is None:
            return False
        if left > 1:
            self._crowded[text] = left - 1
        else:
            del self._crowded[text]
        return True

    def declined(self, why: Declined, text: str) -> None:
        """The statement has not been answered."""
        if why is Declined.CROWDED:
            self._crowded[text] = CROWDED_SKIPS
            if len(self._crowded) > CROWDED_KEPT:
                self._crowded.popitem(last=False)

    def oldest_read(self) -> int | None:
        """The lowest timestamp that others are asked to read at."""
        return min((asked.at for asked in self._asked), default=None)

    # --- every member -------------------------------------------------------------------------

    def on_read(self, request: Request) -> None:
        """INDEX_READ. Raises what ``observe_member`` raises, SchemaChanged, SnapshotTooOld."""
        core = self._core
        message = control_pb2.IndexRead.FromString(request.pbody)
        core.observe_member(message.context)
        answer = control_pb2.IndexRows(context=core.context())
        positions = tuple(message.positions)
        store = core.store(message.map_id, message.schema_version)
        spans = _received(message)
        at = message.read_timestamp
        rows = self._here(store, message.index_id, spans, at, positions, newest=True)
        if isinstance(rows, Declined):
            answer.declined = rows
        elif rows:
            packed = list(map(self._packer(store, positions).pack, rows))
            if sum(map(len, packed)) > SIZE_MAX:
                answer.declined = Declined.CROWDED
            else:
                answer.rows.extend(packed)
        request.reply(INDEX_READ, answer)

    def _here(
        self,
        store: MapStore,
        index_id: int,
        spans: Sequence[Span],
        at: int,
        positions: tuple[int, ...],
        *,
        newest: bool,
    ) -> list[Row] | Declined:
        """The rows of this member at ``at``; ``newest``: only if they are those of now as well."""
        core = self._core
        if not core.readiness.ready or at < store.mixed_until:
            return Declined.UNREADY
        until = FOREVER - 1 if newest else at
        if store.pending_at_or_below(until) and self._awaits(store, index_id, spans, until):
            return Declined.NEWER
        now = core.timestamp() if newest else None
        found = store.indexes.few(at, positions, index_id, spans, VERSIONS_MAX, now)
        if not isinstance(found, Declined):
            store.counters.looked_up += len(found)
        return found

    def _awaits(self, store: MapStore, index_id: int, spans: Sequence[Span], until: int) -> bool:
        """Whether a write that is not decided, with a timestamp at or below ``until``, may concern
        entries of ``spans``: the one that it stores, or the one that it replaces or removes."""
        index = store.indexes.by_id.get(index_id)
        if index is None or store.job_pending:
            return True
        form, now = index.form, self._core.timestamp()
        for write in self._pending.awaited_writes(store.schema.map_id, until):
            if write.schema_version != store.schema.version:
                return True
            for row in (write.row, store.get(write.key, now)):
                if row is not None and inside(form.key([row[p] for p in form.positions]), spans):
                    return True
        return False

    def _packer(self, store: MapStore, positions: tuple[int, ...]) -> RowPacker:
        schema = store.schema
        known = self._packers.get((schema.map_id, schema.version, positions))
        if known is None:
            if len(self._packers) > CROWDED_KEPT:
                self._packers.clear()
            known = packer(tuple(schema.columns[position].type for position in positions))
            self._packers[schema.map_id, schema.version, positions] = known
        return known


class Asked:
    """One statement that other members are asked for. ``settled`` is called once: with all rows, or
    with why there are none."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        at: int,
        rows: list[Row],
        missing: int,
        form: RowPacker,
        settled: Callable[[list[Row] | Declined | RemudaError], None],
    ) -> None:
        self._core = core
        self.at = at
        self._rows = rows
        self._missing = missing
        self._form = form
        self._settled: Callable[[list[Row] | Declined | RemudaError], None] | None = settled
        late = Declined.UNREADY
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._end, late)

    def answered(self, reply: Reply | RemudaError) -> None:
        """One member has."""
        if self._settled is None:
            return
        if isinstance(reply, RemudaError):
            self._end(reply)
            return
        try:
            answer = control_pb2.IndexRows.FromString(reply.pbody)
            self._core.observe(answer.context)
            if answer.declined:
                self._end(Declined(answer.declined))
                return
            self._rows += map(self._form.unpack, answer.rows)
        except RemudaError as error:
            self._end(error)
            return
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            self._end(bug(error, "rows of a secondary index"))
            return
        self._missing -= 1
        if not self._missing:
            self._end(self._rows)

    def _end(self, outcome: list[Row] | Declined | RemudaError) -> None:
        settled, self._settled = self._settled, None
        if settled is not None:
            self._timer.cancel()
            settled(outcome)


def _send(message: control_pb2.IndexRead, spans: Sequence[Span]) -> None:
    for low, high in spans:
        if isinstance(low, int) and isinstance(high, int):
            message.words.extend((low, high - 1))
        elif isinstance(low, bytes) and isinstance(high, bytes):
            message.bounds.extend((low, high))


def _received(message: control_pb2.IndexRead) -> list[Span]:
    bounds = list(message.bounds)
    if bounds:
        return list(zip(bounds[::2], bounds[1::2], strict=True))
    words = list(message.words)
    return [(low, high + 1) for low, high in zip(words[::2], words[1::2], strict=True)]
