from remuda.rpc.messages import common_pb2 as _common_pb2
from remuda.rpc.messages import vectors_pb2 as _vectors_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RpcType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HANDSHAKE: _ClassVar[RpcType]
    ACK: _ClassVar[RpcType]
    GOODBYE: _ClassVar[RpcType]
    RUN_QUERY: _ClassVar[RpcType]
    CANCEL_QUERY: _ClassVar[RpcType]
    REQUEST_RESULTS: _ClassVar[RpcType]
    QUERY_DATA: _ClassVar[RpcType]
    QUERY_HANDLE: _ClassVar[RpcType]
    GET_SERVER_META: _ClassVar[RpcType]
    SERVER_META: _ClassVar[RpcType]
    QUERY_RESULT: _ClassVar[RpcType]
    RESUME_PAUSED_QUERY: _ClassVar[RpcType]
    GET_QUERY_PLAN_FRAGMENTS: _ClassVar[RpcType]
    QUERY_PLAN_FRAGMENTS: _ClassVar[RpcType]
    GET_CATALOGS: _ClassVar[RpcType]
    GET_SCHEMAS: _ClassVar[RpcType]
    GET_TABLES: _ClassVar[RpcType]
    GET_COLUMNS: _ClassVar[RpcType]
    CATALOGS: _ClassVar[RpcType]
    SCHEMAS: _ClassVar[RpcType]
    TABLES: _ClassVar[RpcType]
    COLUMNS: _ClassVar[RpcType]
    CREATE_PREPARED_STATEMENT: _ClassVar[RpcType]
    PREPARED_STATEMENT: _ClassVar[RpcType]
    SASL_MESSAGE: _ClassVar[RpcType]
    CLUSTER_INFO: _ClassVar[RpcType]
    DESCRIBE_MAP: _ClassVar[RpcType]
    CREATE_MAP: _ClassVar[RpcType]
    DROP_MAP: _ClassVar[RpcType]
    QUERY_ANSWER: _ClassVar[RpcType]
    COPY_DATA: _ClassVar[RpcType]
    MAP_GET: _ClassVar[RpcType]
    MAP_PUT: _ClassVar[RpcType]
    MAP_REMOVE: _ClassVar[RpcType]
    MAP_SIZE: _ClassVar[RpcType]
    MAP_PUT_BATCH: _ClassVar[RpcType]
    JOB_BEGIN: _ClassVar[RpcType]
    JOB_WRITE: _ClassVar[RpcType]
    JOB_TASK_END: _ClassVar[RpcType]
    JOB_COMMIT: _ClassVar[RpcType]
    JOB_ABORT: _ClassVar[RpcType]
    JOB_OUTCOME: _ClassVar[RpcType]
    READ_LEASE: _ClassVar[RpcType]
    TRANSACTION_BEGIN: _ClassVar[RpcType]
    TRANSACTION_END: _ClassVar[RpcType]
    TRANSACTION_SAVEPOINT: _ClassVar[RpcType]
    TRANSACTION_SUSPEND: _ClassVar[RpcType]
    CHANGES_READ: _ClassVar[RpcType]
    CHANGES_END: _ClassVar[RpcType]
    SPARK_WORK: _ClassVar[RpcType]
    SPARK_ROWS: _ClassVar[RpcType]
    MAP_COMPUTE: _ClassVar[RpcType]
    MAP_GET_VERSIONED: _ClassVar[RpcType]
    MAP_TTL: _ClassVar[RpcType]
    MAP_SET_TTL: _ClassVar[RpcType]
    MAP_CHECKED_WRITE: _ClassVar[RpcType]
    MEMBER_STATE: _ClassVar[RpcType]

class RpcChannel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BIT_CONTROL: _ClassVar[RpcChannel]
    BIT_DATA: _ClassVar[RpcChannel]
    USER: _ClassVar[RpcChannel]

class HandshakeStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_STATUS: _ClassVar[HandshakeStatus]
    SUCCESS: _ClassVar[HandshakeStatus]
    RPC_VERSION_MISMATCH: _ClassVar[HandshakeStatus]
    AUTH_FAILED: _ClassVar[HandshakeStatus]
    UNKNOWN_FAILURE: _ClassVar[HandshakeStatus]
    AUTH_REQUIRED: _ClassVar[HandshakeStatus]

class SaslStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SASL_UNKNOWN: _ClassVar[SaslStatus]
    SASL_START: _ClassVar[SaslStatus]
    SASL_IN_PROGRESS: _ClassVar[SaslStatus]
    SASL_SUCCESS: _ClassVar[SaslStatus]
    SASL_FAILED: _ClassVar[SaslStatus]

class QueryType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_TYPE: _ClassVar[QueryType]
    SQL: _ClassVar[QueryType]
    LOGICAL: _ClassVar[QueryType]
    PHYSICAL: _ClassVar[QueryType]
    EXECUTION: _ClassVar[QueryType]
    PREPARED_STATEMENT_TYPE: _ClassVar[QueryType]

class QueryResultsMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_MODE: _ClassVar[QueryResultsMode]
    STREAM_FULL: _ClassVar[QueryResultsMode]

