from remuda.rpc.messages import common_pb2 as _common_pb2
from remuda.rpc.messages import user_pb2 as _user_pb2
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
    INITIALIZE_FRAGMENTS: _ClassVar[RpcType]
    CANCEL_FRAGMENT: _ClassVar[RpcType]
    RECEIVER_FINISHED: _ClassVar[RpcType]
    FRAGMENT_STATUS: _ClassVar[RpcType]
    QUERY_STATUS: _ClassVar[RpcType]
    CUSTOM: _ClassVar[RpcType]
    SASL_MESSAGE: _ClassVar[RpcType]
    QUERY_START: _ClassVar[RpcType]
    QUERY_CANCEL: _ClassVar[RpcType]
    QUERY_CHECK: _ClassVar[RpcType]
    QUERY_CHECK_RESPONSE: _ClassVar[RpcType]
    FRAGMENT_DONE: _ClassVar[RpcType]
    INDEX_READ: _ClassVar[RpcType]
    ENTRY_READ: _ClassVar[RpcType]
    JOIN: _ClassVar[RpcType]
    VIEW_INSTALL: _ClassVar[RpcType]
    HEARTBEAT: _ClassVar[RpcType]
    CLOCK: _ClassVar[RpcType]
    HEARTBEAT_ANSWER: _ClassVar[RpcType]
    AGREE: _ClassVar[RpcType]
    WISH: _ClassVar[RpcType]
    MEET: _ClassVar[RpcType]
    DONATE: _ClassVar[RpcType]
    RECOVER: _ClassVar[RpcType]
    CATALOG_CHANGE: _ClassVar[RpcType]
    CATALOG_INSTALL: _ClassVar[RpcType]
    CATALOG_VOTE: _ClassVar[RpcType]
    INDEX_STATUS: _ClassVar[RpcType]
    INDEX_ROOM: _ClassVar[RpcType]
    MAP_STATISTICS: _ClassVar[RpcType]
    SYSTEM_STATE: _ClassVar[RpcType]
    QUERY_PROFILES: _ClassVar[RpcType]
    STATEMENT_STATISTICS: _ClassVar[RpcType]
    COMMIT_PREPARE: _ClassVar[RpcType]
    COMMIT_FINISH: _ClassVar[RpcType]
    STAGE_ROWS: _ClassVar[RpcType]
    COMMIT_TURN: _ClassVar[RpcType]
    COMMIT_TURN_END: _ClassVar[RpcType]
    JOB_TOUCH: _ClassVar[RpcType]
    COMMIT_STATUS: _ClassVar[RpcType]
    COMMIT_KEEP: _ClassVar[RpcType]
    COMMIT_CHECK: _ClassVar[RpcType]
    JOB_VALUES: _ClassVar[RpcType]
    MOVES_PAUSE: _ClassVar[RpcType]
    COPY_BEGIN: _ClassVar[RpcType]
    COPY_ROWS: _ClassVar[RpcType]
    COPY_COMPARE: _ClassVar[RpcType]
    DONATE_COPIES: _ClassVar[RpcType]
    DONATE_JOB: _ClassVar[RpcType]
    COPY_REPLICATED: _ClassVar[RpcType]
    PARTS: _ClassVar[RpcType]
    TRANSACTION_PIN: _ClassVar[RpcType]
    KEY_LOCK: _ClassVar[RpcType]
    KEY_UNLOCK: _ClassVar[RpcType]
    KEY_PROBE: _ClassVar[RpcType]
    KEY_VICTIM: _ClassVar[RpcType]
    SNAPSHOT_WRITE: _ClassVar[RpcType]
    SNAPSHOT_READ: _ClassVar[RpcType]
    SNAPSHOT_REPLAY: _ClassVar[RpcType]
    CUT_CLOCK: _ClassVar[RpcType]
    CUT_MARK: _ClassVar[RpcType]
    CUT_STORE: _ClassVar[RpcType]
    ACTIVITY: _ClassVar[RpcType]
    END_WORK: _ClassVar[RpcType]
    DRAIN: _ClassVar[RpcType]
    RESET_STATEMENTS: _ClassVar[RpcType]
    SET_LOG_LEVEL: _ClassVar[RpcType]
    CANCEL_BACKEND: _ClassVar[RpcType]
    FORWARD: _ClassVar[RpcType]
    KEYED_WRITE: _ClassVar[RpcType]
    KEYED_WRITE_END: _ClassVar[RpcType]
    KEYED_WRITE_WAITS: _ClassVar[RpcType]
    SEQUENCE: _ClassVar[RpcType]
    ADVISORY_CLAIM: _ClassVar[RpcType]
    ADVISORY_HELD: _ClassVar[RpcType]
    NOTIFICATIONS: _ClassVar[RpcType]
    SEQUENCE_VOID: _ClassVar[RpcType]
HANDSHAKE: RpcType
ACK: RpcType
GOODBYE: RpcType
INITIALIZE_FRAGMENTS: RpcType
CANCEL_FRAGMENT: RpcType
RECEIVER_FINISHED: RpcType
FRAGMENT_STATUS: RpcType
QUERY_STATUS: RpcType
CUSTOM: RpcType
SASL_MESSAGE: RpcType
QUERY_START: RpcType
QUERY_CANCEL: RpcType
QUERY_CHECK: RpcType
QUERY_CHECK_RESPONSE: RpcType
FRAGMENT_DONE: RpcType
INDEX_READ: RpcType
ENTRY_READ: RpcType
JOIN: RpcType
VIEW_INSTALL: RpcType
HEARTBEAT: RpcType
CLOCK: RpcType
HEARTBEAT_ANSWER: RpcType
AGREE: RpcType
WISH: RpcType
MEET: RpcType
DONATE: RpcType
RECOVER: RpcType
CATALOG_CHANGE: RpcType
CATALOG_INSTALL: RpcType
CATALOG_VOTE: RpcType
INDEX_STATUS: RpcType
INDEX_ROOM: RpcType
MAP_STATISTICS: RpcType
SYSTEM_STATE: RpcType
QUERY_PROFILES: RpcType
STATEMENT_STATISTICS: RpcType
COMMIT_PREPARE: RpcType
COMMIT_FINISH: RpcType
STAGE_ROWS: RpcType
COMMIT_TURN: RpcType
COMMIT_TURN_END: RpcType
JOB_TOUCH: RpcType
COMMIT_STATUS: RpcType
COMMIT_KEEP: RpcType
COMMIT_CHECK: RpcType
JOB_VALUES: RpcType
MOVES_PAUSE: RpcType
COPY_BEGIN: RpcType
COPY_ROWS: RpcType
COPY_COMPARE: RpcType
DONATE_COPIES: RpcType
DONATE_JOB: RpcType
COPY_REPLICATED: RpcType
PARTS: RpcType
TRANSACTION_PIN: RpcType
KEY_LOCK: RpcType
KEY_UNLOCK: RpcType
KEY_PROBE: RpcType
KEY_VICTIM: RpcType
SNAPSHOT_WRITE: RpcType
SNAPSHOT_READ: RpcType
SNAPSHOT_REPLAY: RpcType
CUT_CLOCK: RpcType
CUT_MARK: RpcType
CUT_STORE: RpcType
ACTIVITY: RpcType
END_WORK: RpcType
DRAIN: RpcType
RESET_STATEMENTS: RpcType
SET_LOG_LEVEL: RpcType
CANCEL_BACKEND: RpcType
FORWARD: RpcType
KEYED_WRITE: RpcType
KEYED_WRITE_END: RpcType
KEYED_WRITE_WAITS: RpcType
SEQUENCE: RpcType
ADVISORY_CLAIM: RpcType
ADVISORY_HELD: RpcType
NOTIFICATIONS: RpcType
SEQUENCE_VOID: RpcType

class ControlHandshake(_message.Message):
    __slots__ = ("rpc_version", "channel", "member", "authenticationMechanisms", "rpc_version_min", "context", "refusal")
    RPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATIONMECHANISMS_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    rpc_version: int
    channel: _user_pb2.RpcChannel
    member: _common_pb2.Member
    authenticationMechanisms: _containers.RepeatedScalarFieldContainer[str]
    rpc_version_min: int
    context: _common_pb2.Context
    refusal: _user_pb2.PBError
    def __init__(self, rpc_version: _Optional[int] = ..., channel: _Optional[_Union[_user_pb2.RpcChannel, str]] = ..., member: _Optional[_Union[_common_pb2.Member, _Mapping]] = ..., authenticationMechanisms: _Optional[_Iterable[str]] = ..., rpc_version_min: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., refusal: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class QueryStart(_message.Message):
    __slots__ = ("context", "query_id", "plan_digest", "plan", "parameters", "participants", "read_timestamp", "timeout", "catalog_version", "sites", "analyze", "writes")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    READ_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    ANALYZE_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    plan_digest: bytes
    plan: bytes
    parameters: _containers.RepeatedCompositeFieldContainer[_common_pb2.Value]
    participants: _containers.RepeatedScalarFieldContainer[int]
    read_timestamp: int
    timeout: float
    catalog_version: int
    sites: _containers.RepeatedCompositeFieldContainer[FragmentSites]
    analyze: bool
    writes: _containers.RepeatedCompositeFieldContainer[UncommittedWrites]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., plan_digest: _Optional[bytes] = ..., plan: _Optional[bytes] = ..., parameters: _Optional[_Iterable[_Union[_common_pb2.Value, _Mapping]]] = ..., participants: _Optional[_Iterable[int]] = ..., read_timestamp: _Optional[int] = ..., timeout: _Optional[float] = ..., catalog_version: _Optional[int] = ..., sites: _Optional[_Iterable[_Union[FragmentSites, _Mapping]]] = ..., analyze: _Optional[bool] = ..., writes: _Optional[_Iterable[_Union[UncommittedWrites, _Mapping]]] = ...) -> None: ...

