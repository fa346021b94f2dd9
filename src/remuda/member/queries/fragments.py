"""The environment of fragments: the maps of this member, the data channel, and a listener."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from google.protobuf.message import Message

from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.execution.arrays import Indices
from remuda.execution.context import (
    Cursor,
    EncodedBatch,
    FragmentContext,
    FragmentProfile,
    ScanOf,
    TableCursor,
)
from remuda.execution.memory import MemoryAccount
from remuda.execution.spill import SpillSpace
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.peers import Peers
from remuda.member.queries.overlays import overlaid
from remuda.member.queries.query_start import QueryStart
from remuda.member.state.routing import Router
from remuda.query.events import Event as QueryEvent
from remuda.query.events import FragmentFinished, Progressed, QueryFailed
from remuda.query.ids import Endpoint, QueryId
from remuda.query.stream import Grant
from remuda.query.wire import encode_query_id
from remuda.rpc.messages import data_pb2
from remuda.rpc.messages.data_pb2 import RpcType
from remuda.rpc.transport import Buffers
from remuda.storage.indexes.access import Access, Probe
from remuda.storage.maps.map_store import MapStore


def statement_account(core: Core) -> MemoryAccount:
    """The resources that a statement may hold on this member: in memory, and beyond it on disk."""
    config, disk = core.config, core.world.disk
    spill = None
    if config.spill_limit:
        directory = config.spill_directory
        spill = SpillSpace(lambda: disk.scratch(directory), config.spill_limit, core.spilled)
    return MemoryAccount(config.statement_memory, spill, core.memory)


def fragment_context(
    core: Core, query: QueryId, start: QueryStart, port: DataChannelPort
) -> FragmentContext:
    """The state that the fragments of one query share on this member."""
    return FragmentContext(
        query=query,
        member=core.number,
        parameters=start.parameters,
        read_timestamp=start.read_timestamp,
        owners=core.view.owners,
        sites=start.placed,
        sources=overlaid(core, LocalSources(core), start.overlay),
        exchange=port,
        clock=core.world.clock.monotonic,
        wall=core.wall_offset(),
        partitions=start.partitions,
        analyze=start.analyze,
        batch_rows=core.config.batch_rows,
        memory=statement_account(core),
        supplied=start.supplied,
        rounds=start.rounds,
    )


class LocalSources:
    """``execution.Sources`` over this member's stores; called from any thread.

    Looking a store up and pinning its chunks are single dictionary and attribute reads under the
    interpreter's lock; everything that changes them runs on the loop.
    """

    def __init__(self, core: Core) -> None:
        """For a query that starts now, in this view."""
        self._core = core
        self._view = core.view.number
        self._own = core.primary_here

    def _of(self, store: MapStore, of: ScanOf) -> ScanOf:
        """Below the last handover of a store, rows may lie where they were and where they are: each
        member reads those of the partitions that it had in the query's view. Raises ViewChanged."""
        self._core.given_away.check(self._view, of.at)
        if of.at >= store.mixed_until or self._own is None:
            return of
        own = self._own if of.partitions is None else self._own & of.partitions
        return replace(of, partitions=own)

    def ready(self, map_id: int, at: int) -> bool:
        """Not before all rows are here that this view has given to this member: a reader with a
        timestamp of its own (a transaction, Spark) has not asked whether they are. Raises
        PartitionsUnreachable where it would wait for a write in doubt."""
        core = self._core
        if core.readiness.placing:
            return False
        store = core.stores.get(map_id)
        if store is None or not store.pending_at_or_below(at):
            return True
        core.require_decidable(map_id, at)
        return False

    def scan(self, of: ScanOf) -> TableCursor:
        store = self._core.readable(of.map_id, of.schema_version)
        of = self._of(store, of)
        return store.scan(of.at, of.positions, of.partitions, of.schema_version)

    def counter(self, map_id: int) -> Callable[[int], None]:
        store = self._core.stores.get(map_id)
        return _uncounted if store is None else store.counters.scan

    def index_scan(self, of: ScanOf, access: Access) -> Cursor:
        store = self._core.readable(of.map_id, of.schema_version)
        of = self._of(store, of)
        return store.indexes.scan(of.at, of.positions, of.partitions, of.schema_version, access)

    def ordered_scan(self, of: ScanOf, probe: Probe, descending: bool) -> Cursor:
        store = self._core.readable(of.map_id, of.schema_version)
        of = self._of(store, of)
        return store.indexes.ordered(
            of.at,
            of.positions,
            of.partitions,
            of.schema_version,
            probe.index,
            probe.choices,
            descending,
        )

    def index_match(
        self, of: ScanOf, index_id: int, columns: Sequence[pa.Array]
    ) -> tuple[pa.RecordBatch, Indices] | None:
        store = self._core.readable(of.map_id, of.schema_version)
        of = self._of(store, of)
        found = store.indexes.match(
            of.at, of.positions, of.partitions, of.schema_version, index_id, columns
        )
        if found is not None:
            store.counters.scan(found[0].num_rows)
        return found

    def lookup(
        self,
        map_id: int,
        schema_version: int,
        at: int,
        keys: Sequence[tuple[PhysicalValue, ...]],
        partitions: frozenset[int] | None = None,
    ) -> list[tuple[PhysicalValue, ...] | None]:
        store = self._core.readable(map_id, schema_version)
        self._core.given_away.check(self._view, at)
        own = None if store.schema.replicated or at >= store.mixed_until else self._own
        if partitions is not None:
            own = partitions if own is None else own & partitions
        if own is None:
            found = [store.get(key, at, schema_version) for key in keys]
        else:
            partition = Router(store.schema).key_partition
            found = [
                store.get(key, at, schema_version) if partition(key) in own else None
                for key in keys
            ]
        store.counters.scan(len(found) - found.count(None))
        return found


