"""Type names -> SqlType, for casts and for columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BPCHAR_LENGTH,
    BYTEA,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    FRACTION_MAX,
    INTEGER,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIME_KINDS,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    array,
    char,
    decimal,
    restricted,
    varchar,
)
from remuda.errors import (
    InvalidDefinition,
    NotSupported,
    Position,
    SqlSyntaxError,
    UndefinedType,
)
from remuda.sql.text.missing_types import missing_type
from remuda.sql.text.suggest import did_you_mean

_SIMPLE: Final[dict[str, SqlType]] = {
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    "tinyint": TINYINT,
    "int1": TINYINT,
    "smallint": SMALLINT,
    "int2": SMALLINT,
    "integer": INTEGER,
    "int": INTEGER,
    "int4": INTEGER,
    "bigint": BIGINT,
    "int8": BIGINT,
    "real": REAL,
    "float4": REAL,
    "double": DOUBLE,
    "double precision": DOUBLE,
    "float8": DOUBLE,
    "float": DOUBLE,
    "text": VARCHAR,
    "string": VARCHAR,
    "bytea": BYTEA,
    "blob": BYTEA,
    "varbinary": BYTEA,
    "date": DATE,
    "time": TIME,
    "time without time zone": TIME,
    "timestamp": TIMESTAMP,
    "datetime": TIMESTAMP,
    "timestamp without time zone": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "timestamp with time zone": TIMESTAMPTZ,
    "interval": INTERVAL,
    "uuid": UUID,
    "json": JSON,
    "jsonb": JSON,
}
_TEXT: Final = {
    "char": char,
    "character": char,
    "bpchar": char,
    "varchar": varchar,
    "character varying": varchar,
}
DECIMAL_NAMES: Final = ("decimal", "numeric", "dec")
TYPE_NAMES: Final = tuple(sorted({*_SIMPLE, *_TEXT, *DECIMAL_NAMES}))

LENGTH_MAX: Final = BPCHAR_LENGTH
BARE_SCALE: Final = 16
"""Digits after the point of a DECIMAL of which nothing is said: as many as quotients have."""


_OF_ARRAYS: Final = {
    f"_{name}": name
    for name in (
        *("bool", "int2", "int4", "int8", "float4", "float8", "numeric"),
        *("text", "varchar", "bpchar", "bytea", "uuid", "json", "jsonb"),
        *("date", "time", "timestamp", "timestamptz", "interval"),
    )
}
"""PostgreSQL's own names of types of arrays, which drivers write."""
SERIAL_NAMES: Final = frozenset(
    {"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"}
)
_SERIAL_HINT: Final = "It is a type of columns: CREATE TABLE name (id BIGSERIAL PRIMARY KEY, ...)."


def type_from_name(
    name: str,
    arguments: tuple[int, ...],
    position: Position | None,
    span: tuple[str, ...] = (),
) -> SqlType:
    """The type called ``name`` (lower case, words separated by one blank); ``span``: the fields of
    an INTERVAL.

    Raises UndefinedType with a suggestion, NotSupported for other types of PostgreSQL,
    InvalidDefinition for arguments out of range, and
    SqlSyntaxError for fields that no interval has.
    """
    if name in DECIMAL_NAMES:
        return _decimal(arguments, position)
    if name in _TEXT:
        return _text(name, arguments, position)
    if name == "float" and len(arguments) == 1:
        if not 1 <= arguments[0] <= 53:
            raise InvalidDefinition("precision of float must be 1 to 53", position=position)
        return REAL if arguments[0] <= 24 else DOUBLE
    if name in _OF_ARRAYS and not arguments:
        return array(type_from_name(_OF_ARRAYS[name], (), position))
    found = _SIMPLE.get(name)
    if found is None:
        raise undefined_type(name, position)
    return _with_digits(name, found, arguments, span, position) if arguments or span else found


def is_type_name(name: str) -> bool:
    """Whether it is the name of a type that every catalog has."""
    return name in _SIMPLE or name in _TEXT or name in DECIMAL_NAMES or name in _OF_ARRAYS


def undefined_type(
    name: str, position: Position | None, others: Sequence[str] = ()
) -> UndefinedType | NotSupported:
    """``others``: the names of types that users have made."""
    return missing_type(name, position) or UndefinedType(
        f'type "{name}" does not exist or is not supported',
        position=position,
        hint=_SERIAL_HINT * (name in SERIAL_NAMES)
        or did_you_mean(name, (*others, *TYPE_NAMES))
        or "Supported types: " + ", ".join((*others, *TYPE_NAMES)) + ".",
    )


def _with_digits(
    name: str,
    found: SqlType,
    arguments: tuple[int, ...],
    span: tuple[str, ...],
    position: Position | None,
) -> SqlType:
    """TIMESTAMP(3), INTERVAL DAY TO SECOND(2). More than 6 digits mean 6, as in PostgreSQL."""
    if found.kind not in TIME_KINDS:
        raise InvalidDefinition(f"type {name} takes no length or precision", position=position)
    if len(arguments) > 1:
        raise InvalidDefinition(
            f"type {name} takes one number, the digits of its seconds", position=position
        )
    fraction = min(arguments[0], FRACTION_MAX) if arguments else None
    try:
        return restricted(found, fraction, span)
    except ValueError as problem:
        raise SqlSyntaxError(str(problem), position=position) from None


def _decimal(arguments: tuple[int, ...], position: Position | None) -> SqlType:
    if not arguments:
        return decimal(DECIMAL_PRECISION_MAX, BARE_SCALE)
    precision, scale = arguments[0], arguments[1] if len(arguments) > 1 else 0
    if len(arguments) > 2 or not 1 <= precision <= DECIMAL_PRECISION_MAX:
        raise InvalidDefinition(
            f"DECIMAL precision {precision} must be between 1 and {DECIMAL_PRECISION_MAX}",
            position=position,
        )
    if not 0 <= scale <= precision:
        raise InvalidDefinition(
            f"DECIMAL scale {scale} must be between 0 and the precision {precision}",
            position=position,
        )
    return decimal(precision, scale)


def _text(name: str, arguments: tuple[int, ...], position: Position | None) -> SqlType:
    if len(arguments) > 1 or any(not 1 <= n <= LENGTH_MAX for n in arguments):
        raise InvalidDefinition(
            f"length for type {name} must be one number between 1 and {LENGTH_MAX}",
            position=position,
        )
    make = _TEXT[name]
    if name == "bpchar" and not arguments:
        return char(LENGTH_MAX)  # as long as any, in contrast to CHAR
    if not arguments:
        return make(1) if make is char else VARCHAR
    return make(arguments[0])


def array_of(element: SqlType, position: Position | None) -> SqlType:
    """Raises NotSupported for arrays of arrays."""
    if element.kind is Kind.ARRAY:
        raise NotSupported(
            "arrays of more than one dimension are not supported",
            position=position,
            hint="Use JSON, or an array of one dimension.",
        )
    return array(element)
