"""The relations that describe the grid itself: their names and columns.

``information_schema`` is the standard's, ``pg_catalog`` is PostgreSQL's, ``sys`` is our own. Where
their rows come from: ``session.system`` and ``member.system.system_relations``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from remuda.catalog.pg_relations import PG_RELATIONS
from remuda.catalog.pg_types import catalog_type
from remuda.datatypes import schema as schemas
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array,
)

DATABASE: Final = "remuda"
OWNER: Final = "remuda"
PUBLIC: Final = schemas.PUBLIC
INFORMATION_SCHEMA: Final = "information_schema"
PG_CATALOG: Final = "pg_catalog"
SYS: Final = "sys"


@dataclass(frozen=True, slots=True)
class SystemRelation:
    schema: str
    name: str
    columns: tuple[Column, ...]
    oid: int = 0
    """The number that PostgreSQL gives it; 0 for a view."""

    @property
    def qualified(self) -> str:
        """The name under which it is supplied."""
        return f"{self.schema}.{self.name}"


_TYPES: Final[dict[str, SqlType]] = {
    "bool": BOOLEAN,
    "smallint": SMALLINT,
    "int": INTEGER,
    "bigint": BIGINT,
    "real": REAL,
    "double": DOUBLE,
    "text": VARCHAR,
    "moment": TIMESTAMPTZ,
    "json": JSON,
    "smallint[]": array(SMALLINT),
    "bigint[]": array(BIGINT),
    "text[]": array(VARCHAR),
}

_INFORMATION_SCHEMA: Final = """
schemata: catalog_name text, schema_name text, schema_owner text,
    default_character_set_catalog text, default_character_set_schema text,
    default_character_set_name text, sql_path text
information_schema_catalog_name: catalog_name text
tables: table_catalog text, table_schema text, table_name text, table_type text,
    self_referencing_column_name text, reference_generation text, user_defined_type_catalog text,
    user_defined_type_schema text, user_defined_type_name text, is_insertable_into text,
    is_typed text, commit_action text
columns: table_catalog text, table_schema text, table_name text, column_name text,
    ordinal_position int, column_default text, is_nullable text, data_type text,
    character_maximum_length int, character_octet_length int, numeric_precision int,
    numeric_precision_radix int, numeric_scale int, datetime_precision int, interval_type text,
    interval_precision int, character_set_catalog text, character_set_schema text,
    character_set_name text, collation_catalog text, collation_schema text, collation_name text,
    domain_catalog text, domain_schema text, domain_name text, udt_catalog text, udt_schema text,
    udt_name text, scope_catalog text, scope_schema text, scope_name text,
    maximum_cardinality int, dtd_identifier text, is_self_referencing text, is_identity text,
    identity_generation text, identity_start text, identity_increment text,
    identity_maximum text, identity_minimum text, identity_cycle text, is_generated text,
    generation_expression text, is_updatable text
views: table_catalog text, table_schema text, table_name text, view_definition text,
    check_option text, is_updatable text, is_insertable_into text, is_trigger_updatable text,
    is_trigger_deletable text, is_trigger_insertable_into text
view_table_usage: view_catalog text, view_schema text, view_name text, table_catalog text,
    table_schema text, table_name text
table_constraints: constraint_catalog text, constraint_schema text, constraint_name text,
    table_catalog text, table_schema text, table_name text, constraint_type text,
    is_deferrable text, initially_deferred text, enforced text, nulls_distinct text
key_column_usage: constraint_catalog text, constraint_schema text, constraint_name text,
    table_catalog text, table_schema text, table_name text, column_name text,
    ordinal_position int, position_in_unique_constraint int
constraint_column_usage: table_catalog text, table_schema text, table_name text,
    column_name text, constraint_catalog text, constraint_schema text, constraint_name text
check_constraints: constraint_catalog text, constraint_schema text, constraint_name text,
    check_clause text
referential_constraints: constraint_catalog text, constraint_schema text, constraint_name text,
    unique_constraint_catalog text, unique_constraint_schema text, unique_constraint_name text,
    match_option text, update_rule text, delete_rule text
