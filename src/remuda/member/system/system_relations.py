"""Where the rows of system relations come from: the catalog of this member, or what all members
answer when the statement starts."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.system_relations import (
    DATABASE,
    FUNCTIONS,
    INFORMATION_SCHEMA,
    PG_CATALOG,
    SYSTEM,
    SystemRelation,
)
from remuda.cluster.movement import table_to_reach
from remuda.config import MemberConfig
from remuda.datatypes.arrow import engine_type, external_type, to_engine
from remuda.datatypes.map_options import shown
from remuda.datatypes.timestamp import moment, to_micros
from remuda.datatypes.view import View
from remuda.execution.context import SuppliedRows
from remuda.member.base.access import HIDDEN_TEXT
from remuda.member.base.core import Core
from remuda.member.base.round import NO_ANSWER, PATIENCE, listed, no_answer
from remuda.member.notifications.inbox import Inbox
from remuda.member.sessions.statement import Statement
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.statements import Statements
from remuda.member.statements.statistics_service import ClusterStatistics
from remuda.member.system.activity_relations import ActivityRelations
from remuda.member.system.activity_report import ActivityReport
from remuda.member.system.advisory_rows import AdvisoryRows
from remuda.member.system.query_relations import QueryRelations
from remuda.member.system.system_state import SystemState
from remuda.rpc.messages import control_pb2
from remuda.session.answers import given_value
from remuda.session.settings import SETTINGS
from remuda.session.system import information_schema, pg_catalog
from remuda.session.system.roles import rows_of_roles
from remuda.session.system.sequences import pg_sequences

Row = tuple[Any, ...]


def named(relation: SystemRelation, rows: Iterable[Row], database: str) -> Iterable[Row]:
    """``rows`` with the name of the one database under which the session knows it."""
    if database == DATABASE:
        return rows
    places = {
        place
        for place, column in enumerate(relation.columns)
        if column.name == "datname"
        or column.name.endswith("_catalog")
        or (relation.schema == INFORMATION_SCHEMA and column.name == "catalog_name")
    }
    if not places:
        return rows
    return (
        tuple(
            database if place in places and value == DATABASE else value
            for place, value in enumerate(row)
        )
        for row in rows
    )


class SystemRelations:
    """Registers the suppliers of all of them."""

    def __init__(
        self,
        core: Core,
        state: SystemState,
        *,
        silence: Callable[[int], float | None],
        statistics: ClusterStatistics,
        indexes: IndexService,
        statements: Statements,
        queries: QueryRelations,
        activity: ActivityReport,
        advisory: AdvisoryRows,
    ) -> None:
        """``silence``: the seconds since this member has heard another one."""
        self._silence = silence
        self._indexes_known = indexes
        self._core = core
        self._state = state
        self._statistics = statistics
        self._sequences = statements.sequences
        self._cursors = statements.cursors
        self._clients = statements.clients
        supplies = statements.supplies
        from_catalog = {
            INFORMATION_SCHEMA: information_schema.ROWS,
            PG_CATALOG: pg_catalog.ROWS,
        }
        for schema, rows in from_catalog.items():
            listed = SYSTEM[schema] | (FUNCTIONS if schema == PG_CATALOG else {})
            for name, relation in listed.items():
                make = rows.get(name, lambda _: ())
                supplies.register(relation.qualified, self._of_catalog(relation, make))
        activities = ActivityRelations(core, activity, advisory)
        live: dict[str, Callable[[Statement], Awaitable[Iterable[Row]]]] = {
            "sys.members": self._members,
            "sys.membership_events": self._membership_events,
            "sys.spark_services": self._spark_services,
            "sys.partitions": self._partitions,
            "sys.maps": self._maps,
            "sys.map_parts": self._map_parts,
            "sys.logs": self._logs,
            "sys.log_levels": self._log_levels,
            "sys.columns": self._columns,
            "sys.views": self._views,
            **queries.suppliers(),
            "sys.indexes": self._indexes,
            "sys.settings": self._settings,
            "pg_catalog.pg_settings": self._pg_settings,
            "pg_catalog.pg_cursors": self._pg_cursors,
            "pg_catalog.pg_prepared_statements": self._pg_prepared_statements,
            "pg_catalog.pg_sequences": self._pg_sequences,
            "pg_catalog.pg_listening_channels": self._channels,
            "pg_catalog.pg_notification_queue_usage": self._usage,
            **activities.suppliers(),
            **{f"pg_catalog.{name}": self._roles(name) for name in rows_of_roles(())},
        }
        for qualified, make_rows in live.items():
            schema, _, name = qualified.partition(".")
            relation = SYSTEM[schema].get(name) or FUNCTIONS[name]
            supplies.register(qualified, self._live(relation, make_rows))
        for qualified, make_pages in activities.paged().items():
            schema, _, name = qualified.partition(".")
            supplies.register(qualified, self._paged(SYSTEM[schema][name], make_pages))

    def _of_catalog(
        self, relation: SystemRelation, make: Callable[[Any], Iterable[Row]]
    ) -> Callable[[Statement], Awaitable[SuppliedRows]]:
        async def supply(statement: Statement) -> SuppliedRows:
            rows = make(statement.with_temporary_names(self._seen(statement)))
            return engine_rows(relation, list(named(relation, rows, statement.session.database)))

        return supply

    async def _pg_sequences(self, statement: Statement) -> Iterable[Row]:
        seen = self._seen(statement)
        asked = await asyncio.gather(*map(self._sequences.state, seen.sequences))
        ids = (schema.map_id for schema in seen.sequences)
        states = dict(zip(ids, asked, strict=True))
        every = statement.with_temporary_names(seen)
        for schema in every.sequences:
            own = statement.own_sequence(schema.map_id)
            if own is not None and own.numbers is not None:
                states[schema.map_id] = own.numbers.state
        return list(pg_sequences(every, states))

    def _seen(self, statement: Statement) -> Catalog:
        """What of the catalog its user may see."""
        return self._core.access.catalog(statement.user, statement.session.definitions)

    def _live(
        self,
        relation: SystemRelation,
        make: Callable[[Statement], Awaitable[Iterable[Row]]],
    ) -> Callable[[Statement], Awaitable[SuppliedRows]]:
        async def supply(statement: Statement) -> SuppliedRows:
            rows = await make(statement)
            return engine_rows(relation, list(named(relation, rows, statement.session.database)))

        return supply

    def _paged(
        self,
        relation: SystemRelation,
        make: Callable[[Statement], AsyncIterator[Iterable[Row]]],
    ) -> Callable[[Statement], Awaitable[SuppliedRows]]:
        async def supply(statement: Statement) -> SuppliedRows:
            batches = [engine_rows(relation, list(page)) async for page in make(statement)]
            return [batch for page in batches for batch in page]

        return supply

    # --- sys ----------------------------------------------------------------------------------

    async def _members(self, _statement: Statement) -> Iterable[Row]:
        core = self._core
        answers = await self._state.answered()
        rows: list[Row] = []
        for member in core.view.members:
            state = answers.known.get(member.number)
            failure = answers.failed.get(member.number)
            gauges = {g.name: g.value for g in state.gauges} if state is not None else {}
            rows.append(
                (
                    member.number, member.uuid, member.host, member.user_port,
                    member.control_port, member.data_port,
                    _state(core, member.number, answered=failure is None),
                    core.lost.get(member.number, failure and failure.message),
                    member.number == core.coordinator,
                    member.number == core.number, core.view.owners.count(member.number),
                    len(core.view.backed_up_by(member.number)), core.view.number,
                    gauges.get("queries"), gauges.get("fragments"),
                    gauges.get("clients"), gauges.get("jobs"),
                    state.catalog_version if state is not None else None,
                    gauges.get("memory_held"), gauges.get("memory_limit"),
                    gauges.get("memory_peak"), gauges.get("spilled"), gauges.get("queued"),
                    ", ".join(f"{name}={value}" for name, value in member.labels) or None,
                    gauges.get("storage_held"), gauges.get("storage_limit"),
                    gauges.get("writes_refused"),
                    gauges.get("internal_errors"),
                    member.release, member.versions.lowest, member.versions.highest,
                    core.view.version,
                    state.lease if state is not None and state.HasField("lease") else None,
                    self._silence(member.number),
                )
            )  # fmt: skip
        return rows

    async def _membership_events(self, _statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered(membership=True)
        rows: list[Row] = [
            (
                moment(event.at), member, event.view, event.kind,
                event.subject or None, event.cause or None,
            )
            for member, state in answers.known.items()
            for event in state.membership
        ]  # fmt: skip
        silent = [(None, number, None, NO_ANSWER, None, None) for number in answers.silent]
        return [*rows, *silent]

    async def _spark_services(self, _statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        rows: list[Row] = [
            (
                member, service.service, "busy" if service.running else "idle", service.user,
                service.address, service.cores, service.free, service.running, service.silent,
            )
            for member, state in answers.known.items()
            for service in state.spark_services
        ]  # fmt: skip
        return [*rows, *(no_answer(number, 0, 9, 2) for number in answers.silent)]

    async def _partitions(self, _statement: Statement) -> Iterable[Row]:
        core = self._core
        emptied = dict(core.view.emptied)
        staying = tuple(number for number in core.view.by_number if number not in core.leaving)
        copies = core.view.backups + 1
        wanted = table_to_reach(core.view, staying, copies) if staying else core.view.replicas
        states = [
            partition_state(core.view, partition, core.lost, wanted[partition])
            for partition in range(len(core.view.replicas))
        ]
        causes = await self._refused_copies() if _WAITING & set(states) else {}
        return [
            (
                partition,
                row[0] if row else None,
                bool(row) and row[0] not in core.lost,
                ", ".join(str(number) for number in row[1:]) or None,
                states[partition],
                emptied.get(partition),
                core.view.generation(partition),
                _awaited(core.view, partition),
                causes.get(row[0]) if states[partition] in _WAITING else None,
            )
            for partition, row in enumerate(core.view.replicas)
        ]

    async def _refused_copies(self) -> dict[int, str]:
        """Why copies of its partitions were not taken, by primary."""
        states = (await self._state.answered()).known
        return {n: state.copies_refused for n, state in states.items() if state.copies_refused}

    async def _maps(self, statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        found: list[Row] = []
        for schema in self._seen(statement).tables:
            parts = [p for s in answers.known.values() for p in s.maps if p.map_id == schema.map_id]
            rows = [part.rows for part in parts]
            found.append(
                (
                    schema.name, schema.map_id, schema.version,
                    "replicated" if schema.replicated else "partitioned", len(schema.shown),
                    None if schema.has_row_ids else ", ".join(schema.key),
                    None if schema.has_row_ids else ", ".join(schema.partition_by),
                    max(rows, default=0) if schema.replicated else sum(rows),
                    sum(part.bytes for part in parts), schema.comment or None,
                    ", ".join(shown(schema.options)) or None,
                    sum(part.backup_rows for part in parts),
                    sum(part.backup_bytes for part in parts),
                    *counted(parts), schema.options.max_bytes or None,
                    listed(answers.silent),
                )
            )  # fmt: skip
        return found

    async def _logs(self, _statement: Statement) -> Iterable[Row]:
        """Of members that keep one. Whether a silent member does, is not known here."""
        found: list[Row] = []
        answers = await self._state.answered()
        for member, state in answers.known.items():
            gauges = {gauge.name: gauge.value for gauge in state.gauges}
            if "log_records" in gauges:
                names = (
                    "records", "durable", "waiting", "bytes", "groups", "checkpoint",
                    "archived", "archive_bytes", "archive_failures",
                )  # fmt: skip
                counts = [gauges.get(f"log_{name}") for name in names]
                found.append((member, self._core.config.log_sync, *counts))
        return [*found, *(no_answer(number, 0, 11) for number in answers.silent)]

    async def _log_levels(self, _statement: Statement) -> Iterable[Row]:
        answers = await self._state.answered()
        rows: list[Row] = [
            (member, found.part or "all", found.level)
            for member, state in answers.known.items()
            for found in state.log_levels
        ]
        return [*rows, *(no_answer(number, 0, 3) for number in answers.silent)]

    async def _map_parts(self, statement: Statement) -> Iterable[Row]:
        names = {schema.map_id: schema.name for schema in self._seen(statement).tables}
        answers = await self._state.answered()
        rows: list[Row] = [
            (
                names[part.map_id],
                number,
                part.rows,
                part.bytes,
                part.backup_rows,
                part.backup_bytes,
                *counted([part]),
                part.bytes_limit if part.HasField("bytes_limit") else None,
            )
            for number, state in answers.known.items()
            for part in state.maps
            if part.map_id in names
        ]
        return [*rows, *(no_answer(number, 1, 19) for number in answers.silent)]

    async def _columns(self, statement: Statement) -> Iterable[Row]:
        catalog = self._seen(statement)
        fetching = self._core.spawn(self._statistics.refresh(catalog.tables), "taking statistics")
        await asyncio.wait([fetching], timeout=PATIENCE)
        found: list[Row] = []
        for schema in catalog.tables:
            known = self._statistics.statistics(schema)
            for place, column in enumerate(schema.shown, 1):
                about = known.columns.get(column.name) if known is not None else None
                found.append(
                    (
                        schema.name, column.name, place, str(column.type), column.nullable,
                        column.name in schema.key, column.name in schema.partition_by,
                        given_value(column),
                        column.comment or None,
                        about.distinct if about is not None else None,
                        about.null_fraction if about is not None else None,
                    )
                )  # fmt: skip
        return found

    async def _views(self, statement: Statement) -> Iterable[Row]:
        return [
            (view.name, len(view.columns), view.text, ", ".join(view.uses), view.comment or None)
            for view in self._seen(statement).views
        ]

    async def _indexes(self, statement: Statement) -> Iterable[Row]:
        _, found = await self._indexes_known.shown(None, self._seen(statement))
        return zip(*(column.to_pylist() for column in found.columns), strict=True)

    # --- settings and sessions ----------------------------------------------------------------

    async def _settings(self, statement: Statement) -> Iterable[Row]:
        return [
            (name, value, default, description)
            for name, value, default, description in self._all_settings(statement)
        ]

    def _all_settings(self, statement: Statement) -> Iterable[tuple[str, str, str, str]]:
        """Where files lie is for administrators."""
        defaults, config = MemberConfig(), self._core.config
        hidden = frozenset() if self._core.access.is_admin(statement.user) else _FILES
        for field in dataclasses.fields(MemberConfig):
            if field.name not in _PRIVATE:
                value = str(getattr(config, field.name))
                yield (
                    field.name,
                    HIDDEN_TEXT if value and field.name in hidden else value,
                    str(getattr(defaults, field.name)),
                    str(field.metadata["doc"]),
                )

    def _roles(self, relation: str) -> Callable[[Statement], Awaitable[Iterable[Row]]]:
        async def rows(statement: Statement) -> Iterable[Row]:
            return rows_of_roles(self._core.access.users(statement.user))[relation]

        return rows

    async def _pg_cursors(self, statement: Statement) -> Iterable[Row]:
        return self._cursors.rows(statement)

    async def _pg_prepared_statements(self, statement: Statement) -> Iterable[Row]:
        return self._cursors.prepared_rows(statement)

    async def _channels(self, statement: Statement) -> Iterable[Row]:
        inbox = self._inbox(statement)
        return [(channel,) for channel in (() if inbox is None else inbox.channels)]

    async def _usage(self, statement: Statement) -> Iterable[Row]:
        inbox = self._inbox(statement)
        return [(0.0 if inbox is None else inbox.usage,)]

    def _inbox(self, statement: Statement) -> Inbox | None:
        client = self._clients.get(statement.channel)
        return None if client is None else client.inbox

    async def _pg_settings(self, statement: Statement) -> Iterable[Row]:
        named = [(n, v, d, t, "postmaster") for n, v, d, t in self._all_settings(statement)]
        for setting in SETTINGS.values():
            context = "user" if setting.check is not None else "internal"
            value = statement.session.value(setting)
            named.append((setting.name, value, setting.default, setting.summary, context))
        return [
            (
                name, value, None, "Remuda", description, None, context, "string", "default",
                None, None, None, default, default, None, None, False,
            )
            for name, value, default, description, context in sorted(named)
        ]  # fmt: skip


def _state(core: Core, member: int, *, answered: bool) -> str:
    if member in core.lost:
        return "suspected"
    if member in core.leaving:
        return "leaving"
    return "alive" if answered else NO_ANSWER


def counted(parts: Sequence[control_pb2.MapPart]) -> tuple[Any, ...]:
    """What members have counted of one map, summed: gets, hits, misses, puts, removes, evictions,
    idle_removals, expirations, last_access, last_update, rows_read, rows_written."""
    gets, misses = sum(part.gets for part in parts), sum(part.misses for part in parts)
    times = [
        max((part.last_access for part in parts), default=0),
        max((part.last_update for part in parts), default=0),
    ]
    return (
        gets, gets - misses, misses,
        sum(part.puts for part in parts), sum(part.removes for part in parts),
        sum(part.evictions for part in parts), sum(part.idle for part in parts),
        sum(part.expirations for part in parts),
        *(moment(to_micros(at)) if at else None for at in times),
        sum(part.rows_read for part in parts), sum(part.rows_written for part in parts),
    )  # fmt: skip


def _awaited(view: View, partition: int) -> str | None:
    """The former members that may bring a copy of the partition back."""
    missing = view.unreachable.get(partition)
    if missing is None:
        return None
    former = [member for member in view.former if member.number in missing.holders]
    return ", ".join(str(member) for member in former)


def partition_state(view: View, partition: int, lost: Container[int], wanted: Sequence[int]) -> str:
    """Of a partition whose copies should be on the members ``wanted``."""
    row = view.replicas[partition]
    if partition in view.lost:
        return "lost"
    if not row or row[0] in lost:
        return "unreachable"
    if len(row) < min(view.backups + 1, len(view.members)):
        return "short of backups"
    return "complete" if list(row) == list(wanted) else "to be moved"


_WAITING: Final = frozenset(("short of backups", "to be moved"))
"""States of partitions of which copies are still to be made."""
_PRIVATE: Final = ("control_fd", "parent_pipe")
_FILES: Final = frozenset(
    ("audit_file", "log_file", "secret_file", "snapshot_key_file", "snapshot_store",
     "spill_directory", "trace_endpoint", "tls_ca", "tls_certificate", "tls_key", "users_file")
)  # fmt: skip


def engine_rows(relation: SystemRelation, rows: Sequence[Row]) -> SuppliedRows:
    """Rows of Python values as one batch in engine form."""
    columns = list(zip(*rows, strict=True)) or [() for _ in relation.columns]
    arrays = [
        to_engine(pa.array(list(values), external_type(column.type)), column.type)
        if rows
        else pa.array([], engine_type(column.type))
        for values, column in zip(columns, relation.columns, strict=True)
    ]
    return [pa.RecordBatch.from_arrays(arrays, names=[c.name for c in relation.columns])]
