"""Drill's INFORMATION_SCHEMA and its tables of members, as queries over Remuda's."""

from __future__ import annotations

from typing import Final

from remuda.catalog.system_relations import DATABASE

DRILL_RELEASE: Final = "1.21.0"
"""The release of Drill whose protocol and REST interface are spoken: its clients look at it."""

_TYPE: Final = """CASE data_type WHEN 'double precision' THEN 'DOUBLE' WHEN 'real' THEN 'FLOAT'
 WHEN 'numeric' THEN 'DECIMAL' WHEN 'bytea' THEN 'BINARY VARYING' WHEN 'ARRAY' THEN 'ARRAY'
 WHEN 'time without time zone' THEN 'TIME' WHEN 'timestamp without time zone' THEN 'TIMESTAMP'
 WHEN 'timestamp with time zone' THEN 'TIMESTAMP' WHEN 'record' THEN 'STRUCT'
 WHEN 'boolean' THEN 'BOOLEAN' WHEN 'smallint' THEN 'SMALLINT' WHEN 'integer' THEN 'INTEGER'
 WHEN 'bigint' THEN 'BIGINT' WHEN 'date' THEN 'DATE' WHEN 'interval' THEN 'INTERVAL'
 ELSE 'CHARACTER VARYING' END"""

_LENGTH: Final = (
    f"CASE {_TYPE} WHEN 'CHARACTER VARYING' THEN 65535 WHEN 'BINARY VARYING' THEN 65535 END"
)


def _query(columns: dict[str, str], source: str) -> str:
    items = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    made = f"(SELECT {items} FROM {source})"  # noqa: S608 (constants of this module)
    return made.replace("\n", "")


_TABLE_TYPE: Final = (
    "CASE WHEN table_schema <> 'public' THEN 'SYSTEM TABLE' WHEN table_type = 'VIEW' "
    "THEN 'VIEW' ELSE 'TABLE' END"
)

TABLES: Final[dict[str, tuple[tuple[str, ...], str]]] = {}
"""INFORMATION_SCHEMA's tables: their columns and a query in parentheses."""


def _add(name: str, columns: dict[str, str], source: str) -> None:
    TABLES[name] = (tuple(columns), _query(columns, source))


_add(
    "CATALOGS",
    {
        "CATALOG_NAME": "catalog_name",
        "CATALOG_DESCRIPTION": "'The maps of this cluster'",
        "CATALOG_CONNECT": "''",
    },
    "information_schema.information_schema_catalog_name",
)
_add(
    "SCHEMATA",
    {
        "CATALOG_NAME": "catalog_name",
        "SCHEMA_NAME": "schema_name",
        "SCHEMA_OWNER": "schema_owner",
        "TYPE": f"'{DATABASE}'",
        "IS_MUTABLE": "CASE WHEN schema_name = 'public' THEN 'YES' ELSE 'NO' END",
    },
    "information_schema.schemata",
)
_add(
    "TABLES",
    {
        "TABLE_CATALOG": "table_catalog",
        "TABLE_SCHEMA": "table_schema",
        "TABLE_NAME": "table_name",
        "TABLE_TYPE": _TABLE_TYPE,
    },
    "information_schema.tables",
)
_add(
    "VIEWS",
    {
        "TABLE_CATALOG": "table_catalog",
        "TABLE_SCHEMA": "table_schema",
        "TABLE_NAME": "table_name",
        "VIEW_DEFINITION": "view_definition",
    },
    "information_schema.views",
)
_add(
    "COLUMNS",
    {
        "TABLE_CATALOG": "table_catalog",
        "TABLE_SCHEMA": "table_schema",
        "TABLE_NAME": "table_name",
        "COLUMN_NAME": "column_name",
        "ORDINAL_POSITION": "ordinal_position",
        "COLUMN_DEFAULT": "column_default",
        "IS_NULLABLE": "is_nullable",
        "DATA_TYPE": _TYPE,
        "CHARACTER_MAXIMUM_LENGTH": f"coalesce(character_maximum_length, {_LENGTH})",
        "CHARACTER_OCTET_LENGTH": f"coalesce(character_maximum_length, {_LENGTH})",
        "NUMERIC_PRECISION": "numeric_precision",
        "NUMERIC_PRECISION_RADIX": "numeric_precision_radix",
        "NUMERIC_SCALE": "numeric_scale",
        "DATETIME_PRECISION": "datetime_precision",
    },
    "information_schema.columns",
)

SYSTEM: Final[dict[str, str]] = {
    "drillbits": _query(
        {
            "hostname": "host",
            "user_port": "user_port",
            "control_port": "control_port",
            "data_port": "data_port",
            "current": "asked",
            "version": f"'{DRILL_RELEASE}'",
            "state": "CASE state WHEN 'alive' THEN 'ONLINE' ELSE 'OFFLINE' END",
        },
        "sys.members",
    ),
    "version": f"(SELECT '{DRILL_RELEASE}' AS version, version() AS commit_message)",
}
"""Relations of ``sys`` that Drill has and Remuda calls otherwise."""
