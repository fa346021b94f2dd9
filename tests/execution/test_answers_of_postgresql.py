"""Functions of dates, times and numbers beside what PostgreSQL 15 answers."""

from __future__ import annotations

import pytest

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, TIMESTAMP, restricted
from remuda.datatypes.texts.valuetext import text_of
from remuda.errors import RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.sql.binder import bind
from remuda.sql.definitions.constraints import NoMaps
from remuda.sql.parsing.parser import parse

TEMPLATES = [
    (
        "to_timestamp('2024-02-29 08:15:23.25', 'YYYY-MM-DD HH24:MI:SS.MS')",
        "2024-02-29 08:15:23.25+00",
    ),
    ("to_timestamp('1999.99', 'SS.FF1')", "! 22008"),
    (
        "to_timestamp('1999-12-31 23:59:59.96', 'YYYY-MM-DD HH24:MI:SS.FF1')",
        "2000-01-01 00:00:00+00",
    ),
    ("to_timestamp('24 12', 'HH24 HH12')", "! 22007"),
    ("to_timestamp('20 Feb -5', 'DD Mon YYYY')", "0005-02-20 00:00:00+00"),
    ("to_timestamp('44 BC', 'YYYY BC')", "0044-01-01 00:00:00+00 BC"),
    ("to_timestamp('0 CC 19', 'YYYY \"CC\" CC')", "1801-01-01 00:00:00+00"),
    ("to_timestamp('19 99', 'CC YY')", "1899-01-01 00:00:00+00"),
    ("to_timestamp('19 00', 'CC YY')", "1900-01-01 00:00:00+00"),
    ("to_timestamp('3 50 BC', 'CC YY BC')", "0250-01-01 00:00:00+00 BC"),
    ("to_date('20', 'CC')", "1901-01-01"),
    ("to_date('2024 060', 'YYYY DDD')", "2024-02-29"),
    ("to_date('060', 'DDD')", "! 22007"),
    ("to_date('2023 366', 'YYYY DDD')", "! 22008"),
    ("to_date('2024-53', 'IYYY-IW')", "2024-12-30"),
    ("to_date('2024-10-7', 'IYYY-IW-ID')", "2024-03-10"),
    ("to_date('2024-371', 'IYYY-IDDD')", "2025-01-05"),
    ("to_date('2024-10-2', 'IYYY-IW-D')", "! 22007"),
    ("to_date('2024 10 3', 'YYYY WW D')", "2024-03-04"),
    ("to_date('2024 03 5', 'YYYY MM W')", "2024-03-29"),
    ("to_date('2024 4', 'YYYY Q')", "2024-01-01"),
    ("to_date('2460000', 'J')", "2023-02-24"),
    ("to_date('31 02', 'DD MM')", "0001-03-02 BC"),
    ("to_date('31 02 2023', 'DD MM YYYY')", "! 22008"),
    ("to_date('00 00 2023', 'DD MM YYYY')", "2023-01-01"),
    ("to_date('1 13', 'DD MM')", "! 22008"),
    ("to_date('Monday 05 March 2024', 'Day DD Month YYYY')", "2024-03-05"),
    ("to_date('Jan', 'Month')", "! 22007"),
    ("to_date('viii 2024', 'RM YYYY')", "2024-08-01"),
    ("to_date('1st Jan 2024', 'DDth Mon YYYY')", "2024-01-01"),
    ("to_date('2024  01', 'YYYY MM')", "2024-01-01"),
    ("to_date('2024  01', 'FXYYYY MM')", "2024-01-01"),
    ("to_date('20240102', 'YYYYMMDD')", "2024-01-02"),
    ("to_date('2024012', 'YYYYMMDD')", "2024-01-02"),
    ("to_date('2024012', 'YYYYMMFMDD')", "2024-01-02"),
    ("to_date('2,024', 'Y,YYY')", "2024-01-01"),
    ("to_date('95', 'YY')", "1995-01-01"),
    ("to_date('519', 'YYY')", "2519-01-01"),
    ("to_date('2024x01y02', 'YYYYxMMyDD')", "! 22007"),
    ("to_date('2024 2023', 'YYYY YYYY')", "! 22007"),
    ("to_date('1999 6', 'IYYY MM')", "! 22007"),
    ("to_date('12345678901', 'YYYY')", "! 22008"),
    ("to_timestamp('10 pm', 'HH12 am')", "0001-01-01 22:00:00+00 BC"),
    ("to_timestamp('13 pm', 'HH12 am')", "! 22007"),
    ("to_timestamp('10 p.m.', 'HH12 am')", "! 22007"),
    ("to_timestamp('86399', 'SSSSS')", "0001-01-01 23:59:59+00 BC"),
    ("to_timestamp('86400', 'SSSSS')", "! 22008"),
    ("to_timestamp('3600 05', 'SSSSS MI')", "0001-01-01 01:05:00+00 BC"),
    ("to_timestamp('10:00-05:30', 'HH24:MI-TZH:TZM')", "0001-01-01 04:30:00+00 BC"),
    ("to_timestamp('10:00 +16', 'HH24:MI TZH')", "! 22009"),
    ("to_timestamp('2024 CET', 'YYYY TZ')", "! 0A000"),
    (
        "to_timestamp('2000-01-01 10:00:00.123456', 'YYYY-MM-DD HH24:MI:SS.FF3')",
        "2000-01-01 10:00:00.123+00",
    ),
    ("to_timestamp('   2000----JUN', 'YYYY/MON')", "! 22007"),
    ("to_timestamp('2000JUN', 'YYYY/MON')", "2000-06-01 00:00:00+00"),
    ("to_date('25', 'HH24')", "! 22008"),
]
"""An expression, and its text or "! SQLSTATE"."""
OTHERS = [
    ("extract(isoyear from timestamp '0044-06-01 BC')", "-44"),
    ("extract(isoyear from date '0001-01-01 BC')", "-2"),
    ("date_part('isoyear', timestamp '0001-06-17 BC')", "-1"),
    ("date_part('minute', date '2000-01-04')", "0"),
    ("date_part('epoch', date '2000-01-04')", "946944000"),
    ("extract(epoch from date '2000-01-04')", "946944000"),
    ("pg_typeof(date_part('year', timestamp '2000-01-04'))", "double precision"),
    ("date_trunc('day', '2024-01-01 10:00')", "! 42725"),
    ("timestamp '0001-12-19 21:18:04' - interval '39 year'", "0039-12-19 21:18:04 BC"),
    ("date '0108-02-29' + interval '-158 year 1 mon 8:33'", "0051-03-29 08:33:00 BC"),
    ("timestamp '4713-01-01 00:00:00 BC' - interval '1 year'", "! 22008"),
    (
        "date_trunc('decade', timestamptz '0003-07-17 19:48:23+00', 'America/New_York')",
        "0001-01-01 04:56:02+00 BC",
    ),
    ("timestamp '2019-02-10 00:35:11 BC' at time zone 'Asia/Kolkata'", "2019-02-09 18:41:43+00 BC"),
    ("timestamp '12345-07-10 00:35:11' at time zone 'Europe/Berlin'", "12345-07-09 22:35:11+00"),
    ("timestamp '12345-01-10 00:35:11' at time zone 'Europe/Berlin'", "12345-01-09 23:35:11+00"),
    ("to_timestamp(-103014884.78060055)", "1966-09-26 16:45:15.2194+00"),
    ("to_char(date '2024-01-01', 'TZ')", "UTC"),
    ("exp(-933)", "! 22003"),
    ("exp('-Infinity'::float8)", "0"),
    ("power(10::float8, -400)", "! 22003"),
    ("power(0::float8, 5)", "0"),
    ("1e-200::float8 * 1e-200::float8", "! 22003"),
    ("1e-200::float8 / 1e200::float8", "! 22003"),
    ("'NaN'::float8 / 0::float8", "NaN"),
    ("1::float8 / 'Infinity'::float8", "0"),
    ("to_number('12', '99EEEE')", "! 0A000"),
    ("to_number('IX', 'RN')", "! 0A000"),
    ("substring('abc' from '1' for 2)", "ab"),
    ("substring('abc', '1', 2)", "ab"),
]


