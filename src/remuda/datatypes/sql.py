"""SQL types of columns and expressions, independent of Arrow, Spark and the wire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

PhysicalValue: TypeAlias = "bool | int | float | str | bytes | tuple[PhysicalValue, ...] | None"
"""A value in the engine's form: DECIMAL as its unscaled integer (any size), DATE as days since
1970-01-01, TIME as microseconds since midnight, TIMESTAMP and TIMESTAMPTZ as microseconds since
1970-01-01 (UTC), UUID and INTERVAL as 16 bytes, JSON as its normalized text, an enum as its label,
ARRAY and ROW as tuples of physical values, everything else as itself."""


class Kind(Enum):
    """The families of types; parameters (precision, length, ...) live in ``SqlType``."""

    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    REAL = "REAL"
    DOUBLE = "DOUBLE PRECISION"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BYTEA = "BYTEA"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    JSON = "JSON"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    ROW = "RECORD"

    __hash__ = object.__hash__  # each kind is one object; that of Enum is a call in Python


INTEGER_KINDS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
FLOAT_KINDS = (Kind.REAL, Kind.DOUBLE)
TEXT_KINDS = (Kind.CHAR, Kind.VARCHAR)
BYTES_KINDS = (Kind.BYTEA, Kind.UUID, Kind.INTERVAL)
"""Kinds whose values are byte strings inside the engine."""
ORDERED_BY_KEY_KINDS = (Kind.INTERVAL, Kind.JSON, Kind.ENUM, Kind.ARRAY, Kind.ROW)
"""Kinds whose values are compared by a key that is computed from them
(``datatypes.hashes.orderkeys``)."""

TIME_KINDS = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
"""Kinds whose values have seconds."""
FRACTION_MAX = 6
"""Microseconds: no value has more digits of a second."""
INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")
"""The fields of INTERVAL YEAR TO MONTH, the largest first."""

DECIMAL_PRECISION_MAX = 38
SHORT_DECIMAL_PRECISION_MAX = 18
"""Decimals up to this precision are scaled 64-bit integers inside the engine (design D5)."""
QUOTIENT_STEP, ROOT_STEP, LOGARITHM_STEP = 4, 2, 1
TRIMMED_STEP = 0
DIGIT_STEPS = (QUOTIENT_STEP, ROOT_STEP, LOGARITHM_STEP, TRIMMED_STEP)
"""In how many digits at a time an inexact result grows or loses digits after the point; 0: only
the digits that are needed are shown."""


@dataclass(frozen=True, slots=True)
class EnumType:
    """CREATE TYPE ... AS ENUM: its labels in the order in which values compare (decision 0091).

    ``local`` is its name in the SQL schema ``namespace``. The catalog gives the OIDs: ``oid`` of
    the type, ``array_oid`` of its arrays, and one for each label. One without an ``oid`` is a name
    that a statement writes, which the binder has still to look up; its ``namespace`` may be "".
    """

    local: str
    labels: tuple[str, ...] = ()
    namespace: str = "public"
    oid: int = 0
    array_oid: int = 0
    label_oids: tuple[int, ...] = ()
    comment: str = ""


@dataclass(frozen=True, slots=True)
class SqlType:
    """One SQL type; ``precision``, ``scale`` for DECIMAL, ``length`` in characters for text,
    ``element`` for ARRAY, ``fields`` (name, type) for ROW, ``enum`` for ENUM.

    ``digits`` is set for a DECIMAL that a division or a function computes: such values are shown
    with fewer digits than ``scale``, as ``numeric.shown_scale`` counts them from (step, least).

    ``fraction`` (digits of a second, 0 to 6) and ``span`` (the fields of INTERVAL YEAR TO MONTH)
    say what a column of a time type keeps of a value that is stored in it. They are no part of the
    type, as PostgreSQL's type modifiers are none: types that differ in them only are equal, and no
    expression has them (``unrestricted``). ``datatypes.times.time_digits`` applies them.

    ``alias`` is PostgreSQL's name for a column of its catalog whose values have another type here:
    ``oid`` and ``regclass`` are BIGINT, ``name`` is VARCHAR. It is no part of the type either: it
    tells clients a type, and casts to text and from text how to write a value.

    ``str(type)`` is its name in SQL. ``decimal``, ``varchar``, ``char``, ``array`` and ``row`` make
    those with parameters.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    element: SqlType | None = None
    fields: tuple[tuple[str, SqlType], ...] = ()
    digits: tuple[int, int] | None = None
    enum: EnumType | None = None
    fraction: int | None = field(default=None, compare=False, repr=False)
    span: tuple[str, ...] = field(default=(), compare=False, repr=False)
    alias: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.fraction is not None or self.span:
            return self._restricted_name()
        if self.length is not None:
            return f"{self.kind.value}({self.length})"
        if self.element is not None:
            return f"{self.element}[]"
        if self.enum is not None:
            from remuda.datatypes.identifiers import sql_name  # noqa: PLC0415 (only enums have names)

            return sql_name(self.enum)
        return str(self.kind.value)

    def _restricted_name(self) -> str:
        digits = "" if self.fraction is None else f"({self.fraction})"
        if self.span:
            return f"{self.kind.value} {' TO '.join(self.span).upper()}{digits}"
        name, *zone = self.kind.value.split(" ", 1)
        return " ".join([name + digits, *zone])

    @property
    def is_short_decimal(self) -> bool:
        """DECIMAL of at most 18 digits: a scaled 64-bit integer inside the engine."""
        return self.kind is Kind.DECIMAL and (self.precision or 0) <= SHORT_DECIMAL_PRECISION_MAX

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_KINDS

    @property
    def is_float(self) -> bool:
        return self.kind in FLOAT_KINDS

    @property
    def is_numeric(self) -> bool:
        """Integer, REAL, DOUBLE or DECIMAL."""
        return self.is_integer or self.is_float or self.kind is Kind.DECIMAL

    @property
    def is_text(self) -> bool:
        return self.kind in TEXT_KINDS

    @property
    def holds_text(self) -> bool:
        """Values are ``str`` inside the engine: text, JSON and labels of enums."""
        return self.kind in TEXT_KINDS or self.kind is Kind.JSON or self.kind is Kind.ENUM

    @property
    def holds_bytes(self) -> bool:
        """Values are ``bytes`` inside the engine: BYTEA, UUID, INTERVAL."""
        return self.kind in BYTES_KINDS

    @property
    def is_nested(self) -> bool:
        """Values consist of values: ARRAY and ROW; tuples inside the engine."""
        return self.kind is Kind.ARRAY or self.kind is Kind.ROW

    @property
    def is_restricted(self) -> bool:
        """Whether ``fraction`` or ``span`` is given, for the values or for those in them."""
        if self.fraction is not None or self.span:
            return True
        if self.element is not None:
            return self.element.is_restricted
        return any(t.is_restricted for _, t in self.fields)

    @property
    def ordered_by_key(self) -> bool:
        """Not compared as stored, but by the key of ``datatypes.hashes.orderkeys``."""
        return self.kind in ORDERED_BY_KEY_KINDS