class IndexRead(_message.Message):
    __slots__ = ("context", "map_id", "schema_version", "index_id", "read_timestamp", "words", "bounds", "positions")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    READ_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    schema_version: int
    index_id: int
    read_timestamp: int
    words: _containers.RepeatedScalarFieldContainer[int]
    bounds: _containers.RepeatedScalarFieldContainer[bytes]
    positions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., index_id: _Optional[int] = ..., read_timestamp: _Optional[int] = ..., words: _Optional[_Iterable[int]] = ..., bounds: _Optional[_Iterable[bytes]] = ..., positions: _Optional[_Iterable[int]] = ...) -> None: ...

class IndexRows(_message.Message):
    __slots__ = ("context", "rows", "declined")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    declined: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., rows: _Optional[_Iterable[bytes]] = ..., declined: _Optional[int] = ...) -> None: ...

class EntryRead(_message.Message):
    __slots__ = ("context", "map_id", "schema_version", "key", "form")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    schema_version: int
    key: bytes
    form: bytes
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., key: _Optional[bytes] = ..., form: _Optional[bytes] = ...) -> None: ...

class EntryForm(_message.Message):
    __slots__ = ("positions", "formats", "zone")
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedScalarFieldContainer[int]
    formats: _containers.RepeatedScalarFieldContainer[int]
    zone: str
    def __init__(self, positions: _Optional[_Iterable[int]] = ..., formats: _Optional[_Iterable[int]] = ..., zone: _Optional[str] = ...) -> None: ...

class EntryRow(_message.Message):
    __slots__ = ("clock", "row", "declined")
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    DECLINED_FIELD_NUMBER: _ClassVar[int]
    clock: int
    row: bytes
    declined: bool
    def __init__(self, clock: _Optional[int] = ..., row: _Optional[bytes] = ..., declined: _Optional[bool] = ...) -> None: ...

class UncommittedWrites(_message.Message):
    __slots__ = ("map_id", "schema_version", "rows", "removed")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    schema_version: int
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    removed: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., rows: _Optional[_Iterable[bytes]] = ..., removed: _Optional[_Iterable[bytes]] = ...) -> None: ...

class TransactionPin(_message.Message):
    __slots__ = ("context", "oldest")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    oldest: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., oldest: _Optional[int] = ...) -> None: ...

class FragmentSites(_message.Message):
    __slots__ = ("fragment", "members", "limited", "partitions", "instances")
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    LIMITED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    fragment: int
    members: _containers.RepeatedScalarFieldContainer[int]
    limited: bool
    partitions: _containers.RepeatedScalarFieldContainer[int]
    instances: int
    def __init__(self, fragment: _Optional[int] = ..., members: _Optional[_Iterable[int]] = ..., limited: _Optional[bool] = ..., partitions: _Optional[_Iterable[int]] = ..., instances: _Optional[int] = ...) -> None: ...

class QueryCancel(_message.Message):
    __slots__ = ("context", "query_id", "cancel_initiator", "error")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_INITIATOR_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    cancel_initiator: int
    error: _user_pb2.PBError
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., cancel_initiator: _Optional[int] = ..., error: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class QueryCheck(_message.Message):
    __slots__ = ("context", "suspected")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SUSPECTED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    suspected: _containers.RepeatedCompositeFieldContainer[_common_pb2.QueryId]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., suspected: _Optional[_Iterable[_Union[_common_pb2.QueryId, _Mapping]]] = ...) -> None: ...

class QueryCheckResponse(_message.Message):
    __slots__ = ("context", "inactive", "ended")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    INACTIVE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    inactive: _containers.RepeatedCompositeFieldContainer[_common_pb2.QueryId]
    ended: _containers.RepeatedCompositeFieldContainer[EndedInstance]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., inactive: _Optional[_Iterable[_Union[_common_pb2.QueryId, _Mapping]]] = ..., ended: _Optional[_Iterable[_Union[EndedInstance, _Mapping]]] = ...) -> None: ...

class EndedInstance(_message.Message):
    __slots__ = ("query_id", "member", "fragment", "instance")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    member: int
    fragment: int
    instance: int
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., member: _Optional[int] = ..., fragment: _Optional[int] = ..., instance: _Optional[int] = ...) -> None: ...

class OperatorProfile(_message.Message):
    __slots__ = ("operator", "rows", "batches", "bytes", "seconds", "name", "wait", "waits", "memory", "spilled", "files", "first", "last")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SPILLED_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    operator: int
    rows: int
    batches: int
    bytes: int
    seconds: float
    name: str
    wait: float
    waits: int
    memory: int
    spilled: int
    files: int
    first: float
    last: float
    def __init__(self, operator: _Optional[int] = ..., rows: _Optional[int] = ..., batches: _Optional[int] = ..., bytes: _Optional[int] = ..., seconds: _Optional[float] = ..., name: _Optional[str] = ..., wait: _Optional[float] = ..., waits: _Optional[int] = ..., memory: _Optional[int] = ..., spilled: _Optional[int] = ..., files: _Optional[int] = ..., first: _Optional[float] = ..., last: _Optional[float] = ...) -> None: ...

class FragmentDone(_message.Message):
    __slots__ = ("context", "instance", "query_id", "fragment", "operators", "seconds", "peak_memory")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    instance: int
    query_id: _common_pb2.QueryId
    fragment: int
    operators: _containers.RepeatedCompositeFieldContainer[OperatorProfile]
    seconds: float
    peak_memory: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., instance: _Optional[int] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., fragment: _Optional[int] = ..., operators: _Optional[_Iterable[_Union[OperatorProfile, _Mapping]]] = ..., seconds: _Optional[float] = ..., peak_memory: _Optional[int] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("context", "member", "cluster", "view", "catalog", "cluster_identity", "logs", "log", "reading")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    READING_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    member: _common_pb2.Member
    cluster: str
    view: _common_pb2.View
    catalog: CatalogState
    cluster_identity: bytes
    logs: bool
    log: LogState
    reading: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., member: _Optional[_Union[_common_pb2.Member, _Mapping]] = ..., cluster: _Optional[str] = ..., view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., catalog: _Optional[_Union[CatalogState, _Mapping]] = ..., cluster_identity: _Optional[bytes] = ..., logs: _Optional[bool] = ..., log: _Optional[_Union[LogState, _Mapping]] = ..., reading: _Optional[bool] = ...) -> None: ...

class ViewInstall(_message.Message):
    __slots__ = ("context", "view", "cluster_identity")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    view: _common_pb2.View
    cluster_identity: bytes
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., cluster_identity: _Optional[bytes] = ...) -> None: ...

class LogState(_message.Message):
    __slots__ = ("cluster_identity", "member", "view", "accepted", "lost", "clock", "parts", "jobs", "replicated", "left", "settled", "log", "heard", "folder")
    CLUSTER_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    REPLICATED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    cluster_identity: bytes
    member: int
    view: _common_pb2.View
    accepted: _common_pb2.View
    lost: _containers.RepeatedCompositeFieldContainer[PartitionHolders]
    clock: int
    parts: _containers.RepeatedCompositeFieldContainer[PartEnd]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    replicated: bool
    left: _containers.RepeatedScalarFieldContainer[int]
    settled: bool
    log: LogEnd
    heard: _containers.RepeatedCompositeFieldContainer[LogEnd]
    folder: str
    def __init__(self, cluster_identity: _Optional[bytes] = ..., member: _Optional[int] = ..., view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., accepted: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., lost: _Optional[_Iterable[_Union[PartitionHolders, _Mapping]]] = ..., clock: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[PartEnd, _Mapping]]] = ..., jobs: _Optional[_Iterable[str]] = ..., replicated: _Optional[bool] = ..., left: _Optional[_Iterable[int]] = ..., settled: _Optional[bool] = ..., log: _Optional[_Union[LogEnd, _Mapping]] = ..., heard: _Optional[_Iterable[_Union[LogEnd, _Mapping]]] = ..., folder: _Optional[str] = ...) -> None: ...

class LogEnd(_message.Message):
    __slots__ = ("member", "identity", "sequence")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    member: int
    identity: bytes
    sequence: int
    def __init__(self, member: _Optional[int] = ..., identity: _Optional[bytes] = ..., sequence: _Optional[int] = ...) -> None: ...

class PartitionHolders(_message.Message):
    __slots__ = ("partition", "view", "members")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    partition: int
    view: int
    members: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partition: _Optional[int] = ..., view: _Optional[int] = ..., members: _Optional[_Iterable[int]] = ...) -> None: ...

class PartEnd(_message.Message):
    __slots__ = ("began", "near", "partition", "state", "timestamp", "partitions")
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    NEAR_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    began: int
    near: int
    partition: int
    state: PartMessage.State
    timestamp: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, began: _Optional[int] = ..., near: _Optional[int] = ..., partition: _Optional[int] = ..., state: _Optional[_Union[PartMessage.State, str]] = ..., timestamp: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class Recover(_message.Message):
    __slots__ = ("context", "parts", "jobs", "view", "catalog")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    parts: _containers.RepeatedCompositeFieldContainer[PartEnd]
    jobs: _containers.RepeatedCompositeFieldContainer[JobEnd]
    view: _common_pb2.View
    catalog: CatalogState
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[PartEnd, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[JobEnd, _Mapping]]] = ..., view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., catalog: _Optional[_Union[CatalogState, _Mapping]] = ...) -> None: ...