class CopyWay(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_COPY: _ClassVar[CopyWay]
    COPY_IN: _ClassVar[CopyWay]
    COPY_OUT: _ClassVar[CopyWay]

class RequestStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_STATUS_: _ClassVar[RequestStatus]
    OK: _ClassVar[RequestStatus]
    FAILED_: _ClassVar[RequestStatus]
    TIMEOUT: _ClassVar[RequestStatus]

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_UNKNOWN: _ClassVar[JobState]
    JOB_OPEN: _ClassVar[JobState]
    JOB_COMMITTED: _ClassVar[JobState]
    JOB_ABORTED: _ClassVar[JobState]

class TransactionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_TRANSACTION: _ClassVar[TransactionState]
    ACTIVE: _ClassVar[TransactionState]
    SUSPENDED: _ClassVar[TransactionState]
    MARKED_ROLLBACK: _ClassVar[TransactionState]

class TransactionIsolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEFAULT_ISOLATION: _ClassVar[TransactionIsolation]
    READ_COMMITTED: _ClassVar[TransactionIsolation]
    REPEATABLE_READ: _ClassVar[TransactionIsolation]
    SERIALIZABLE: _ClassVar[TransactionIsolation]
HANDSHAKE: RpcType
ACK: RpcType
GOODBYE: RpcType
RUN_QUERY: RpcType
CANCEL_QUERY: RpcType
REQUEST_RESULTS: RpcType
QUERY_DATA: RpcType
QUERY_HANDLE: RpcType
GET_SERVER_META: RpcType
SERVER_META: RpcType
QUERY_RESULT: RpcType
RESUME_PAUSED_QUERY: RpcType
GET_QUERY_PLAN_FRAGMENTS: RpcType
QUERY_PLAN_FRAGMENTS: RpcType
GET_CATALOGS: RpcType
GET_SCHEMAS: RpcType
GET_TABLES: RpcType
GET_COLUMNS: RpcType
CATALOGS: RpcType
SCHEMAS: RpcType
TABLES: RpcType
COLUMNS: RpcType
CREATE_PREPARED_STATEMENT: RpcType
PREPARED_STATEMENT: RpcType
SASL_MESSAGE: RpcType
CLUSTER_INFO: RpcType
DESCRIBE_MAP: RpcType
CREATE_MAP: RpcType
DROP_MAP: RpcType
QUERY_ANSWER: RpcType
COPY_DATA: RpcType
MAP_GET: RpcType
MAP_PUT: RpcType
MAP_REMOVE: RpcType
MAP_SIZE: RpcType
MAP_PUT_BATCH: RpcType
JOB_BEGIN: RpcType
JOB_WRITE: RpcType
JOB_TASK_END: RpcType
JOB_COMMIT: RpcType
JOB_ABORT: RpcType
JOB_OUTCOME: RpcType
READ_LEASE: RpcType
TRANSACTION_BEGIN: RpcType
TRANSACTION_END: RpcType
TRANSACTION_SAVEPOINT: RpcType
TRANSACTION_SUSPEND: RpcType
CHANGES_READ: RpcType
CHANGES_END: RpcType
SPARK_WORK: RpcType
SPARK_ROWS: RpcType
MAP_COMPUTE: RpcType
MAP_GET_VERSIONED: RpcType
MAP_TTL: RpcType
MAP_SET_TTL: RpcType
MAP_CHECKED_WRITE: RpcType
MEMBER_STATE: RpcType
BIT_CONTROL: RpcChannel
BIT_DATA: RpcChannel
USER: RpcChannel
UNKNOWN_STATUS: HandshakeStatus
SUCCESS: HandshakeStatus
RPC_VERSION_MISMATCH: HandshakeStatus
AUTH_FAILED: HandshakeStatus
UNKNOWN_FAILURE: HandshakeStatus
AUTH_REQUIRED: HandshakeStatus
SASL_UNKNOWN: SaslStatus
SASL_START: SaslStatus
SASL_IN_PROGRESS: SaslStatus
SASL_SUCCESS: SaslStatus
SASL_FAILED: SaslStatus
UNKNOWN_TYPE: QueryType
SQL: QueryType
LOGICAL: QueryType
PHYSICAL: QueryType
EXECUTION: QueryType
PREPARED_STATEMENT_TYPE: QueryType
UNKNOWN_MODE: QueryResultsMode
STREAM_FULL: QueryResultsMode
NO_COPY: CopyWay
COPY_IN: CopyWay
COPY_OUT: CopyWay
UNKNOWN_STATUS_: RequestStatus
OK: RequestStatus
FAILED_: RequestStatus
TIMEOUT: RequestStatus
JOB_UNKNOWN: JobState
JOB_OPEN: JobState
JOB_COMMITTED: JobState
JOB_ABORTED: JobState
NO_TRANSACTION: TransactionState
ACTIVE: TransactionState
SUSPENDED: TransactionState
MARKED_ROLLBACK: TransactionState
DEFAULT_ISOLATION: TransactionIsolation
READ_COMMITTED: TransactionIsolation
REPEATABLE_READ: TransactionIsolation
SERIALIZABLE: TransactionIsolation

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UserCredentials(_message.Message):
    __slots__ = ("user_name",)
    USER_NAME_FIELD_NUMBER: _ClassVar[int]
    user_name: str
    def __init__(self, user_name: _Optional[str] = ...) -> None: ...

class Property(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class UserProperties(_message.Message):
    __slots__ = ("properties",)
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    properties: _containers.RepeatedCompositeFieldContainer[Property]
    def __init__(self, properties: _Optional[_Iterable[_Union[Property, _Mapping]]] = ...) -> None: ...

class RpcEndpointInfos(_message.Message):
    __slots__ = ("name", "version", "majorVersion", "minorVersion", "patchVersion", "application", "buildNumber", "versionQualifier")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAJORVERSION_FIELD_NUMBER: _ClassVar[int]
    MINORVERSION_FIELD_NUMBER: _ClassVar[int]
    PATCHVERSION_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    BUILDNUMBER_FIELD_NUMBER: _ClassVar[int]
    VERSIONQUALIFIER_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    majorVersion: int
    minorVersion: int
    patchVersion: int
    application: str
    buildNumber: int
    versionQualifier: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., majorVersion: _Optional[int] = ..., minorVersion: _Optional[int] = ..., patchVersion: _Optional[int] = ..., application: _Optional[str] = ..., buildNumber: _Optional[int] = ..., versionQualifier: _Optional[str] = ...) -> None: ...

class UserToBitHandshake(_message.Message):
    __slots__ = ("channel", "support_listening", "rpc_version", "credentials", "properties", "support_complex_types", "support_timeout", "client_infos", "sasl_support", "rpc_version_min", "native_version", "native_version_min")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_LISTENING_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_COMPLEX_TYPES_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_INFOS_FIELD_NUMBER: _ClassVar[int]
    SASL_SUPPORT_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    NATIVE_VERSION_FIELD_NUMBER: _ClassVar[int]
    NATIVE_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    channel: RpcChannel
    support_listening: bool
    rpc_version: int
    credentials: UserCredentials
    properties: UserProperties
    support_complex_types: bool
    support_timeout: bool
    client_infos: RpcEndpointInfos
    sasl_support: int
    rpc_version_min: int
    native_version: int
    native_version_min: int
    def __init__(self, channel: _Optional[_Union[RpcChannel, str]] = ..., support_listening: _Optional[bool] = ..., rpc_version: _Optional[int] = ..., credentials: _Optional[_Union[UserCredentials, _Mapping]] = ..., properties: _Optional[_Union[UserProperties, _Mapping]] = ..., support_complex_types: _Optional[bool] = ..., support_timeout: _Optional[bool] = ..., client_infos: _Optional[_Union[RpcEndpointInfos, _Mapping]] = ..., sasl_support: _Optional[int] = ..., rpc_version_min: _Optional[int] = ..., native_version: _Optional[int] = ..., native_version_min: _Optional[int] = ...) -> None: ...

class BitToUserHandshake(_message.Message):
    __slots__ = ("rpc_version", "status", "errorId", "errorMessage", "server_infos", "authenticationMechanisms", "supported_methods", "encrypted", "maxWrappedSize", "arrow_results", "member", "rpc_version_min", "refusal", "native_version", "native_version_min")
    RPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ERRORID_FIELD_NUMBER: _ClassVar[int]
    ERRORMESSAGE_FIELD_NUMBER: _ClassVar[int]
    SERVER_INFOS_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATIONMECHANISMS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_METHODS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    MAXWRAPPEDSIZE_FIELD_NUMBER: _ClassVar[int]
    ARROW_RESULTS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    NATIVE_VERSION_FIELD_NUMBER: _ClassVar[int]
    NATIVE_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    rpc_version: int
    status: HandshakeStatus
    errorId: str
    errorMessage: str
    server_infos: RpcEndpointInfos
    authenticationMechanisms: _containers.RepeatedScalarFieldContainer[str]
    supported_methods: _containers.RepeatedScalarFieldContainer[int]
    encrypted: bool
    maxWrappedSize: int
    arrow_results: bool
    member: int
    rpc_version_min: int
    refusal: PBError
    native_version: int
    native_version_min: int
    def __init__(self, rpc_version: _Optional[int] = ..., status: _Optional[_Union[HandshakeStatus, str]] = ..., errorId: _Optional[str] = ..., errorMessage: _Optional[str] = ..., server_infos: _Optional[_Union[RpcEndpointInfos, _Mapping]] = ..., authenticationMechanisms: _Optional[_Iterable[str]] = ..., supported_methods: _Optional[_Iterable[int]] = ..., encrypted: _Optional[bool] = ..., maxWrappedSize: _Optional[int] = ..., arrow_results: _Optional[bool] = ..., member: _Optional[int] = ..., rpc_version_min: _Optional[int] = ..., refusal: _Optional[_Union[PBError, _Mapping]] = ..., native_version: _Optional[int] = ..., native_version_min: _Optional[int] = ...) -> None: ...

class SaslMessage(_message.Message):
    __slots__ = ("mechanism", "data", "status", "refusal")
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    mechanism: str
    data: bytes
    status: SaslStatus
    refusal: PBError
    def __init__(self, mechanism: _Optional[str] = ..., data: _Optional[bytes] = ..., status: _Optional[_Union[SaslStatus, str]] = ..., refusal: _Optional[_Union[PBError, _Mapping]] = ...) -> None: ...

class PreparedStatementHandle(_message.Message):
    __slots__ = ("server_info",)
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    server_info: bytes
    def __init__(self, server_info: _Optional[bytes] = ...) -> None: ...

class RunQuery(_message.Message):
    __slots__ = ("results_mode", "type", "plan", "prepared_statement_handle", "autolimit_rowcount", "parameter_types", "parameters", "context", "timeout", "read_timestamp", "partitions", "local_only", "page_rows", "accept_answer", "known_form", "accept_tag", "session", "transaction", "traceparent", "carries_copy")
    RESULTS_MODE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PREPARED_STATEMENT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    AUTOLIMIT_ROWCOUNT_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_TYPES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    READ_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    LOCAL_ONLY_FIELD_NUMBER: _ClassVar[int]
    PAGE_ROWS_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_ANSWER_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FORM_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_TAG_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    CARRIES_COPY_FIELD_NUMBER: _ClassVar[int]
    results_mode: QueryResultsMode
    type: QueryType
    plan: str
    prepared_statement_handle: PreparedStatementHandle
    autolimit_rowcount: int
    parameter_types: bytes
    parameters: bytes
    context: _common_pb2.Context
    timeout: float
    read_timestamp: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    local_only: bool
    page_rows: int
    accept_answer: bool
    known_form: int
    accept_tag: bool
    session: bytes
    transaction: str
    traceparent: str
    carries_copy: bool
    def __init__(self, results_mode: _Optional[_Union[QueryResultsMode, str]] = ..., type: _Optional[_Union[QueryType, str]] = ..., plan: _Optional[str] = ..., prepared_statement_handle: _Optional[_Union[PreparedStatementHandle, _Mapping]] = ..., autolimit_rowcount: _Optional[int] = ..., parameter_types: _Optional[bytes] = ..., parameters: _Optional[bytes] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., timeout: _Optional[float] = ..., read_timestamp: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ..., local_only: _Optional[bool] = ..., page_rows: _Optional[int] = ..., accept_answer: _Optional[bool] = ..., known_form: _Optional[int] = ..., accept_tag: _Optional[bool] = ..., session: _Optional[bytes] = ..., transaction: _Optional[str] = ..., traceparent: _Optional[str] = ..., carries_copy: _Optional[bool] = ...) -> None: ...

class RecordBatchDef(_message.Message):
    __slots__ = ("record_count", "field", "carries_two_byte_selection_vector", "affected_rows_count")
    RECORD_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    CARRIES_TWO_BYTE_SELECTION_VECTOR_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    record_count: int
    field: _containers.RepeatedCompositeFieldContainer[_vectors_pb2.SerializedField]
    carries_two_byte_selection_vector: bool
    affected_rows_count: int
    def __init__(self, record_count: _Optional[int] = ..., field: _Optional[_Iterable[_Union[_vectors_pb2.SerializedField, _Mapping]]] = ..., carries_two_byte_selection_vector: _Optional[bool] = ..., affected_rows_count: _Optional[int] = ...) -> None: ...

class CopyData(_message.Message):
    __slots__ = ("query_id", "ordinal", "last")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    ordinal: int
    last: bool
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., ordinal: _Optional[int] = ..., last: _Optional[bool] = ...) -> None: ...

