"""The rows of a query of an open transaction that names few entries, or none: without fragments.

A read by key, one by a secondary index that finds few entries, and expressions over no map at all
have their short ways outside of transactions. Here the same ways read at the timestamp of the
transaction, and its own writes lie over the rows that they find (decision 0102).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.maps.index_asks import exactly
from remuda.member.maps.index_reads import IndexReads
from remuda.member.maps.point_reads import KEYS_MAX, PointRows, keys_of
from remuda.member.queries.constant_rows import constant_rows
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Statement
from remuda.planner.index_read import IndexRead
from remuda.planner.point import PointRead
from remuda.session.parameters import clock_values
from remuda.session.planning import PlannedQuery
from remuda.storage.indexes.few_rows import Declined
from remuda.transaction.own_writes import Row, canonical_key

OWN_MAX: Final = 256
"""A transaction that has written more entries of a map reads it by an index in the general way,
which compares them all at once."""

Columns: TypeAlias = list[pa.Array]
Values: TypeAlias = tuple[PhysicalValue, ...]


class FewRows:
    def __init__(self, core: Core, keys: KeyReader, by_index: IndexReads) -> None:
        self._core = core
        self._keys = keys
        self._by_index = by_index

    @staticmethod
    def takes(statement: Statement, query: PlannedQuery) -> bool:
        """Whether this way is for the query; ``columns`` may still find that it is not."""
        if statement.transaction is None or statement.locking or query.locking:
            return False
        if statement.progress.pauses is not None:
            return False
        return not (query.point is None and query.indexed is None and query.constant is None)

    async def columns(
        self, statement: Statement, query: PlannedQuery, values: Values
    ) -> Columns | None:
        """The columns of the result in engine form; None: the query takes the general way, and
        nothing was done. They count as read. Raises the DataErrors of the expressions,
        SerializationFailure, SnapshotTooOld, MemberUnavailable."""
        transaction, at = statement.transaction, statement.read_timestamp
        assert transaction is not None
        if query.constant is not None:
            moments = query.clock_parameters
            values += clock_values(moments, statement.moment, statement.session)
            rows = constant_rows(query.constant, values)
            return [
                values_to_array([row[place] for row in rows], column.type)
                for place, column in enumerate(query.plan.output)
            ]
        if at is None or not self._core.readiness.ready or self._core.view.absent:
            return None
        if transaction.bulk is not None:
            return None  # the general way says what it may read
        read = query.point or query.indexed
        assert read is not None
        own = transaction.writes.maps.get(read.map_id)
        if own is not None and own.schema_version != read.schema_version:
            return None  # the general way says so
        found: Sequence[Row] | None
        if query.point is not None:
            found = await self._by_key(statement, transaction, query.point, values, at)
        else:
            assert query.indexed is not None
            transaction.note_plan(query.plan, values)
            found = await self._few(statement, transaction, query.indexed, values, at)
        if found is None:
            return None
        statement.check()
        return PointRows(self._core, query, read, values).columns(list(found))

    async def _by_key(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        point: PointRead,
        values: Values,
        at: int,
    ) -> Sequence[Row] | None:
        schema = self._core.store(point.map_id, point.schema_version).schema
        keys = keys_of(point, values)
        if len(keys) > KEYS_MAX:
            return None
        transaction.note_keys(schema, keys)
        owns = [transaction.own(point.map_id, key) for key in keys]
        others = [key for key, (written, _) in zip(keys, owns, strict=True) if not written]
        found = self._keys.here(schema, others, at) if others else []
        if found is None:
            found = await statement.in_time(self._keys.rows(schema, others, at))
        stored = iter(found)
        rows = [row if written else next(stored) for written, row in owns]
        return [row for row in rows if row is not None]

    async def _few(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        read: IndexRead,
        values: Values,
        at: int,
    ) -> Sequence[Row] | None:
        own = transaction.writes.of(read.map_id)
        if len(own) > OWN_MAX:
            return None
        width, positions = len(read.fetched), read.fetched
        if own:
            schema: MapSchema = self._core.store(read.map_id, read.schema_version).schema
            positions += schema.key_positions
        rows = await self._stored(statement, read, values, at, positions)
        if rows is None or not own:
            return rows
        kept = [row[:width] for row in rows if canonical_key(row[width:]) not in own]
        written = [
            tuple([entry.row[position] for position in read.fetched])
            for entry in own.values()
            if entry.row is not None
        ]
        return kept + exactly(written, self._by_index.wanted(read, values))

    async def _stored(
        self,
        statement: Statement,
        read: IndexRead,
        values: Values,
        at: int,
        positions: tuple[int, ...],
    ) -> list[Row] | None:
        """None: the members cannot say so shortly."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[list[Row] | Declined | RemudaError] = loop.create_future()

        def settled(rows: list[Row] | Declined | RemudaError) -> None:
            if not answered.done():
                answered.set_result(rows)

        async def awaited() -> list[Row] | Declined | RemudaError:
            return await answered

        if self._by_index.leaves_out(statement.text):
            return None
        rows: list[Row] | Declined | RemudaError | None
        rows = self._by_index.begin(read, values, at, positions, settled)
        if rows is None:
            rows = answered.result() if answered.done() else await statement.in_time(awaited())
        if isinstance(rows, Declined):
            self._by_index.declined(rows, statement.text)
        return rows if isinstance(rows, list) else None
