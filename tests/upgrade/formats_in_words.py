"""Everything that members and clients send each other and keep, one line each: fields of messages,
values of enums, nodes of plans, records of the log with bytes of a sample, numbers of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from remuda import formats
from remuda.cluster.assignment import first_view
from remuda.datatypes.view import MemberInfo
from remuda.formats import Format
from remuda.member.journal import folder
from remuda.plan import codec
from remuda.rpc.messages import common_pb2, control_pb2, data_pb2, user_metadata_pb2, user_pb2
from remuda.storage.format import record_codec
from remuda.storage.format import records as log
from remuda.storage.format.segment import Identity

MODULES = (common_pb2, control_pb2, data_pb2, user_pb2, user_metadata_pb2)


def lines() -> list[str]:
    """Sorted, each once."""
    found = [*_messages(), *_plans(), *_records(), *_files()]
    assert len(found) == len(set(found))
    return sorted(found)


def _messages() -> Iterator[str]:
    for module in MODULES:
        file = module.DESCRIPTOR
        for message in file.message_types_by_name.values():
            yield from _message(message)
        for enum in file.enum_types_by_name.values():
            yield from _enum(enum)


def _message(message: Descriptor) -> Iterator[str]:
    yield f"message {message.full_name}"
    for field in message.fields:
        yield f"message {message.full_name}.{field.name} = {field.number} {_kind(field)}"
    for nested in message.nested_types:
        yield from _message(nested)
    for enum in message.enum_types:
        yield from _enum(enum)


def _kind(field: FieldDescriptor) -> str:
    label = "repeated" if field.is_repeated else "required" if field.is_required else "optional"
    named = field.message_type or field.enum_type
    kinds = {
        getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
        for name in vars(FieldDescriptor)
        if name.startswith("TYPE_")
    }
    packed = " packed" if field.is_packed else ""
    return f"{label} {named.full_name if named else kinds[field.type]}{packed}"


def _enum(enum: EnumDescriptor) -> Iterator[str]:
    for value in enum.values:
        yield f"enum {enum.full_name}.{value.name} = {value.number}"


def _plans() -> Iterator[str]:
    for node, names in codec._FIELDS.items():
        yield f"plan {node.__name__}: the first {codec._LEAST[node]} fields are always written"
        given = {field.name: field.default for field in fields(node)}
        for place, name in enumerate(names, 1):
            default = "" if given[name] is MISSING else f" = {_shown(given[name])}"
            yield f"plan {node.__name__} {place}: {name}{default}"
    for enum in codec._ENUMS:
        for value in enum:
            yield f"plan {enum.__name__}.{value.name}"


def _shown(value: object) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def _records() -> Iterator[str]:
    for kind, (record, codecs) in record_codec._RECORDS.items():
        sample = record(**{name: _sample(hint) for name, hint in _hints(record) if name in codecs})
        data = b"".join(map(bytes, record_codec.encode_record(sample)))
        yield f"record {kind} {record.__name__}({', '.join(codecs)})"
        yield f"record {kind} {record.__name__} as bytes: {data.hex()}"


def _hints(record: type) -> Iterator[tuple[str, Any]]:
    yield from get_type_hints(record, vars(log)).items()


def _sample(hint: Any) -> Any:
    """A value of the type, the same in every run."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return _sample(next(each for each in inner if each is not NoneType))
    if origin is tuple:
        return (_sample(inner[0]),)
    if origin is frozenset:
        return frozenset({_sample(inner[0])})
    plain = {int: 300, str: "a", bytes: b"b", bool: True, float: 0.5, memoryview: b"b"}
    if hint in plain:
        return plain[hint]
    return hint(**{name: _sample(each) for name, each in _hints(hint)})


def _files() -> Iterator[str]:
    for name, each in vars(formats).items():
        if isinstance(each, Format):
            for number in range(each.oldest, each.number + 1):
                yield f"file {name} format {number} is read"
            yield f"file {name}: {each.what}"
    view = first_view((MemberInfo(1, "u", "h", 1, 2, 3),))
    state = folder.FolderState(Identity(b"c" * 16, b"m" * 16), 1, view)
    for key in folder.json.loads(folder.encode_state(state))["state"]:
        yield f"file FOLDER_STATE has {key}"