sequences: sequence_catalog text, sequence_schema text, sequence_name text, data_type text,
    numeric_precision int, numeric_precision_radix int, numeric_scale int, start_value text,
    minimum_value text, maximum_value text, increment text, cycle_option text
routines: specific_catalog text, specific_schema text, specific_name text, routine_catalog text,
    routine_schema text, routine_name text, routine_type text, data_type text, routine_body text,
    routine_definition text, external_language text
parameters: specific_catalog text, specific_schema text, specific_name text, ordinal_position int,
    parameter_mode text, parameter_name text, data_type text
triggers: trigger_catalog text, trigger_schema text, trigger_name text, event_manipulation text,
    event_object_catalog text, event_object_schema text, event_object_table text,
    action_order int, action_condition text, action_statement text, action_orientation text,
    action_timing text
domains: domain_catalog text, domain_schema text, domain_name text, data_type text,
    character_maximum_length int, domain_default text
user_defined_types: user_defined_type_catalog text, user_defined_type_schema text,
    user_defined_type_name text, user_defined_type_category text
"""

_SYS: Final = """
members: member int, uuid text, host text, user_port int, control_port int, data_port int,
    state text, cause text, coordinator bool, asked bool, partitions int, backups int, view bigint,
    queries int, fragments int, clients int, jobs int, catalog_version bigint,
    memory_held bigint, memory_limit bigint, memory_peak bigint, spilled bigint, queued int,
    labels text, storage_held bigint, storage_limit bigint, writes_refused bigint,
    internal_errors bigint, release text, oldest_version int, newest_version int,
    cluster_version int, lease double, silent double
membership_events: at moment, member int, view bigint, kind text, subject int, cause text
spark_services: member int, service text, state text, user_name text, address text, cores int,
    free int, running int, silent double
partitions: partition int, member int, live bool, backups text, state text, emptied_in_view bigint,
    generation int, awaited text, cause text
maps: name text, map_id bigint, version bigint, kind text, columns int, key text,
    partition_by text, rows bigint, bytes bigint, comment text, options text,
    backup_rows bigint, backup_bytes bigint, gets bigint, hits bigint, misses bigint, puts bigint,
    removes bigint, evictions bigint, idle_removals bigint, expirations bigint,
    last_access moment, last_update moment, rows_read bigint, rows_written bigint,
    bytes_limit bigint, no_answer text
map_parts: name text, member int, rows bigint, bytes bigint, backup_rows bigint,
    backup_bytes bigint, gets bigint, hits bigint, misses bigint, puts bigint, removes bigint,
    evictions bigint, idle_removals bigint, expirations bigint, last_access moment,
    last_update moment, rows_read bigint, rows_written bigint, bytes_limit bigint
columns: map text, name text, position int, type text, nullable bool, key bool,
    partition_key bool, default_value text, comment text, distinct_values double,
    null_fraction double
views: name text, columns int, definition text, uses text, comment text
queries: query text, member int, state text, started moment, seconds double, text text,
    rows bigint, bytes bigint, members int, planning double, queued double, memory bigint,
    spilled bigint, user_name text, pid int, transaction text, waited double
query_history: query text, member int, state text, started moment, planning double, queued double,
    execution double, rows bigint, bytes bigint, memory bigint, spilled bigint, error text,
    sqlstate text, text text, waited double
statement_statistics: fingerprint bigint, user_name text, text text, calls bigint, errors bigint,
    reads_by_key bigint, rows bigint, total_seconds double, min_seconds double,
    mean_seconds double, max_seconds double, p50_seconds double, p95_seconds double,
    p99_seconds double, planning_seconds double, queue_seconds double, wait_seconds double,
    memory bigint, spilled bigint, first moment, last moment, members int,
    no_answer text
query_profiles: query text, member int, state text, profile json
fragments: query text, member int, fragment int, state text, operators text, rows bigint,
    bytes bigint, seconds double, memory bigint, instance int, wait double, first moment,
    last moment