NULL = SqlType(Kind.NULL)
BOOLEAN = SqlType(Kind.BOOLEAN)
TINYINT = SqlType(Kind.TINYINT)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
VARCHAR = SqlType(Kind.VARCHAR)
BYTEA = SqlType(Kind.BYTEA)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
INTERVAL = SqlType(Kind.INTERVAL)
UUID = SqlType(Kind.UUID)
JSON = SqlType(Kind.JSON)
PLAIN_TYPES = (
    NULL, BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, VARCHAR, BYTEA, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSON,
)  # fmt: skip
"""Those without parameters."""


def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL with ``precision`` digits in all (1 to 38), ``scale`` of them after the point.

    ValueError when they are out of range.
    """
    if not 1 <= precision <= DECIMAL_PRECISION_MAX or not 0 <= scale <= precision:
        raise ValueError(f"DECIMAL({precision},{scale}) is out of range")
    return SqlType(Kind.DECIMAL, precision=precision, scale=scale)


def computed_decimal(scale: int, step: int, least: int) -> SqlType:
    """The DECIMAL of inexact results: 38 digits, ``scale`` of them after the point, shown with the
    digits that PostgreSQL gives such results (``numeric.shown_scale``).

    ValueError when ``scale`` is out of range.
    """
    return replace(decimal(DECIMAL_PRECISION_MAX, scale), digits=(step, least))


def aliased(t: SqlType, alias: str) -> SqlType:
    """``t`` under a name that PostgreSQL's catalog has for it; "" for none."""
    return t if t.alias == alias else replace(t, alias=alias)