class CopyTaken(_message.Message):
    __slots__ = ("wanted",)
    WANTED_FIELD_NUMBER: _ClassVar[int]
    wanted: bool
    def __init__(self, wanted: _Optional[bool] = ...) -> None: ...

class QueryData(_message.Message):
    __slots__ = ("query_id", "row_count", "affected_rows_count", "columns", "copy")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEF_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    row_count: int
    affected_rows_count: int
    columns: _containers.RepeatedCompositeFieldContainer[_common_pb2.Column]
    copy: CopyWay
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., row_count: _Optional[int] = ..., affected_rows_count: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[_common_pb2.Column, _Mapping]]] = ..., copy: _Optional[_Union[CopyWay, str]] = ..., **kwargs) -> None: ...

class QueryResult(_message.Message):
    __slots__ = ("query_state", "query_id", "error", "context", "affected_rows", "tag", "session", "transaction")
    class QueryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STARTING: _ClassVar[QueryResult.QueryState]
        RUNNING: _ClassVar[QueryResult.QueryState]
        COMPLETED: _ClassVar[QueryResult.QueryState]
        CANCELED: _ClassVar[QueryResult.QueryState]
        FAILED: _ClassVar[QueryResult.QueryState]
        CANCELLATION_REQUESTED: _ClassVar[QueryResult.QueryState]
        ENQUEUED: _ClassVar[QueryResult.QueryState]
        PREPARING: _ClassVar[QueryResult.QueryState]
        PLANNING: _ClassVar[QueryResult.QueryState]
    STARTING: QueryResult.QueryState
    RUNNING: QueryResult.QueryState
    COMPLETED: QueryResult.QueryState
    CANCELED: QueryResult.QueryState
    FAILED: QueryResult.QueryState
    CANCELLATION_REQUESTED: QueryResult.QueryState
    ENQUEUED: QueryResult.QueryState
    PREPARING: QueryResult.QueryState
    PLANNING: QueryResult.QueryState
    QUERY_STATE_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_ROWS_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    query_state: QueryResult.QueryState
    query_id: _common_pb2.QueryId
    error: _containers.RepeatedCompositeFieldContainer[PBError]
    context: _common_pb2.Context
    affected_rows: int
    tag: str
    session: bytes
    transaction: TransactionStatus
    def __init__(self, query_state: _Optional[_Union[QueryResult.QueryState, str]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., error: _Optional[_Iterable[_Union[PBError, _Mapping]]] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., affected_rows: _Optional[int] = ..., tag: _Optional[str] = ..., session: _Optional[bytes] = ..., transaction: _Optional[_Union[TransactionStatus, _Mapping]] = ...) -> None: ...

class QueryAnswer(_message.Message):
    __slots__ = ("query_id", "context", "form", "about", "rows", "tag", "affected_rows")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    AFFECTED_ROWS_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    context: _common_pb2.Context
    form: int
    about: AnswerForm
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    tag: str
    affected_rows: int
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., form: _Optional[int] = ..., about: _Optional[_Union[AnswerForm, _Mapping]] = ..., rows: _Optional[_Iterable[bytes]] = ..., tag: _Optional[str] = ..., affected_rows: _Optional[int] = ...) -> None: ...

