"""Single values in PostgreSQL's binary form, from and to physical values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from operator import methodcaller
from typing import Any, Final, TypeAlias

from remuda.catalog.pg_types import type_oid
from remuda.datatypes.numeric import shown_scale
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import LAYOUT as INTERVAL_LAYOUT
from remuda.postgres.numeric_digits import encode_numeric

Encoder: TypeAlias = Callable[[Any], bytes]
"""A physical value that is not NULL -> its bytes."""

EPOCH_DAYS: Final = 10_957
"""Days from 1970 to 2000, from which PostgreSQL counts."""
EPOCH_MICROS: Final = EPOCH_DAYS * 86_400_000_000
LENGTH: Final = struct.Struct("!i")
NULL_LENGTH: Final = b"\xff\xff\xff\xff"
PG_INTERVAL: Final = struct.Struct("!qii")

_INT2, _INT4, _INT8 = (struct.Struct(code).pack for code in ("!h", "!i", "!q"))
_FLOAT4, _FLOAT8 = (struct.Struct(code).pack for code in ("!f", "!d"))


def _interval(value: bytes) -> bytes:
    months, days, micros = INTERVAL_LAYOUT.unpack(value)
    return PG_INTERVAL.pack(micros, days, months)


_text: Final = methodcaller("encode", "utf-8", "surrogatepass")
JSONB_VERSION: Final = b"\x01"
"""In front of each document of the type jsonb."""


_ENCODERS: Final[dict[Kind, Encoder]] = {
    Kind.BOOLEAN: lambda value: b"\x01" if value else b"\x00",
    Kind.TINYINT: _INT2,
    Kind.SMALLINT: _INT2,
    Kind.INTEGER: _INT4,
    Kind.BIGINT: _INT8,
    Kind.REAL: _FLOAT4,
    Kind.DOUBLE: _FLOAT8,
    Kind.CHAR: _text,
    Kind.VARCHAR: _text,
    Kind.ENUM: _text,
    Kind.JSON: lambda value: JSONB_VERSION + _text(value),
    Kind.BYTEA: bytes,
    Kind.DATE: lambda value: _INT4(value - EPOCH_DAYS),
    Kind.TIME: _INT8,
    Kind.TIMESTAMP: lambda value: _INT8(value - EPOCH_MICROS),
    Kind.TIMESTAMPTZ: lambda value: _INT8(value - EPOCH_MICROS),
    Kind.INTERVAL: _interval,
    Kind.UUID: bytes,
    Kind.NULL: lambda _: b"",
}


@lru_cache(maxsize=1024)
def binary_encoder(sql_type: SqlType) -> Encoder:
    if sql_type.kind is Kind.DECIMAL:
        return _decimal_encoder(sql_type)
    if sql_type.element is not None:
        return _array_encoder(sql_type.element)
    if sql_type.kind is Kind.ROW:
        return _row_encoder(sql_type)
    return _ENCODERS[sql_type.kind]


def _decimal_encoder(sql_type: SqlType) -> Encoder:
    scale = sql_type.scale or 0
    if sql_type.digits is None:
        return lambda value: encode_numeric(value, scale)
    step, least = sql_type.digits

    def computed(value: int) -> bytes:
        shown = shown_scale(value, scale, step, least)
        return encode_numeric(value // 10 ** (scale - shown), shown)

    return computed


def _array_encoder(element: SqlType) -> Encoder:
    encode, oid = binary_encoder(element), type_oid(element)
    head = struct.Struct("!iiIii")
    empty = struct.pack("!iiI", 0, 0, oid)

    def array(values: Any) -> bytes:
        if not values:
            return empty
        parts = [head.pack(1, int(None in values), oid, len(values), 1)]
        parts += [_with_length(value, encode) for value in values]
        return b"".join(parts)

    return array


def _row_encoder(sql_type: SqlType) -> Encoder:
    fields = [(struct.pack("!I", type_oid(t)), binary_encoder(t)) for _, t in sql_type.fields]
    head = LENGTH.pack(len(fields))

    def row(values: Any) -> bytes:
        parts = [head]
        for value, (oid, encode) in zip(values, fields, strict=True):
            parts += (oid, _with_length(value, encode))
        return b"".join(parts)

    return row


def _with_length(value: Any, encode: Encoder) -> bytes:
    if value is None:
        return NULL_LENGTH
    data = encode(value)
    return LENGTH.pack(len(data)) + data
