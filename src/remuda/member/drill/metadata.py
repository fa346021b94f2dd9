"""GET_CATALOGS, GET_SCHEMAS, GET_TABLES, GET_COLUMNS: the catalog for Drill's clients.

One catalog, ``remuda``. Maps are of type TABLE, views VIEW, what describes the grid itself SYSTEM
TABLE. Filters are joined by AND; errors in them are in the answer, whose status is FAILED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from remuda.catalog.pg_objects import Relation, relations, schemas
from remuda.catalog.system_relations import DATABASE, OWNER, SYSTEM
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import RemudaError
from remuda.member.base.core import Call, Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.drill.like_filter import Matches, lowered, matcher
from remuda.member.drill.server import on_server_meta
from remuda.rpc.drill_errors import encode_drill_error
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_metadata_pb2 import (
    CatalogMetadata,
    ColumnMetadata,
    GetCatalogsReq,
    GetCatalogsResp,
    GetColumnsReq,
    GetColumnsResp,
    GetSchemasReq,
    GetSchemasResp,
    GetTablesReq,
    GetTablesResp,
    SchemaMetadata,
    TableMetadata,
)
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.session.drill.columns import table_columns


@dataclass(frozen=True, slots=True)
class _Filters:
    """The pattern of names. Raises InvalidEscape when it is made."""

    catalog: Matches
    schema: Matches
    table: Matches
    column: Matches


class DrillMetadata(Wing):
    def __init__(self, core: Core) -> None:
        self._core = core

    def routes(self) -> Routes:
        return Routes(
            calls={
                RpcType.GET_SERVER_META: on_server_meta,
                RpcType.GET_CATALOGS: self.on_catalogs,
                RpcType.GET_SCHEMAS: self.on_schemas,
                RpcType.GET_TABLES: self.on_tables,
                RpcType.GET_COLUMNS: self.on_columns,
            }
        )

    def on_catalogs(self, call: Call) -> None:
        request = GetCatalogsReq.FromString(call.pbody)
        self._answer(call, GetCatalogsResp(), "catalogs", lambda: self._catalogs(request))

    def on_schemas(self, call: Call) -> None:
        request = GetSchemasReq.FromString(call.pbody)
        self._answer(call, GetSchemasResp(), "schemas", lambda: self._schemas(request, call.user))

    def on_tables(self, call: Call) -> None:
        request = GetTablesReq.FromString(call.pbody)
        self._answer(call, GetTablesResp(), "tables", lambda: self._tables(request, call.user))

    def on_columns(self, call: Call) -> None:
        request = GetColumnsReq.FromString(call.pbody)
        self._answer(call, GetColumnsResp(), "columns", lambda: self._columns(request, call.user))

    @staticmethod
    def _answer(call: Call, response: Any, field: str, make: Callable[[], list[Any]]) -> None:
        try:
            getattr(response, field).extend(make())
            response.status = user_pb2.OK
        except RemudaError as error:
            response.status = user_pb2.FAILED_
            response.error.CopyFrom(encode_drill_error(error, f"get {field}"))
        call.reply(RpcType.Value(field.upper()), response)

    # --- the answers, in the order that JDBC and ODBC ask for ---------------------------------

    @staticmethod
    def _catalogs(request: GetCatalogsReq) -> list[CatalogMetadata]:
        if not _filters(request).catalog(DATABASE):
            return []
        return [
            CatalogMetadata(
                catalog_name=DATABASE, description="The maps of this cluster", connect=""
            )
        ]

    def _schemas(self, request: GetSchemasReq, user: str) -> list[SchemaMetadata]:
        filters = _filters(request)
        return [
            SchemaMetadata(
                catalog_name=DATABASE,
                schema_name=name,
                owner=OWNER,
                type=DATABASE,
                mutable="NO" if name in SYSTEM else "YES",
            )
            for name in sorted(name for name, _ in schemas(self._core.access.catalog(user)))
            if filters.catalog(DATABASE) and filters.schema(name.lower())
        ]

    def _tables(self, request: GetTablesReq, user: str) -> list[TableMetadata]:
        wanted = frozenset(request.table_type_filter)
        found = [
            TableMetadata(
                catalog_name=DATABASE,
                schema_name=relation.schema,
                table_name=relation.name,
                type=table_type(relation),
            )
            for relation in self._relations(_filters(request), user)
            if not wanted or table_type(relation) in wanted
        ]
        return sorted(found, key=lambda t: (t.type, t.schema_name, t.table_name))

    def _columns(self, request: GetColumnsReq, user: str) -> list[ColumnMetadata]:
        filters = _filters(request)
        found = sorted(self._relations(filters, user), key=lambda r: (r.schema, r.name))
        return [
            column
            for relation in found
            for column in table_columns(relation.schema, relation.name, relation.columns)
            if filters.column(column.column_name)
        ]

    def _relations(self, filters: _Filters, user: str) -> Iterator[Relation]:
        if not filters.catalog(DATABASE):
            return
        for relation in relations(self._core.access.catalog(user)):
            if filters.schema(relation.schema.lower()) and filters.table(relation.name):
                yield relation


def table_type(relation: Relation) -> str:
    if isinstance(relation.source, MapSchema):
        return "TABLE"
    return "VIEW" if isinstance(relation.source, ViewDefinition) else "SYSTEM TABLE"


def _filters(request: Message) -> _Filters:
    """Of the fields that the request has and has set. Patterns of schemas know no case."""

    def found(name: str) -> Matches:
        field = f"{name}_name_filter"
        known = field in request.DESCRIPTOR.fields_by_name
        if not known or not request.HasField(field):
            return matcher(None)
        message = getattr(request, field)
        return matcher(lowered(message) if name == "schema" else message)

    return _Filters(found("catalog"), found("schema"), found("table"), found("column"))