class AnswerForm(_message.Message):
    __slots__ = ("columns", "route_types", "route_parameters")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROUTE_TYPES_FIELD_NUMBER: _ClassVar[int]
    ROUTE_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[_common_pb2.Column]
    route_types: _containers.RepeatedCompositeFieldContainer[_common_pb2.SqlType]
    route_parameters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, columns: _Optional[_Iterable[_Union[_common_pb2.Column, _Mapping]]] = ..., route_types: _Optional[_Iterable[_Union[_common_pb2.SqlType, _Mapping]]] = ..., route_parameters: _Optional[_Iterable[int]] = ...) -> None: ...

class DrillbitEndpoint(_message.Message):
    __slots__ = ("address", "user_port", "control_port", "data_port", "version")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    USER_PORT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PORT_FIELD_NUMBER: _ClassVar[int]
    DATA_PORT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    address: str
    user_port: int
    control_port: int
    data_port: int
    version: str
    def __init__(self, address: _Optional[str] = ..., user_port: _Optional[int] = ..., control_port: _Optional[int] = ..., data_port: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class ParsingError(_message.Message):
    __slots__ = ("start_column", "start_row", "end_column", "end_row")
    START_COLUMN_FIELD_NUMBER: _ClassVar[int]
    START_ROW_FIELD_NUMBER: _ClassVar[int]
    END_COLUMN_FIELD_NUMBER: _ClassVar[int]
    END_ROW_FIELD_NUMBER: _ClassVar[int]
    start_column: int
    start_row: int
    end_column: int
    end_row: int
    def __init__(self, start_column: _Optional[int] = ..., start_row: _Optional[int] = ..., end_column: _Optional[int] = ..., end_row: _Optional[int] = ...) -> None: ...

class ExceptionWrapper(_message.Message):
    __slots__ = ("exception_class", "message")
    EXCEPTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    exception_class: str
    message: str
    def __init__(self, exception_class: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class PBError(_message.Message):
    __slots__ = ("error_id", "endpoint", "error_type", "message", "exception", "parsing_error", "kind", "sqlstate", "detail", "hint", "member", "position", "subject", "may_have_run", "context")
    class ErrorType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CONNECTION: _ClassVar[PBError.ErrorType]
        DATA_READ: _ClassVar[PBError.ErrorType]
        DATA_WRITE: _ClassVar[PBError.ErrorType]
        FUNCTION: _ClassVar[PBError.ErrorType]
        PARSE: _ClassVar[PBError.ErrorType]
        PERMISSION: _ClassVar[PBError.ErrorType]
        PLAN: _ClassVar[PBError.ErrorType]
        RESOURCE: _ClassVar[PBError.ErrorType]
        SYSTEM: _ClassVar[PBError.ErrorType]
        UNSUPPORTED_OPERATION: _ClassVar[PBError.ErrorType]
        VALIDATION: _ClassVar[PBError.ErrorType]
        EXECUTION_ERROR: _ClassVar[PBError.ErrorType]
        INTERNAL_ERROR: _ClassVar[PBError.ErrorType]
        UNSPECIFIED_ERROR: _ClassVar[PBError.ErrorType]
    CONNECTION: PBError.ErrorType
    DATA_READ: PBError.ErrorType
    DATA_WRITE: PBError.ErrorType
    FUNCTION: PBError.ErrorType
    PARSE: PBError.ErrorType
    PERMISSION: PBError.ErrorType
    PLAN: PBError.ErrorType
    RESOURCE: PBError.ErrorType
    SYSTEM: PBError.ErrorType
    UNSUPPORTED_OPERATION: PBError.ErrorType
    VALIDATION: PBError.ErrorType
    EXECUTION_ERROR: PBError.ErrorType
    INTERNAL_ERROR: PBError.ErrorType
    UNSPECIFIED_ERROR: PBError.ErrorType
    ERROR_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    PARSING_ERROR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SQLSTATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    MAY_HAVE_RUN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    error_id: str
    endpoint: DrillbitEndpoint
    error_type: PBError.ErrorType
    message: str
    exception: ExceptionWrapper
    parsing_error: _containers.RepeatedCompositeFieldContainer[ParsingError]
    kind: str
    sqlstate: str
    detail: str
    hint: str
    member: str
    position: _common_pb2.Position
    subject: ErrorSubject
    may_have_run: bool
    context: str
    def __init__(self, error_id: _Optional[str] = ..., endpoint: _Optional[_Union[DrillbitEndpoint, _Mapping]] = ..., error_type: _Optional[_Union[PBError.ErrorType, str]] = ..., message: _Optional[str] = ..., exception: _Optional[_Union[ExceptionWrapper, _Mapping]] = ..., parsing_error: _Optional[_Iterable[_Union[ParsingError, _Mapping]]] = ..., kind: _Optional[str] = ..., sqlstate: _Optional[str] = ..., detail: _Optional[str] = ..., hint: _Optional[str] = ..., member: _Optional[str] = ..., position: _Optional[_Union[_common_pb2.Position, _Mapping]] = ..., subject: _Optional[_Union[ErrorSubject, _Mapping]] = ..., may_have_run: _Optional[bool] = ..., context: _Optional[str] = ...) -> None: ...

class ErrorSubject(_message.Message):
    __slots__ = ("table", "column", "constraint", "namespace")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    table: str
    column: str
    constraint: str
    namespace: str
    def __init__(self, table: _Optional[str] = ..., column: _Optional[str] = ..., constraint: _Optional[str] = ..., namespace: _Optional[str] = ...) -> None: ...

class ResultColumnMetadata(_message.Message):
    __slots__ = ("catalog_name", "schema_name", "table_name", "column_name", "label", "data_type", "is_nullable", "precision", "scale", "signed", "display_size", "is_aliased", "searchability", "updatability", "auto_increment", "case_sensitivity", "sortable", "class_name", "is_currency")
    class Searchability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_SEARCHABILITY: _ClassVar[ResultColumnMetadata.Searchability]
        NONE: _ClassVar[ResultColumnMetadata.Searchability]
        CHAR: _ClassVar[ResultColumnMetadata.Searchability]
        NUMBER: _ClassVar[ResultColumnMetadata.Searchability]
        ALL: _ClassVar[ResultColumnMetadata.Searchability]
    UNKNOWN_SEARCHABILITY: ResultColumnMetadata.Searchability
    NONE: ResultColumnMetadata.Searchability
    CHAR: ResultColumnMetadata.Searchability
    NUMBER: ResultColumnMetadata.Searchability
    ALL: ResultColumnMetadata.Searchability
    class Updatability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_UPDATABILITY: _ClassVar[ResultColumnMetadata.Updatability]
        READ_ONLY: _ClassVar[ResultColumnMetadata.Updatability]
        WRITABLE: _ClassVar[ResultColumnMetadata.Updatability]
    UNKNOWN_UPDATABILITY: ResultColumnMetadata.Updatability
    READ_ONLY: ResultColumnMetadata.Updatability
    WRITABLE: ResultColumnMetadata.Updatability
    CATALOG_NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_NAME_FIELD_NUMBER: _ClassVar[int]
    TABLE_NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMN_NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    IS_NULLABLE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    SIGNED_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_SIZE_FIELD_NUMBER: _ClassVar[int]
    IS_ALIASED_FIELD_NUMBER: _ClassVar[int]
    SEARCHABILITY_FIELD_NUMBER: _ClassVar[int]
    UPDATABILITY_FIELD_NUMBER: _ClassVar[int]
    AUTO_INCREMENT_FIELD_NUMBER: _ClassVar[int]
    CASE_SENSITIVITY_FIELD_NUMBER: _ClassVar[int]
    SORTABLE_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    IS_CURRENCY_FIELD_NUMBER: _ClassVar[int]
    catalog_name: str
    schema_name: str
    table_name: str
    column_name: str
    label: str
    data_type: str
    is_nullable: bool
    precision: int
    scale: int
    signed: bool
    display_size: int
    is_aliased: bool
    searchability: ResultColumnMetadata.Searchability
    updatability: ResultColumnMetadata.Updatability
    auto_increment: bool
    case_sensitivity: bool
    sortable: bool
    class_name: str
    is_currency: bool
    def __init__(self, catalog_name: _Optional[str] = ..., schema_name: _Optional[str] = ..., table_name: _Optional[str] = ..., column_name: _Optional[str] = ..., label: _Optional[str] = ..., data_type: _Optional[str] = ..., is_nullable: _Optional[bool] = ..., precision: _Optional[int] = ..., scale: _Optional[int] = ..., signed: _Optional[bool] = ..., display_size: _Optional[int] = ..., is_aliased: _Optional[bool] = ..., searchability: _Optional[_Union[ResultColumnMetadata.Searchability, str]] = ..., updatability: _Optional[_Union[ResultColumnMetadata.Updatability, str]] = ..., auto_increment: _Optional[bool] = ..., case_sensitivity: _Optional[bool] = ..., sortable: _Optional[bool] = ..., class_name: _Optional[str] = ..., is_currency: _Optional[bool] = ...) -> None: ...

class CreatePreparedStatementReq(_message.Message):
    __slots__ = ("sql_query",)
    SQL_QUERY_FIELD_NUMBER: _ClassVar[int]
    sql_query: str
    def __init__(self, sql_query: _Optional[str] = ...) -> None: ...

class PreparedStatement(_message.Message):
    __slots__ = ("columns", "result_columns", "server_handle", "parameter_types", "route_parameters")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    RESULT_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SERVER_HANDLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_TYPES_FIELD_NUMBER: _ClassVar[int]
    ROUTE_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[ResultColumnMetadata]
    result_columns: _containers.RepeatedCompositeFieldContainer[_common_pb2.Column]
    server_handle: PreparedStatementHandle
    parameter_types: _containers.RepeatedCompositeFieldContainer[_common_pb2.SqlType]
    route_parameters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, columns: _Optional[_Iterable[_Union[ResultColumnMetadata, _Mapping]]] = ..., result_columns: _Optional[_Iterable[_Union[_common_pb2.Column, _Mapping]]] = ..., server_handle: _Optional[_Union[PreparedStatementHandle, _Mapping]] = ..., parameter_types: _Optional[_Iterable[_Union[_common_pb2.SqlType, _Mapping]]] = ..., route_parameters: _Optional[_Iterable[int]] = ...) -> None: ...

class CreatePreparedStatementResp(_message.Message):
    __slots__ = ("status", "prepared_statement", "error")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PREPARED_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    status: RequestStatus
    prepared_statement: PreparedStatement
    error: PBError
    def __init__(self, status: _Optional[_Union[RequestStatus, str]] = ..., prepared_statement: _Optional[_Union[PreparedStatement, _Mapping]] = ..., error: _Optional[_Union[PBError, _Mapping]] = ...) -> None: ...

class ClusterInfo(_message.Message):
    __slots__ = ("view", "maps", "context", "catalog_version", "member")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    view: _common_pb2.View
    maps: _containers.RepeatedCompositeFieldContainer[_common_pb2.MapSchema]
    context: _common_pb2.Context
    catalog_version: int
    member: int
    def __init__(self, view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., maps: _Optional[_Iterable[_Union[_common_pb2.MapSchema, _Mapping]]] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., catalog_version: _Optional[int] = ..., member: _Optional[int] = ...) -> None: ...

class MapName(_message.Message):
    __slots__ = ("name", "if_exists", "context", "schema_only", "traceparent")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ONLY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    if_exists: bool
    context: _common_pb2.Context
    schema_only: bool
    traceparent: str
    def __init__(self, name: _Optional[str] = ..., if_exists: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., schema_only: _Optional[bool] = ..., traceparent: _Optional[str] = ...) -> None: ...

class CreateMap(_message.Message):
    __slots__ = ("schema", "if_not_exists")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    schema: _common_pb2.MapSchema
    if_not_exists: bool
    def __init__(self, schema: _Optional[_Union[_common_pb2.MapSchema, _Mapping]] = ..., if_not_exists: _Optional[bool] = ...) -> None: ...

class MapDescription(_message.Message):
    __slots__ = ("schema", "rows", "bytes", "catalog_version", "no_answer")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    NO_ANSWER_FIELD_NUMBER: _ClassVar[int]
    schema: _common_pb2.MapSchema
    rows: int
    bytes: int
    catalog_version: int
    no_answer: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, schema: _Optional[_Union[_common_pb2.MapSchema, _Mapping]] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., catalog_version: _Optional[int] = ..., no_answer: _Optional[_Iterable[int]] = ...) -> None: ...

