"""Examples and notes for docs/sql.md: INTERVAL, UUID, JSON, ARRAY, ROW, time zones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NESTED_TYPES: Final = {
    "interval": ("months, days and microseconds", "INTERVAL '1 month'"),
    "uuid": ("16 bytes", "UUID 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
    "json": ("a JSON value, normalized; JSON and JSONB are one type", "JSON '{\"a\": 1}'"),
}

NESTED_OPERATORS: Final = {
    "->": ("JSON '{\"a\": [1, 2]}' -> 'a'", "JSON '[1, 2]' -> -1"),
    "->>": ("JSON '{\"a\": \"x\"}' ->> 'a'",),
    "#>": ("JSON '{\"a\": [1, 2]}' #> '{a,0}'",),
    "#>>": ("JSON '{\"a\": [\"x\"]}' #>> '{a,0}'",),
    "#-": ("JSON '{\"a\": [1, 2]}' #- '{a,0}'",),
    "?": ("JSON '{\"a\": 1}' ? 'a'",),
    "?|": ("JSON '{\"a\": 1}' ?| ARRAY['a', 'b']",),
    "?&": ("JSON '{\"a\": 1}' ?& ARRAY['a', 'b']",),
    "@?": ("JSON '{\"a\": [1, 5]}' @? '$.a[*] ? (@ > 3)'",),
    "@@": ("CAST('{\"a\": 5}' AS JSON) @@ '$.a > 3'",),
    "@>": ("ARRAY[1, 2, 3] @> ARRAY[2]", 'JSON \'{"a": 1, "b": 2}\' @> \'{"a": 1}\''),
    "<@": ("ARRAY[2] <@ ARRAY[1, 2, 3]",),
    "&&": ("ARRAY[1, 2] && ARRAY[2, 3]",),
}

NESTED_MORE: Final = (
    "INTERVAL '1-2' YEAR TO MONTH",
    "'P1DT12H'::INTERVAL",
    "INTERVAL '1 month' * 1.5",
    "TIMESTAMP '2024-03-01 12:00' - TIMESTAMP '2024-02-28'",
    "TIMESTAMP '2024-07-01 12:00' AT TIME ZONE 'Europe/Berlin'",
    "ARRAY[1, 2, 3]",
    "'{1,NULL,3}'::INTEGER[]",
    "(ARRAY['a', 'b', 'c'])[2]",
    "(ARRAY['a', 'b', 'c'])[2:]",
    "ARRAY[1, 2] || 3",
    "2 = ANY (ARRAY[1, 2])",
    "3 <> ALL (ARRAY[1, 2])",
    "(ROW(1, 'a')).f2",
    "JSON '{\"a\": 1}' || '{\"b\": 2}'",
    "JSON '{\"a\": 1, \"b\": 2}' - 'a'",
)

NESTED_FUNCTIONS: Final = {
    "age": ("age(TIMESTAMP '2024-03-31', TIMESTAMP '2023-02-28')",),
    "justify_days": ("justify_days(INTERVAL '65 days')",),
    "justify_hours": ("justify_hours(INTERVAL '50 hours')",),
    "justify_interval": ("justify_interval(INTERVAL '1 month -1 hour')",),
    "make_interval": ("make_interval(days => 10, hours => 2)",),
    "timezone": ("timezone('UTC', TIMESTAMP '2024-07-01 12:00')",),
    "array_length": ("array_length(ARRAY[1, 2], 1)",),
    "array_upper": ("array_upper(ARRAY[1, 2], 1)",),
    "array_lower": ("array_lower(ARRAY[1, 2], 1)",),
    "array_ndims": ("array_ndims(ARRAY[1, 2])",),
    "array_dims": ("array_dims(ARRAY[1, 2])",),
    "cardinality": ("cardinality(ARRAY[1, 2])",),
    "array_position": ("array_position(ARRAY['a', 'b'], 'b')",),
    "array_positions": ("array_positions(ARRAY[1, 2, 1], 1)",),
    "array_append": ("array_append(ARRAY[1], 2)",),
    "array_prepend": ("array_prepend(0, ARRAY[1])",),
    "array_cat": ("array_cat(ARRAY[1], ARRAY[2, 3])",),
    "array_remove": ("array_remove(ARRAY[1, 2, 1], 1)",),
    "array_replace": ("array_replace(ARRAY[1, 2, 1], 1, 9)",),
    "array_fill": ("array_fill(7, ARRAY[3])",),
    "trim_array": ("trim_array(ARRAY[1, 2, 3], 2)",),
    "array_to_string": ("array_to_string(ARRAY[1, NULL, 3], ',', '*')",),
    "string_to_array": ("string_to_array('a,b', ',')",),
    "gen_random_uuid": ("gen_random_uuid()",),
    "jsonb_extract_path": ("jsonb_extract_path('{\"a\": {\"b\": 1}}', 'a', 'b')",),
    "jsonb_extract_path_text": ("jsonb_extract_path_text('{\"a\": \"x\"}', 'a')",),
    "jsonb_typeof": ("jsonb_typeof('[1]')",),
    "jsonb_array_length": ("jsonb_array_length('[1, 2]')",),
    "jsonb_keys": ('jsonb_keys(\'{"b": 1, "a": 2}\')',),
    "jsonb_pretty": ("length(jsonb_pretty('{\"a\": 1}'))",),
    "jsonb_strip_nulls": ('jsonb_strip_nulls(\'{"a": null, "b": 1}\')',),
    "jsonb_set": ("jsonb_set('{\"a\": [1, 2]}', '{a,0}', '9')",),
    "jsonb_set_lax": ("jsonb_set_lax('{\"a\": 1, \"b\": 2}', '{a}', NULL, true, 'delete_key')",),
    "jsonb_insert": ("jsonb_insert('{\"a\": [1, 2]}', '{a,0}', '9')",),
    "to_jsonb": ("to_jsonb(ARRAY[1, 2])",),
    "jsonb_build_array": ("jsonb_build_array(1, 'a', NULL)",),
    "jsonb_build_object": ("jsonb_build_object('a', 1, 'b', ARRAY[2])",),
    "jsonb_path_exists": ("jsonb_path_exists('{\"a\": 1}', '$.a')",),
    "jsonb_path_query_array": ("jsonb_path_query_array('{\"a\": [1, 5]}', '$.a[*] ? (@ > 3)')",),
    "jsonb_path_query_first": ("jsonb_path_query_first('{\"a\": [1, 5]}', '$.a[last]')",),
    "jsonb_path_exists_tz": (
        'jsonb_path_exists_tz(\'["2020-01-01", "2020-01-01 01:00:00+02"]\', \'$[*].datetime() ? (@ < $x.datetime())\', \'{"x": "2020-01-01"}\')',  # noqa: E501
    ),
    "jsonb_path_match_tz": (
        "jsonb_path_match_tz('[\"2020-01-01\", \"2020-01-01 01:00:00+02\"]', '$[1].datetime() < $[0].datetime()')",  # noqa: E501
    ),
    "jsonb_path_query_array_tz": (
        'jsonb_path_query_array_tz(\'["2020-01-01", "2020-01-01 01:00:00+02"]\', \'$[*].datetime() ? (@ < "2020-01-01".datetime())\')',  # noqa: E501
    ),
    "jsonb_path_query_first_tz": (
        "jsonb_path_query_first_tz('[\"2020-01-01\", \"2020-01-01 01:00:00+02\"]', '$[1].datetime() < $[0].datetime()')",  # noqa: E501
    ),
    "jsonpath": ("CAST('lax $.a[1 to last]' AS jsonpath)",),
    "jsonb_path_match": ("jsonb_path_match('{\"a\": 5}', '$.a > $least', '{\"least\": 3}')",),
    "jsonb_object": ("jsonb_object('{a,1,b,2}')",),
}


_NOTES: Final = """\
**Arrays** of any type but arrays: `INTEGER[]` or `INTEGER ARRAY`, written `ARRAY[1, 2]` or
`'{1,2}'`, subscripts from 1, NULL outside. In Python a `list` (tuples and NumPy arrays are taken),
in Arrow a list. There are no arrays of several dimensions, and no other lower bounds than 1.