class JobEnd(_message.Message):
    __slots__ = ("job", "timestamp")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    job: str
    timestamp: int
    def __init__(self, job: _Optional[str] = ..., timestamp: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("context", "memory_held", "memory_limit", "sent", "catalog_version", "probe", "leaving", "drained", "returning", "log")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_HELD_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SENT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    RETURNING_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    memory_held: int
    memory_limit: int
    sent: float
    catalog_version: int
    probe: bool
    leaving: bool
    drained: bool
    returning: bool
    log: LogEnd
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., memory_held: _Optional[int] = ..., memory_limit: _Optional[int] = ..., sent: _Optional[float] = ..., catalog_version: _Optional[int] = ..., probe: _Optional[bool] = ..., leaving: _Optional[bool] = ..., drained: _Optional[bool] = ..., returning: _Optional[bool] = ..., log: _Optional[_Union[LogEnd, _Mapping]] = ...) -> None: ...

class Ballot(_message.Message):
    __slots__ = ("round", "proposer")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PROPOSER_FIELD_NUMBER: _ClassVar[int]
    round: int
    proposer: int
    def __init__(self, round: _Optional[int] = ..., proposer: _Optional[int] = ...) -> None: ...

class Agreement(_message.Message):
    __slots__ = ("context", "kind", "view", "ballot", "promised", "accepted", "value", "reason", "quiet", "catalog_version", "catalog_number", "catalog_ballot")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PREPARE: _ClassVar[Agreement.Kind]
        PROMISE: _ClassVar[Agreement.Kind]
        ACCEPT: _ClassVar[Agreement.Kind]
        ACCEPTED: _ClassVar[Agreement.Kind]
        REFUSED: _ClassVar[Agreement.Kind]
        ASK: _ClassVar[Agreement.Kind]
        DECIDED: _ClassVar[Agreement.Kind]
        INSTALLED: _ClassVar[Agreement.Kind]
    PREPARE: Agreement.Kind
    PROMISE: Agreement.Kind
    ACCEPT: Agreement.Kind
    ACCEPTED: Agreement.Kind
    REFUSED: Agreement.Kind
    ASK: Agreement.Kind
    DECIDED: Agreement.Kind
    INSTALLED: Agreement.Kind
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    CATALOG_NUMBER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_BALLOT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    kind: Agreement.Kind
    view: int
    ballot: Ballot
    promised: Ballot
    accepted: Ballot
    value: _common_pb2.View
    reason: str
    quiet: _containers.RepeatedCompositeFieldContainer[Quiet]
    catalog_version: int
    catalog_number: int
    catalog_ballot: Ballot
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., kind: _Optional[_Union[Agreement.Kind, str]] = ..., view: _Optional[int] = ..., ballot: _Optional[_Union[Ballot, _Mapping]] = ..., promised: _Optional[_Union[Ballot, _Mapping]] = ..., accepted: _Optional[_Union[Ballot, _Mapping]] = ..., value: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., reason: _Optional[str] = ..., quiet: _Optional[_Iterable[_Union[Quiet, _Mapping]]] = ..., catalog_version: _Optional[int] = ..., catalog_number: _Optional[int] = ..., catalog_ballot: _Optional[_Union[Ballot, _Mapping]] = ...) -> None: ...

class Quiet(_message.Message):
    __slots__ = ("member", "seconds")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    member: int
    seconds: float
    def __init__(self, member: _Optional[int] = ..., seconds: _Optional[float] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("partition", "before", "after", "generation", "donor")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    DONOR_FIELD_NUMBER: _ClassVar[int]
    partition: int
    before: _containers.RepeatedScalarFieldContainer[int]
    after: _containers.RepeatedScalarFieldContainer[int]
    generation: int
    donor: int
    def __init__(self, partition: _Optional[int] = ..., before: _Optional[_Iterable[int]] = ..., after: _Optional[_Iterable[int]] = ..., generation: _Optional[int] = ..., donor: _Optional[int] = ...) -> None: ...

class MembershipWish(_message.Message):
    __slots__ = ("context", "join", "leave", "until", "places", "version")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    join: _common_pb2.Member
    leave: int
    until: int
    places: _containers.RepeatedCompositeFieldContainer[Placement]
    version: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., join: _Optional[_Union[_common_pb2.Member, _Mapping]] = ..., leave: _Optional[int] = ..., until: _Optional[int] = ..., places: _Optional[_Iterable[_Union[Placement, _Mapping]]] = ..., version: _Optional[int] = ...) -> None: ...

class CatalogChange(_message.Message):
    __slots__ = ("context", "create", "drop", "edits")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    create: _user_pb2.CreateMap
    drop: _user_pb2.MapName
    edits: CatalogEdits
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., create: _Optional[_Union[_user_pb2.CreateMap, _Mapping]] = ..., drop: _Optional[_Union[_user_pb2.MapName, _Mapping]] = ..., edits: _Optional[_Union[CatalogEdits, _Mapping]] = ...) -> None: ...

class CatalogEdit(_message.Message):
    __slots__ = ("put_map", "drop_map", "put_view", "drop_view", "put_namespace", "drop_namespace", "put_type", "drop_type")
    PUT_MAP_FIELD_NUMBER: _ClassVar[int]
    DROP_MAP_FIELD_NUMBER: _ClassVar[int]
    PUT_VIEW_FIELD_NUMBER: _ClassVar[int]
    DROP_VIEW_FIELD_NUMBER: _ClassVar[int]
    PUT_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DROP_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    DROP_TYPE_FIELD_NUMBER: _ClassVar[int]
    put_map: _common_pb2.MapSchema
    drop_map: str
    put_view: _common_pb2.ViewDefinition
    drop_view: str
    put_namespace: _common_pb2.Namespace
    drop_namespace: str
    put_type: _common_pb2.EnumType
    drop_type: int
    def __init__(self, put_map: _Optional[_Union[_common_pb2.MapSchema, _Mapping]] = ..., drop_map: _Optional[str] = ..., put_view: _Optional[_Union[_common_pb2.ViewDefinition, _Mapping]] = ..., drop_view: _Optional[str] = ..., put_namespace: _Optional[_Union[_common_pb2.Namespace, _Mapping]] = ..., drop_namespace: _Optional[str] = ..., put_type: _Optional[_Union[_common_pb2.EnumType, _Mapping]] = ..., drop_type: _Optional[int] = ...) -> None: ...

class CatalogEdits(_message.Message):
    __slots__ = ("version", "edits", "decides", "forgets")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDITS_FIELD_NUMBER: _ClassVar[int]
    DECIDES_FIELD_NUMBER: _ClassVar[int]
    FORGETS_FIELD_NUMBER: _ClassVar[int]
    version: int
    edits: _containers.RepeatedCompositeFieldContainer[CatalogEdit]
    decides: DecidedTransaction
    forgets: _containers.RepeatedCompositeFieldContainer[DecidedTransaction]
    def __init__(self, version: _Optional[int] = ..., edits: _Optional[_Iterable[_Union[CatalogEdit, _Mapping]]] = ..., decides: _Optional[_Union[DecidedTransaction, _Mapping]] = ..., forgets: _Optional[_Iterable[_Union[DecidedTransaction, _Mapping]]] = ...) -> None: ...

class DecidedTransaction(_message.Message):
    __slots__ = ("began", "member", "timestamp")
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    began: int
    member: int
    timestamp: int
    def __init__(self, began: _Optional[int] = ..., member: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class CatalogState(_message.Message):
    __slots__ = ("context", "version", "maps", "views", "outdated", "following_oid", "namespaces", "former_maps", "types", "undecided", "ballot", "decided")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    OUTDATED_FIELD_NUMBER: _ClassVar[int]
    FOLLOWING_OID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    FORMER_MAPS_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    UNDECIDED_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    version: int
    maps: _containers.RepeatedCompositeFieldContainer[_common_pb2.MapSchema]
    views: _containers.RepeatedCompositeFieldContainer[_common_pb2.ViewDefinition]
    outdated: bool
    following_oid: int
    namespaces: _containers.RepeatedCompositeFieldContainer[_common_pb2.Namespace]
    former_maps: _containers.RepeatedCompositeFieldContainer[_common_pb2.MapSchema]
    types: _containers.RepeatedCompositeFieldContainer[_common_pb2.EnumType]
    undecided: CatalogState
    ballot: Ballot
    decided: _containers.RepeatedCompositeFieldContainer[DecidedTransaction]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., version: _Optional[int] = ..., maps: _Optional[_Iterable[_Union[_common_pb2.MapSchema, _Mapping]]] = ..., views: _Optional[_Iterable[_Union[_common_pb2.ViewDefinition, _Mapping]]] = ..., outdated: _Optional[bool] = ..., following_oid: _Optional[int] = ..., namespaces: _Optional[_Iterable[_Union[_common_pb2.Namespace, _Mapping]]] = ..., former_maps: _Optional[_Iterable[_Union[_common_pb2.MapSchema, _Mapping]]] = ..., types: _Optional[_Iterable[_Union[_common_pb2.EnumType, _Mapping]]] = ..., undecided: _Optional[_Union[CatalogState, _Mapping]] = ..., ballot: _Optional[_Union[Ballot, _Mapping]] = ..., decided: _Optional[_Iterable[_Union[DecidedTransaction, _Mapping]]] = ...) -> None: ...

class CatalogVote(_message.Message):
    __slots__ = ("context", "kind", "ballot", "value")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        READ: _ClassVar[CatalogVote.Kind]
        PROMISE: _ClassVar[CatalogVote.Kind]
        ACCEPT: _ClassVar[CatalogVote.Kind]
    READ: CatalogVote.Kind
    PROMISE: CatalogVote.Kind
    ACCEPT: CatalogVote.Kind
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BALLOT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    kind: CatalogVote.Kind
    ballot: Ballot
    value: CatalogState
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., kind: _Optional[_Union[CatalogVote.Kind, str]] = ..., ballot: _Optional[_Union[Ballot, _Mapping]] = ..., value: _Optional[_Union[CatalogState, _Mapping]] = ...) -> None: ...

