"""SQL types <-> protobuf messages."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError

from remuda.datatypes.schema import PUBLIC
from remuda.datatypes.sql import (
    DIGIT_STEPS,
    PLAIN_TYPES,
    EnumType,
    Kind,
    SqlType,
    array,
    decimal,
    enum_of,
    restricted,
    row,
    unrestricted,
)
from remuda.errors import ProtocolError
from remuda.rpc.messages import common_pb2
from remuda.rpc.packing import RowPacker, packer

_DIGITS_FIELDS = 2
_TYPES_KEPT = 1024


@lru_cache(maxsize=_TYPES_KEPT)
def encode_types(types: tuple[SqlType, ...]) -> bytes:
    """A serialized ``SqlTypes``: statements come with the same few again and again."""
    found = [encode_type(unrestricted(t)) for t in types]  # equal types are one entry of the cache
    return common_pb2.SqlTypes(types=found).SerializeToString()


_PLAIN: Final = {kind: SqlType(kind) for kind in Kind} | {each.kind: each for each in PLAIN_TYPES}
"""Types that are compared again and again: the same object is equal at once."""


@lru_cache(maxsize=_TYPES_KEPT)
def decode_types(data: bytes) -> tuple[SqlType, ...]:
    try:
        message = common_pb2.SqlTypes.FromString(data)
    except DecodeError as problem:
        raise ProtocolError(f"the types of parameters cannot be read: {problem}") from problem
    return tuple(decode_type(t) for t in message.types)


@lru_cache(maxsize=_TYPES_KEPT)
def parameter_form(data: bytes) -> tuple[tuple[SqlType, ...], RowPacker]:
    """The types that a client gives its parameters, and how their values are packed. Hashing the
    types instead of their bytes would take a call for each."""
    types = decode_types(data)
    return types, packer(types)


def encode_type(t: SqlType) -> common_pb2.SqlType:
    bare = t.fraction is None and not t.span
    return common_pb2.SqlType(
        kind=t.kind.name if bare else str(t),
        precision=t.precision,
        scale=t.scale,
        length=t.length,
        element=None if t.element is None else encode_type(t.element),
        fields=[common_pb2.SqlField(name=name, type=encode_type(f)) for name, f in t.fields],
        digits=t.digits,
        restricts=None if bare else t.kind.name,
        fraction=t.fraction,
        span=t.span,
        enum=None if t.enum is None else encode_enum(t.enum),
    )


def decode_type(message: common_pb2.SqlType) -> SqlType:
    try:
        kind = Kind[message.restricts or message.kind]
    except KeyError:
        raise ProtocolError(f"unknown SQL type {message.kind!r}") from None
    if kind is Kind.DECIMAL:
        try:
            return _decode_decimal(message)
        except ValueError as problem:
            raise ProtocolError(str(problem)) from problem
    if kind in (Kind.ARRAY, Kind.ROW):
        return _decode_nested(kind, message)
    if kind is Kind.ENUM:
        return enum_of(decode_enum(message.enum))
    length = message.length if message.HasField("length") else None
    if length is not None and length < 1:
        raise ProtocolError(f"{kind.value}({length}) is out of range")
    made = _PLAIN[kind] if length is None else SqlType(kind, length=length)
    return _restricted(made, message) if message.restricts else made


def encode_enum(enum: EnumType) -> common_pb2.EnumType:
    return common_pb2.EnumType(
        name=enum.local,
        labels=enum.labels,
        namespace=None if enum.namespace == PUBLIC else enum.namespace,
        oid=enum.oid or None,
        array_oid=enum.array_oid or None,
        label_oids=enum.label_oids,
        comment=enum.comment or None,
    )


def decode_enum(message: common_pb2.EnumType) -> EnumType:
    """Raises ProtocolError."""
    if not message.name or len(set(message.labels)) != len(message.labels):
        raise ProtocolError("an enum needs a name, and labels that differ")
    return EnumType(
        message.name,
        tuple(message.labels),
        message.namespace or PUBLIC,
        message.oid,
        message.array_oid,
        tuple(message.label_oids),
        message.comment,
    )


def _restricted(made: SqlType, message: common_pb2.SqlType) -> SqlType:
    fraction = message.fraction if message.HasField("fraction") else None
    span = tuple(message.span)
    try:
        return restricted(made, fraction, span)
    except ValueError as problem:
        raise ProtocolError(str(problem)) from problem


def _decode_decimal(message: common_pb2.SqlType) -> SqlType:
    made = decimal(message.precision, message.scale)
    if not message.digits:
        return made
    if len(message.digits) != _DIGITS_FIELDS or message.digits[0] not in DIGIT_STEPS:
        raise ValueError(f"{list(message.digits)} does not say how many digits are shown")
    return replace(made, digits=(message.digits[0], message.digits[1]))


def _decode_nested(kind: Kind, message: common_pb2.SqlType) -> SqlType:
    try:
        if kind is Kind.ARRAY:
            return array(decode_type(message.element))
        return row((field.name, decode_type(field.type)) for field in message.fields)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(str(problem)) from problem