**Rows**: `ROW(1, 'a')` has the fields `f1` and `f2`; a `tuple` in Python, a struct in Arrow. They
can be results, but not columns of maps.

**JSON** and JSONB are the same type, PostgreSQL's JSONB: keys in order, of repeated keys the last,
numbers exact. In Python `dict`, `list`, `str`, numbers, `bool` or `None`; in Arrow `arrow.json`,
which is text. A `str` given for a JSON column is a JSON string; JSON text goes through a cast:
`CAST(? AS JSON)`. Two values are equal and ordered as in JSONB: 1.0 equals 1.

**jsonpath** is PostgreSQL's language, in lax and strict mode, with its errors (22031 to 2203C). A
path is text, and `'...'::jsonpath` gives its canonical form as text. Where it departs from
PostgreSQL: a path has at most 50 parentheses, filters and subscripts inside each other and 120
items behind each other (54000), and a comment may follow a name directly (`$.a/**/.b`).

**UUID** is `uuid.UUID` in Python and `arrow.uuid` in Arrow. As a key it hashes like its text, which
is how Spark has it.

**INTERVAL** is `remuda.Interval` in Python (`months`, `days`, `microseconds`; a `timedelta` is
taken as well). Months count 30 days when intervals are compared, and equal intervals are one group.
Arrow keeps nanoseconds: hours beyond 292 years do not fit there.