class CatalogVoted(_message.Message):
    __slots__ = ("context", "agreed", "promised", "catalog")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AGREED_FIELD_NUMBER: _ClassVar[int]
    PROMISED_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    agreed: bool
    promised: Ballot
    catalog: CatalogState
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., agreed: _Optional[bool] = ..., promised: _Optional[_Union[Ballot, _Mapping]] = ..., catalog: _Optional[_Union[CatalogState, _Mapping]] = ...) -> None: ...

class ColumnStatistics(_message.Message):
    __slots__ = ("position", "null_fraction", "distinct", "minimum", "maximum", "width", "histogram", "common_values", "common_shares", "sketch")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NULL_FRACTION_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    COMMON_VALUES_FIELD_NUMBER: _ClassVar[int]
    COMMON_SHARES_FIELD_NUMBER: _ClassVar[int]
    SKETCH_FIELD_NUMBER: _ClassVar[int]
    position: int
    null_fraction: float
    distinct: float
    minimum: _common_pb2.Value
    maximum: _common_pb2.Value
    width: float
    histogram: _containers.RepeatedCompositeFieldContainer[_common_pb2.Value]
    common_values: _containers.RepeatedCompositeFieldContainer[_common_pb2.Value]
    common_shares: _containers.RepeatedScalarFieldContainer[float]
    sketch: bytes
    def __init__(self, position: _Optional[int] = ..., null_fraction: _Optional[float] = ..., distinct: _Optional[float] = ..., minimum: _Optional[_Union[_common_pb2.Value, _Mapping]] = ..., maximum: _Optional[_Union[_common_pb2.Value, _Mapping]] = ..., width: _Optional[float] = ..., histogram: _Optional[_Iterable[_Union[_common_pb2.Value, _Mapping]]] = ..., common_values: _Optional[_Iterable[_Union[_common_pb2.Value, _Mapping]]] = ..., common_shares: _Optional[_Iterable[float]] = ..., sketch: _Optional[bytes] = ...) -> None: ...

class StatisticsRequest(_message.Message):
    __slots__ = ("context", "map_ids", "totals_only")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_IDS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_ONLY_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_ids: _containers.RepeatedScalarFieldContainer[int]
    totals_only: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_ids: _Optional[_Iterable[int]] = ..., totals_only: _Optional[bool] = ...) -> None: ...

class MapStatistics(_message.Message):
    __slots__ = ("map_id", "rows", "bytes", "columns", "schema_version")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    rows: int
    bytes: int
    columns: _containers.RepeatedCompositeFieldContainer[ColumnStatistics]
    schema_version: int
    def __init__(self, map_id: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[ColumnStatistics, _Mapping]]] = ..., schema_version: _Optional[int] = ...) -> None: ...

class IndexRoomRequest(_message.Message):
    __slots__ = ("context", "map")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map: _common_pb2.MapSchema
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map: _Optional[_Union[_common_pb2.MapSchema, _Mapping]] = ...) -> None: ...

class IndexStatusRequest(_message.Message):
    __slots__ = ("context", "map_id")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ...) -> None: ...

class IndexStatus(_message.Message):
    __slots__ = ("context", "built", "indexes", "bytes")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    BUILT_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    built: _containers.RepeatedScalarFieldContainer[int]
    indexes: _containers.RepeatedScalarFieldContainer[int]
    bytes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., built: _Optional[_Iterable[int]] = ..., indexes: _Optional[_Iterable[int]] = ..., bytes: _Optional[_Iterable[int]] = ...) -> None: ...

class StatisticsReply(_message.Message):
    __slots__ = ("context", "maps")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    maps: _containers.RepeatedCompositeFieldContainer[MapStatistics]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., maps: _Optional[_Iterable[_Union[MapStatistics, _Mapping]]] = ...) -> None: ...

class CommitPrepare(_message.Message):
    __slots__ = ("context", "job", "tasks", "overwrite", "map_id", "schema_version", "insert_only", "participants", "removed_keys", "unchanged_since", "parts", "unique", "commit_timestamp", "kept", "ttl")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    INSERT_ONLY_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_KEYS_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_SINCE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    tasks: _containers.RepeatedCompositeFieldContainer[_user_pb2.JobTask]
    overwrite: bool
    map_id: int
    schema_version: int
    insert_only: bool
    participants: _containers.RepeatedScalarFieldContainer[int]
    removed_keys: _containers.RepeatedCompositeFieldContainer[_common_pb2.Row]
    unchanged_since: int
    parts: _containers.RepeatedCompositeFieldContainer[CommitPart]
    unique: bool
    commit_timestamp: int
    kept: PartitionRows
    ttl: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_user_pb2.JobTask, _Mapping]]] = ..., overwrite: _Optional[bool] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., insert_only: _Optional[bool] = ..., participants: _Optional[_Iterable[int]] = ..., removed_keys: _Optional[_Iterable[_Union[_common_pb2.Row, _Mapping]]] = ..., unchanged_since: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[CommitPart, _Mapping]]] = ..., unique: _Optional[bool] = ..., commit_timestamp: _Optional[int] = ..., kept: _Optional[_Union[PartitionRows, _Mapping]] = ..., ttl: _Optional[int] = ...) -> None: ...

class CommitPart(_message.Message):
    __slots__ = ("copies",)
    COPIES_FIELD_NUMBER: _ClassVar[int]
    copies: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, copies: _Optional[_Iterable[int]] = ...) -> None: ...

class PartitionRows(_message.Message):
    __slots__ = ("partitions", "rows")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedScalarFieldContainer[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, partitions: _Optional[_Iterable[int]] = ..., rows: _Optional[_Iterable[int]] = ...) -> None: ...

class CommitPrepared(_message.Message):
    __slots__ = ("context", "prepare_timestamp", "rows", "refusal", "written")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PREPARE_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    prepare_timestamp: int
    rows: int
    refusal: _user_pb2.PBError
    written: PartitionRows
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., prepare_timestamp: _Optional[int] = ..., rows: _Optional[int] = ..., refusal: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ..., written: _Optional[_Union[PartitionRows, _Mapping]] = ...) -> None: ...

class CommitCheck(_message.Message):
    __slots__ = ("context", "job", "commit_timestamp", "members")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    commit_timestamp: int
    members: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., commit_timestamp: _Optional[int] = ..., members: _Optional[_Iterable[int]] = ...) -> None: ...

class JobValues(_message.Message):
    __slots__ = ("context", "job", "commit_timestamp", "index_id", "start", "count", "places")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    commit_timestamp: int
    index_id: int
    start: int
    count: int
    places: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., commit_timestamp: _Optional[int] = ..., index_id: _Optional[int] = ..., start: _Optional[int] = ..., count: _Optional[int] = ..., places: _Optional[_Iterable[int]] = ...) -> None: ...

class CommitFinish(_message.Message):
    __slots__ = ("context", "job", "commit_timestamp")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    commit_timestamp: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., commit_timestamp: _Optional[int] = ...) -> None: ...

class StageRows(_message.Message):
    __slots__ = ("context", "job", "task", "map_id", "schema_version", "sequence", "removal", "primaries", "prepare", "writer", "spread")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REMOVAL_FIELD_NUMBER: _ClassVar[int]
    PRIMARIES_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    task: str
    map_id: int
    schema_version: int
    sequence: int
    removal: bool
    primaries: int
    prepare: CommitPrepare
    writer: int
    spread: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., task: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., sequence: _Optional[int] = ..., removal: _Optional[bool] = ..., primaries: _Optional[int] = ..., prepare: _Optional[_Union[CommitPrepare, _Mapping]] = ..., writer: _Optional[int] = ..., spread: _Optional[bool] = ...) -> None: ...

class MovesPause(_message.Message):
    __slots__ = ("context", "job", "over", "number", "oldest")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    over: bool
    number: int
    oldest: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., over: _Optional[bool] = ..., number: _Optional[int] = ..., oldest: _Optional[int] = ...) -> None: ...

class MovesPaused(_message.Message):
    __slots__ = ("context", "writes")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    writes: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., writes: _Optional[bool] = ...) -> None: ...

class CopyBegin(_message.Message):
    __slots__ = ("context", "transfer", "partitions", "map_id", "bytes", "kept")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    transfer: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    map_id: int
    bytes: int
    kept: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transfer: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., map_id: _Optional[int] = ..., bytes: _Optional[int] = ..., kept: _Optional[bool] = ...) -> None: ...

class CopyBegun(_message.Message):
    __slots__ = ("context", "kept")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    kept: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., kept: _Optional[_Iterable[int]] = ...) -> None: ...

class CopyCompare(_message.Message):
    __slots__ = ("context", "transfer", "map_id", "schema_version", "bits", "buckets", "void", "voided", "take", "floor")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    VOID_FIELD_NUMBER: _ClassVar[int]
    VOIDED_FIELD_NUMBER: _ClassVar[int]
    TAKE_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    transfer: str
    map_id: int
    schema_version: int
    bits: int
    buckets: _containers.RepeatedScalarFieldContainer[int]
    void: _containers.RepeatedScalarFieldContainer[int]
    voided: bool
    take: bool
    floor: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transfer: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., bits: _Optional[int] = ..., buckets: _Optional[_Iterable[int]] = ..., void: _Optional[_Iterable[int]] = ..., voided: _Optional[bool] = ..., take: _Optional[bool] = ..., floor: _Optional[int] = ...) -> None: ...

