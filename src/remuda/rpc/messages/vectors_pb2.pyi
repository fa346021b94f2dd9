from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MinorType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LATE: _ClassVar[MinorType]
    MAP: _ClassVar[MinorType]
    TINYINT: _ClassVar[MinorType]
    SMALLINT: _ClassVar[MinorType]
    INT: _ClassVar[MinorType]
    BIGINT: _ClassVar[MinorType]
    DATE: _ClassVar[MinorType]
    TIME: _ClassVar[MinorType]
    TIMESTAMP: _ClassVar[MinorType]
    INTERVAL: _ClassVar[MinorType]
    FLOAT4: _ClassVar[MinorType]
    FLOAT8: _ClassVar[MinorType]
    BIT: _ClassVar[MinorType]
    VARCHAR: _ClassVar[MinorType]
    VARBINARY: _ClassVar[MinorType]
    UINT1: _ClassVar[MinorType]
    UINT4: _ClassVar[MinorType]
    LIST: _ClassVar[MinorType]
    VARDECIMAL: _ClassVar[MinorType]

class DataMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPTIONAL: _ClassVar[DataMode]
    REQUIRED: _ClassVar[DataMode]
    REPEATED: _ClassVar[DataMode]
LATE: MinorType
MAP: MinorType
TINYINT: MinorType
SMALLINT: MinorType
INT: MinorType
BIGINT: MinorType
DATE: MinorType
TIME: MinorType
TIMESTAMP: MinorType
INTERVAL: MinorType
FLOAT4: MinorType
FLOAT8: MinorType
BIT: MinorType
VARCHAR: MinorType
VARBINARY: MinorType
UINT1: MinorType
UINT4: MinorType
LIST: MinorType
VARDECIMAL: MinorType
OPTIONAL: DataMode
REQUIRED: DataMode
REPEATED: DataMode

class MajorType(_message.Message):
    __slots__ = ("minor_type", "mode", "width", "precision", "scale")
    MINOR_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    minor_type: MinorType
    mode: DataMode
    width: int
    precision: int
    scale: int
    def __init__(self, minor_type: _Optional[_Union[MinorType, str]] = ..., mode: _Optional[_Union[DataMode, str]] = ..., width: _Optional[int] = ..., precision: _Optional[int] = ..., scale: _Optional[int] = ...) -> None: ...

class NamePart(_message.Message):
    __slots__ = ("type", "name", "child")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NAME: _ClassVar[NamePart.Type]
        ARRAY: _ClassVar[NamePart.Type]
    NAME: NamePart.Type
    ARRAY: NamePart.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    type: NamePart.Type
    name: str
    child: NamePart
    def __init__(self, type: _Optional[_Union[NamePart.Type, str]] = ..., name: _Optional[str] = ..., child: _Optional[_Union[NamePart, _Mapping]] = ...) -> None: ...

class SerializedField(_message.Message):
    __slots__ = ("major_type", "name_part", "child", "value_count", "var_byte_length", "buffer_length")
    MAJOR_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_PART_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    VALUE_COUNT_FIELD_NUMBER: _ClassVar[int]
    VAR_BYTE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    BUFFER_LENGTH_FIELD_NUMBER: _ClassVar[int]
    major_type: MajorType
    name_part: NamePart
    child: _containers.RepeatedCompositeFieldContainer[SerializedField]
    value_count: int
    var_byte_length: int
    buffer_length: int
    def __init__(self, major_type: _Optional[_Union[MajorType, _Mapping]] = ..., name_part: _Optional[_Union[NamePart, _Mapping]] = ..., child: _Optional[_Iterable[_Union[SerializedField, _Mapping]]] = ..., value_count: _Optional[int] = ..., var_byte_length: _Optional[int] = ..., buffer_length: _Optional[int] = ...) -> None: ...