INTERVAL, JSON, ARRAY and ROW cannot be keys. Spark reads UUID and JSON as text and arrays as
arrays; INTERVAL has to be converted in a query first.

**DECIMAL** without digits is DECIMAL(38,16) as a column: 22 digits before the point, 16 after it
(PostgreSQL bounds it not at all). A CAST to it keeps the digits of its operand.

Quotients and averages of DECIMALs and integers, `sqrt`, `exp`, `ln`, `log` and `power` of a
DECIMAL are exact to the digits that PostgreSQL gives them, 16 significant ones or more, and are
shown with as many: `10.0 / 3` is 3.3333333333333333, `1 / 3.0` is 0.33333333333333333333. Of
columns they have at most 20 digits after the point (exp and power: 16), so quotients below
0.0001 have fewer digits than PostgreSQL's; a result of more than 38 digits raises 22003, and
CAST to DOUBLE PRECISION helps. Arrow and Spark see decimals of one scale ([decision
0052](decisions/0052-digits-of-inexact-numbers.md)).

A number with an exponent is a DECIMAL, too (`1e3` is 1000), or DOUBLE PRECISION if 38 digits are
not enough (`1e100`). DECIMAL has no NaN and no infinities: DOUBLE PRECISION has.

**Digits of seconds**: values have microseconds. Columns and casts `TIMESTAMP(3)`, `TIME(0)`,
`TIMESTAMP(1) WITH TIME ZONE`, `INTERVAL(2)`, `INTERVAL YEAR TO MONTH`, `INTERVAL DAY TO
SECOND(3)` and arrays of them round stored values to their digits, half away from zero (of
timestamps zero is the year 2000), and cut off parts that are smaller than the last field, as
PostgreSQL does. Every way to write a value does so: SQL, maps, Arrow, Spark, pipelines.
`current_timestamp(0)` rounds as well. The digits are no part of the type: expressions have none,
but CREATE TABLE AS and views keep those of columns and casts. ALTER COLUMN TYPE takes as many
digits or more ([decision 0063](decisions/0063-digits-of-seconds.md)). 24:00:00 is no TIME here,
so `'23:59:59.9'::TIME(0)` raises 22008.

**Beside PostgreSQL 15**: of generated calls with random arguments, 5,000 of each family, these
differ: none of `to_timestamp` and `to_date`, none of the JSON functions and jsonpath, 23 of the
other functions of dates, times and intervals, 260 of those of numbers. By design:

- a DECIMAL has one scale: `greatest`, `least` and `to_number` show zeros that PostgreSQL leaves
  out (`to_number('45', '99.99')` is 45.00), and no DECIMAL is NaN or has more than 38 digits
  (`exp(700.0)`, `power(x, -2.5)` below 1e-20);
- `stddev`, `variance` and their kind are DOUBLE PRECISION for integers and DECIMALs, too, as in
  Spark and DataFrames (PostgreSQL: NUMERIC), so their last digit may differ, as that of `cbrt` may;
- EXTRACT of a whole field is BIGINT (PostgreSQL: NUMERIC);
- `to_char` of an INTERVAL takes no fields of weeks, ISO years, centuries and Julian days.

**Time zones** are names of the time zone database ('Europe/Berlin'), abbreviations ('CET') or
offsets. As in PostgreSQL, an offset counts to the east in the text of a timestamp ('12:00+02') and
to the west in AT TIME ZONE '+02'. `SET TimeZone` chooses the zone of the session: SQL reads, shows,
casts and truncates moments by its clocks. Remuda's own clients get moments in UTC.
"""


def nested_section() -> Iterable[str]:
    yield from _NOTES.splitlines()
    yield ""