class CopyCompared(_message.Message):
    __slots__ = ("context", "digests", "marks")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    digests: bytes
    marks: bytes
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., digests: _Optional[bytes] = ..., marks: _Optional[bytes] = ...) -> None: ...

class CopyRows(_message.Message):
    __slots__ = ("context", "transfer", "map_id", "schema_version", "low", "floor")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    FLOOR_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    transfer: str
    map_id: int
    schema_version: int
    low: int
    floor: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., transfer: _Optional[str] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., low: _Optional[int] = ..., floor: _Optional[int] = ...) -> None: ...

class Donation(_message.Message):
    __slots__ = ("context", "member", "copies", "view", "wanted", "give", "catalog", "jobs", "giving")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    GIVE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    GIVING_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    member: _common_pb2.Member
    copies: _containers.RepeatedCompositeFieldContainer[_common_pb2.Generation]
    view: _common_pb2.View
    wanted: int
    give: _containers.RepeatedCompositeFieldContainer[Receiving]
    catalog: CatalogState
    jobs: _containers.RepeatedScalarFieldContainer[str]
    giving: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., member: _Optional[_Union[_common_pb2.Member, _Mapping]] = ..., copies: _Optional[_Iterable[_Union[_common_pb2.Generation, _Mapping]]] = ..., view: _Optional[_Union[_common_pb2.View, _Mapping]] = ..., wanted: _Optional[int] = ..., give: _Optional[_Iterable[_Union[Receiving, _Mapping]]] = ..., catalog: _Optional[_Union[CatalogState, _Mapping]] = ..., jobs: _Optional[_Iterable[str]] = ..., giving: _Optional[bool] = ...) -> None: ...

class Receiving(_message.Message):
    __slots__ = ("partition", "receiver")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    partition: int
    receiver: int
    def __init__(self, partition: _Optional[int] = ..., receiver: _Optional[int] = ...) -> None: ...

class DonatedCopies(_message.Message):
    __slots__ = ("context", "donor", "transfer", "copies", "complete", "parts")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DONOR_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    donor: int
    transfer: str
    copies: _containers.RepeatedCompositeFieldContainer[_common_pb2.Generation]
    complete: bool
    parts: _containers.RepeatedCompositeFieldContainer[PartMessage]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., donor: _Optional[int] = ..., transfer: _Optional[str] = ..., copies: _Optional[_Iterable[_Union[_common_pb2.Generation, _Mapping]]] = ..., complete: _Optional[bool] = ..., parts: _Optional[_Iterable[_Union[PartMessage, _Mapping]]] = ...) -> None: ...

class DonatedJob(_message.Message):
    __slots__ = ("context", "donor", "job", "state", "commit_timestamp", "participants")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    DONOR_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANTS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    donor: int
    job: str
    state: CommitStatusReply.State
    commit_timestamp: int
    participants: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., donor: _Optional[int] = ..., job: _Optional[str] = ..., state: _Optional[_Union[CommitStatusReply.State, str]] = ..., commit_timestamp: _Optional[int] = ..., participants: _Optional[_Iterable[int]] = ...) -> None: ...

class CommitTurn(_message.Message):
    __slots__ = ("context", "map_id", "job", "number")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    job: str
    number: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., job: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class JobTouch(_message.Message):
    __slots__ = ("context", "job", "active", "user")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    active: bool
    user: str
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., active: _Optional[bool] = ..., user: _Optional[str] = ...) -> None: ...

class CommitStatus(_message.Message):
    __slots__ = ("context", "job", "lost")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    job: str
    lost: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., job: _Optional[str] = ..., lost: _Optional[_Iterable[int]] = ...) -> None: ...

class CommitStatusReply(_message.Message):
    __slots__ = ("context", "state", "commit_timestamp")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[CommitStatusReply.State]
        PREPARED: _ClassVar[CommitStatusReply.State]
        COMMITTED: _ClassVar[CommitStatusReply.State]
        ABORTED: _ClassVar[CommitStatusReply.State]
        KEPT: _ClassVar[CommitStatusReply.State]
    UNKNOWN: CommitStatusReply.State
    PREPARED: CommitStatusReply.State
    COMMITTED: CommitStatusReply.State
    ABORTED: CommitStatusReply.State
    KEPT: CommitStatusReply.State
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    state: CommitStatusReply.State
    commit_timestamp: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., state: _Optional[_Union[CommitStatusReply.State, str]] = ..., commit_timestamp: _Optional[int] = ...) -> None: ...

class SystemStateRequest(_message.Message):
    __slots__ = ("context", "membership")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    membership: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., membership: _Optional[bool] = ...) -> None: ...

class SystemState(_message.Message):
    __slots__ = ("context", "catalog_version", "gauges", "maps", "statements", "fragments", "transactions", "snapshots", "subscriptions", "copies_refused", "log_levels", "spark_services", "lease", "membership")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    GAUGES_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    FRAGMENTS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    COPIES_REFUSED_FIELD_NUMBER: _ClassVar[int]
    LOG_LEVELS_FIELD_NUMBER: _ClassVar[int]
    SPARK_SERVICES_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    catalog_version: int
    gauges: _containers.RepeatedCompositeFieldContainer[_user_pb2.Gauge]
    maps: _containers.RepeatedCompositeFieldContainer[MapPart]
    statements: _containers.RepeatedCompositeFieldContainer[RunningStatement]
    fragments: _containers.RepeatedCompositeFieldContainer[RunningFragment]
    transactions: _containers.RepeatedCompositeFieldContainer[OpenTransaction]
    snapshots: _containers.RepeatedCompositeFieldContainer[SnapshotTask]
    subscriptions: _containers.RepeatedCompositeFieldContainer[Subscription]
    copies_refused: str
    log_levels: _containers.RepeatedCompositeFieldContainer[LogLevel]
    spark_services: _containers.RepeatedCompositeFieldContainer[SparkService]
    lease: float
    membership: _containers.RepeatedCompositeFieldContainer[MembershipEvent]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., catalog_version: _Optional[int] = ..., gauges: _Optional[_Iterable[_Union[_user_pb2.Gauge, _Mapping]]] = ..., maps: _Optional[_Iterable[_Union[MapPart, _Mapping]]] = ..., statements: _Optional[_Iterable[_Union[RunningStatement, _Mapping]]] = ..., fragments: _Optional[_Iterable[_Union[RunningFragment, _Mapping]]] = ..., transactions: _Optional[_Iterable[_Union[OpenTransaction, _Mapping]]] = ..., snapshots: _Optional[_Iterable[_Union[SnapshotTask, _Mapping]]] = ..., subscriptions: _Optional[_Iterable[_Union[Subscription, _Mapping]]] = ..., copies_refused: _Optional[str] = ..., log_levels: _Optional[_Iterable[_Union[LogLevel, _Mapping]]] = ..., spark_services: _Optional[_Iterable[_Union[SparkService, _Mapping]]] = ..., lease: _Optional[float] = ..., membership: _Optional[_Iterable[_Union[MembershipEvent, _Mapping]]] = ...) -> None: ...

class SparkService(_message.Message):
    __slots__ = ("service", "user", "address", "cores", "free", "running", "silent")
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    service: str
    user: str
    address: str
    cores: int
    free: int
    running: int
    silent: float
    def __init__(self, service: _Optional[str] = ..., user: _Optional[str] = ..., address: _Optional[str] = ..., cores: _Optional[int] = ..., free: _Optional[int] = ..., running: _Optional[int] = ..., silent: _Optional[float] = ...) -> None: ...

class MembershipEvent(_message.Message):
    __slots__ = ("at", "kind", "view", "subject", "cause")
    AT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    at: int
    kind: str
    view: int
    subject: int
    cause: str
    def __init__(self, at: _Optional[int] = ..., kind: _Optional[str] = ..., view: _Optional[int] = ..., subject: _Optional[int] = ..., cause: _Optional[str] = ...) -> None: ...

class ActivityRequest(_message.Message):
    __slots__ = ("context", "locks", "page")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    locks: bool
    page: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., locks: _Optional[bool] = ..., page: _Optional[int] = ...) -> None: ...

class Activity(_message.Message):
    __slots__ = ("context", "clients", "statements", "transactions", "locks", "more")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    LOCKS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    clients: _containers.RepeatedCompositeFieldContainer[ConnectedClient]
    statements: _containers.RepeatedCompositeFieldContainer[RunningStatement]
    transactions: _containers.RepeatedCompositeFieldContainer[OpenTransaction]
    locks: _containers.RepeatedCompositeFieldContainer[HeldLock]
    more: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., clients: _Optional[_Iterable[_Union[ConnectedClient, _Mapping]]] = ..., statements: _Optional[_Iterable[_Union[RunningStatement, _Mapping]]] = ..., transactions: _Optional[_Iterable[_Union[OpenTransaction, _Mapping]]] = ..., locks: _Optional[_Iterable[_Union[HeldLock, _Mapping]]] = ..., more: _Optional[int] = ...) -> None: ...

class ConnectedClient(_message.Message):
    __slots__ = ("pid", "address", "application", "user", "since", "changed", "requests", "protocol")
    PID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    pid: int
    address: str
    application: str
    user: str
    since: int
    changed: int
    requests: int
    protocol: str
    def __init__(self, pid: _Optional[int] = ..., address: _Optional[str] = ..., application: _Optional[str] = ..., user: _Optional[str] = ..., since: _Optional[int] = ..., changed: _Optional[int] = ..., requests: _Optional[int] = ..., protocol: _Optional[str] = ...) -> None: ...

