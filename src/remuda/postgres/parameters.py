"""Parameters as clients send them, in text or binary form, as physical values."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, NamedTuple, TypeAlias

from remuda.catalog.pg_types import PG_TYPES
from remuda.datatypes import sql
from remuda.datatypes.coercion import integer_range
from remuda.datatypes.enums import label_of
from remuda.datatypes.jsons import normalized
from remuda.datatypes.sql import INTEGER_KINDS, Kind, SqlType, array
from remuda.datatypes.texts.arraytext import split_array
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times import intervals
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.datatypes.values import (
    PhysicalValue,
    from_physical,
    infer_type,
    to_physical,
)
from remuda.errors import (
    DatetimeOverflow,
    InvalidText,
    NotSupported,
    NumericOverflow,
    UndefinedType,
)
from remuda.postgres.binary_values import EPOCH_DAYS, EPOCH_MICROS, PG_INTERVAL
from remuda.postgres.numeric_digits import decode_numeric
from remuda.postgres.unicode import text_of

TEXT, BINARY = 0, 1


class Parameter(NamedTuple):
    """A value and the type that it has by itself: of a NUMERIC the digits of the value decide."""

    value: PhysicalValue
    type: SqlType


Decoder: TypeAlias = Callable[[bytes], Parameter]

UNKNOWN_OIDS: Final = frozenset({0, 705})
NUMERIC_OID: Final = 1700
_OID: Final = 26
DIGITS_MAX: Final = 38
"""Of a DECIMAL."""
_ANY_DECIMAL: Final = sql.decimal(DIGITS_MAX, 10)
_ROOM: Final = Context(prec=2 * DIGITS_MAX)
"""Rounded numbers have fewer digits."""

_TYPES: Final[dict[int, SqlType]] = {
    16: sql.BOOLEAN,
    17: sql.BYTEA,
    18: sql.VARCHAR,  # "char"
    19: sql.VARCHAR,  # name
    20: sql.BIGINT,
    21: sql.SMALLINT,
    23: sql.INTEGER,
    25: sql.VARCHAR,
    26: sql.BIGINT,  # oid: 32 bits without a sign
    114: sql.JSON,
    700: sql.REAL,
    701: sql.DOUBLE,
    1042: sql.VARCHAR,
    1043: sql.VARCHAR,
    1082: sql.DATE,
    1083: sql.TIME,
    1114: sql.TIMESTAMP,
    1184: sql.TIMESTAMPTZ,
    1186: sql.INTERVAL,
    NUMERIC_OID: _ANY_DECIMAL,
    2950: sql.UUID,
    3802: sql.JSON,  # jsonb
}
_ELEMENTS: Final = {t.array: t.oid for t in PG_TYPES if t.oid in _TYPES} | {1002: 18, 3807: 3802}


def declared_type(oid: int) -> SqlType | None:
    """The type of a parameter that the client declares; None: the server is to find one. Raises
    UndefinedType."""
    if oid in UNKNOWN_OIDS:
        return None
    found = _TYPES.get(oid)
    if found is not None:
        return found
    element = _ELEMENTS.get(oid)
    if element is not None:
        return array(_TYPES[element])
    raise UndefinedType(
        f"parameters of the type with oid {oid} are not supported",
        hint="Leave the type out (oid 0) and send the value as text.",
    )


def is_readable(oid: int) -> bool:
    """Whether ``decode`` reads values of this type."""
    return oid in _TYPES or oid in _ELEMENTS


def is_numeric(oid: int) -> bool:
    """Whether a value of this type decides itself how many digits its type has."""
    return oid == NUMERIC_OID or _ELEMENTS.get(oid) == NUMERIC_OID


def decode(data: bytes | None, form: int, oid: int, wanted: SqlType, zone: str = UTC) -> Parameter:
    """One parameter. ``oid`` is what the client has declared, ``wanted`` the type that the plan
    gives the parameter: it counts where the client has declared none. ``zone`` is that of texts of
    moments that name none. Raises InvalidText,
    NumericOverflow and other DataErrors, UndefinedType."""
    declared = declared_type(oid)
    target = wanted if declared is None else declared
    if data is None:
        return Parameter(None, target)
    if form == TEXT:
        return _from_text(text_of(data), target, zone)
    try:
        if declared is None:
            return _from_binary(data, target, 0)
        return _from_binary(data, target, oid)
    except struct.error:
        raise InvalidText(f"incorrect binary data format: {len(data)} bytes for {target}") from None


def exact_decoder(form: int, oid: int, wanted: SqlType) -> Callable[[bytes], PhysicalValue] | None:
    """Reads values that need no look at their type: all of them are values of ``wanted`` by
    themselves. None: ``decode`` it. Raises as ``decode``, and struct.error."""
    target = declared_type(oid) or wanted
    if target.is_text and wanted.is_text:
        return None if wanted.length else text_of
    if form != BINARY or oid == _OID:
        return None
    if target.kind in INTEGER_KINDS and wanted.kind in INTEGER_KINDS:
        wide = INTEGER_KINDS.index(target.kind) <= INTEGER_KINDS.index(wanted.kind)
        return _DECODERS[target.kind] if wide and target.kind is not Kind.TINYINT else None
    return _DECODERS[target.kind] if target == wanted and target.kind in _EXACT else None


# --- text --------------------------------------------------------------------------------------


def _from_text(text: str, target: SqlType, zone: str) -> Parameter:
    if target.is_text:
        return Parameter(text, sql.VARCHAR)
    if target.kind is Kind.DECIMAL:
        return _from_decimal(_decimal_text(text))
    element = target.element
    if element is not None and element.kind is Kind.DECIMAL:
        items = [None if item is None else _decimal_text(item) for item in split_array(text)]
        return _numeric_array(items)
    if element is not None and element.is_text:
        return Parameter(tuple(split_array(text)), array(sql.VARCHAR))
    if target.kind is Kind.NULL:
        return Parameter(text, sql.VARCHAR)
    plain = sql.unrestricted(target)
    return Parameter(parse_text(text, plain, session_zone(zone)), plain)


def _decimal_text(text: str) -> Decimal:
    stripped = text.strip()
    try:
        if "_" not in stripped:
            return Decimal(stripped)
    except ArithmeticError:
        pass  # told below, as PostgreSQL tells it
    raise InvalidText(f'invalid input syntax for type numeric: "{text[:60]}"')


def _from_decimal(value: Decimal) -> Parameter:
    if not value.is_finite():
        raise NumericOverflow(
            f"{value} cannot be a value of type numeric here",
            hint="DOUBLE PRECISION has NaN and infinities.",
        )
    (value,) = rounded([value])
    natural = infer_type(value)
    return Parameter(to_physical(value, natural), natural)


def rounded(numbers: Sequence[Decimal]) -> list[Decimal]:
    """The finite ``numbers`` with as many decimals as one DECIMAL type has beside their whole
    digits, rounded half away from zero. Numbers of too many whole digits stay as they are."""
    found = list(numbers)
    while True:
        whole = max((number.adjusted() + 1 for number in found if number), default=0)
        decimals = max((_decimals(number) for number in found), default=0)
        allowed = DIGITS_MAX - max(whole, 0)
        if decimals <= allowed or allowed < 0:
            return found
        least = Decimal((0, (1,), -allowed))
        found = [
            number.quantize(least, ROUND_HALF_UP, _ROOM) if _decimals(number) > allowed else number
            for number in found
        ]


def _decimals(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


def _numeric_array(items: list[Decimal | None]) -> Parameter:
    for item in items:
        if item is not None:
            _from_decimal(item)
    even = iter(rounded([item for item in items if item is not None]))
    items = [None if item is None else next(even) for item in items]
    numbers = [item for item in items if item is not None]
    natural = infer_type(numbers) if numbers else array(_ANY_DECIMAL)
    return Parameter(to_physical(items, natural), natural)


# --- binary ------------------------------------------------------------------------------------


def _from_binary(data: bytes, target: SqlType, oid: int) -> Parameter:
    if target.element is not None:
        return _binary_array(data, target)
    if target.kind is Kind.ROW:
        raise NotSupported(
            "parameters of composite types are not supported in binary form",
            hint="Send the fields as parameters of their own, and write ROW($1, $2).",
        )
    if target.kind is Kind.DECIMAL:
        return _from_decimal(decode_numeric(data))
    if target.is_text or target.kind is Kind.NULL:
        return Parameter(text_of(data), sql.VARCHAR)
    if oid == _OID:
        return Parameter(struct.unpack("!I", data)[0], sql.BIGINT)
    if target.enum is not None:
        return Parameter(label_of(text_of(data), target), target)
    if target.kind is Kind.JSON:
        # jsonb has the number of its version in front; no JSON text begins with this byte.
        return Parameter(normalized(text_of(data.removeprefix(b"\x01"))), sql.JSON)
    value = _DECODERS[target.kind](data)
    if target.kind is Kind.TINYINT:
        low, high = integer_range(target.kind)
        if not low <= value <= high:
            raise NumericOverflow(f'value "{value}" is out of range for type tinyint')
    return Parameter(value, sql.unrestricted(target))


def _unpacked(code: str, offset: int = 0) -> Callable[[bytes], Any]:
    layout = struct.Struct(code)

    def unpack(data: bytes) -> Any:
        return layout.unpack(data)[0] + offset

    return unpack


def _boolean(data: bytes) -> bool:
    return bool(struct.unpack("!?", data)[0])


_ENDS: Final = {"!i": (1 << 31) - 1, "!q": (1 << 63) - 1}


def _moment(code: str, offset: int) -> Callable[[bytes], int]:
    layout, end = struct.Struct(code), _ENDS[code]

    def unpack(data: bytes) -> int:
        (value,) = layout.unpack(data)
        if abs(value) >= end:
            raise DatetimeOverflow("infinite dates and times are not supported")
        found: int = value + offset
        if abs(found) > end:
            raise DatetimeOverflow("date/time out of range")
        return found

    return unpack


def _time(data: bytes) -> int:
    (micros,) = struct.unpack("!q", data)
    if not 0 <= micros <= 86_400_000_000:
        raise DatetimeOverflow("time out of range")
    return int(micros)


def _interval(data: bytes) -> bytes:
    micros, days, months = PG_INTERVAL.unpack(data)
    return intervals.pack(months, days, micros)


def _uuid(data: bytes) -> bytes:
    if len(data) != 16:
        raise struct.error("a uuid has 16 bytes")
    return data


_DECODERS: Final[dict[Kind, Callable[[bytes], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.TINYINT: _unpacked("!h"),
    Kind.SMALLINT: _unpacked("!h"),
    Kind.INTEGER: _unpacked("!i"),
    Kind.BIGINT: _unpacked("!q"),
    Kind.REAL: _unpacked("!f"),
    Kind.DOUBLE: _unpacked("!d"),
    Kind.BYTEA: bytes,
    Kind.DATE: _moment("!i", EPOCH_DAYS),
    Kind.TIME: _time,
    Kind.TIMESTAMP: _moment("!q", EPOCH_MICROS),
    Kind.TIMESTAMPTZ: _moment("!q", EPOCH_MICROS),
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
}


_EXACT: Final = frozenset({Kind.BOOLEAN, Kind.DATE, Kind.UUID, Kind.BYTEA, Kind.DOUBLE})


def _binary_array(data: bytes, target: SqlType) -> Parameter:
    dimensions, _, element_oid = struct.unpack_from("!iiI", data)
    if dimensions == 0:
        return Parameter((), _array_type(target, element_oid))
    if dimensions != 1:
        raise NotSupported(
            "arrays of several dimensions are not supported",
            hint="Send an array of one dimension, or JSON.",
        )
    count, lower = struct.unpack_from("!ii", data, 12)
    if lower != 1:
        raise NotSupported(
            "arrays whose first subscript is not 1 are not supported",
            hint="Send the array with subscripts from 1.",
        )
    assert target.element is not None
    element = _TYPES.get(element_oid, target.element)
    at = 20
    items: list[Parameter | None] = []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if size < 0:
            items.append(None)
            continue
        if at + size > len(data):
            raise struct.error("an element that is longer than its array")
        items.append(_from_binary(data[at : at + size], element, element_oid))
        at += size
    if element.kind is Kind.DECIMAL:
        return _numeric_array([None if i is None else _as_decimal(i) for i in items])
    values = tuple(None if item is None else item.value for item in items)
    return Parameter(values, _array_type(target, element_oid))


def _as_decimal(item: Parameter) -> Decimal:
    found = from_physical(item.value, item.type)
    assert isinstance(found, Decimal)
    return found


def _array_type(target: SqlType, element_oid: int) -> SqlType:
    element = _TYPES.get(element_oid)
    return target if element is None else array(element)


def check_declared(oids: tuple[int, ...]) -> None:
    """Raises UndefinedType for a type that no parameter can have."""
    for oid in oids:
        declared_type(oid)