operators: query text, member int, fragment int, instance int, operator int, name text,
    rows bigint, batches bigint, bytes bigint, seconds double, wait double, waits bigint,
    memory bigint, spilled bigint, files bigint, first moment, last moment
logs: member int, sync text, records bigint, durable bigint, waiting bigint, bytes bigint,
    groups bigint, checkpoint bigint, archived bigint, archived_bytes bigint,
    archive_failures bigint
log_levels: member int, part text, level text
indexes: name text, map text, kind text, columns text, state text, bytes bigint,
    no_answer text
snapshots: snapshot text, cut bigint, kind text, created moment, timestamp bigint, maps int,
    rows bigint, removed bigint, objects int, bytes bigint, key text, problem text
restorable: snapshot text, first moment, last moment
snapshot_tasks: member int, kind text, snapshot text, cut bigint, started moment, attempt int,
    objects bigint, objects_total bigint, rows bigint, bytes bigint
settings: name text, setting text, default_value text, description text
transactions: transaction text, member int, state text, isolation text, read_only bool,
    user_name text, label text, started moment, seconds double, snapshot bigint, writes bigint,
    bytes bigint, reads bigint, savepoints int, pid int, idle double
clients: pid int, member int, address text, application text, user_name text, since moment,
    state text, state_since moment, statements int, query text, text text, started moment,
    transactions int, transaction text, transaction_started moment, protocol text
locks: map text, key text, kind text, mode text, granted bool, transaction text, pid int,
    application text, user_name text, query text, text text, since moment, seconds double,
    member int, waits_for text
lock_waits: pid int, transaction text, application text, text text, map text, key text,
    mode text, since moment, seconds double, blocking_pid int, blocking_transaction text,
    blocking_application text, blocking_state text, blocking_text text
subscriptions: subscription text, member int, kind text, map text, query text, user_name text,
    started moment, position bigint, changes bigint
"""


def _entries(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The name of each relation, and the words of each column."""
    for entry in text.replace("\n    ", " ").strip().splitlines():
        name, _, columns = entry.partition(": ")
        yield name, [part.split() for part in columns.split(", ")]


def _relations(schema: str, text: str) -> dict[str, SystemRelation]:
    return {
        name: SystemRelation(schema, name, tuple(Column(c, _TYPES[t]) for c, t in columns))
        for name, columns in _entries(text)
    }


def _pg_catalog() -> dict[str, SystemRelation]:
    found: dict[str, SystemRelation] = {}
    for header, columns in _entries(PG_RELATIONS):
        name, number = header.split()
        found[name] = SystemRelation(
            PG_CATALOG,
            name,
            tuple(
                Column(column, catalog_type(t.rstrip("!")), nullable=not t.endswith("!"))
                for column, t in columns
            ),
            0 if number == "view" else int(number),
        )
    return found


SYSTEM: Final[dict[str, dict[str, SystemRelation]]] = {
    INFORMATION_SCHEMA: _relations(INFORMATION_SCHEMA, _INFORMATION_SCHEMA),
    PG_CATALOG: _pg_catalog()
    | _relations(
        PG_CATALOG, "sqlite_master: type text, name text, tbl_name text, rootpage bigint, sql text"
    ),
    SYS: _relations(SYS, _SYS),
}
"""All of them, by schema and name."""


FUNCTIONS: Final[dict[str, SystemRelation]] = _relations(
    PG_CATALOG,
    """
pg_get_keywords: word text, catcode text, barelabel bool, catdesc text, baredesc text
pg_listening_channels: pg_listening_channels text
pg_notification_queue_usage: pg_notification_queue_usage double
""",
)
"""Functions in FROM that take no arguments, and give rows of the catalog."""


def system_relation(schema: str | None, name: str) -> SystemRelation | None:
    """The relation of a schema; None for ``schema`` is the search path, where ``pg_catalog`` comes
    first."""
    return SYSTEM.get(schema or PG_CATALOG, {}).get(name)


def all_system_relations() -> tuple[SystemRelation, ...]:
    return tuple(relation for group in SYSTEM.values() for relation in group.values())