def _uncounted(_rows: int) -> None:
    """Of a map that was dropped meanwhile."""


class DataChannelPort:
    """``execution.ExchangePort`` of one query: one-way messages on the data channel (rule 8)."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        hop: Hop,
        *,
        query: QueryId,
        senders: dict[int, int],
        happened: Callable[[QueryEvent], None],
    ) -> None:
        """``senders``: edge -> the fragment here that sends on it."""
        self._core = core
        self._peers = peers
        self._hop = hop
        self._query = query
        self._senders = senders
        self._happened = happened
        self._id = encode_query_id(query)

    def send_batch(
        self, edge: int, instance: int, receivers: Sequence[Endpoint], batch: EncodedBatch
    ) -> None:
        self._hop(lambda: self._send_batch(edge, instance, receivers, batch))

    def _send_batch(
        self, edge: int, instance: int, receivers: Sequence[Endpoint], batch: EncodedBatch
    ) -> None:
        fields = data_pb2.FragmentRecordBatch(
            query_id=self._id,
            sending_major_fragment_id=self._senders.get(edge, 0),
            sending_minor_fragment_id=instance,
            isLastBatch=batch.last,
            context=self._core.context(),
            edge=edge,
            ordinal=batch.ordinal,
            sent_bytes=batch.sent_bytes,
        )
        getattr(fields, "def").record_count = batch.rows  # "def" is a keyword
        body = [memoryview(part) for part in batch.body]
        instances: dict[int, list[int]] = {}
        for receiver in receivers:
            instances.setdefault(receiver.member, []).append(receiver.instance)
        for member, numbers in instances.items():
            message = data_pb2.FragmentRecordBatch()
            message.CopyFrom(fields)
            message.receiving_minor_fragment_id.extend(numbers)
            self._send(member, RpcType.REQ_RECORD_BATCH, message, body)
        self._happened(Progressed(self._query))

    def send_flow_control(self, edge: int, instance: int, sender: Endpoint, grant: Grant) -> None:
        flow = data_pb2.FlowControl(
            query_id=self._id,
            edge=edge,
            receiver_instance=instance,
            sender_instance=sender.instance,
            granted_bytes=grant.granted_bytes,
            ordinal=grant.ordinal,
            ok=grant.ok,
            receiver_finished=grant.receiver_finished,
        )

        def send() -> None:
            flow.context.CopyFrom(self._core.context())
            self._send(sender.member, RpcType.DATA_ACK_WITH_CREDIT, flow, ())

        self._hop(send)

    def _send(self, to: int, rpc_type: int, message: Message, body: Buffers) -> None:
        try:
            self._peers.send_data(to, rpc_type, message, body, self._failed)
        except RemudaError as error:
            self._failed(error)

    def _failed(self, error: RemudaError) -> None:
        self._happened(QueryFailed(self._query, error))


class Listener:
    """``execution.FragmentListener`` of one query."""

    def __init__(self, hop: Hop, query: QueryId, happened: Callable[[QueryEvent], None]) -> None:
        self._hop = hop
        self._query = query
        self._happened = happened

    def on_done(self, profile: FragmentProfile) -> None:
        event = FragmentFinished(self._query, profile.fragment, profile, profile.instance)
        self._hop(lambda: self._happened(event))

    def on_failed(self, fragment: int, error: RemudaError) -> None:  # noqa: ARG002
        event = QueryFailed(self._query, error)
        self._hop(lambda: self._happened(event))
