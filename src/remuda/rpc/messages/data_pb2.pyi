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
    REQ_RECORD_BATCH: _ClassVar[RpcType]
    SASL_MESSAGE: _ClassVar[RpcType]
    REQ_RUNTIME_FILTER: _ClassVar[RpcType]
    DATA_ACK_WITH_CREDIT: _ClassVar[RpcType]
HANDSHAKE: RpcType
ACK: RpcType
GOODBYE: RpcType
REQ_RECORD_BATCH: RpcType
SASL_MESSAGE: RpcType
REQ_RUNTIME_FILTER: RpcType
DATA_ACK_WITH_CREDIT: RpcType

class BitClientHandshake(_message.Message):
    __slots__ = ("rpc_version", "channel", "rpc_version_min", "context")
    RPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    rpc_version: int
    channel: _user_pb2.RpcChannel
    rpc_version_min: int
    context: _common_pb2.Context
    def __init__(self, rpc_version: _Optional[int] = ..., channel: _Optional[_Union[_user_pb2.RpcChannel, str]] = ..., rpc_version_min: _Optional[int] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ...) -> None: ...

class BitServerHandshake(_message.Message):
    __slots__ = ("rpc_version", "authenticationMechanisms", "rpc_version_min", "refusal")
    RPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    AUTHENTICATIONMECHANISMS_FIELD_NUMBER: _ClassVar[int]
    RPC_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    rpc_version: int
    authenticationMechanisms: _containers.RepeatedScalarFieldContainer[str]
    rpc_version_min: int
    refusal: _user_pb2.PBError
    def __init__(self, rpc_version: _Optional[int] = ..., authenticationMechanisms: _Optional[_Iterable[str]] = ..., rpc_version_min: _Optional[int] = ..., refusal: _Optional[_Union[_user_pb2.PBError, _Mapping]] = ...) -> None: ...

class FragmentRecordBatch(_message.Message):
    __slots__ = ("query_id", "receiving_major_fragment_id", "receiving_minor_fragment_id", "sending_major_fragment_id", "sending_minor_fragment_id", "isLastBatch", "context", "edge", "ordinal", "sent_bytes")
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIVING_MAJOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIVING_MINOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SENDING_MAJOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SENDING_MINOR_FRAGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    DEF_FIELD_NUMBER: _ClassVar[int]
    ISLASTBATCH_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    query_id: _common_pb2.QueryId
    receiving_major_fragment_id: int
    receiving_minor_fragment_id: _containers.RepeatedScalarFieldContainer[int]
    sending_major_fragment_id: int
    sending_minor_fragment_id: int
    isLastBatch: bool
    context: _common_pb2.Context
    edge: int
    ordinal: int
    sent_bytes: int
    def __init__(self, query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., receiving_major_fragment_id: _Optional[int] = ..., receiving_minor_fragment_id: _Optional[_Iterable[int]] = ..., sending_major_fragment_id: _Optional[int] = ..., sending_minor_fragment_id: _Optional[int] = ..., isLastBatch: _Optional[bool] = ..., context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., edge: _Optional[int] = ..., ordinal: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., **kwargs) -> None: ...

class FlowControl(_message.Message):
    __slots__ = ("context", "query_id", "edge", "receiver_instance", "sender_instance", "granted_bytes", "ordinal", "ok", "receiver_finished")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    SENDER_INSTANCE_FIELD_NUMBER: _ClassVar[int]
    GRANTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FINISHED_FIELD_NUMBER: _ClassVar[int]
    context: _common_pb2.Context
    query_id: _common_pb2.QueryId
    edge: int
    receiver_instance: int
    sender_instance: int
    granted_bytes: int
    ordinal: int
    ok: bool
    receiver_finished: bool
    def __init__(self, context: _Optional[_Union[_common_pb2.Context, _Mapping]] = ..., query_id: _Optional[_Union[_common_pb2.QueryId, _Mapping]] = ..., edge: _Optional[int] = ..., receiver_instance: _Optional[int] = ..., sender_instance: _Optional[int] = ..., granted_bytes: _Optional[int] = ..., ordinal: _Optional[int] = ..., ok: _Optional[bool] = ..., receiver_finished: _Optional[bool] = ...) -> None: ...
