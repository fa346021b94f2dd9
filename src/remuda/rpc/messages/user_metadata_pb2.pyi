from remuda.rpc.messages import common_pb2 as _common_pb2
from remuda.rpc.messages import user_pb2 as _user_pb2
from remuda.rpc.messages import vectors_pb2 as _vectors_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CollateSupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CS_UNKNOWN: _ClassVar[CollateSupport]
    CS_GROUP_BY: _ClassVar[CollateSupport]

class CorrelationNamesSupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CN_NONE: _ClassVar[CorrelationNamesSupport]
    CN_DIFFERENT_NAMES: _ClassVar[CorrelationNamesSupport]
    CN_ANY: _ClassVar[CorrelationNamesSupport]

class DateTimeLiteralsSupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DL_UNKNOWN: _ClassVar[DateTimeLiteralsSupport]
    DL_DATE: _ClassVar[DateTimeLiteralsSupport]
    DL_TIME: _ClassVar[DateTimeLiteralsSupport]
    DL_TIMESTAMP: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_YEAR: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_MONTH: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_DAY: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_HOUR: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_MINUTE: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_SECOND: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_YEAR_TO_MONTH: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_DAY_TO_HOUR: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_DAY_TO_MINUTE: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_DAY_TO_SECOND: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_HOUR_TO_MINUTE: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_HOUR_TO_SECOND: _ClassVar[DateTimeLiteralsSupport]
    DL_INTERVAL_MINUTE_TO_SECOND: _ClassVar[DateTimeLiteralsSupport]

class GroupBySupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GB_NONE: _ClassVar[GroupBySupport]
    GB_SELECT_ONLY: _ClassVar[GroupBySupport]
    GB_BEYOND_SELECT: _ClassVar[GroupBySupport]
    GB_UNRELATED: _ClassVar[GroupBySupport]

class IdentifierCasing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IC_UNKNOWN: _ClassVar[IdentifierCasing]
    IC_STORES_LOWER: _ClassVar[IdentifierCasing]
    IC_STORES_MIXED: _ClassVar[IdentifierCasing]
    IC_STORES_UPPER: _ClassVar[IdentifierCasing]
    IC_SUPPORTS_MIXED: _ClassVar[IdentifierCasing]

class NullCollation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NC_UNKNOWN: _ClassVar[NullCollation]
    NC_AT_START: _ClassVar[NullCollation]
    NC_AT_END: _ClassVar[NullCollation]
    NC_HIGH: _ClassVar[NullCollation]
    NC_LOW: _ClassVar[NullCollation]

class OrderBySupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OB_UNKNOWN: _ClassVar[OrderBySupport]
    OB_UNRELATED: _ClassVar[OrderBySupport]
    OB_EXPRESSION: _ClassVar[OrderBySupport]

class OuterJoinSupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OJ_UNKNOWN: _ClassVar[OuterJoinSupport]
    OJ_LEFT: _ClassVar[OuterJoinSupport]
    OJ_RIGHT: _ClassVar[OuterJoinSupport]
    OJ_FULL: _ClassVar[OuterJoinSupport]
    OJ_NESTED: _ClassVar[OuterJoinSupport]
    OJ_NOT_ORDERED: _ClassVar[OuterJoinSupport]
    OJ_INNER: _ClassVar[OuterJoinSupport]
    OJ_ALL_COMPARISON_OPS: _ClassVar[OuterJoinSupport]

class SubQuerySupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SQ_UNKNOWN: _ClassVar[SubQuerySupport]
    SQ_CORRELATED: _ClassVar[SubQuerySupport]
    SQ_IN_COMPARISON: _ClassVar[SubQuerySupport]
    SQ_IN_EXISTS: _ClassVar[SubQuerySupport]
    SQ_IN_INSERT: _ClassVar[SubQuerySupport]
    SQ_IN_QUANTIFIED: _ClassVar[SubQuerySupport]