class HeldLock(_message.Message):
    __slots__ = ("map_id", "map", "key", "kind", "mode", "granted", "owner", "client", "since", "blockers", "pid", "query_id")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    BLOCKERS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    map: str
    key: str
    kind: str
    mode: str
    granted: bool
    owner: str
    client: str
    since: int
    blockers: _containers.RepeatedScalarFieldContainer[str]
    pid: int
    query_id: _common_pb2.QueryId
    def __init__(self, map_id: _Optional[int] = ..., map: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., mode: _Optional[str] = ..., granted: _Optional[bool] = ..., owner: _Optional[str] = ..., client: _Optional[str] = ..., since: _Optional[int] = ..., blockers: _Optional[_Iterable[str]] = ..., pid: _Optional[int] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ...) -> None: ...

class EndWork(_message.Message):
    __slots__ = ("context", "kind", "id", "pid", "user")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATEMENT: _ClassVar[EndWork.Kind]
        TRANSACTION: _ClassVar[EndWork.Kind]
        STATEMENTS_OF_CLIENT: _ClassVar[EndWork.Kind]
        CLIENT: _ClassVar[EndWork.Kind]
    STATEMENT: EndWork.Kind
    TRANSACTION: EndWork.Kind
    STATEMENTS_OF_CLIENT: EndWork.Kind
    CLIENT: EndWork.Kind
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    kind: EndWork.Kind
    id: str
    pid: int
    user: str
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., kind: _Optional[_Union[EndWork.Kind, str]] = ..., id: _Optional[str] = ..., pid: _Optional[int] = ..., user: _Optional[str] = ...) -> None: ...

class CancelBackend(_message.Message):
    __slots__ = ("context", "pid", "secret")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    pid: int
    secret: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., pid: _Optional[int] = ..., secret: _Optional[int] = ...) -> None: ...

class WorkEnded(_message.Message):
    __slots__ = ("context", "found")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    found: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., found: _Optional[bool] = ...) -> None: ...

class ResetStatements(_message.Message):
    __slots__ = ("context", "user")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    user: str
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class LogLevel(_message.Message):
    __slots__ = ("part", "level")
    PART_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    part: str
    level: str
    def __init__(self, part: _Optional[str] = ..., level: _Optional[str] = ...) -> None: ...

class SetLogLevel(_message.Message):
    __slots__ = ("context", "user", "level")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    user: str
    level: LogLevel
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., user: _Optional[str] = ..., level: _Optional[_Union[LogLevel, _Mapping]] = ...) -> None: ...

class Tuned(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("context", "user")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    user: str
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("subscription", "kind", "map", "text", "user", "started", "position", "changes")
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    subscription: str
    kind: str
    map: str
    text: str
    user: str
    started: int
    position: int
    changes: int
    def __init__(self, subscription: _Optional[str] = ..., kind: _Optional[str] = ..., map: _Optional[str] = ..., text: _Optional[str] = ..., user: _Optional[str] = ..., started: _Optional[int] = ..., position: _Optional[int] = ..., changes: _Optional[int] = ...) -> None: ...

class SnapshotTask(_message.Message):
    __slots__ = ("kind", "snapshot", "cut", "started", "attempt", "objects", "objects_total", "rows", "bytes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    snapshot: str
    cut: int
    started: int
    attempt: int
    objects: int
    objects_total: int
    rows: int
    bytes: int
    def __init__(self, kind: _Optional[str] = ..., snapshot: _Optional[str] = ..., cut: _Optional[int] = ..., started: _Optional[int] = ..., attempt: _Optional[int] = ..., objects: _Optional[int] = ..., objects_total: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class OpenTransaction(_message.Message):
    __slots__ = ("transaction", "state", "isolation", "read_only", "user", "label", "started", "snapshot", "writes", "bytes", "reads", "savepoints", "pid", "used", "busy")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    SAVEPOINTS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    state: str
    isolation: str
    read_only: bool
    user: str
    label: str
    started: int
    snapshot: int
    writes: int
    bytes: int
    reads: int
    savepoints: int
    pid: int
    used: int
    busy: bool
    def __init__(self, transaction: _Optional[str] = ..., state: _Optional[str] = ..., isolation: _Optional[str] = ..., read_only: _Optional[bool] = ..., user: _Optional[str] = ..., label: _Optional[str] = ..., started: _Optional[int] = ..., snapshot: _Optional[int] = ..., writes: _Optional[int] = ..., bytes: _Optional[int] = ..., reads: _Optional[int] = ..., savepoints: _Optional[int] = ..., pid: _Optional[int] = ..., used: _Optional[int] = ..., busy: _Optional[bool] = ...) -> None: ...

class MapPart(_message.Message):
    __slots__ = ("map_id", "rows", "bytes", "backup_rows", "backup_bytes", "gets", "misses", "puts", "removes", "evictions", "idle", "expirations", "last_access", "last_update", "bytes_limit", "rows_read", "rows_written")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BACKUP_ROWS_FIELD_NUMBER: _ClassVar[int]
    BACKUP_BYTES_FIELD_NUMBER: _ClassVar[int]
    GETS_FIELD_NUMBER: _ClassVar[int]
    MISSES_FIELD_NUMBER: _ClassVar[int]
    PUTS_FIELD_NUMBER: _ClassVar[int]
    REMOVES_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    EXPIRATIONS_FIELD_NUMBER: _ClassVar[int]
    LAST_ACCESS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATE_FIELD_NUMBER: _ClassVar[int]
    BYTES_LIMIT_FIELD_NUMBER: _ClassVar[int]
    ROWS_READ_FIELD_NUMBER: _ClassVar[int]
    ROWS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    rows: int
    bytes: int
    backup_rows: int
    backup_bytes: int
    gets: int
    misses: int
    puts: int
    removes: int
    evictions: int
    idle: int
    expirations: int
    last_access: int
    last_update: int
    bytes_limit: int
    rows_read: int
    rows_written: int
    def __init__(self, map_id: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., backup_rows: _Optional[int] = ..., backup_bytes: _Optional[int] = ..., gets: _Optional[int] = ..., misses: _Optional[int] = ..., puts: _Optional[int] = ..., removes: _Optional[int] = ..., evictions: _Optional[int] = ..., idle: _Optional[int] = ..., expirations: _Optional[int] = ..., last_access: _Optional[int] = ..., last_update: _Optional[int] = ..., bytes_limit: _Optional[int] = ..., rows_read: _Optional[int] = ..., rows_written: _Optional[int] = ...) -> None: ...

class RunningStatement(_message.Message):
    __slots__ = ("query_id", "text", "state", "started", "rows", "bytes", "serving", "planning", "queued", "user", "pid", "transaction", "job", "waited")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    PLANNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    text: str
    state: str
    started: int
    rows: int
    bytes: int
    serving: _common_pb2.QueryId
    planning: float
    queued: float
    user: str
    pid: int
    transaction: str
    job: str
    waited: float
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., text: _Optional[str] = ..., state: _Optional[str] = ..., started: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., serving: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., planning: _Optional[float] = ..., queued: _Optional[float] = ..., user: _Optional[str] = ..., pid: _Optional[int] = ..., transaction: _Optional[str] = ..., job: _Optional[str] = ..., waited: _Optional[float] = ...) -> None: ...

class StatementStatisticsRequest(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ...) -> None: ...

class StatementStatistics(_message.Message):
    __slots__ = ("context", "statements")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    statements: _containers.RepeatedCompositeFieldContainer[StatementSums]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., statements: _Optional[_Iterable[_Union[StatementSums, _Mapping]]] = ...) -> None: ...

class StatementSums(_message.Message):
    __slots__ = ("fingerprint", "user", "text", "timed", "reads", "errors", "rows", "seconds", "shortest", "longest", "planning", "queued", "memory", "spilled", "first", "last", "buckets", "counts", "waited")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIMED_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHORTEST_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    PLANNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SPILLED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    fingerprint: int
    user: str
    text: str
    timed: int
    reads: int
    errors: int
    rows: int
    seconds: float
    shortest: float
    longest: float
    planning: float
    queued: float
    memory: int
    spilled: int
    first: int
    last: int
    buckets: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    waited: float
    def __init__(self, fingerprint: _Optional[int] = ..., user: _Optional[str] = ..., text: _Optional[str] = ..., timed: _Optional[int] = ..., reads: _Optional[int] = ..., errors: _Optional[int] = ..., rows: _Optional[int] = ..., seconds: _Optional[float] = ..., shortest: _Optional[float] = ..., longest: _Optional[float] = ..., planning: _Optional[float] = ..., queued: _Optional[float] = ..., memory: _Optional[int] = ..., spilled: _Optional[int] = ..., first: _Optional[int] = ..., last: _Optional[int] = ..., buckets: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ..., waited: _Optional[float] = ...) -> None: ...

class QueryProfilesRequest(_message.Message):
    __slots__ = ("context", "full")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    full: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., full: _Optional[bool] = ...) -> None: ...

class QueryProfiles(_message.Message):
    __slots__ = ("context", "queries")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    queries: _containers.RepeatedCompositeFieldContainer[KeptQuery]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., queries: _Optional[_Iterable[_Union[KeptQuery, _Mapping]]] = ...) -> None: ...

class KeptQuery(_message.Message):
    __slots__ = ("query", "user", "text", "state", "started", "planning", "queued", "execution", "rows", "bytes", "memory", "spilled", "error", "sqlstate", "profile", "waited")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    PLANNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SPILLED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SQLSTATE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    query: str
    user: str
    text: str
    state: str
    started: int
    planning: float
    queued: float
    execution: float
    rows: int
    bytes: int
    memory: int
    spilled: int
    error: str
    sqlstate: str
    profile: str
    waited: float
    def __init__(self, query: _Optional[str] = ..., user: _Optional[str] = ..., text: _Optional[str] = ..., state: _Optional[str] = ..., started: _Optional[int] = ..., planning: _Optional[float] = ..., queued: _Optional[float] = ..., execution: _Optional[float] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., memory: _Optional[int] = ..., spilled: _Optional[int] = ..., error: _Optional[str] = ..., sqlstate: _Optional[str] = ..., profile: _Optional[str] = ..., waited: _Optional[float] = ...) -> None: ...