MAPS = {
    "m": MapSchema("m", (Column("k", BIGINT), Column("v", restricted(TIMESTAMP, 0))), ("k",), ())
}


class Maps(NoMaps):
    def find(self, name):
        return MAPS.get(name)


@pytest.mark.parametrize(
    ("relation", "answer"),
    [
        ("jsonb_populate_record(NULL::m, '{}')", ["k", "v"]),
        ("json_populate_recordset(NULL::m, '[]')", ["k", "v"]),
        ("jsonb_populate_record(NULL::record, '{}') AS x (a int)", ["a"]),
        ("jsonb_populate_record(NULL::nix, '{}')", "42704"),
        ("jsonb_populate_record(NULL::record, '{}')", "0A000"),
        ("jsonb_populate_record(ROW(1), '{}')", "0A000"),
        ("jsonb_populate_record(NULL::m)", "0A000"),
        ("jsonb_populate_record(NULL::m, '{}') AS x (a int)", "42601"),
    ],
)
def test_rows_of_maps_from_json(relation, answer):
    try:
        found = bind(parse(f"select * from {relation}"), Maps()).names
    except RemudaError as error:
        found = error.sqlstate
    assert found == (answer if isinstance(answer, str) else tuple(answer))


@pytest.mark.parametrize(("expression", "answer"), [*TEMPLATES, *OTHERS])
def test_answers_of_postgresql(expression, answer):
    try:
        [bound] = bind(parse(f"select {expression}"), NoMaps()).plan.expressions
        found = text_of(bound.type)(evaluate_constant(bound, ()))
    except RemudaError as error:
        found = f"! {error.sqlstate}"
    assert found == answer
