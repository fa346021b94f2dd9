"""Operator classes: how an index of one method compares the values of one type.

OIDs and names are PostgreSQL's. Texts are compared by the numbers of their characters, so its
``pattern`` classes compare them as the default ones do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.catalog.pg_types import BY_NAME, declared_type
from remuda.datatypes.sql import SqlType


@dataclass(frozen=True, slots=True)
class OperatorClass:
    """How an index of one method compares values of one type."""

    oid: int
    name: str
    method: int
    family: int
    family_name: str
    type: int
    default: bool


# oid, name, method, family, name of the family, type, and "-" if it is not the default of the type
_CLASSES: Final = """
10000 array_ops 403 397 array_ops anyarray
10003 bool_ops 403 424 bool_ops bool
10004 bpchar_ops 403 426 bpchar_ops bpchar
10006 bytea_ops 403 428 bytea_ops bytea
10007 char_ops 403 429 char_ops char
3122 date_ops 403 434 datetime_ops date
10012 float4_ops 403 1970 float_ops float4
3123 float8_ops 403 1970 float_ops float8
1979 int2_ops 403 1976 integer_ops int2
1978 int4_ops 403 1976 integer_ops int4
3124 int8_ops 403 1976 integer_ops int8
10022 interval_ops 403 1982 interval_ops interval
10088 jsonb_ops 403 4033 jsonb_ops jsonb
10028 name_ops 403 1994 text_ops name
3125 numeric_ops 403 1988 numeric_ops numeric
1981 oid_ops 403 1989 oid_ops oid
10034 record_ops 403 2994 record_ops record
3126 text_ops 403 1994 text_ops text
10038 time_ops 403 1996 time_ops time
3128 timestamp_ops 403 434 datetime_ops timestamp
3127 timestamptz_ops 403 434 datetime_ops timestamptz
10065 uuid_ops 403 2968 uuid_ops uuid
10001 array_ops 405 627 array_ops anyarray
10048 bool_ops 405 2222 bool_ops bool
10005 bpchar_ops 405 427 bpchar_ops bpchar
10049 bytea_ops 405 2223 bytea_ops bytea
10008 char_ops 405 431 char_ops char
10011 date_ops 405 435 date_ops date
10013 float4_ops 405 1971 float_ops float4
10014 float8_ops 405 1971 float_ops float8
10019 int2_ops 405 1977 integer_ops int2
10020 int4_ops 405 1977 integer_ops int4
10021 int8_ops 405 1977 integer_ops int8
10023 interval_ops 405 1983 interval_ops interval
10089 jsonb_ops 405 4034 jsonb_ops jsonb
10029 name_ops 405 1995 text_ops name
10030 numeric_ops 405 1998 numeric_ops numeric
10031 oid_ops 405 1990 oid_ops oid
10035 record_ops 405 6194 record_ops record
10037 text_ops 405 1995 text_ops text
10039 time_ops 405 1997 time_ops time
10046 timestamp_ops 405 2040 timestamp_ops timestamp
10040 timestamptz_ops 405 1999 timestamptz_ops timestamptz
10066 uuid_ops 405 2969 uuid_ops uuid
4219 bpchar_pattern_ops 403 2097 bpchar_pattern_ops bpchar -
4217 text_pattern_ops 403 2095 text_pattern_ops text -
10044 varchar_ops 403 1994 text_ops text -
4218 varchar_pattern_ops 403 2095 text_pattern_ops text -
10058 bpchar_pattern_ops 405 2231 bpchar_pattern_ops bpchar -
10056 text_pattern_ops 405 2229 text_pattern_ops text -
10045 varchar_ops 405 1995 text_ops text -
10057 varchar_pattern_ops 405 2229 text_pattern_ops text -
"""


def _parsed(line: str) -> OperatorClass:
    oid, name, method, family, family_name, type_, *other = line.split()
    number = BY_NAME[type_].oid
    return OperatorClass(int(oid), name, int(method), int(family), family_name, number, not other)


CLASSES: Final = tuple(_parsed(line) for line in _CLASSES.strip().splitlines())
_BY_TYPE: Final = {(each.method, each.type): each.oid for each in CLASSES if each.default}
_ANY_ARRAY: Final = BY_NAME["anyarray"].oid
_SAME: Final = {"varchar": "text", "json": "jsonb"}
"""Types that are compared as another one."""


_ALSO: Final = {BY_NAME["bpchar"].oid: BY_NAME["text"].oid}
"""Types whose classes accept another one as well."""


def operator_class(method: int, sql_type: SqlType) -> int:
    """The OID of the class by which an index of ``method`` compares the type; 0: of none."""
    return _BY_TYPE.get((method, _compared_as(sql_type)), 0)


def accepts(method: int, name: str, sql_type: SqlType) -> bool | None:
    """Whether the class of this name compares values of a type; None: there is no such class."""
    named = [each for each in CLASSES if each.method == method and each.name == name]
    if not named:
        return None
    wanted = _compared_as(sql_type)
    return any(wanted in (each.type, _ALSO.get(each.type)) for each in named)


def _compared_as(sql_type: SqlType) -> int:
    """The OID of the type whose classes serve ``sql_type``."""
    found, is_array = declared_type(sql_type)
    if found.kind == "e" and not is_array:
        return 0
    return _ANY_ARRAY if is_array else BY_NAME[_SAME.get(found.name, found.name)].oid
