"""Values of the types that only PostgreSQL's catalog has: oid, name, "char", and arrays of them.

Their values have types of ours; ``SqlType.alias`` tells PostgreSQL's, which equality of types does
not see. Drivers read them by PostgreSQL's type, above all while they look other types up.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from remuda.catalog.pg_types import VECTORS, declared_type, type_oid
from remuda.datatypes.sql import SqlType
from remuda.errors import NumericOverflow
from remuda.postgres.binary_values import LENGTH, NULL_LENGTH, Encoder

_NUMBERS: Final = frozenset({"oid", "xid", "cid"})
_TEXTS: Final = frozenset({"name", "char", "void"})
_INT2: Final = struct.Struct("!h").pack
_ARRAY_HEAD: Final = struct.Struct("!iiIii")


def _oid(value: int) -> bytes:
    """32 bits without a sign, to which PostgreSQL takes negative numbers, too."""
    if not -(1 << 31) <= value < 1 << 32:
        raise NumericOverflow(f'value "{value}" is out of range for type oid')
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


def catalog_oid(sql_type: SqlType) -> int:
    """The OID of a type of the catalog, or of an array of it; 0 for every other type."""
    if not _is_known(sql_type):
        return 0
    found, is_array = declared_type(sql_type)
    return found.array if is_array else found.oid


def wire_oid(sql_type: SqlType) -> int:
    """The OID by which a column or a parameter is told."""
    return catalog_oid(sql_type) or type_oid(sql_type)


def catalog_encoder(sql_type: SqlType, form: int) -> Encoder | None:
    """The form of a value that is not NULL, text (0) or binary (1); None: as of any type."""
    if not _is_known(sql_type):
        return None
    if sql_type.alias in VECTORS:
        return _vector(sql_type.alias) if form else str.encode
    if not form:
        return None
    if sql_type.alias in _NUMBERS:
        return _oid
    element = sql_type.element
    if element is not None:
        found, _ = declared_type(element)
        return _array(_oid if found.name in _NUMBERS else str.encode, found.oid, 1)
    return None


def _is_known(sql_type: SqlType) -> bool:
    element = sql_type.element
    if element is not None:
        return element.alias in _NUMBERS or element.alias in _TEXTS
    if sql_type.alias in VECTORS:
        return sql_type.is_text
    return sql_type.alias in _NUMBERS or sql_type.alias in _TEXTS


def _array(encode: Encoder, oid: int, first: int) -> Encoder:
    def array(values: Any) -> bytes:
        parts = [_ARRAY_HEAD.pack(1, int(None in values), oid, len(values), first)]
        for value in values:
            if value is None:
                parts.append(NULL_LENGTH)
            else:
                data = encode(value)
                parts += (LENGTH.pack(len(data)), data)
        return b"".join(parts)

    empty = struct.pack("!iiI", 0, 0, oid)
    return lambda values: array(values) if values else empty


def _vector(name: str) -> Encoder:
    """Results have vectors as text, with blanks between the elements. They count from 0."""
    encode = _array(_INT2, 21, 0) if name == "int2vector" else _array(_oid, 26, 0)
    return lambda text: encode([int(item) for item in text.split()])