class Count(_message.Message):
    __slots__ = ("count", "context")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    count: int
    context: _common_pb2.Context
    def __init__(self, count: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ...) -> None: ...

class KeysRequest(_message.Message):
    __slots__ = ("map", "map_id", "schema_version", "keys", "want_old", "keys_only", "context", "transaction", "read_timestamp", "ttl", "for_write", "begin", "newest", "known", "key_batch", "traceparent")
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    WANT_OLD_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    READ_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    FOR_WRITE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    KEY_BATCH_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    map: str
    map_id: int
    schema_version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    want_old: bool
    keys_only: bool
    context: _common_pb2.Context
    transaction: str
    read_timestamp: int
    ttl: int
    for_write: bool
    begin: TransactionBegin
    newest: bool
    known: bool
    key_batch: bytes
    traceparent: str
    def __init__(self, map: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., want_old: _Optional[bool] = ..., keys_only: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transaction: _Optional[str] = ..., read_timestamp: _Optional[int] = ..., ttl: _Optional[int] = ..., for_write: _Optional[bool] = ..., begin: _Optional[_Union[TransactionBegin, _Mapping]] = ..., newest: _Optional[bool] = ..., known: _Optional[bool] = ..., key_batch: _Optional[bytes] = ..., traceparent: _Optional[str] = ...) -> None: ...

