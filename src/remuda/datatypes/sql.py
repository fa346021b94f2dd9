"""SQL types: what a column or an expression is, independent of Arrow, Spark and the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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


INTEGER_KINDS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
FLOAT_KINDS = (Kind.REAL, Kind.DOUBLE)
TEXT_KINDS = (Kind.CHAR, Kind.VARCHAR)

DECIMAL_PRECISION_MAX = 38
SHORT_DECIMAL_PRECISION_MAX = 18
"""Decimals up to this precision are scaled 64-bit integers inside the engine (design D5)."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """One SQL type; ``precision``, ``scale`` for DECIMAL, ``length`` in characters for text.

    ``str(type)`` is its name in SQL. ``decimal``, ``varchar`` and ``char`` make those with
    parameters.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    length: int | None = None

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.length is not None:
            return f"{self.kind.value}({self.length})"
        return str(self.kind.value)

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


def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL with ``precision`` digits in all (1 to 38), ``scale`` of them after the point.

    ValueError when they are out of range.
    """
    if not 1 <= precision <= DECIMAL_PRECISION_MAX or not 0 <= scale <= precision:
        raise ValueError(f"DECIMAL({precision},{scale}) is out of range")
    return SqlType(Kind.DECIMAL, precision=precision, scale=scale)


def varchar(length: int | None = None) -> SqlType:
    """VARCHAR, of at most ``length`` characters; None: of any length."""
    return SqlType(Kind.VARCHAR, length=length)


def char(length: int) -> SqlType:
    """CHAR of at most ``length`` characters. Values are kept as given, not padded."""
    return SqlType(Kind.CHAR, length=length)
