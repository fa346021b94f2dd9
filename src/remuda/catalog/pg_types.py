"""SQL types as PostgreSQL's catalogs number and name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import INTERVAL_FIELDS, Kind, SqlType, is_span


@dataclass(frozen=True, slots=True)
class PgType:
    """``length`` is -1 for variable length; ``array`` is the oid of the array of this type."""

    oid: int
    name: str
    shown: str
    length: int
    category: str
    array: int
    preferred: bool = False

    @property
    def alignment(self) -> str:
        return {1: "c", 2: "s", 4: "i", 8: "d", 16: "c"}.get(self.length, "i")


_ROWS: Final = """
16 bool boolean 1 B 1000 *
17 bytea bytea -1 U 1001
19 name name 64 S 1003
20 int8 bigint 8 N 1016
21 int2 smallint 2 N 1005
23 int4 integer 4 N 1007
25 text text -1 S 1009 *
26 oid oid 4 N 1028 *
114 json json -1 U 199
700 float4 real 4 N 1021
701 float8 double_precision 8 N 1022 *
1042 bpchar character -1 S 1014
1043 varchar character_varying -1 S 1015
1082 date date 4 D 1182
1083 time time_without_time_zone 8 D 1183
1114 timestamp timestamp_without_time_zone 8 D 1115
1184 timestamptz timestamp_with_time_zone 8 D 1185 *
1186 interval interval 16 T 1187 *
1700 numeric numeric -1 N 1231
2249 record record -1 P 2287
2950 uuid uuid 16 U 2951
"""


def _parsed(line: str) -> PgType:
    oid, name, shown, length, category, array, *preferred = line.split()
    return PgType(
        int(oid), name, shown.replace("_", " "), int(length), category, int(array), bool(preferred)
    )


PG_TYPES: Final = tuple(_parsed(line) for line in _ROWS.strip().splitlines())
BY_NAME: Final = {t.name: t for t in PG_TYPES}

_NAMES: Final = {
    Kind.BOOLEAN: "bool",
    Kind.TINYINT: "int2",
    Kind.SMALLINT: "int2",
    Kind.INTEGER: "int4",
    Kind.BIGINT: "int8",
    Kind.DECIMAL: "numeric",
    Kind.REAL: "float4",
    Kind.DOUBLE: "float8",
    Kind.CHAR: "bpchar",
    Kind.BYTEA: "bytea",
    Kind.DATE: "date",
    Kind.TIME: "time",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.INTERVAL: "interval",
    Kind.UUID: "uuid",
    Kind.JSON: "json",
    Kind.ROW: "record",
}


def pg_type(sql_type: SqlType) -> PgType:
    """The type; of an array, that of its elements."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return pg_type(sql_type.element)
    if sql_type.kind is Kind.VARCHAR:
        return BY_NAME["text" if sql_type.length is None else "varchar"]
    return BY_NAME.get(_NAMES.get(sql_type.kind, "text"), BY_NAME["text"])


def type_oid(sql_type: SqlType) -> int:
    found = pg_type(sql_type)
    return found.array if sql_type.kind is Kind.ARRAY else found.oid


def type_length(sql_type: SqlType) -> int:
    return -1 if sql_type.kind is Kind.ARRAY else pg_type(sql_type).length


def modifier(sql_type: SqlType) -> int:
    """``atttypmod``: length, or precision and scale, or digits of seconds; -1 for none. Of an
    array, that of its elements."""
    if sql_type.element is not None:
        return modifier(sql_type.element)
    if sql_type.length is not None:
        return sql_type.length + 4
    if sql_type.digits is not None:
        return -1
    if sql_type.kind is Kind.DECIMAL and sql_type.precision is not None:
        return (sql_type.precision << 16 | (sql_type.scale or 0)) + 4
    if sql_type.kind is Kind.INTERVAL and sql_type.is_restricted:
        digits = ALL_DIGITS if sql_type.fraction is None else sql_type.fraction
        return SPANS[sql_type.span] << 16 | digits
    return -1 if sql_type.fraction is None else sql_type.fraction


_FIELD_BITS: Final = {"year": 2, "month": 1, "day": 3, "hour": 10, "minute": 11, "second": 12}
ALL_DIGITS: Final = 0xFFFF
"""The lower half of an INTERVAL's modifier when it has fields and no digits."""


def _spans() -> Iterator[tuple[tuple[str, ...], int]]:
    yield (), 0x7FFF
    for first, name in enumerate(INTERVAL_FIELDS):
        bits = 0
        for last in INTERVAL_FIELDS[first:]:
            bits |= 1 << _FIELD_BITS[last]
            span = (name,) if last == name else (name, last)
            if is_span(span):
                yield span, bits


SPANS: Final = dict(_spans())
"""The fields of INTERVAL DAY TO SECOND, and the upper half of its modifier."""


def data_type(sql_type: SqlType) -> str:
    """``information_schema``'s name of a type."""
    return "ARRAY" if sql_type.kind is Kind.ARRAY else pg_type(sql_type).shown


def udt_name(sql_type: SqlType) -> str:
    found = pg_type(sql_type).name
    return f"_{found}" if sql_type.kind is Kind.ARRAY else found
