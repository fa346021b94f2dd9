"""The fast path of reads by key: no operators, no fragments, no cursor (design D5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.errors import RemudaError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.member.core import Core
from remuda.member.cursors import Results
from remuda.member.maps import Maps, OpenMap
from remuda.plan.expression import Expression, Literal, Parameter
from remuda.planner.point import PointRead
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.session.planning import PlannedQuery

Row = tuple[PhysicalValue, ...]


class PointReads:
    def __init__(self, core: Core, maps: Maps) -> None:
        self._core = core
        self._maps = maps

    def run(
        self,
        request: Request,
        query_id: QueryId,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
    ) -> bool:
        """Answer at once if all keys are of one owner; False: it is not for this path."""
        core, point = self._core, query.point
        assert point is not None
        answer = PointAnswer(core, request, query_id, query, point, values)
        found = self._maps.open(point.map_name, point.map_id, point.schema_version)
        keys = _keys(point, values)
        owner = self._owner(found, keys)
        if owner is None:
            return False
        if owner == core.number:
            at = core.timestamp()
            if found.store.pending_at_or_below(at):
                return False
            store = found.store
            rows = [row for key in keys if (row := store.get(key, at)) is not None]
            request.reply(RpcType.QUERY_HANDLE, encode_query_id(query_id))
            answer.send(rows)
            return True
        core.require_alive(owner)
        request.reply(RpcType.QUERY_HANDLE, encode_query_id(query_id))
        self._maps.read_elsewhere(owner, found, keys, answer.send)
        return True

    def _owner(self, found: OpenMap, keys: Sequence[Row]) -> int | None:
        if found.schema.replicated or not keys:
            return self._core.number
        owners, partition = self._core.view.owners, found.router.key_partition
        owner = owners[partition(keys[0])]
        if any(owners[partition(key)] != owner for key in keys[1:]):
            return None
        return owner


@dataclass(frozen=True, slots=True)
class PointAnswer:
    """What is needed to turn the rows that were found into the answer."""

    core: Core
    request: Request
    query_id: QueryId
    query: PlannedQuery
    point: PointRead
    values: tuple[PhysicalValue, ...]

    def send(self, rows: list[Row] | RemudaError) -> None:
        channel = self.request.channel
        if channel.closed:
            return
        results = Results(self.core, channel, self.query_id, self.query.shape)
        if isinstance(rows, RemudaError):
            results.finish(rows)
            return
        try:
            page = self._page(rows)
        except RemudaError as error:
            results.finish(error)
            return
        results.external_page(page, lambda _: None)
        results.finish()

    def _page(self, rows: list[Row]) -> pa.RecordBatch:
        point, shape = self.point, self.query.shape
        if point.positions is not None and point.filter is None:
            return shape.rows([[row[position] for position in point.positions] for row in rows])
        return shape.external(self._computed(rows).columns())

    def _computed(self, rows: list[Row]) -> Batch:
        """Filter and expressions over the rows, by the same evaluators as everywhere."""
        point = self.point
        columns = self.core.store(point.map_id, point.schema_version).schema.columns
        positions = {column: index for index, (column, _) in enumerate(point.columns)}
        arrays = [
            values_to_array([row[position] for row in rows], columns[position].type)
            for _, position in point.columns
        ]
        batch = Batch(arrays, len(rows))
        compiler = Compiler(positions, self.values)
        if point.filter is not None and batch.rows:
            mask = compiler.column(point.filter)(batch)
            keep = [index for index, passed in enumerate(mask.to_pylist()) if passed]
            taken = pa.array(keep, pa.int64())
            batch = Batch([array.take(taken) for array in arrays], len(keep))
        return Batch([compiler.column(e)(batch) for e in point.expressions], batch.rows)


def _keys(point: PointRead, values: tuple[PhysicalValue, ...]) -> list[Row]:
    """The distinct keys without NULLs, in order."""
    keys: dict[Row, None] = {}
    for parts in point.keys:
        key = tuple([_constant(part, values) for part in parts])
        if None not in key:
            keys[key] = None
    return list(keys)


def _constant(expression: Expression, values: tuple[PhysicalValue, ...]) -> PhysicalValue:
    if isinstance(expression, Parameter):
        return values[expression.index]
    if isinstance(expression, Literal):
        return expression.value
    return evaluate_constant(expression, values)