class UnionSupport(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    U_UNKNOWN: _ClassVar[UnionSupport]
    U_UNION: _ClassVar[UnionSupport]
    U_UNION_ALL: _ClassVar[UnionSupport]
CS_UNKNOWN: CollateSupport
CS_GROUP_BY: CollateSupport
CN_NONE: CorrelationNamesSupport
CN_DIFFERENT_NAMES: CorrelationNamesSupport
CN_ANY: CorrelationNamesSupport
DL_UNKNOWN: DateTimeLiteralsSupport
DL_DATE: DateTimeLiteralsSupport
DL_TIME: DateTimeLiteralsSupport
DL_TIMESTAMP: DateTimeLiteralsSupport
DL_INTERVAL_YEAR: DateTimeLiteralsSupport
DL_INTERVAL_MONTH: DateTimeLiteralsSupport
DL_INTERVAL_DAY: DateTimeLiteralsSupport
DL_INTERVAL_HOUR: DateTimeLiteralsSupport
DL_INTERVAL_MINUTE: DateTimeLiteralsSupport
DL_INTERVAL_SECOND: DateTimeLiteralsSupport
DL_INTERVAL_YEAR_TO_MONTH: DateTimeLiteralsSupport
DL_INTERVAL_DAY_TO_HOUR: DateTimeLiteralsSupport
DL_INTERVAL_DAY_TO_MINUTE: DateTimeLiteralsSupport
DL_INTERVAL_DAY_TO_SECOND: DateTimeLiteralsSupport
DL_INTERVAL_HOUR_TO_MINUTE: DateTimeLiteralsSupport
DL_INTERVAL_HOUR_TO_SECOND: DateTimeLiteralsSupport
DL_INTERVAL_MINUTE_TO_SECOND: DateTimeLiteralsSupport
GB_NONE: GroupBySupport
GB_SELECT_ONLY: GroupBySupport
GB_BEYOND_SELECT: GroupBySupport
GB_UNRELATED: GroupBySupport
IC_UNKNOWN: IdentifierCasing
IC_STORES_LOWER: IdentifierCasing
IC_STORES_MIXED: IdentifierCasing
IC_STORES_UPPER: IdentifierCasing
IC_SUPPORTS_MIXED: IdentifierCasing
NC_UNKNOWN: NullCollation
NC_AT_START: NullCollation
NC_AT_END: NullCollation
NC_HIGH: NullCollation
NC_LOW: NullCollation
OB_UNKNOWN: OrderBySupport
OB_UNRELATED: OrderBySupport
OB_EXPRESSION: OrderBySupport
OJ_UNKNOWN: OuterJoinSupport
OJ_LEFT: OuterJoinSupport
OJ_RIGHT: OuterJoinSupport
OJ_FULL: OuterJoinSupport
OJ_NESTED: OuterJoinSupport
OJ_NOT_ORDERED: OuterJoinSupport
OJ_INNER: OuterJoinSupport
OJ_ALL_COMPARISON_OPS: OuterJoinSupport
SQ_UNKNOWN: SubQuerySupport
SQ_CORRELATED: SubQuerySupport
SQ_IN_COMPARISON: SubQuerySupport
SQ_IN_EXISTS: SubQuerySupport
SQ_IN_INSERT: SubQuerySupport
SQ_IN_QUANTIFIED: SubQuerySupport
U_UNKNOWN: UnionSupport
U_UNION: UnionSupport
U_UNION_ALL: UnionSupport

class LikeFilter(_message.Message):
    __slots__ = ("pattern", "escape")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    ESCAPE_FIELD_NUMBER: _ClassVar[int]
    pattern: str
    escape: str
    def __init__(self, pattern: _Optional[str] = ..., escape: _Optional[str] = ...) -> None: ...

class GetCatalogsReq(_message.Message):
    __slots__ = ("catalog_name_filter",)
    CATALOG_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    catalog_name_filter: LikeFilter
    def __init__(self, catalog_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ...) -> None: ...

class CatalogMetadata(_message.Message):
    __slots__ = ("catalog_name", "description", "connect")
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CONNECT_FIELD_NUMBER: _ClassVar[int]
    catalog_name: str
    description: str
    connect: str
    def __init__(self, catalog_name: _Optional[str] = ..., description: _Optional[str] = ..., connect: _Optional[str] = ...) -> None: ...

class GetCatalogsResp(_message.Message):
    __slots__ = ("status", "catalogs", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CATALOGS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.RequestStatus
    catalogs: _containers.RepeatedCompositeFieldContainer[CatalogMetadata]
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.RequestStatus, str]] = ..., catalogs: _Optional[_Iterable[_Union[CatalogMetadata, _Mapping]]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class GetSchemasReq(_message.Message):
    __slots__ = ("catalog_name_filter", "schema_name_filter")
    CATALOG_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    catalog_name_filter: LikeFilter
    schema_name_filter: LikeFilter
    def __init__(self, catalog_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., schema_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ...) -> None: ...

class SchemaMetadata(_message.Message):
    __slots__ = ("catalog_name", "schema_name", "owner", "type", "mutable")
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MUTABLE_FIELD_NUMBER: _ClassVar[int]
    catalog_name: str
    schema_name: str
    owner: str
    type: str
    mutable: str
    def __init__(self, catalog_name: _Optional[str] = ..., schema_name: _Optional[str] = ..., owner: _Optional[str] = ..., type: _Optional[str] = ..., mutable: _Optional[str] = ...) -> None: ...

class GetSchemasResp(_message.Message):
    __slots__ = ("status", "schemas", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.RequestStatus
    schemas: _containers.RepeatedCompositeFieldContainer[SchemaMetadata]
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.RequestStatus, str]] = ..., schemas: _Optional[_Iterable[_Union[SchemaMetadata, _Mapping]]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class GetTablesReq(_message.Message):
    __slots__ = ("catalog_name_filter", "schema_name_filter", "table_name_filter", "table_type_filter")
    CATALOG_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    TABLE_TYPE_FILTER_FIELD_NUMBER: _ClassVar[int]
    catalog_name_filter: LikeFilter
    schema_name_filter: LikeFilter
    table_name_filter: LikeFilter
    table_type_filter: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, catalog_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., schema_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., table_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., table_type_filter: _Optional[_Iterable[str]] = ...) -> None: ...

