from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueryId(_message.Message):
    __slots__ = ("part1", "part2")
    PART1_FIELD_NUMBER: _ClassVar[int]
    PART2_FIELD_NUMBER: _ClassVar[int]
    part1: int
    part2: int
    def __init__(self, part1: _Optional[int] = ..., part2: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("ok",)
    OK_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    def __init__(self, ok: _Optional[bool] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("line", "column", "offset", "length")
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    line: int
    column: int
    offset: int
    length: int
    def __init__(self, line: _Optional[int] = ..., column: _Optional[int] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("boolean", "integer", "number", "text", "binary", "big_integer", "items")
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    BIG_INTEGER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    integer: int
    number: float
    text: str
    binary: bytes
    big_integer: str
    items: Row
    def __init__(self, boolean: _Optional[bool] = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., binary: _Optional[bytes] = ..., big_integer: _Optional[str] = ..., items: _Optional[_Union[Row, _Mapping]] = ...) -> None: ...

class Row(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Context(_message.Message):
    __slots__ = ("clock", "view", "cut_version", "sender")
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CUT_VERSION_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    clock: int
    view: int
    cut_version: int
    sender: int
    def __init__(self, clock: _Optional[int] = ..., view: _Optional[int] = ..., cut_version: _Optional[int] = ..., sender: _Optional[int] = ...) -> None: ...

class SqlType(_message.Message):
    __slots__ = ("kind", "precision", "scale", "length", "element", "fields", "digits", "restricts", "fraction", "span", "enum")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    DIGITS_FIELD_NUMBER: _ClassVar[int]
    RESTRICTS_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    ENUM_FIELD_NUMBER: _ClassVar[int]
    kind: str
    precision: int
    scale: int
    length: int
    element: SqlType
    fields: _containers.RepeatedCompositeFieldContainer[SqlField]
    digits: _containers.RepeatedScalarFieldContainer[int]
    restricts: str
    fraction: int
    span: _containers.RepeatedScalarFieldContainer[str]
    enum: EnumType
    def __init__(self, kind: _Optional[str] = ..., precision: _Optional[int] = ..., scale: _Optional[int] = ..., length: _Optional[int] = ..., element: _Optional[_Union[SqlType, _Mapping]] = ..., fields: _Optional[_Iterable[_Union[SqlField, _Mapping]]] = ..., digits: _Optional[_Iterable[int]] = ..., restricts: _Optional[str] = ..., fraction: _Optional[int] = ..., span: _Optional[_Iterable[str]] = ..., enum: _Optional[_Union[EnumType, _Mapping]] = ...) -> None: ...

class EnumType(_message.Message):
    __slots__ = ("name", "labels", "namespace", "oid", "array_oid", "label_oids", "comment")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    ARRAY_OID_FIELD_NUMBER: _ClassVar[int]
    LABEL_OIDS_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    namespace: str
    oid: int
    array_oid: int
    label_oids: _containers.RepeatedScalarFieldContainer[int]
    comment: str
    def __init__(self, name: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., namespace: _Optional[str] = ..., oid: _Optional[int] = ..., array_oid: _Optional[int] = ..., label_oids: _Optional[_Iterable[int]] = ..., comment: _Optional[str] = ...) -> None: ...

class SqlField(_message.Message):
    __slots__ = ("name", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: SqlType
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[SqlType, _Mapping]] = ...) -> None: ...

class SqlTypes(_message.Message):
    __slots__ = ("types",)
    TYPES_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedCompositeFieldContainer[SqlType]
    def __init__(self, types: _Optional[_Iterable[_Union[SqlType, _Mapping]]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "type", "nullable", "default_text", "default_constant", "default_value", "comment", "id", "missing", "default_oid", "identity", "sequences", "generated")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_TEXT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_CONSTANT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_OID_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    GENERATED_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: SqlType
    nullable: bool
    default_text: str
    default_constant: bool
    default_value: Value
    comment: str
    id: int
    missing: Value
    default_oid: int
    identity: str
    sequences: _containers.RepeatedScalarFieldContainer[int]
    generated: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[SqlType, _Mapping]] = ..., nullable: _Optional[bool] = ..., default_text: _Optional[str] = ..., default_constant: _Optional[bool] = ..., default_value: _Optional[_Union[Value, _Mapping]] = ..., comment: _Optional[str] = ..., id: _Optional[int] = ..., missing: _Optional[_Union[Value, _Mapping]] = ..., default_oid: _Optional[int] = ..., identity: _Optional[str] = ..., sequences: _Optional[_Iterable[int]] = ..., generated: _Optional[str] = ...) -> None: ...

class Sequence(_message.Message):
    __slots__ = ("type", "start", "increment", "minimum", "maximum", "cache", "cycle", "slot", "link")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    CYCLE_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    type: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycle: bool
    slot: int
    link: int
    def __init__(self, type: _Optional[str] = ..., start: _Optional[int] = ..., increment: _Optional[int] = ..., minimum: _Optional[int] = ..., maximum: _Optional[int] = ..., cache: _Optional[int] = ..., cycle: _Optional[bool] = ..., slot: _Optional[int] = ..., link: _Optional[int] = ...) -> None: ...

class Check(_message.Message):
    __slots__ = ("name", "text", "oid", "comment", "not_valid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    NOT_VALID_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    oid: int
    comment: str
    not_valid: bool
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., oid: _Optional[int] = ..., comment: _Optional[str] = ..., not_valid: _Optional[bool] = ...) -> None: ...

class ForeignKey(_message.Message):
    __slots__ = ("name", "columns", "parent", "parent_columns", "on_delete", "on_update", "namespace", "oid", "comment", "set_columns", "full", "not_valid", "deferrable", "deferred")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ON_DELETE_FIELD_NUMBER: _ClassVar[int]
    ON_UPDATE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    SET_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    NOT_VALID_FIELD_NUMBER: _ClassVar[int]
    DEFERRABLE_FIELD_NUMBER: _ClassVar[int]
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    parent: str
    parent_columns: _containers.RepeatedScalarFieldContainer[str]
    on_delete: str
    on_update: str
    namespace: str
    oid: int
    comment: str
    set_columns: _containers.RepeatedScalarFieldContainer[str]
    full: bool
    not_valid: bool
    deferrable: bool
    deferred: bool
    def __init__(self, name: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., parent: _Optional[str] = ..., parent_columns: _Optional[_Iterable[str]] = ..., on_delete: _Optional[str] = ..., on_update: _Optional[str] = ..., namespace: _Optional[str] = ..., oid: _Optional[int] = ..., comment: _Optional[str] = ..., set_columns: _Optional[_Iterable[str]] = ..., full: _Optional[bool] = ..., not_valid: _Optional[bool] = ..., deferrable: _Optional[bool] = ..., deferred: _Optional[bool] = ...) -> None: ...

class ViewDefinition(_message.Message):
    __slots__ = ("name", "text", "columns", "uses", "comment", "view_id", "names", "oid", "namespace")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    VIEW_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    uses: _containers.RepeatedScalarFieldContainer[str]
    comment: str
    view_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    oid: int
    namespace: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., uses: _Optional[_Iterable[str]] = ..., comment: _Optional[str] = ..., view_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., oid: _Optional[int] = ..., namespace: _Optional[str] = ...) -> None: ...

class Index(_message.Message):
    __slots__ = ("name", "kind", "columns", "descending", "index_id", "ready", "unique", "constraint", "nulls_equal", "oid", "constraint_oid", "comment", "constraint_comment")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    INDEX_ID_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    NULLS_EQUAL_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_OID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_COMMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    descending: _containers.RepeatedScalarFieldContainer[bool]
    index_id: int
    ready: bool
    unique: bool
    constraint: bool
    nulls_equal: bool
    oid: int
    constraint_oid: int
    comment: str
    constraint_comment: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., descending: _Optional[_Iterable[bool]] = ..., index_id: _Optional[int] = ..., ready: _Optional[bool] = ..., unique: _Optional[bool] = ..., constraint: _Optional[bool] = ..., nulls_equal: _Optional[bool] = ..., oid: _Optional[int] = ..., constraint_oid: _Optional[int] = ..., comment: _Optional[str] = ..., constraint_comment: _Optional[str] = ...) -> None: ...

