"""SQL types as PostgreSQL's catalogs number and name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from remuda.datatypes.identifiers import sql_name
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    INTERVAL,
    INTERVAL_FIELDS,
    REAL,
    SMALLINT,
    TIMESTAMPTZ,
    VARCHAR,
    EnumType,
    Kind,
    SqlType,
    aliased,
    array,
    decimal,
    is_span,
)


@dataclass(frozen=True, slots=True)
class PgType:
    """One row of ``pg_type``. ``shown`` is the name that ``format_type`` gives, ``length`` is -1
    for variable length, ``array`` the OID of the array of this type (0: there is none), ``element``
    that of the elements of a vector. ``io`` are the OIDs of its functions in, out, recv and send,
    whose names begin with ``prefix``; 0: it has none."""

    oid: int
    name: str
    shown: str
    length: int
    by_value: bool
    kind: str
    category: str
    preferred: bool
    alignment: str
    storage: str
    element: int
    array: int
    collation: int
    prefix: str
    io: tuple[int, int, int, int]

    @property
    def functions(self) -> Iterator[tuple[int, str]]:
        """OIDs and names of the functions that read and write it."""
        for oid, suffix in zip(self.io, ("in", "out", "recv", "send"), strict=True):
            if oid:
                yield oid, self.prefix + suffix


# oid, name, shown, length, by value (v) or reference (r) + typtype + category + preferred +
# alignment + storage, element, array, collation, then the functions: prefix, in, out, recv, send
_ROWS: Final = """
16 bool boolean 1 vbB*cp 0 1000 0 bool 1242 1243 2436 2437
17 bytea bytea -1 rbU.ix 0 1001 0 bytea 1244 31 2412 2413
18 char "char" 1 vbZ.cp 0 1002 0 char 1245 33 2434 2435
19 name name 64 rbS.cp 18 1003 950 name 34 35 2422 2423
20 int8 bigint 8 vbN.dp 0 1016 0 int8 460 461 2408 2409
21 int2 smallint 2 vbN.sp 0 1005 0 int2 38 39 2404 2405
22 int2vector int2vector -1 rbA.ip 21 1006 0 int2vector 40 41 2410 2411
23 int4 integer 4 vbN.ip 0 1007 0 int4 42 43 2406 2407
24 regproc regproc 4 vbN.ip 0 1008 0 regproc 44 45 2444 2445
25 text text -1 rbS*ix 0 1009 100 text 46 47 2414 2415
26 oid oid 4 vbN*ip 0 1028 0 oid 1798 1799 2418 2419
27 tid tid 6 rbU.sp 0 1010 0 tid 48 49 2438 2439
28 xid xid 4 vbU.ip 0 1011 0 xid 50 51 2440 2441
29 cid cid 4 vbU.ip 0 1012 0 cid 52 53 2442 2443
30 oidvector oidvector -1 rbA.ip 26 1013 0 oidvector 54 55 2420 2421
114 json json -1 rbU.ix 0 199 0 json_ 321 322 323 324
194 pg_node_tree pg_node_tree -1 rbZ.ix 0 0 100 pg_node_tree_ 195 196 197 198
700 float4 real 4 vbN.ip 0 1021 0 float4 200 201 2424 2425
701 float8 double_precision 8 vbN*dp 0 1022 0 float8 214 215 2426 2427
705 unknown unknown -2 rpX.cp 0 0 0 unknown 109 110 2416 2417
869 inet inet -1 rbI*im 0 1041 0 inet_ 910 911 2496 2497
1033 aclitem aclitem 12 rbU.ip 0 1034 0 aclitem 1031 1032 0 0
1042 bpchar character -1 rbS.ix 0 1014 100 bpchar 1044 1045 2430 2431
1043 varchar character_varying -1 rbS.ix 0 1015 100 varchar 1046 1047 2432 2433
1082 date date 4 vbD.ip 0 1182 0 date_ 1084 1085 2468 2469
1083 time time_without_time_zone 8 vbD.dp 0 1183 0 time_ 1143 1144 2470 2471
1114 timestamp timestamp_without_time_zone 8 vbD.dp 0 1115 0 timestamp_ 1312 1313 2474 2475
1184 timestamptz timestamp_with_time_zone 8 vbD*dp 0 1185 0 timestamptz_ 1150 1151 2476 2477
1186 interval interval 16 rbT*dp 0 1187 0 interval_ 1160 1161 2478 2479
1700 numeric numeric -1 rbN.im 0 1231 0 numeric_ 1701 1702 2460 2461
2202 regprocedure regprocedure 4 vbN.ip 0 2207 0 regprocedure 2212 2213 2446 2447
2205 regclass regclass 4 vbN.ip 0 2210 0 regclass 2218 2219 2452 2453
2206 regtype regtype 4 vbN.ip 0 2211 0 regtype 2220 2221 2454 2455
2203 regoper regoper 4 vbN.ip 0 2208 0 regoper 2214 2215 2448 2449
2204 regoperator regoperator 4 vbN.ip 0 2209 0 regoperator 2216 2217 2450 2451
2249 record record -1 rpP.dx 0 2287 0 record_ 2290 2291 2402 2403
2275 cstring cstring -2 rpP.cp 0 1263 0 cstring_ 2292 2293 2500 2501
2276 any "any" 4 vpP.ip 0 0 0 any_ 2294 2295 0 0
2277 anyarray anyarray -1 rpP.dx 0 0 0 anyarray_ 2296 2297 2502 2503
2278 void void 4 vpP.ip 0 0 0 void_ 2298 2299 3120 3121
2283 anyelement anyelement 4 vpP.ip 0 0 0 anyelement_ 2312 2313 0 0
2281 internal internal 8 vpP.dp 0 0 0 internal_ 2304 2305 0 0
2776 anynonarray anynonarray 4 vpP.ip 0 0 0 anynonarray_ 2777 2778 0 0
2950 uuid uuid 16 rbU.cp 0 2951 0 uuid_ 2952 2953 2961 2962
3220 pg_lsn pg_lsn 8 vbU.dp 0 3221 0 pg_lsn_ 3229 3230 3238 3239
3802 jsonb jsonb -1 rbU.ix 0 3807 0 jsonb_ 3806 3804 3805 3803
4089 regnamespace regnamespace 4 vbN.ip 0 4090 0 regnamespace 4084 4085 4087 4088
4096 regrole regrole 4 vbN.ip 0 4097 0 regrole 4098 4092 4094 4095
5077 anycompatible anycompatible 4 vpP.ip 0 0 0 anycompatible_ 5086 5087 0 0
5078 anycompatiblearray anycompatiblearray -1 rpP.dx 0 0 0 anycompatiblearray_ 5088 5089 5090 5091
5079 anycompatiblenonarray anycompatiblenonarray 4 vpP.ip 0 0 0 anycompatiblenonarray_ 5092 5093 0 0
"""


def _parsed(line: str) -> PgType:
    oid, name, shown, length, flags, element, array_, collation, prefix, *io = line.split()
    by, kind, category, preferred, alignment, storage = tuple(flags)
    if shown.split("_")[0] in ("double", "character", "time", "timestamp"):
        shown = shown.replace("_", " ")
    first, second, third, fourth = (int(each) for each in io)
    return PgType(
        int(oid), name, shown, int(length), by == "v", kind, category, preferred == "*",
        alignment, storage, int(element), int(array_), int(collation), prefix,
        (first, second, third, fourth),
    )  # fmt: skip


_ENUM_FUNCTIONS: Final = (3506, 3507, 3532, 3533)
PG_TYPES: Final = tuple(_parsed(line) for line in _ROWS.strip().splitlines())
BY_NAME: Final = {t.name: t for t in PG_TYPES}
ARRAY_FUNCTIONS: Final = {
    750: "array_in",
    751: "array_out",
    2400: "array_recv",
    2401: "array_send",
    3816: "array_typanalyze",
    6179: "array_subscript_handler",
}
ARRAY_IN, ARRAY_OUT, ARRAY_RECEIVE, ARRAY_SEND, ARRAY_ANALYZE, ARRAY_SUBSCRIPT = ARRAY_FUNCTIONS

NUMBERED: Final = (
    "oid", "xid", "cid", "regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype",
    "regnamespace", "regrole",
)  # fmt: skip
"""Types whose values are numbers of objects."""
_WRITTEN: Final = (
    *("name", "char", "aclitem", "inet", "pg_lsn", "tid", "pg_node_tree", "anyarray", "void"),
)
"""Types of the catalog whose values are text here."""
CATALOG_TYPES: Final[dict[str, SqlType]] = {
    "bool": BOOLEAN,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "float4": REAL,
    "float8": DOUBLE,
    "numeric": decimal(DECIMAL_PRECISION_MAX, 0),
    "text": VARCHAR,
    "bytea": BYTEA,
    "interval": INTERVAL,
    "timestamptz": TIMESTAMPTZ,
    **{name: aliased(BIGINT, name) for name in NUMBERED},
    **{name: aliased(VARCHAR, name) for name in _WRITTEN},
    "int2vector": aliased(array(SMALLINT), "int2vector"),
    "oidvector": aliased(array(aliased(BIGINT, "oid")), "oidvector"),
}
"""The types of columns of ``pg_catalog`` and what they are here."""
OBJECTS: Final = frozenset(NUMBERED) - {"oid", "xid", "cid"}
"""Types whose values are written as names of objects: regclass and its kind."""
VECTORS: Final = frozenset({"int2vector", "oidvector"})
"""Arrays of the catalog that are counted from 0, and written with blanks between the elements."""


def catalog_type(name: str) -> SqlType:
    """The type of a column of ``pg_catalog`` that PostgreSQL declares as ``name``. Types of which
    the grid has no values are text."""
    if name.endswith("[]"):
        return array(catalog_type(name[:-2]))
    return CATALOG_TYPES.get(name, VARCHAR)


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
    Kind.JSON: "jsonb",  # documents are kept normalized, and compare
    Kind.ROW: "record",
}


def pg_type(sql_type: SqlType) -> PgType:
    """The type; of an array, that of its elements."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return pg_type(sql_type.element)
    if sql_type.enum is not None:
        return enum_row(sql_type.enum)
    if sql_type.kind is Kind.VARCHAR:
        return BY_NAME["text" if sql_type.length is None else "varchar"]
    return BY_NAME.get(_NAMES.get(sql_type.kind, "text"), BY_NAME["text"])


@lru_cache(maxsize=1024)
def enum_row(enum: EnumType) -> PgType:
    """The type of a user."""
    return PgType(
        enum.oid, enum.local, sql_name(enum), 4, True, "e", "E", False, "i", "p", 0,
        enum.array_oid, 0, "enum_", _ENUM_FUNCTIONS,
    )  # fmt: skip


def type_oid(sql_type: SqlType) -> int:
    found = pg_type(sql_type)
    return found.array if sql_type.kind is Kind.ARRAY else found.oid


def declared_type(sql_type: SqlType) -> tuple[PgType, bool]:
    """The type as PostgreSQL's catalog declares it, which its ``alias`` tells; and whether the
    column is an array of that type."""
    if sql_type.alias in BY_NAME:
        return BY_NAME[sql_type.alias], False
    if sql_type.element is not None:
        return declared_type(sql_type.element)[0], True
    return pg_type(sql_type), False


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
    found, is_array = declared_type(sql_type)
    if is_array or found.name in VECTORS:
        return "ARRAY"
    return "USER-DEFINED" if found.kind == "e" else found.shown


def udt_name(sql_type: SqlType) -> str:
    found, is_array = declared_type(sql_type)
    return f"_{found.name}" if is_array else found.name