class RunningFragment(_message.Message):
    __slots__ = ("query_id", "fragment", "state", "operators", "seconds", "memory", "instance")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    fragment: int
    state: str
    operators: _containers.RepeatedCompositeFieldContainer[OperatorProfile]
    seconds: float
    memory: int
    instance: int
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., fragment: _Optional[int] = ..., state: _Optional[str] = ..., operators: _Optional[_Iterable[_Union[OperatorProfile, _Mapping]]] = ..., seconds: _Optional[float] = ..., memory: _Optional[int] = ..., instance: _Optional[int] = ...) -> None: ...

class Forward(_message.Message):
    __slots__ = ("context", "rpc_type", "body", "user")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RPC_TYPE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    rpc_type: int
    body: bytes
    user: str
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., rpc_type: _Optional[int] = ..., body: _Optional[bytes] = ..., user: _Optional[str] = ...) -> None: ...

class KeyedWriteRequest(_message.Message):
    __slots__ = ("context", "query_id", "write", "parameters")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    write: bytes
    parameters: bytes
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., write: _Optional[bytes] = ..., parameters: _Optional[bytes] = ...) -> None: ...

class SequenceRequest(_message.Message):
    __slots__ = ("context", "map_id", "schema_version", "take", "generation", "last_value", "is_called", "next_generation")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    TAKE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LAST_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_CALLED_FIELD_NUMBER: _ClassVar[int]
    NEXT_GENERATION_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    schema_version: int
    take: int
    generation: int
    last_value: int
    is_called: bool
    next_generation: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., take: _Optional[int] = ..., generation: _Optional[int] = ..., last_value: _Optional[int] = ..., is_called: _Optional[bool] = ..., next_generation: _Optional[int] = ...) -> None: ...

class SequenceAnswer(_message.Message):
    __slots__ = ("context", "generation", "last_value", "is_called", "first", "count", "increment", "refused")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LAST_VALUE_FIELD_NUMBER: _ClassVar[int]
    IS_CALLED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    generation: int
    last_value: int
    is_called: bool
    first: int
    count: int
    increment: int
    refused: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., generation: _Optional[int] = ..., last_value: _Optional[int] = ..., is_called: _Optional[bool] = ..., first: _Optional[int] = ..., count: _Optional[int] = ..., increment: _Optional[int] = ..., refused: _Optional[bool] = ...) -> None: ...

class SequenceVoid(_message.Message):
    __slots__ = ("context", "map_id", "generation")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    generation: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class AdvisoryClaim(_message.Message):
    __slots__ = ("context", "member", "owner", "number", "pair", "key", "shared", "waits", "given_up", "table")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    member: int
    owner: str
    number: int
    pair: bool
    key: int
    shared: bool
    waits: bool
    given_up: bool
    table: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., member: _Optional[int] = ..., owner: _Optional[str] = ..., number: _Optional[int] = ..., pair: _Optional[bool] = ..., key: _Optional[int] = ..., shared: _Optional[bool] = ..., waits: _Optional[bool] = ..., given_up: _Optional[bool] = ..., table: _Optional[bool] = ...) -> None: ...

class AdvisoryAnswer(_message.Message):
    __slots__ = ("context", "granted", "circle")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    CIRCLE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    granted: bool
    circle: _containers.RepeatedCompositeFieldContainer[AdvisoryClaim]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., granted: _Optional[bool] = ..., circle: _Optional[_Iterable[_Union[AdvisoryClaim, _Mapping]]] = ...) -> None: ...

class AdvisoryHeld(_message.Message):
    __slots__ = ("context", "any_view", "held", "waiting")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ANY_VIEW_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    any_view: bool
    held: _containers.RepeatedCompositeFieldContainer[AdvisoryClaim]
    waiting: _containers.RepeatedCompositeFieldContainer[AdvisoryClaim]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., any_view: _Optional[bool] = ..., held: _Optional[_Iterable[_Union[AdvisoryClaim, _Mapping]]] = ..., waiting: _Optional[_Iterable[_Union[AdvisoryClaim, _Mapping]]] = ...) -> None: ...

class NotificationsRequest(_message.Message):
    __slots__ = ("context", "map_id", "after", "wait")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    map_id: int
    after: int
    wait: float
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., map_id: _Optional[int] = ..., after: _Optional[int] = ..., wait: _Optional[float] = ...) -> None: ...

class NotificationsAnswer(_message.Message):
    __slots__ = ("context", "until", "entries")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    until: int
    entries: _containers.RepeatedCompositeFieldContainer[NotificationEntry]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., until: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[NotificationEntry, _Mapping]]] = ...) -> None: ...

class NotificationEntry(_message.Message):
    __slots__ = ("timestamp", "tag", "place", "body")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    tag: int
    place: int
    body: bytes
    def __init__(self, timestamp: _Optional[int] = ..., tag: _Optional[int] = ..., place: _Optional[int] = ..., body: _Optional[bytes] = ...) -> None: ...

class NotificationBody(_message.Message):
    __slots__ = ("pid", "channels", "payloads")
    PID_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    pid: int
    channels: _containers.RepeatedScalarFieldContainer[str]
    payloads: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pid: _Optional[int] = ..., channels: _Optional[_Iterable[str]] = ..., payloads: _Optional[_Iterable[str]] = ...) -> None: ...

class KeyedWriteEnd(_message.Message):
    __slots__ = ("context", "query_id")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ...) -> None: ...

class KeyedWriteWaits(_message.Message):
    __slots__ = ("context", "query_id")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ...) -> None: ...

class PartMessages(_message.Message):
    __slots__ = ("context", "finished_below", "messages", "in_doubt", "alone", "kept", "kept_partitions")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_BELOW_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    IN_DOUBT_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    KEPT_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    finished_below: int
    messages: _containers.RepeatedCompositeFieldContainer[PartMessage]
    in_doubt: _containers.RepeatedScalarFieldContainer[int]
    alone: _containers.RepeatedCompositeFieldContainer[AlonePart]
    kept: _containers.RepeatedScalarFieldContainer[int]
    kept_partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., finished_below: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[PartMessage, _Mapping]]] = ..., in_doubt: _Optional[_Iterable[int]] = ..., alone: _Optional[_Iterable[_Union[AlonePart, _Mapping]]] = ..., kept: _Optional[_Iterable[int]] = ..., kept_partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class AlonePart(_message.Message):
    __slots__ = ("timestamp", "partition", "writes")
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    timestamp: int
    partition: int
    writes: _containers.RepeatedCompositeFieldContainer[PartWrite]
    def __init__(self, timestamp: _Optional[int] = ..., partition: _Optional[int] = ..., writes: _Optional[_Iterable[_Union[PartWrite, _Mapping]]] = ...) -> None: ...

class PartMessage(_message.Message):
    __slots__ = ("kind", "began", "near", "partition", "timestamp", "one_phase", "committed", "partitions", "refusal", "asking", "state", "work")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PREPARE: _ClassVar[PartMessage.Kind]
        VOTE: _ClassVar[PartMessage.Kind]
        FINISH: _ClassVar[PartMessage.Kind]
        FINISHED: _ClassVar[PartMessage.Kind]
        BACKUP_PREPARE: _ClassVar[PartMessage.Kind]
        BACKUP_PREPARED: _ClassVar[PartMessage.Kind]
        BACKUP_FINISH: _ClassVar[PartMessage.Kind]
        BACKUP_FINISHED: _ClassVar[PartMessage.Kind]
        BACKUP_ENDED: _ClassVar[PartMessage.Kind]
        BACKUP_FORGET: _ClassVar[PartMessage.Kind]
        INQUIRE: _ClassVar[PartMessage.Kind]
        TOLD: _ClassVar[PartMessage.Kind]
        BACKUP_REFUSED: _ClassVar[PartMessage.Kind]
        KEEP_ALL: _ClassVar[PartMessage.Kind]
        KEPT_ALL: _ClassVar[PartMessage.Kind]
    PREPARE: PartMessage.Kind
    VOTE: PartMessage.Kind
    FINISH: PartMessage.Kind
    FINISHED: PartMessage.Kind
    BACKUP_PREPARE: PartMessage.Kind
    BACKUP_PREPARED: PartMessage.Kind
    BACKUP_FINISH: PartMessage.Kind
    BACKUP_FINISHED: PartMessage.Kind
    BACKUP_ENDED: PartMessage.Kind
    BACKUP_FORGET: PartMessage.Kind
    INQUIRE: PartMessage.Kind
    TOLD: PartMessage.Kind
    BACKUP_REFUSED: PartMessage.Kind
    KEEP_ALL: PartMessage.Kind
    KEPT_ALL: PartMessage.Kind
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[PartMessage.State]
        PREPARED: _ClassVar[PartMessage.State]
        COMMITTED: _ClassVar[PartMessage.State]
        ROLLED_BACK: _ClassVar[PartMessage.State]
    UNKNOWN: PartMessage.State
    PREPARED: PartMessage.State
    COMMITTED: PartMessage.State
    ROLLED_BACK: PartMessage.State
    KIND_FIELD_NUMBER: _ClassVar[int]
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    NEAR_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    ONE_PHASE_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    ASKING_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    kind: PartMessage.Kind
    began: int
    near: int
    partition: int
    timestamp: int
    one_phase: bool
    committed: bool
    partitions: _containers.RepeatedScalarFieldContainer[int]
    refusal: _user_pb2.PBError
    asking: int
    state: PartMessage.State
    work: _containers.RepeatedCompositeFieldContainer[PartWork]
    def __init__(self, kind: _Optional[_Union[PartMessage.Kind, str]] = ..., began: _Optional[int] = ..., near: _Optional[int] = ..., partition: _Optional[int] = ..., timestamp: _Optional[int] = ..., one_phase: _Optional[bool] = ..., committed: _Optional[bool] = ..., partitions: _Optional[_Iterable[int]] = ..., refusal: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ..., asking: _Optional[int] = ..., state: _Optional[_Union[PartMessage.State, str]] = ..., work: _Optional[_Iterable[_Union[PartWork, _Mapping]]] = ...) -> None: ...