class MapOptions(_message.Message):
    __slots__ = ("ttl", "max_idle", "eviction", "max_entries", "max_bytes", "async_backups", "change_retention", "change_retention_bytes")
    TTL_FIELD_NUMBER: _ClassVar[int]
    MAX_IDLE_FIELD_NUMBER: _ClassVar[int]
    EVICTION_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    ASYNC_BACKUPS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_RETENTION_FIELD_NUMBER: _ClassVar[int]
    CHANGE_RETENTION_BYTES_FIELD_NUMBER: _ClassVar[int]
    ttl: int
    max_idle: int
    eviction: str
    max_entries: int
    max_bytes: int
    async_backups: bool
    change_retention: int
    change_retention_bytes: int
    def __init__(self, ttl: _Optional[int] = ..., max_idle: _Optional[int] = ..., eviction: _Optional[str] = ..., max_entries: _Optional[int] = ..., max_bytes: _Optional[int] = ..., async_backups: _Optional[bool] = ..., change_retention: _Optional[int] = ..., change_retention_bytes: _Optional[int] = ...) -> None: ...

class MapSchema(_message.Message):
    __slots__ = ("name", "columns", "key", "partition_by", "replicated", "value_shape", "map_id", "version", "checks", "comment", "columns_made", "key_name", "oid", "key_oid", "key_index_oid", "key_comment", "key_index_comment", "indexes", "options", "sequence", "namespace", "foreign_keys", "children")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_BY_FIELD_NUMBER: _ClassVar[int]
    REPLICATED_FIELD_NUMBER: _ClassVar[int]
    VALUE_SHAPE_FIELD_NUMBER: _ClassVar[int]
    MAP_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_MADE_FIELD_NUMBER: _ClassVar[int]
    KEY_NAME_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    KEY_OID_FIELD_NUMBER: _ClassVar[int]
    KEY_INDEX_OID_FIELD_NUMBER: _ClassVar[int]
    KEY_COMMENT_FIELD_NUMBER: _ClassVar[int]
    KEY_INDEX_COMMENT_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_KEYS_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    name: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    key: _containers.RepeatedScalarFieldContainer[str]
    partition_by: _containers.RepeatedScalarFieldContainer[str]
    replicated: bool
    value_shape: str
    map_id: int
    version: int
    checks: _containers.RepeatedCompositeFieldContainer[Check]
    comment: str
    columns_made: int
    key_name: str
    oid: int
    key_oid: int
    key_index_oid: int
    key_comment: str
    key_index_comment: str
    indexes: _containers.RepeatedCompositeFieldContainer[Index]
    options: MapOptions
    sequence: Sequence
    namespace: str
    foreign_keys: _containers.RepeatedCompositeFieldContainer[ForeignKey]
    children: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., key: _Optional[_Iterable[str]] = ..., partition_by: _Optional[_Iterable[str]] = ..., replicated: _Optional[bool] = ..., value_shape: _Optional[str] = ..., map_id: _Optional[int] = ..., version: _Optional[int] = ..., checks: _Optional[_Iterable[_Union[Check, _Mapping]]] = ..., comment: _Optional[str] = ..., columns_made: _Optional[int] = ..., key_name: _Optional[str] = ..., oid: _Optional[int] = ..., key_oid: _Optional[int] = ..., key_index_oid: _Optional[int] = ..., key_comment: _Optional[str] = ..., key_index_comment: _Optional[str] = ..., indexes: _Optional[_Iterable[_Union[Index, _Mapping]]] = ..., options: _Optional[_Union[MapOptions, _Mapping]] = ..., sequence: _Optional[_Union[Sequence, _Mapping]] = ..., namespace: _Optional[str] = ..., foreign_keys: _Optional[_Iterable[_Union[ForeignKey, _Mapping]]] = ..., children: _Optional[_Iterable[int]] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("name", "comment", "oid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    OID_FIELD_NUMBER: _ClassVar[int]
    name: str
    comment: str
    oid: int
    def __init__(self, name: _Optional[str] = ..., comment: _Optional[str] = ..., oid: _Optional[int] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("number", "uuid", "host", "user_port", "control_port", "data_port", "labels", "former", "release", "version_min", "version_max")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    USER_PORT_FIELD_NUMBER: _ClassVar[int]
    CONTROL_PORT_FIELD_NUMBER: _ClassVar[int]
    DATA_PORT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    FORMER_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    number: int
    uuid: str
    host: str
    user_port: int
    control_port: int
    data_port: int
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    former: int
    release: str
    version_min: int
    version_max: int
    def __init__(self, number: _Optional[int] = ..., uuid: _Optional[str] = ..., host: _Optional[str] = ..., user_port: _Optional[int] = ..., control_port: _Optional[int] = ..., data_port: _Optional[int] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., former: _Optional[int] = ..., release: _Optional[str] = ..., version_min: _Optional[int] = ..., version_max: _Optional[int] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Replicas(_message.Message):
    __slots__ = ("members",)
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, members: _Optional[_Iterable[int]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("number", "members", "replicas", "last_number", "backups", "emptied", "missing", "former", "generations", "departed", "away", "version")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LAST_NUMBER_FIELD_NUMBER: _ClassVar[int]
    BACKUPS_FIELD_NUMBER: _ClassVar[int]
    EMPTIED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FORMER_FIELD_NUMBER: _ClassVar[int]
    GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    DEPARTED_FIELD_NUMBER: _ClassVar[int]
    AWAY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    number: int
    members: _containers.RepeatedCompositeFieldContainer[Member]
    replicas: _containers.RepeatedCompositeFieldContainer[Replicas]
    last_number: int
    backups: int
    emptied: _containers.RepeatedCompositeFieldContainer[Emptied]
    missing: _containers.RepeatedCompositeFieldContainer[Missing]
    former: _containers.RepeatedCompositeFieldContainer[Member]
    generations: _containers.RepeatedCompositeFieldContainer[Generation]
    departed: _containers.RepeatedCompositeFieldContainer[Departed]
    away: _containers.RepeatedCompositeFieldContainer[Away]
    version: int
    def __init__(self, number: _Optional[int] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., replicas: _Optional[_Iterable[_Union[Replicas, _Mapping]]] = ..., last_number: _Optional[int] = ..., backups: _Optional[int] = ..., emptied: _Optional[_Iterable[_Union[Emptied, _Mapping]]] = ..., missing: _Optional[_Iterable[_Union[Missing, _Mapping]]] = ..., former: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., generations: _Optional[_Iterable[_Union[Generation, _Mapping]]] = ..., departed: _Optional[_Iterable[_Union[Departed, _Mapping]]] = ..., away: _Optional[_Iterable[_Union[Away, _Mapping]]] = ..., version: _Optional[int] = ...) -> None: ...

class Away(_message.Message):
    __slots__ = ("member", "until", "partitions")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    member: Member
    until: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, member: _Optional[_Union[Member, _Mapping]] = ..., until: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class Missing(_message.Message):
    __slots__ = ("partition", "view", "holders", "donor")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    DONOR_FIELD_NUMBER: _ClassVar[int]
    partition: int
    view: int
    holders: _containers.RepeatedScalarFieldContainer[int]
    donor: int
    def __init__(self, partition: _Optional[int] = ..., view: _Optional[int] = ..., holders: _Optional[_Iterable[int]] = ..., donor: _Optional[int] = ...) -> None: ...

class Generation(_message.Message):
    __slots__ = ("partition", "generation")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    partition: int
    generation: int
    def __init__(self, partition: _Optional[int] = ..., generation: _Optional[int] = ...) -> None: ...

class Departed(_message.Message):
    __slots__ = ("member", "cause")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    member: int
    cause: str
    def __init__(self, member: _Optional[int] = ..., cause: _Optional[str] = ...) -> None: ...

class Emptied(_message.Message):
    __slots__ = ("partition", "view")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    partition: int
    view: int
    def __init__(self, partition: _Optional[int] = ..., view: _Optional[int] = ...) -> None: ...