def without_digits(t: SqlType) -> SqlType:
    """``t`` as the type of a stored column, which shows all digits of its scale, and has no name
    of its own."""
    t = aliased(t, "")
    if t.element is not None:
        return replace(t, element=without_digits(t.element))
    if t.fields:
        return replace(t, fields=tuple((name, without_digits(f)) for name, f in t.fields))
    return t if t.digits is None else replace(t, digits=None)


def restricted(t: SqlType, fraction: int | None, span: tuple[str, ...] = ()) -> SqlType:
    """A column's type TIMESTAMP(3), or INTERVAL with fields (in lower case).

    ValueError for a type without seconds, more than 6 digits, and fields that no interval has.
    """
    if t.kind not in TIME_KINDS or (span and t.kind is not Kind.INTERVAL):
        raise ValueError(f"type {t} takes no digits of seconds and no fields")
    if fraction is not None and not 0 <= fraction <= FRACTION_MAX:
        raise ValueError(f"a second has 0 to {FRACTION_MAX} digits, not {fraction}")
    if not is_span(span) or (fraction is not None and span and span[-1] != INTERVAL_FIELDS[-1]):
        raise ValueError(f"an interval cannot be {' TO '.join(span).upper()}")
    return replace(t, fraction=fraction, span=span)


def is_span(span: tuple[str, ...]) -> bool:
    """Whether INTERVAL can have these fields; () are all."""
    if any(name not in INTERVAL_FIELDS for name in span) or len(span) > 2:
        return False
    if len(span) < 2:
        return True
    first, last = (INTERVAL_FIELDS.index(name) for name in span)
    months = INTERVAL_FIELDS.index("month")
    return first < last and (first > months or (first, last) == (0, months))


def has_moments(t: SqlType) -> bool:
    """Whether values of the type have a TIMESTAMP WITH TIME ZONE in them."""
    if t.element is not None:
        return has_moments(t.element)
    return t.kind is Kind.TIMESTAMPTZ or any(has_moments(each) for _, each in t.fields)


def unrestricted(t: SqlType) -> SqlType:
    """``t`` as the type of an expression: without ``fraction`` and ``span``."""
    if not t.is_restricted:
        return t
    if t.element is not None:
        return replace(t, element=unrestricted(t.element))
    if t.fields:
        return replace(t, fields=tuple((name, unrestricted(f)) for name, f in t.fields))
    return replace(t, fraction=None, span=())


def varchar(length: int | None = None) -> SqlType:
    """VARCHAR, of at most ``length`` characters; None: of any length."""
    return SqlType(Kind.VARCHAR, length=length)


BPCHAR_LENGTH = 10_485_760
"""The type CHAR of this length, the greatest, is that of bpchar without a length."""


def char(length: int) -> SqlType:
    """CHAR of at most ``length`` characters. Blanks at the end of a value are not kept."""
    return SqlType(Kind.CHAR, length=length)


def array(element: SqlType) -> SqlType:
    """An array of ``element``, of one dimension and any length. ValueError for an array of arrays
    and for a type that no element has.
    """
    if element.kind in (Kind.ARRAY, Kind.NULL):
        raise ValueError(f"an array cannot have elements of type {element}")
    return SqlType(Kind.ARRAY, element=element)


def enum_of(enum: EnumType) -> SqlType:
    """The type of the values of an enum."""
    return SqlType(Kind.ENUM, enum=enum)


def row(fields: Iterable[tuple[str, SqlType]]) -> SqlType:
    """A row value with named fields, at least one."""
    found = tuple(fields)
    if not found:
        raise ValueError("a row has at least one field")
    return SqlType(Kind.ROW, fields=found)
