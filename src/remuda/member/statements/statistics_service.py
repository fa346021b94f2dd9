"""Statistics of the whole cluster for the planner: fetched from the members, added up, cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from remuda.catalog.statistics import ColumnStatistics, MapStatistics
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round
from remuda.member.base.wing import Routes, Wing
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps import sketch
from remuda.storage.maps import statistics as storage
from remuda.storage.maps.expiring_rows import estimated_rows
from remuda.storage.maps.map_store import MapStore

STALE_SHARE = 0.2
"""Fetched again when the local rows have changed by more than this share, and ``STALE_ROWS``."""
STALE_ROWS = 100
TAKEN_ON_LOOP_MAX = 10_000
"""Rows of maps whose statistics take less than a hop to another thread and back is worth."""
UNIQUE_SHARE = 0.5
"""Without sketches, members' distinct counts are added when they are above this share of the rows
(keys and the like), otherwise every member is taken to see the same values."""
COMMON_MAX = 32
BUCKETS = 64


@dataclass(frozen=True)
class Known:
    statistics: MapStatistics
    local_rows: int


@dataclass(frozen=True)
class Totals:
    """Of one map."""

    rows: int
    bytes: int
    silent: tuple[int, ...]
    """Members whose share is missing."""


class ClusterStatistics(Wing):
    """Implements the planner's ``StatisticsReader`` over what was fetched last."""

    def __init__(self, core: Core, peers: Peers, offload: Offload) -> None:
        """Sketches of large maps are made on the thread of ``offload``."""
        self._core = core
        self._peers = peers
        self._offload = offload
        self._known: dict[int, Known] = {}
        self.versions: Mapping[int, int] = {}
        """How often the statistics of a map were taken. Never changed, but replaced."""
        self._fetching: dict[int, asyncio.Future[bool]] = {}
        """By map: whether they were fetched, once that has ended."""

    def routes(self) -> Routes:
        return Routes(control={RpcType.MAP_STATISTICS: self.on_request})

    def statistics(self, schema: MapSchema) -> MapStatistics | None:
        known = self._known.get(schema.map_id)
        return known.statistics if known else None

    def stale(self, map_id: int) -> bool:
        known = self._known.get(map_id)
        store = self._core.stores.get(map_id)
        if known is None or store is None:
            return True
        change = abs(estimated_rows(store) - known.local_rows)
        return change > STALE_ROWS and change > STALE_SHARE * known.local_rows

    def any_stale(self, map_ids: Iterable[int]) -> bool:
        return any(map(self.stale, map_ids))

    async def refresh(self, maps: Sequence[MapSchema]) -> None:
        """Fetch stale statistics; those that another statement is fetching already are waited for,
        or each of them would make the plans of the others void. A member that does not answer is
        left out: plans get worse, not wrong."""
        each = {schema.map_id: schema for schema in maps}.values()  # a statement may name one twice
        stale = [schema for schema in each if self.stale(schema.map_id)]
        wanted = [schema for schema in stale if schema.map_id not in self._fetching]
        others = [self._fetching[s.map_id] for s in stale if s.map_id in self._fetching]
        if wanted:
            done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._fetching |= dict.fromkeys((schema.map_id for schema in wanted), done)
            fetched = False
            try:
                await self._fetch(wanted)
                fetched = True
            finally:
                for schema in wanted:
                    del self._fetching[schema.map_id]
                done.set_result(fetched)
        if others:
            await asyncio.wait(others)
            if not all(other.result() for other in others):  # its statement was cancelled
                await self.refresh(maps)

    async def _fetch(self, wanted: Sequence[MapSchema]) -> None:
        core = self._core
        message = control_pb2.StatisticsRequest(
            context=core.context(), map_ids=[schema.map_id for schema in wanted]
        )
        local_rows = {
            schema.map_id: estimated_rows(store)
            for schema in wanted
            if (store := core.stores.get(schema.map_id)) is not None
        }
        here = asyncio.ensure_future(self._take_here(message.map_ids))
        heard = await self._ask_totals(message.map_ids)  # a silent member would cost much longer
        replies = await asyncio.gather(
            *(self._peers.request(n, RpcType.MAP_STATISTICS, message) for n in heard.known),
            return_exceptions=True,
        )
        await here
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
        taken: dict[int, int] = {}
        for schema in wanted:
            number = schema.map_id
            if number in parts:
                together = merged(schema, parts[number])
                self._known[number] = Known(together, local_rows.get(number, 0))
                taken[number] = self.versions.get(number, 0) + 1
        self.versions = {**self.versions, **taken}

    async def totals(self, schema: MapSchema) -> Totals:
        """Of a map over the members that answer soon, now."""
        heard = await self._ask_totals([schema.map_id])
        parts = self._totals([schema.map_id])
        for answer in heard.known.values():
            parts += answer.maps
        rows = sum(part.rows for part in parts)
        if schema.replicated and parts:
            rows = parts[0].rows
        return Totals(rows, sum(part.bytes for part in parts), heard.silent)

    async def _ask_totals(self, map_ids: Iterable[int]) -> Gathered[control_pb2.StatisticsReply]:
        message = control_pb2.StatisticsRequest(
            context=self._core.context(), map_ids=map_ids, totals_only=True
        )
        kind, decode = RpcType.MAP_STATISTICS, control_pb2.StatisticsReply.FromString
        return await in_one_round(self._core, self._peers, kind, message, decode, PATIENCE)

    def on_request(self, request: Request) -> None:
        message = control_pb2.StatisticsRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)

        def answer() -> None:
            found = self._totals if message.totals_only else self._local
            reply = control_pb2.StatisticsReply(
                context=self._core.context(), maps=found(message.map_ids)
            )
            request.reply(RpcType.MAP_STATISTICS, reply)

        if message.totals_only:
            answer()
        else:
            self._take(message.map_ids, answer)

    async def _take_here(self, map_ids: Sequence[int]) -> None:
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._take(map_ids, lambda: None if taken.done() else taken.set_result(None))
        await taken

    def _take(self, map_ids: Sequence[int], done: Callable[[], None]) -> None:
        """Make the statistics of this member's stores good, then call ``done`` on the loop."""
        found = (self._core.stores.get(map_id) for map_id in map_ids)
        pairs = [(store, store.statistics_work()) for store in found if store is not None]
        due = [(store, work) for store, work in pairs if work is not None]
        if sum(estimated_rows(store) for store, _ in due) <= TAKEN_ON_LOOP_MAX:
            for store, work in due:
                store.keep_statistics(work())
            done()
            return

        def run() -> Callable[[], None]:
            taken = [(store, work()) for store, work in due]
            return lambda: _keep(taken)

        self._offload(run, done)

    def _totals(self, map_ids: Sequence[int]) -> list[control_pb2.MapStatistics]:
        """Without the columns."""
        return [
            control_pb2.MapStatistics(
                map_id=map_id,
                rows=estimated_rows(store),
                bytes=store.bytes,
                schema_version=store.schema.version,
            )
            for map_id in map_ids
            if (store := self._core.stores.get(map_id)) is not None
        ]

    def _local(self, map_ids: Sequence[int]) -> list[control_pb2.MapStatistics]:
        found = self._totals(map_ids)
        for message in found:
            taken = self._core.stores[message.map_id].kept_statistics
            for position, column in enumerate(taken.columns):
                entry = message.columns.add(
                    position=position,
                    null_fraction=column.null_fraction,
                    distinct=column.distinct,
                    width=column.width,
                )
                _add_distribution(entry, column)
                if column.minimum is not None:
                    entry.minimum.CopyFrom(codec.encode_value(column.minimum))
                if column.maximum is not None:
                    entry.maximum.CopyFrom(codec.encode_value(column.maximum))
        return found

    def forget(self, map_id: int) -> None:
        self._known.pop(map_id, None)