class PartWork(_message.Message):
    __slots__ = ("partition", "snapshot", "writes", "reads", "scans", "owner", "kept_at")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    SCANS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    KEPT_AT_FIELD_NUMBER: _ClassVar[int]
    partition: int
    snapshot: int
    writes: _containers.RepeatedCompositeFieldContainer[PartWrite]
    reads: _containers.RepeatedCompositeFieldContainer[PartRead]
    scans: _containers.RepeatedScalarFieldContainer[bytes]
    owner: TransactionName
    kept_at: int
    def __init__(self, partition: _Optional[int] = ..., snapshot: _Optional[int] = ..., writes: _Optional[_Iterable[_Union[PartWrite, _Mapping]]] = ..., reads: _Optional[_Iterable[_Union[PartRead, _Mapping]]] = ..., scans: _Optional[_Iterable[bytes]] = ..., owner: _Optional[_Union[TransactionName, _Mapping]] = ..., kept_at: _Optional[int] = ...) -> None: ...

class PartWrite(_message.Message):
    __slots__ = ("map_id", "schema_version", "key", "row", "ttl")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    schema_version: int
    key: _common_pb2.Row
    row: _common_pb2.Row
    ttl: int
    def __init__(self, map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., key: _Optional[_Union[_common_pb2.Row, _Mapping]] = ..., row: _Optional[_Union[_common_pb2.Row, _Mapping]] = ..., ttl: _Optional[int] = ...) -> None: ...

class PartRead(_message.Message):
    __slots__ = ("map_id", "key", "since")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    key: _common_pb2.Row
    since: int
    def __init__(self, map_id: _Optional[int] = ..., key: _Optional[_Union[_common_pb2.Row, _Mapping]] = ..., since: _Optional[int] = ...) -> None: ...

class PartScan(_message.Message):
    __slots__ = ("map_id", "schema_version", "predicate", "column_ids", "positions", "parameters")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_IDS_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    schema_version: int
    predicate: bytes
    column_ids: _containers.RepeatedScalarFieldContainer[int]
    positions: _containers.RepeatedScalarFieldContainer[int]
    parameters: _containers.RepeatedCompositeFieldContainer[_common_pb2.Value]
    def __init__(self, map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., predicate: _Optional[bytes] = ..., column_ids: _Optional[_Iterable[int]] = ..., positions: _Optional[_Iterable[int]] = ..., parameters: _Optional[_Iterable[_Union[_common_pb2.Value, _Mapping]]] = ...) -> None: ...

class TransactionName(_message.Message):
    __slots__ = ("began", "near")
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    NEAR_FIELD_NUMBER: _ClassVar[int]
    began: int
    near: int
    def __init__(self, began: _Optional[int] = ..., near: _Optional[int] = ...) -> None: ...

class KeyLock(_message.Message):
    __slots__ = ("context", "owner", "map_id", "keys", "shared", "client", "ask", "holders", "read_version", "read_at", "rows")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    READ_VERSION_FIELD_NUMBER: _ClassVar[int]
    READ_AT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    owner: TransactionName
    map_id: int
    keys: _containers.RepeatedCompositeFieldContainer[_common_pb2.Row]
    shared: bool
    client: str
    ask: bool
    holders: _containers.RepeatedScalarFieldContainer[str]
    read_version: int
    read_at: int
    rows: _containers.RepeatedCompositeFieldContainer[LockedRow]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., owner: _Optional[_Union[TransactionName, _Mapping]] = ..., map_id: _Optional[int] = ..., keys: _Optional[_Iterable[_Union[_common_pb2.Row, _Mapping]]] = ..., shared: _Optional[bool] = ..., client: _Optional[str] = ..., ask: _Optional[bool] = ..., holders: _Optional[_Iterable[str]] = ..., read_version: _Optional[int] = ..., read_at: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[LockedRow, _Mapping]]] = ...) -> None: ...

class LockedRow(_message.Message):
    __slots__ = ("row",)
    ROW_FIELD_NUMBER: _ClassVar[int]
    row: _common_pb2.Row
    def __init__(self, row: _Optional[_Union[_common_pb2.Row, _Mapping]] = ...) -> None: ...

class KeyProbe(_message.Message):
    __slots__ = ("context", "round", "path", "target", "waits_here")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WAITS_HERE_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    round: int
    path: _containers.RepeatedCompositeFieldContainer[TransactionName]
    target: TransactionName
    waits_here: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., round: _Optional[int] = ..., path: _Optional[_Iterable[_Union[TransactionName, _Mapping]]] = ..., target: _Optional[_Union[TransactionName, _Mapping]] = ..., waits_here: _Optional[bool] = ...) -> None: ...

class SnapshotWrite(_message.Message):
    __slots__ = ("context", "snapshot", "cut", "map_id", "schema_version", "group", "partitions", "at")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    snapshot: str
    cut: int
    map_id: int
    schema_version: int
    group: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    at: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., snapshot: _Optional[str] = ..., cut: _Optional[int] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ..., group: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ..., at: _Optional[int] = ...) -> None: ...

class SnapshotWritten(_message.Message):
    __slots__ = ("context", "key", "sha256", "size", "rows", "passing")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PASSING_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    key: str
    sha256: str
    size: int
    rows: int
    passing: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., key: _Optional[str] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., rows: _Optional[int] = ..., passing: _Optional[int] = ...) -> None: ...

class SnapshotRead(_message.Message):
    __slots__ = ("context", "object", "map_id", "schema_version")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    object: SnapshotWritten
    map_id: int
    schema_version: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., object: _Optional[_Union[SnapshotWritten, _Mapping]] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...

class CutClock(_message.Message):
    __slots__ = ("context", "clock", "version", "cluster_identity", "log_identity")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    LOG_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    clock: int
    version: int
    cluster_identity: bytes
    log_identity: bytes
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., clock: _Optional[int] = ..., version: _Optional[int] = ..., cluster_identity: _Optional[bytes] = ..., log_identity: _Optional[bytes] = ...) -> None: ...

class CutMark(_message.Message):
    __slots__ = ("context", "version", "timestamp")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    version: int
    timestamp: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., version: _Optional[int] = ..., timestamp: _Optional[int] = ...) -> None: ...

class CutDone(_message.Message):
    __slots__ = ("context", "start", "finish", "needs", "catalog_version")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    start: int
    finish: int
    needs: int
    catalog_version: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., start: _Optional[int] = ..., finish: _Optional[int] = ..., needs: _Optional[int] = ..., catalog_version: _Optional[int] = ...) -> None: ...

class CutStore(_message.Message):
    __slots__ = ("context", "snapshot", "version", "needs", "above", "partitions")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    ABOVE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    snapshot: str
    version: int
    needs: int
    above: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., snapshot: _Optional[str] = ..., version: _Optional[int] = ..., needs: _Optional[int] = ..., above: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class CutStored(_message.Message):
    __slots__ = ("context", "segments", "counted", "changes")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    segments: _containers.RepeatedCompositeFieldContainer[LogSegment]
    counted: bool
    changes: _containers.RepeatedCompositeFieldContainer[MapChanges]
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[LogSegment, _Mapping]]] = ..., counted: _Optional[bool] = ..., changes: _Optional[_Iterable[_Union[MapChanges, _Mapping]]] = ...) -> None: ...

class MapChanges(_message.Message):
    __slots__ = ("map_id", "put", "removed")
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    map_id: int
    put: int
    removed: int
    def __init__(self, map_id: _Optional[int] = ..., put: _Optional[int] = ..., removed: _Optional[int] = ...) -> None: ...

class LogSegment(_message.Message):
    __slots__ = ("key", "sha256", "size", "number", "first", "last")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    key: str
    sha256: str
    size: int
    number: int
    first: int
    last: int
    def __init__(self, key: _Optional[str] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., number: _Optional[int] = ..., first: _Optional[int] = ..., last: _Optional[int] = ...) -> None: ...

class SnapshotReplay(_message.Message):
    __slots__ = ("context", "snapshot", "cut", "moment", "log_identity", "maps", "archived", "finish")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    MOMENT_FIELD_NUMBER: _ClassVar[int]
    LOG_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    MAPS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    snapshot: str
    cut: int
    moment: int
    log_identity: str
    maps: _containers.RepeatedCompositeFieldContainer[ReplayedMap]
    archived: _containers.RepeatedCompositeFieldContainer[LogSegment]
    finish: int
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., snapshot: _Optional[str] = ..., cut: _Optional[int] = ..., moment: _Optional[int] = ..., log_identity: _Optional[str] = ..., maps: _Optional[_Iterable[_Union[ReplayedMap, _Mapping]]] = ..., archived: _Optional[_Iterable[_Union[LogSegment, _Mapping]]] = ..., finish: _Optional[int] = ...) -> None: ...

class ReplayedMap(_message.Message):
    __slots__ = ("old_id", "map_id", "schema_version")
    OLD_ID_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    old_id: int
    map_id: int
    schema_version: int
    def __init__(self, old_id: _Optional[int] = ..., map_id: _Optional[int] = ..., schema_version: _Optional[int] = ...) -> None: ...
