"""The facts about the server for Drill's clients: the handshake's infos, and GET_SERVER_META."""

from __future__ import annotations

from typing import Final

from remuda.catalog.catalog import NAME_LENGTH_MAX
from remuda.catalog.system_relations import PUBLIC
from remuda.limits import FRAME_SIZE_MAX, ROW_SIZE_MAX, STATEMENT_LENGTH_MAX
from remuda.member.base.core import Call
from remuda.release import __version__
from remuda.rpc.messages import user_metadata_pb2 as meta
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcEndpointInfos, RpcType
from remuda.session.drill.capabilities import (
    CASTS,
    DATE_TIME_FUNCTIONS,
    NUMERIC_FUNCTIONS,
    STRING_FUNCTIONS,
    SYSTEM_FUNCTIONS,
    keywords,
)
from remuda.sql.drill.schema import DRILL_RELEASE


def server_infos() -> RpcEndpointInfos:
    """``version`` is the release of Drill whose protocol is spoken: clients choose by it what they
    send. Its real name stands beside it."""
    major, minor, patch = (int(part) for part in DRILL_RELEASE.split("."))
    return RpcEndpointInfos(
        name="Remuda",
        version=DRILL_RELEASE,
        majorVersion=major,
        minorVersion=minor,
        patchVersion=patch,
        application=f"Remuda {__version__}",
    )


def on_server_meta(call: Call) -> None:
    response = meta.GetServerMetaResp(status=user_pb2.OK, server_meta=SERVER_META)
    call.reply(RpcType.SERVER_META, response)


UNLIMITED: Final = 0
_LITERALS: Final = (
    meta.DL_DATE,
    meta.DL_TIME,
    meta.DL_TIMESTAMP,
    meta.DL_INTERVAL_YEAR,
    meta.DL_INTERVAL_MONTH,
    meta.DL_INTERVAL_DAY,
    meta.DL_INTERVAL_HOUR,
    meta.DL_INTERVAL_MINUTE,
    meta.DL_INTERVAL_SECOND,
    meta.DL_INTERVAL_YEAR_TO_MONTH,
    meta.DL_INTERVAL_DAY_TO_HOUR,
    meta.DL_INTERVAL_DAY_TO_MINUTE,
    meta.DL_INTERVAL_DAY_TO_SECOND,
    meta.DL_INTERVAL_HOUR_TO_MINUTE,
    meta.DL_INTERVAL_HOUR_TO_SECOND,
    meta.DL_INTERVAL_MINUTE_TO_SECOND,
)
_JOINS: Final = (
    meta.OJ_LEFT,
    meta.OJ_RIGHT,
    meta.OJ_FULL,
    meta.OJ_NESTED,
    meta.OJ_NOT_ORDERED,
    meta.OJ_INNER,
    meta.OJ_ALL_COMPARISON_OPS,
)
_SUBQUERIES: Final = (
    meta.SQ_CORRELATED,
    meta.SQ_IN_COMPARISON,
    meta.SQ_IN_EXISTS,
    meta.SQ_IN_INSERT,
    meta.SQ_IN_QUANTIFIED,
)

SERVER_META: Final = meta.ServerMeta(
    all_tables_selectable=True,
    blob_included_in_max_row_size=True,
    catalog_at_start=True,
    catalog_separator=".",
    catalog_term="catalog",
    collate_support=[],
    column_aliasing_supported=True,
    convert_support=[
        meta.ConvertSupport(**{"from": source, "to": target}) for source, target in CASTS
    ],
    correlation_names_support=meta.CN_ANY,
    date_time_functions=DATE_TIME_FUNCTIONS,
    date_time_literals_support=_LITERALS,
    group_by_support=meta.GB_UNRELATED,
    identifier_casing=meta.IC_STORES_LOWER,
    identifier_quote_string="`",
    like_escape_clause_supported=True,
    max_binary_literal_length=UNLIMITED,
    max_catalog_name_length=NAME_LENGTH_MAX,
    max_char_literal_length=UNLIMITED,
    max_column_name_length=NAME_LENGTH_MAX,
    max_columns_in_group_by=UNLIMITED,
    max_columns_in_order_by=UNLIMITED,
    max_columns_in_select=UNLIMITED,
    max_cursor_name_length=UNLIMITED,
    max_logical_lob_size=ROW_SIZE_MAX,
    max_row_size=min(ROW_SIZE_MAX, FRAME_SIZE_MAX),
    max_schema_name_length=NAME_LENGTH_MAX,
    max_statement_length=STATEMENT_LENGTH_MAX,
    max_statements=UNLIMITED,
    max_table_name_length=NAME_LENGTH_MAX,
    max_tables_in_select=UNLIMITED,
    max_user_name_length=NAME_LENGTH_MAX,
    null_collation=meta.NC_HIGH,
    null_plus_non_null_equals_null=True,
    numeric_functions=NUMERIC_FUNCTIONS,
    order_by_support=[meta.OB_UNRELATED, meta.OB_EXPRESSION],
    outer_join_support=_JOINS,
    quoted_identifier_casing=meta.IC_SUPPORTS_MIXED,
    read_only=False,
    schema_term="schema",
    search_escape_string="\\",
    select_for_update_supported=False,
    special_characters="$",
    sql_keywords=keywords(),
    string_functions=STRING_FUNCTIONS,
    subquery_support=_SUBQUERIES,
    system_functions=SYSTEM_FUNCTIONS,
    table_term="table",
    transaction_supported=False,
    union_support=[meta.U_UNION, meta.U_UNION_ALL],
    current_schema=PUBLIC,
)
"""A field for each of Drill's fifty; repeated ones may be empty."""
