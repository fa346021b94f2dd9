"""The capabilities of SQL here, in the terms with which ODBC and JDBC ask."""

from __future__ import annotations

from typing import Final

from remuda.datatypes import sql
from remuda.datatypes.coercion import is_explicit
from remuda.datatypes.identifiers import reserved_words
from remuda.plan.functions.catalog import callable_names
from remuda.rpc.messages.vectors_pb2 import MinorType
from remuda.rpc.value_vectors.vector import minor_type

_TYPES: Final = (
    *(sql.BOOLEAN, sql.TINYINT, sql.SMALLINT, sql.INTEGER, sql.BIGINT, sql.REAL, sql.DOUBLE),
    *(sql.decimal(38, 10), sql.VARCHAR, sql.BYTEA, sql.DATE, sql.TIME, sql.TIMESTAMP),
    sql.INTERVAL,
)

CASTS: Final[tuple[tuple[MinorType, MinorType], ...]] = tuple(
    (minor_type(source), minor_type(target))
    for source in _TYPES
    for target in _TYPES
    if is_explicit(source, target)
)
"""Pairs of Drill's types between which CAST converts."""

_NUMERIC: Final = (
    "ABS ACOS ASIN ATAN ATAN2 CEILING COS COT DEGREES EXP FLOOR LOG LOG10 MOD PI POWER RADIANS "
    "RAND ROUND SIGN SIN SQRT TAN TRUNCATE"
)
_STRING: Final = (
    "ASCII CHAR CHAR_LENGTH CHARACTER_LENGTH CONCAT DIFFERENCE INSERT LCASE LEFT LENGTH LOCATE "
    "LOWER LTRIM OCTET_LENGTH POSITION REPEAT REPLACE RIGHT RTRIM SOUNDEX SPACE SUBSTRING UCASE "
    "UPPER"
)
_SYSTEM: Final = "DATABASE IFNULL USER"
_DATE_TIME: Final = (
    "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURDATE CURTIME DAYNAME DAYOFMONTH DAYOFWEEK "
    "DAYOFYEAR EXTRACT HOUR MINUTE MONTH MONTHNAME NOW QUARTER SECOND TIMESTAMPADD TIMESTAMPDIFF "
    "WEEK YEAR"
)
_GRAMMAR: Final = frozenset(
    {"current_date", "current_time", "current_timestamp", "extract", "position", "substring"}
)
"""Not functions here, but parts of the grammar."""


def _ours(names: str) -> tuple[str, ...]:
    known = _GRAMMAR.union(callable_names())
    return tuple(name for name in names.split() if name.lower() in known)


NUMERIC_FUNCTIONS: Final = _ours(_NUMERIC)
STRING_FUNCTIONS: Final = _ours(_STRING)
SYSTEM_FUNCTIONS: Final = _ours(_SYSTEM)
DATE_TIME_FUNCTIONS: Final = _ours(_DATE_TIME)
"""Those of the X/Open and JDBC lists that are called by the same name here."""


def keywords() -> tuple[str, ...]:
    """In capitals, as ODBC gives them."""
    return tuple(sorted(word.upper() for word in reserved_words()))