class OptionalRow(_message.Message):
    __slots__ = ("row", "version", "ttl")
    ROW_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    row: bytes
    version: int
    ttl: int
    def __init__(self, row: _Optional[bytes] = ..., version: _Optional[int] = ..., ttl: _Optional[int] = ...) -> None: ...

class RowsResponse(_message.Message):
    __slots__ = ("rows", "context", "begun", "outdated", "batch", "places")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    OUTDATED_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[OptionalRow]
    context: _common_pb2.Context
    begun: TransactionStatus
    outdated: bool
    batch: bytes
    places: bytes
    def __init__(self, rows: _Optional[_Iterable[_Union[OptionalRow, _Mapping]]] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., begun: _Optional[_Union[TransactionStatus, _Mapping]] = ..., outdated: _Optional[bool] = ..., batch: _Optional[bytes] = ..., places: _Optional[bytes] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("map", "map_id", "schema_version", "rows", "condition", "want_old", "context", "transaction", "ttl", "traceparent")
    class Condition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ALWAYS: _ClassVar[PutRequest.Condition]
        IF_ABSENT: _ClassVar[PutRequest.Condition]
        IF_PRESENT: _ClassVar[PutRequest.Condition]
    ALWAYS: PutRequest.Condition
    IF_ABSENT: PutRequest.Condition
    IF_PRESENT: PutRequest.Condition
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    WANT_OLD_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    map: str
    map_id: int
    schema_version: int
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    condition: PutRequest.Condition
    want_old: bool
    context: _common_pb2.Context
    transaction: str
    ttl: int
    traceparent: str
    def __init__(self, map: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., rows: _Optional[_Iterable[bytes]] = ..., condition: _Optional[_Union[PutRequest.Condition, str]] = ..., want_old: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transaction: _Optional[str] = ..., ttl: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class ComputeRequest(_message.Message):
    __slots__ = ("map", "map_id", "schema_version", "keys", "want_old", "context", "assignments", "condition", "parameter_types", "parameters", "rows", "transaction", "traceparent")
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    WANT_OLD_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_TYPES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    map: str
    map_id: int
    schema_version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    want_old: bool
    context: _common_pb2.Context
    assignments: str
    condition: str
    parameter_types: bytes
    parameters: bytes
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    transaction: str
    traceparent: str
    def __init__(self, map: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., want_old: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., assignments: _Optional[str] = ..., condition: _Optional[str] = ..., parameter_types: _Optional[bytes] = ..., parameters: _Optional[bytes] = ..., rows: _Optional[_Iterable[bytes]] = ..., transaction: _Optional[str] = ..., traceparent: _Optional[str] = ...) -> None: ...

class CheckedWrite(_message.Message):
    __slots__ = ("map", "map_id", "schema_version", "keys", "want_old", "context", "rows", "versions", "expected", "transaction", "traceparent")
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    WANT_OLD_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    map: str
    map_id: int
    schema_version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    want_old: bool
    context: _common_pb2.Context
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    versions: _containers.RepeatedScalarFieldContainer[int]
    expected: _containers.RepeatedScalarFieldContainer[bytes]
    transaction: str
    traceparent: str
    def __init__(self, map: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., want_old: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., rows: _Optional[_Iterable[bytes]] = ..., versions: _Optional[_Iterable[int]] = ..., expected: _Optional[_Iterable[bytes]] = ..., transaction: _Optional[str] = ..., traceparent: _Optional[str] = ...) -> None: ...

class PutBatchRequest(_message.Message):
    __slots__ = ("map", "map_id", "schema_version", "context", "transaction", "ttl", "traceparent")
    MAP_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    map: str
    map_id: int
    schema_version: int
    context: _common_pb2.Context
    transaction: str
    ttl: int
    traceparent: str
    def __init__(self, map: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transaction: _Optional[str] = ..., ttl: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class JobBegin(_message.Message):
    __slots__ = ("map", "overwrite", "label", "job", "insert_only")
    MAP_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    INSERT_ONLY_FIELD_NUMBER: _ClassVar[int]
    map: str
    overwrite: bool
    label: str
    job: str
    insert_only: bool
    def __init__(self, map: _Optional[str] = ..., overwrite: _Optional[bool] = ..., label: _Optional[str] = ..., job: _Optional[str] = ..., insert_only: _Optional[bool] = ...) -> None: ...

class JobHandle(_message.Message):
    __slots__ = ("job", "schema")
    JOB_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    job: str
    schema: _common_pb2.MapSchema
    def __init__(self, job: _Optional[str] = ..., schema: _Optional[_Union[_common_pb2.MapSchema, _Mapping]] = ...) -> None: ...

class JobWrite(_message.Message):
    __slots__ = ("job", "task", "sequence", "removal")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REMOVAL_FIELD_NUMBER: _ClassVar[int]
    job: str
    task: str
    sequence: int
    removal: bool
    def __init__(self, job: _Optional[str] = ..., task: _Optional[str] = ..., sequence: _Optional[int] = ..., removal: _Optional[bool] = ...) -> None: ...

class JobTaskEnd(_message.Message):
    __slots__ = ("job", "task", "rows", "removal")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    REMOVAL_FIELD_NUMBER: _ClassVar[int]
    job: str
    task: str
    rows: int
    removal: bool
    def __init__(self, job: _Optional[str] = ..., task: _Optional[str] = ..., rows: _Optional[int] = ..., removal: _Optional[bool] = ...) -> None: ...

class JobTask(_message.Message):
    __slots__ = ("task", "members", "rows")
    TASK_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    task: str
    members: _containers.RepeatedScalarFieldContainer[int]
    rows: int
    def __init__(self, task: _Optional[str] = ..., members: _Optional[_Iterable[int]] = ..., rows: _Optional[int] = ...) -> None: ...

class JobCommit(_message.Message):
    __slots__ = ("job", "tasks", "ttl")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    job: str
    tasks: _containers.RepeatedCompositeFieldContainer[JobTask]
    ttl: int
    def __init__(self, job: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[JobTask, _Mapping]]] = ..., ttl: _Optional[int] = ...) -> None: ...

class JobAbort(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class JobOutcomeRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class JobOutcome(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: JobState
    def __init__(self, state: _Optional[_Union[JobState, str]] = ...) -> None: ...

class ReadLease(_message.Message):
    __slots__ = ("run", "at", "seconds")
    RUN_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    run: str
    at: int
    seconds: int
    def __init__(self, run: _Optional[str] = ..., at: _Optional[int] = ..., seconds: _Optional[int] = ...) -> None: ...

class ReadLeased(_message.Message):
    __slots__ = ("at",)
    AT_FIELD_NUMBER: _ClassVar[int]
    at: int
    def __init__(self, at: _Optional[int] = ...) -> None: ...

class TransactionBegin(_message.Message):
    __slots__ = ("isolation", "read_only", "pessimistic", "timeout", "label", "context", "traceparent")
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    PESSIMISTIC_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    isolation: TransactionIsolation
    read_only: bool
    pessimistic: bool
    timeout: float
    label: str
    context: _common_pb2.Context
    traceparent: str
    def __init__(self, isolation: _Optional[_Union[TransactionIsolation, str]] = ..., read_only: _Optional[bool] = ..., pessimistic: _Optional[bool] = ..., timeout: _Optional[float] = ..., label: _Optional[str] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class TransactionStatus(_message.Message):
    __slots__ = ("transaction", "member", "state", "catalog_version", "snapshot")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    member: int
    state: TransactionState
    catalog_version: int
    snapshot: int
    def __init__(self, transaction: _Optional[str] = ..., member: _Optional[int] = ..., state: _Optional[_Union[TransactionState, str]] = ..., catalog_version: _Optional[int] = ..., snapshot: _Optional[int] = ...) -> None: ...

class TransactionEnd(_message.Message):
    __slots__ = ("transaction", "commit", "context", "reads", "puts", "timeout", "begin", "traceparent")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    PUTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    commit: bool
    context: _common_pb2.Context
    reads: _containers.RepeatedCompositeFieldContainer[KeysRequest]
    puts: _containers.RepeatedCompositeFieldContainer[PutRequest]
    timeout: float
    begin: TransactionBegin
    traceparent: str
    def __init__(self, transaction: _Optional[str] = ..., commit: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., reads: _Optional[_Iterable[_Union[KeysRequest, _Mapping]]] = ..., puts: _Optional[_Iterable[_Union[PutRequest, _Mapping]]] = ..., timeout: _Optional[float] = ..., begin: _Optional[_Union[TransactionBegin, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class TransactionEnded(_message.Message):
    __slots__ = ("commit_timestamp", "context", "transaction")
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    commit_timestamp: int
    context: _common_pb2.Context
    transaction: str
    def __init__(self, commit_timestamp: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transaction: _Optional[str] = ...) -> None: ...

class TransactionSavepoint(_message.Message):
    __slots__ = ("transaction", "action", "name", "traceparent")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SET: _ClassVar[TransactionSavepoint.Action]
        ROLL_BACK: _ClassVar[TransactionSavepoint.Action]
        RELEASE: _ClassVar[TransactionSavepoint.Action]
    SET: TransactionSavepoint.Action
    ROLL_BACK: TransactionSavepoint.Action
    RELEASE: TransactionSavepoint.Action
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    action: TransactionSavepoint.Action
    name: str
    traceparent: str
    def __init__(self, transaction: _Optional[str] = ..., action: _Optional[_Union[TransactionSavepoint.Action, str]] = ..., name: _Optional[str] = ..., traceparent: _Optional[str] = ...) -> None: ...

class TransactionSuspend(_message.Message):
    __slots__ = ("transaction", "resume", "traceparent")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    resume: bool
    traceparent: str
    def __init__(self, transaction: _Optional[str] = ..., resume: _Optional[bool] = ..., traceparent: _Optional[str] = ...) -> None: ...

class ChangesRequest(_message.Message):
    __slots__ = ("subscription", "kind", "text", "parameter_types", "parameters", "context", "positions", "wait", "rows", "keys_only", "map_id")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_TYPES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    KEYS_ONLY_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    subscription: str
    kind: str
    text: str
    parameter_types: bytes
    parameters: bytes
    context: _common_pb2.Context
    positions: _containers.RepeatedCompositeFieldContainer[ChangesPosition]
    wait: float
    rows: int
    keys_only: bool
    map_id: int
    def __init__(self, subscription: _Optional[str] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ..., parameter_types: _Optional[bytes] = ..., parameters: _Optional[bytes] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., positions: _Optional[_Iterable[_Union[ChangesPosition, _Mapping]]] = ..., wait: _Optional[float] = ..., rows: _Optional[int] = ..., keys_only: _Optional[bool] = ..., map_id: _Optional[int] = ...) -> None: ...

class ChangesPosition(_message.Message):
    __slots__ = ("partitions", "timestamp", "hash")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedScalarFieldContainer[int]
    timestamp: int
    hash: int
    def __init__(self, partitions: _Optional[_Iterable[int]] = ..., timestamp: _Optional[int] = ..., hash: _Optional[int] = ...) -> None: ...

class ChangesPage(_message.Message):
    __slots__ = ("context", "columns", "changes", "timestamp", "partition", "hash", "map_id", "confirmed", "kept_since")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    KEPT_SINCE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    columns: _containers.RepeatedCompositeFieldContainer[_common_pb2.Column]
    changes: bytes
    timestamp: int
    partition: int
    hash: int
    map_id: int
    confirmed: bool
    kept_since: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[_common_pb2.Column, _Mapping]]] = ..., changes: _Optional[bytes] = ..., timestamp: _Optional[int] = ..., partition: _Optional[int] = ..., hash: _Optional[int] = ..., map_id: _Optional[int] = ..., confirmed: _Optional[bool] = ..., kept_since: _Optional[int] = ...) -> None: ...

class ChangesEnd(_message.Message):
    __slots__ = ("subscription",)
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    subscription: str
    def __init__(self, subscription: _Optional[str] = ...) -> None: ...

class Gauge(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: int
    def __init__(self, name: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class MemberState(_message.Message):
    __slots__ = ("member", "gauges", "context")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    GAUGES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    member: int
    gauges: _containers.RepeatedCompositeFieldContainer[Gauge]
    context: _common_pb2.Context
    def __init__(self, member: _Optional[int] = ..., gauges: _Optional[_Iterable[_Union[Gauge, _Mapping]]] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ...) -> None: ...

class SparkPoll(_message.Message):
    __slots__ = ("service", "wait", "free", "running", "cores")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    service: str
    wait: float
    free: int
    running: _containers.RepeatedCompositeFieldContainer[_common_pb2.QueryId]
    cores: int
    def __init__(self, service: _Optional[str] = ..., wait: _Optional[float] = ..., free: _Optional[int] = ..., running: _Optional[_Iterable[_Union[_common_pb2.QueryId, _Mapping]]] = ..., cores: _Optional[int] = ...) -> None: ...

class SparkNews(_message.Message):
    __slots__ = ("work", "unwanted")
    WORK_FIELD_NUMBER: _ClassVar[int]
    UNWANTED_FIELD_NUMBER: _ClassVar[int]
    work: _containers.RepeatedCompositeFieldContainer[SparkWork]
    unwanted: _containers.RepeatedCompositeFieldContainer[_common_pb2.QueryId]
    def __init__(self, work: _Optional[_Iterable[_Union[SparkWork, _Mapping]]] = ..., unwanted: _Optional[_Iterable[_Union[_common_pb2.QueryId, _Mapping]]] = ...) -> None: ...

class SparkWork(_message.Message):
    __slots__ = ("query", "text", "read_timestamp", "scans", "functions", "types", "page_rows")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    READ_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SCANS_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    PAGE_ROWS_FIELD_NUMBER: _ClassVar[int]
    query: _common_pb2.QueryId
    text: str
    read_timestamp: int
    scans: _containers.RepeatedCompositeFieldContainer[SparkScan]
    functions: _containers.RepeatedCompositeFieldContainer[SparkFunction]
    types: bytes
    page_rows: int
    def __init__(self, query: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., text: _Optional[str] = ..., read_timestamp: _Optional[int] = ..., scans: _Optional[_Iterable[_Union[SparkScan, _Mapping]]] = ..., functions: _Optional[_Iterable[_Union[SparkFunction, _Mapping]]] = ..., types: _Optional[bytes] = ..., page_rows: _Optional[int] = ...) -> None: ...

class SparkScan(_message.Message):
    __slots__ = ("view", "map", "columns", "types")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    view: str
    map: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    types: bytes
    def __init__(self, view: _Optional[str] = ..., map: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., types: _Optional[bytes] = ...) -> None: ...

class SparkFunction(_message.Message):
    __slots__ = ("name", "expression", "types")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    name: str
    expression: bytes
    types: bytes
    def __init__(self, name: _Optional[str] = ..., expression: _Optional[bytes] = ..., types: _Optional[bytes] = ...) -> None: ...

class SparkRows(_message.Message):
    __slots__ = ("service", "query", "last", "error")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    service: str
    query: _common_pb2.QueryId
    last: bool
    error: PBError
    def __init__(self, service: _Optional[str] = ..., query: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., last: _Optional[bool] = ..., error: _Optional[_Union[PBError, _Mapping]] = ...) -> None: ...

class SparkWanted(_message.Message):
    __slots__ = ("wanted", "room")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    wanted: bool
    room: bool
    def __init__(self, wanted: _Optional[bool] = ..., room: _Optional[bool] = ...) -> None: ...