def merged(schema: MapSchema, parts: Sequence[control_pb2.MapStatistics]) -> MapStatistics:
    """Of all members, for the columns of ``schema``. A member that was at another schema when it
    answered, because the map is just being altered, counts with its rows alone."""
    if schema.replicated:
        parts = parts[:1]
    total = sum(part.rows for part in parts)
    parts = [part for part in parts if part.schema_version == schema.version]
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


def _add_distribution(
    entry: control_pb2.ColumnStatistics, column: storage.ColumnStatistics
) -> None:
    entry.histogram.extend(codec.encode_values(column.histogram))
    entry.common_values.extend(codec.encode_values(value for value, _ in column.common))
    entry.common_shares.extend(share for _, share in column.common)
    if column.sketch is not None:
        entry.sketch = column.sketch.tobytes()


def _keep(taken: Sequence[tuple[MapStore, storage.MapStatistics]]) -> None:
    for store, statistics in taken:
        store.keep_statistics(statistics)


def _merged_column(
    pairs: Sequence[tuple[int, control_pb2.ColumnStatistics]],
) -> ColumnStatistics:
    total = sum(rows for rows, _ in pairs)
    minima = [codec.decode_value(c.minimum) for _, c in pairs if c.HasField("minimum")]
    maxima = [codec.decode_value(c.maximum) for _, c in pairs if c.HasField("maximum")]
    return ColumnStatistics(
        null_fraction=sum(rows * column.null_fraction for rows, column in pairs) / total,
        distinct=_merged_distinct(pairs),
        minimum=_least(minima),
        maximum=_greatest(maxima),
        width=sum(rows * column.width for rows, column in pairs) / total,
        histogram=_merged_histogram(pairs),
        common=_merged_common(pairs, total),
    )