class TableMetadata(_message.Message):
    __slots__ = ("catalog_name", "schema_name", "table_name", "type")
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    catalog_name: str
    schema_name: str
    table_name: str
    type: str
    def __init__(self, catalog_name: _Optional[str] = ..., schema_name: _Optional[str] = ..., table_name: _Optional[str] = ..., type: _Optional[str] = ...) -> None: ...

class GetTablesResp(_message.Message):
    __slots__ = ("status", "tables", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.RequestStatus
    tables: _containers.RepeatedCompositeFieldContainer[TableMetadata]
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.RequestStatus, str]] = ..., tables: _Optional[_Iterable[_Union[TableMetadata, _Mapping]]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class GetColumnsReq(_message.Message):
    __slots__ = ("catalog_name_filter", "schema_name_filter", "table_name_filter", "column_name_filter")
    CATALOG_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    COLUMN_NAME_FILTER_FIELD_NUMBER: _ClassVar[int]
    catalog_name_filter: LikeFilter
    schema_name_filter: LikeFilter
    table_name_filter: LikeFilter
    column_name_filter: LikeFilter
    def __init__(self, catalog_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., schema_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., table_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ..., column_name_filter: _Optional[_Union[LikeFilter, _Mapping]] = ...) -> None: ...

class ColumnMetadata(_message.Message):
    __slots__ = ("catalog_name", "schema_name", "table_name", "column_name", "ordinal_position", "default_value", "is_nullable", "data_type", "char_max_length", "char_octet_length", "numeric_precision", "numeric_precision_radix", "numeric_scale", "date_time_precision", "interval_type", "interval_precision", "column_size")
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMN_NAME_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_POSITION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_NULLABLE_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    CHAR_MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHAR_OCTET_LENGTH_FIELD_NUMBER: _ClassVar[int]
    NUMERIC_PRECISION_FIELD_NUMBER: _ClassVar[int]
    NUMERIC_PRECISION_RADIX_FIELD_NUMBER: _ClassVar[int]
    NUMERIC_SCALE_FIELD_NUMBER: _ClassVar[int]
    DATE_TIME_PRECISION_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_TYPE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_PRECISION_FIELD_NUMBER: _ClassVar[int]
    COLUMN_SIZE_FIELD_NUMBER: _ClassVar[int]
    catalog_name: str
    schema_name: str
    table_name: str
    column_name: str
    ordinal_position: int
    default_value: str
    is_nullable: bool
    data_type: str
    char_max_length: int
    char_octet_length: int
    numeric_precision: int
    numeric_precision_radix: int
    numeric_scale: int
    date_time_precision: int
    interval_type: str
    interval_precision: int
    column_size: int
    def __init__(self, catalog_name: _Optional[str] = ..., schema_name: _Optional[str] = ..., table_name: _Optional[str] = ..., column_name: _Optional[str] = ..., ordinal_position: _Optional[int] = ..., default_value: _Optional[str] = ..., is_nullable: _Optional[bool] = ..., data_type: _Optional[str] = ..., char_max_length: _Optional[int] = ..., char_octet_length: _Optional[int] = ..., numeric_precision: _Optional[int] = ..., numeric_precision_radix: _Optional[int] = ..., numeric_scale: _Optional[int] = ..., date_time_precision: _Optional[int] = ..., interval_type: _Optional[str] = ..., interval_precision: _Optional[int] = ..., column_size: _Optional[int] = ...) -> None: ...

class GetColumnsResp(_message.Message):
    __slots__ = ("status", "columns", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.RequestStatus
    columns: _containers.RepeatedCompositeFieldContainer[ColumnMetadata]
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.RequestStatus, str]] = ..., columns: _Optional[_Iterable[_Union[ColumnMetadata, _Mapping]]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class GetServerMetaReq(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ConvertSupport(_message.Message):
    __slots__ = ("to",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    to: _vectors_pb2.MinorType
    def __init__(self, to: _Optional[_Union[_vectors_pb2.MinorType, str]] = ..., **kwargs) -> None: ...

class ServerMeta(_message.Message):
    __slots__ = ("all_tables_selectable", "blob_included_in_max_row_size", "catalog_at_start", "catalog_separator", "catalog_term", "collate_support", "column_aliasing_supported", "convert_support", "correlation_names_support", "date_time_functions", "date_time_literals_support", "group_by_support", "identifier_casing", "identifier_quote_string", "like_escape_clause_supported", "max_binary_literal_length", "max_catalog_name_length", "max_char_literal_length", "max_column_name_length", "max_columns_in_group_by", "max_columns_in_order_by", "max_columns_in_select", "max_cursor_name_length", "max_logical_lob_size", "max_row_size", "max_schema_name_length", "max_statement_length", "max_statements", "max_table_name_length", "max_tables_in_select", "max_user_name_length", "null_collation", "null_plus_non_null_equals_null", "numeric_functions", "order_by_support", "outer_join_support", "quoted_identifier_casing", "read_only", "schema_term", "search_escape_string", "select_for_update_supported", "special_characters", "sql_keywords", "string_functions", "subquery_support", "system_functions", "table_term", "transaction_supported", "union_support", "current_schema")
    ALL_TABLES_SELECTABLE_FIELD_NUMBER: _ClassVar[int]
    BLOB_INCLUDED_IN_MAX_ROW_SIZE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_AT_START_FIELD_NUMBER: _ClassVar[int]
    CATALOG_SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    CATALOG_TERM_FIELD_NUMBER: _ClassVar[int]
    COLLATE_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    COLUMN_ALIASING_SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    CONVERT_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_NAMES_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    DATE_TIME_FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    DATE_TIME_LITERALS_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_CASING_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_QUOTE_STRING_FIELD_NUMBER: _ClassVar[int]
    LIKE_ESCAPE_CLAUSE_SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    MAX_BINARY_LITERAL_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_CATALOG_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_CHAR_LITERAL_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_COLUMN_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_COLUMNS_IN_GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    MAX_COLUMNS_IN_ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    MAX_COLUMNS_IN_SELECT_FIELD_NUMBER: _ClassVar[int]
    MAX_CURSOR_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_LOGICAL_LOB_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_ROW_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SCHEMA_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_STATEMENT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_TABLE_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_TABLES_IN_SELECT_FIELD_NUMBER: _ClassVar[int]
    MAX_USER_NAME_LENGTH_FIELD_NUMBER: _ClassVar[int]
    NULL_COLLATION_FIELD_NUMBER: _ClassVar[int]
    NULL_PLUS_NON_NULL_EQUALS_NULL_FIELD_NUMBER: _ClassVar[int]
    NUMERIC_FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    OUTER_JOIN_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    QUOTED_IDENTIFIER_CASING_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_TERM_FIELD_NUMBER: _ClassVar[int]
    SEARCH_ESCAPE_STRING_FIELD_NUMBER: _ClassVar[int]
    SELECT_FOR_UPDATE_SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    SPECIAL_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    SQL_KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    STRING_FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    SUBQUERY_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    TABLE_TERM_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    UNION_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    all_tables_selectable: bool
    blob_included_in_max_row_size: bool
    catalog_at_start: bool
    catalog_separator: str
    catalog_term: str
    collate_support: _containers.RepeatedScalarFieldContainer[CollateSupport]
    column_aliasing_supported: bool
    convert_support: _containers.RepeatedCompositeFieldContainer[ConvertSupport]
    correlation_names_support: CorrelationNamesSupport
    date_time_functions: _containers.RepeatedScalarFieldContainer[str]
    date_time_literals_support: _containers.RepeatedScalarFieldContainer[DateTimeLiteralsSupport]
    group_by_support: GroupBySupport
    identifier_casing: IdentifierCasing
    identifier_quote_string: str
    like_escape_clause_supported: bool
    max_binary_literal_length: int
    max_catalog_name_length: int
    max_char_literal_length: int
    max_column_name_length: int
    max_columns_in_group_by: int
    max_columns_in_order_by: int
    max_columns_in_select: int
    max_cursor_name_length: int
    max_logical_lob_size: int
    max_row_size: int
    max_schema_name_length: int
    max_statement_length: int
    max_statements: int
    max_table_name_length: int
    max_tables_in_select: int
    max_user_name_length: int
    null_collation: NullCollation
    null_plus_non_null_equals_null: bool
    numeric_functions: _containers.RepeatedScalarFieldContainer[str]
    order_by_support: _containers.RepeatedScalarFieldContainer[OrderBySupport]
    outer_join_support: _containers.RepeatedScalarFieldContainer[OuterJoinSupport]
    quoted_identifier_casing: IdentifierCasing
    read_only: bool
    schema_term: str
    search_escape_string: str
    select_for_update_supported: bool
    special_characters: str
    sql_keywords: _containers.RepeatedScalarFieldContainer[str]
    string_functions: _containers.RepeatedScalarFieldContainer[str]
    subquery_support: _containers.RepeatedScalarFieldContainer[SubQuerySupport]
    system_functions: _containers.RepeatedScalarFieldContainer[str]
    table_term: str
    transaction_supported: bool
    union_support: _containers.RepeatedScalarFieldContainer[UnionSupport]
    current_schema: str
    def __init__(self, all_tables_selectable: _Optional[bool] = ..., blob_included_in_max_row_size: _Optional[bool] = ..., catalog_at_start: _Optional[bool] = ..., catalog_separator: _Optional[str] = ..., catalog_term: _Optional[str] = ..., collate_support: _Optional[_Iterable[_Union[CollateSupport, str]]] = ..., column_aliasing_supported: _Optional[bool] = ..., convert_support: _Optional[_Iterable[_Union[ConvertSupport, _Mapping]]] = ..., correlation_names_support: _Optional[_Union[CorrelationNamesSupport, str]] = ..., date_time_functions: _Optional[_Iterable[str]] = ..., date_time_literals_support: _Optional[_Iterable[_Union[DateTimeLiteralsSupport, str]]] = ..., group_by_support: _Optional[_Union[GroupBySupport, str]] = ..., identifier_casing: _Optional[_Union[IdentifierCasing, str]] = ..., identifier_quote_string: _Optional[str] = ..., like_escape_clause_supported: _Optional[bool] = ..., max_binary_literal_length: _Optional[int] = ..., max_catalog_name_length: _Optional[int] = ..., max_char_literal_length: _Optional[int] = ..., max_column_name_length: _Optional[int] = ..., max_columns_in_group_by: _Optional[int] = ..., max_columns_in_order_by: _Optional[int] = ..., max_columns_in_select: _Optional[int] = ..., max_cursor_name_length: _Optional[int] = ..., max_logical_lob_size: _Optional[int] = ..., max_row_size: _Optional[int] = ..., max_schema_name_length: _Optional[int] = ..., max_statement_length: _Optional[int] = ..., max_statements: _Optional[int] = ..., max_table_name_length: _Optional[int] = ..., max_tables_in_select: _Optional[int] = ..., max_user_name_length: _Optional[int] = ..., null_collation: _Optional[_Union[NullCollation, str]] = ..., null_plus_non_null_equals_null: _Optional[bool] = ..., numeric_functions: _Optional[_Iterable[str]] = ..., order_by_support: _Optional[_Iterable[_Union[OrderBySupport, str]]] = ..., outer_join_support: _Optional[_Iterable[_Union[OuterJoinSupport, str]]] = ..., quoted_identifier_casing: _Optional[_Union[IdentifierCasing, str]] = ..., read_only: _Optional[bool] = ..., schema_term: _Optional[str] = ..., search_escape_string: _Optional[str] = ..., select_for_update_supported: _Optional[bool] = ..., special_characters: _Optional[str] = ..., sql_keywords: _Optional[_Iterable[str]] = ..., string_functions: _Optional[_Iterable[str]] = ..., subquery_support: _Optional[_Iterable[_Union[SubQuerySupport, str]]] = ..., system_functions: _Optional[_Iterable[str]] = ..., table_term: _Optional[str] = ..., transaction_supported: _Optional[bool] = ..., union_support: _Optional[_Iterable[_Union[UnionSupport, str]]] = ..., current_schema: _Optional[str] = ...) -> None: ...

class GetServerMetaResp(_message.Message):
    __slots__ = ("status", "server_meta", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SERVER_META_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.RequestStatus
    server_meta: ServerMeta
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.RequestStatus, str]] = ..., server_meta: _Optional[_Union[ServerMeta, _Mapping]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class GetQueryPlanFragments(_message.Message):
    __slots__ = ("query", "type", "split_plan")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SPLIT_PLAN_FIELD_NUMBER: _ClassVar[int]
    query: str
    type: _user_pb2.QueryType
    split_plan: bool
    def __init__(self, query: _Optional[str] = ..., type: _Optional[_Union[_user_pb2.QueryType, str]] = ..., split_plan: _Optional[bool] = ...) -> None: ...

class QueryPlanFragments(_message.Message):
    __slots__ = ("status", "query_id", "fragments", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: _user_pb2.QueryResult.QueryState
    query_id: _common_pb2.QueryId
    fragments: _containers.RepeatedCompositeFieldContainer[PlanFragment]
    error: _user_pb2.PBError
    def __init__(self, status: _Optional[_Union[_user_pb2.QueryResult.QueryState, str]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., fragments: _Optional[_Iterable[_Union[PlanFragment, _Mapping]]] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class FragmentHandle(_message.Message):
    __slots__ = ("query_id", "major_fragment_id", "minor_fragment_id", "parent_query_id")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    MAJOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    MINOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    major_fragment_id: int
    minor_fragment_id: int
    parent_query_id: _common_pb2.QueryId
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., major_fragment_id: _Optional[int] = ..., minor_fragment_id: _Optional[int] = ..., parent_query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ...) -> None: ...

class PlanFragment(_message.Message):
    __slots__ = ("handle", "fragment_json", "leaf_fragment", "assignment", "foreman")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    LEAF_FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    FOREMAN_FIELD_NUMBER: _ClassVar[int]
    handle: FragmentHandle
    fragment_json: str
    leaf_fragment: bool
    assignment: _user_pb2.DrillbitEndpoint
    foreman: _user_pb2.DrillbitEndpoint
    def __init__(self, handle: _Optional[_Union[FragmentHandle, _Mapping]] = ..., fragment_json: _Optional[str] = ..., leaf_fragment: _Optional[bool] = ..., assignment: _Optional[_Union[_user_pb2.DrillbitEndpoint, _Mapping]] = ..., foreman: _Optional[_Union[_user_pb2.DrillbitEndpoint, _Mapping]] = ...) -> None: ...
