"""Statistics of the whole cluster for the planner: fetched from the members, added up, cached."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from remuda.catalog.statistics import ColumnStatistics, MapStatistics
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.member.core import Core
from remuda.member.peers import Peers
from remuda.plan.physical import PhysicalPlan
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

STALE_SHARE = 0.2
"""Fetched again when the local rows have changed by more than this share, and ``STALE_ROWS``."""
STALE_ROWS = 100
UNIQUE_SHARE = 0.5
"""Members' distinct counts are added when they are above this share of the rows (keys and the
like), otherwise every member is taken to see the same values."""


@dataclass(frozen=True)
class Known:
    statistics: MapStatistics
    local_rows: int


class ClusterStatistics:
    """Implements the planner's ``StatisticsReader`` over what was fetched last."""

    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers
        self._known: dict[int, Known] = {}
        self.generation = 0

    def statistics(self, schema: MapSchema) -> MapStatistics | None:
        known = self._known.get(schema.map_id)
        return known.statistics if known else None

    def stale(self, map_id: int) -> bool:
        known = self._known.get(map_id)
        store = self._core.stores.get(map_id)
        if known is None or store is None:
            return True
        change = abs(store.rows - known.local_rows)
        return change > STALE_ROWS and change > STALE_SHARE * known.local_rows

    def stale_plan(self, plan: PhysicalPlan) -> bool:
        return any(self.stale(dependency.map_id) for dependency in plan.dependencies)

    async def refresh(self, maps: Sequence[MapSchema]) -> None:
        """Fetch what is stale. A member that does not answer is left out: plans get worse, not
        wrong."""
        wanted = [schema for schema in maps if self.stale(schema.map_id)]
        if not wanted:
            return
        core = self._core
        message = control_pb2.StatisticsRequest(
            context=core.context(), map_ids=[schema.map_id for schema in wanted]
        )
        local_rows = {
            schema.map_id: store.rows
            for schema in wanted
            if (store := core.stores.get(schema.map_id)) is not None
        }
        others = [number for number in core.live_members() if number != core.number]
        replies = await asyncio.gather(
            *(self._peers.request(number, RpcType.MAP_STATISTICS, message) for number in others),
            return_exceptions=True,
        )
        parts: dict[int, list[control_pb2.MapStatistics]] = {}
        for part in self._local(message.map_ids):
            parts.setdefault(part.map_id, []).append(part)
        for reply in replies:
            if isinstance(reply, RemudaError):
                continue
            if isinstance(reply, BaseException):
                raise reply
            for part in control_pb2.StatisticsReply.FromString(reply.pbody).maps:
                parts.setdefault(part.map_id, []).append(part)
        for schema in wanted:
            if schema.map_id in parts:
                merged = _merged(schema, parts[schema.map_id])
                self._known[schema.map_id] = Known(merged, local_rows.get(schema.map_id, 0))
        self.generation += 1

    async def totals(self, schema: MapSchema) -> tuple[int, int]:
        """(rows, bytes) of a map over the whole cluster, now."""
        core = self._core
        message = control_pb2.StatisticsRequest(context=core.context(), map_ids=[schema.map_id])
        others = [number for number in core.live_members() if number != core.number]
        replies = await asyncio.gather(
            *(self._peers.request(number, RpcType.MAP_STATISTICS, message) for number in others)
        )
        parts = list(self._local([schema.map_id]))
        for reply in replies:
            parts += control_pb2.StatisticsReply.FromString(reply.pbody).maps
        rows = sum(part.rows for part in parts)
        size = sum(part.bytes for part in parts)
        return (parts[0].rows if schema.replicated and parts else rows), size

    def on_request(self, request: Request) -> None:
        message = control_pb2.StatisticsRequest.FromString(request.pbody)
        self._core.observe_member(message.context)
        reply = control_pb2.StatisticsReply(
            context=self._core.context(), maps=self._local(message.map_ids)
        )
        request.reply(RpcType.MAP_STATISTICS, reply)

    def _local(self, map_ids: Sequence[int]) -> list[control_pb2.MapStatistics]:
        found = []
        for map_id in map_ids:
            store = self._core.stores.get(map_id)
            if store is None:
                continue
            taken = store.statistics()
            message = control_pb2.MapStatistics(map_id=map_id, rows=store.rows, bytes=store.bytes)
            for position, column in enumerate(taken.columns):
                entry = message.columns.add(
                    position=position,
                    null_fraction=column.null_fraction,
                    distinct=column.distinct,
                    width=column.width,
                )
                if column.minimum is not None:
                    entry.minimum.CopyFrom(codec.encode_value(column.minimum))
                if column.maximum is not None:
                    entry.maximum.CopyFrom(codec.encode_value(column.maximum))
            found.append(message)
        return found

    def forget(self, map_id: int) -> None:
        self._known.pop(map_id, None)


def _merged(schema: MapSchema, parts: Sequence[control_pb2.MapStatistics]) -> MapStatistics:
    if schema.replicated:
        parts = parts[:1]
    total = sum(part.rows for part in parts)
    columns: dict[str, ColumnStatistics] = {}
    for position, column in enumerate(schema.columns):
        pairs = [
            (part.rows, part.columns[position])
            for part in parts
            if part.rows and position < len(part.columns)
        ]
        if pairs:
            columns[column.name] = _merged_column(pairs)
    return MapStatistics(rows=float(total), columns=columns)


def _merged_column(
    pairs: Sequence[tuple[int, control_pb2.ColumnStatistics]],
) -> ColumnStatistics:
    total = sum(rows for rows, _ in pairs)
    added = sum(column.distinct for _, column in pairs)
    unique = all(column.distinct > UNIQUE_SHARE * rows for rows, column in pairs)
    minima = [codec.decode_value(c.minimum) for _, c in pairs if c.HasField("minimum")]
    maxima = [codec.decode_value(c.maximum) for _, c in pairs if c.HasField("maximum")]
    return ColumnStatistics(
        null_fraction=sum(rows * column.null_fraction for rows, column in pairs) / total,
        distinct=added if unique else max(column.distinct for _, column in pairs),
        minimum=_least(minima),
        maximum=_greatest(maxima),
        width=sum(rows * column.width for rows, column in pairs) / total,
    )


def _least(values: list[PhysicalValue]) -> PhysicalValue:
    return min(values, default=None)  # type: ignore[type-var]


def _greatest(values: list[PhysicalValue]) -> PhysicalValue:
    return max(values, default=None)  # type: ignore[type-var]
