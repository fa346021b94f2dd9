"""Rows of the whole cluster at a timestamp, found by a query of the member's own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from remuda.catalog.own.definitions import OwnDefinitions, is_made, under_name
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, arrays_to_rows
from remuda.errors import SchemaChanged, SerializationFailure
from remuda.member.base.core import Core
from remuda.member.queries.cursors import Wire
from remuda.member.queries.queries import Queries
from remuda.member.sessions.replanning import PLANNED_AGAIN
from remuda.member.sessions.statement import Statement
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.member.statements.plans import Plans
from remuda.rpc.client_channel import NoClient
from remuda.session.planning import PlannedQuery
from remuda.session.settings import PLAIN, Meaning
from remuda.session.shape import ResultShape
from remuda.transaction.own_writes import Row

Values = tuple[PhysicalValue, ...]

SOUGHT_AT_ONCE = 32


def _no_wire(_: ResultShape) -> Wire:
    raise AssertionError("the rows of this query are sent to nobody")


class StoredRows:
    def __init__(self, core: Core, plans: Plans, runs: Runs, queries: Queries) -> None:
        self._core = core
        self._plans = plans
        self._runs = runs
        self._queries = queries
        self._made: dict[int, OwnDefinitions] = {}
        """Of maps that transactions have made: their names for queries."""
        core.listeners.dropped.add(lambda map_id: self._made.pop(map_id, None))

    def _named(self, schema: MapSchema) -> tuple[MapSchema, Meaning]:
        """A map that a transaction has made, under a name that these queries alone know."""
        name = f"made {schema.map_id}"
        own = self._made.get(schema.map_id)
        if own is None:
            own = under_name(self._core.catalog, schema.map_id, name)
            self._made[schema.map_id] = own
        return own.own.get(name), PLAIN._replace(definitions=own)

    async def rows(  # noqa: PLR0917 (a query)
        self,
        schema: MapSchema,
        names: Sequence[str],
        condition: str,
        values: Values,
        types: tuple[SqlType, ...],
        at: int,
        sought: str,
    ) -> AsyncGenerator[Row]:
        """The columns ``names`` of the rows at ``at`` that fulfil ``condition``, whose parameters
        are ``values``. ``sought``: why, for errors. Raises SerializationFailure when the map was
        altered, SnapshotTooOld and more."""
        local, meaning = schema.local, PLAIN
        stored = self._core.store(schema.map_id, 0).schema
        if is_made(stored):
            schema, meaning = self._named(schema)
        elif schema.name != stored.name:  # a transaction has renamed it
            schema = stored
        columns = ", ".join(f'{quoted_name(n)} AS "c{i}"' for i, n in enumerate(names))
        text = f"SELECT {columns} FROM {sql_name(schema)}{condition}"  # noqa: S608 (quoted names)
        planned = await self._plans.plan(text, types, local=False, meaning=meaning)
        assert isinstance(planned, PlannedQuery)
        if all(d.map_id != schema.map_id for d in planned.plan.dependencies):
            raise SchemaChanged(f'map "{local}" has changed')
        statement = Statement(
            channel=NoClient(),
            user="",
            wire=_no_wire,
            query=self._queries.new_id(),
            text=text,
            values=values,
            types=types,
            started=self._core.world.clock.wall_micros(),
            timeout=self._core.config.query_timeout or None,
            read_timestamp=at,
            partitions=None,
            local=False,
            page_rows=INTERNAL_PAGE_ROWS,
        )
        read = [schema.column(name).type for name in names]
        try:
            start = await self._runs.start(statement, planned, values, INTERNAL_PAGE_ROWS)
            async with contextlib.aclosing(self._runs.pages(statement, start, [])) as pages:
                async for page in pages:
                    for row in arrays_to_rows(page.columns, read):
                        yield row
        except PLANNED_AGAIN as error:
            raise SerializationFailure(
                f'the cluster has changed while map "{local}" was searched for {sought}',
                detail=error.message,
                hint="Run the transaction again.",
            ) from error
        finally:
            statement.close()


def equals(names: Sequence[str], size: int) -> str:
    """WHERE for the values of ``names`` in ``size`` rows, with a parameter for each value."""
    columns = [quoted_name(name) for name in names]
    if len(columns) == 1:
        return f" WHERE {columns[0]} IN ({', '.join('?' * size)})"
    one = " AND ".join(f"{column} = ?" for column in columns)
    return f" WHERE {' OR '.join([f'({one})'] * size)}"


def in_parts(wanted: Sequence[Values]) -> list[list[Values]]:
    """Rows of values to look for at once. The sizes are powers of two, the last row repeated, so
    that the plans of few texts are found again."""
    found = []
    for start in range(0, len(wanted), SOUGHT_AT_ONCE):
        part = list(wanted[start : start + SOUGHT_AT_ONCE])
        size = 1 << (len(part) - 1).bit_length()
        found.append(part + part[-1:] * (size - len(part)))
    return found