def _merged_distinct(pairs: Sequence[tuple[int, control_pb2.ColumnStatistics]]) -> float:
    added = sum(column.distinct for _, column in pairs)
    largest = max(column.distinct for _, column in pairs)
    sketches = [sketch.decoded(column.sketch) for _, column in pairs]
    if len(pairs) > 1 and all(found is not None for found in sketches):
        together = sketch.distinct(sketch.merged(found for found in sketches if found is not None))
        # Members' own counts may be exact, and a sketch is not.
        return float(max(largest, added if together > 0.95 * added else min(added, together)))
    unique = all(column.distinct > UNIQUE_SHARE * rows for rows, column in pairs)
    return float(added if unique else largest)


def _merged_histogram(
    pairs: Sequence[tuple[int, control_pb2.ColumnStatistics]],
) -> tuple[PhysicalValue, ...]:
    """Every bound stands for its bucket's share of the member's rows."""
    weighted: list[tuple[PhysicalValue, float]] = []
    for rows, column in pairs:
        bounds = codec.decode_values(column.histogram)
        weighted += [(bound, rows / len(bounds)) for bound in bounds]
    if len(pairs) == 1:
        return tuple(bound for bound, _ in weighted)
    weighted.sort(key=lambda pair: pair[0])  # type: ignore[arg-type, return-value]
    total = sum(weight for _, weight in weighted)
    result: list[PhysicalValue] = []
    passed = 0.0
    for bound, weight in weighted:
        passed += weight
        while len(result) <= BUCKETS and passed >= total * len(result) / BUCKETS * (1 - 1e-9):
            result.append(bound)
    return tuple(result)


def _merged_common(
    pairs: Sequence[tuple[int, control_pb2.ColumnStatistics]], total: int
) -> tuple[tuple[PhysicalValue, float], ...]:
    """A value that a member does not list is taken to be missing there."""
    shares: dict[PhysicalValue, float] = {}
    for rows, column in pairs:
        for message, share in zip(column.common_values, column.common_shares, strict=False):
            value = codec.decode_value(message)
            shares[value] = shares.get(value, 0.0) + share * rows / total
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    return tuple(ordered[:COMMON_MAX])


def _least(values: list[PhysicalValue]) -> PhysicalValue:
    return min(values, default=None)  # type: ignore[type-var]


def _greatest(values: list[PhysicalValue]) -> PhysicalValue:
    return max(values, default=None)  # type: ignore[type-var]
