"""DateStyle, IntervalStyle, bytea_output and extra_float_digits: texts as PostgreSQL 15 writes and
reads them, in results, casts, parameters, COPY and definitions.

``text_forms.txt`` has PostgreSQL's answers: settings, and below them expressions with the texts of
their rows, or an SQLSTATE.
"""

from __future__ import annotations

import ast
import datetime as dt
from pathlib import Path

import psycopg
import pytest

ANSWERS = Path(__file__).with_name("text_forms.txt")


def answers():
    """(settings, [(expression, texts)]) for each block."""
    found = []
    for line in ANSWERS.read_text().splitlines():
        if not line.startswith(" "):
            found.append((line, []))
        elif not line.startswith("    "):
            expression = line.strip()
        else:
            found[-1][1].append((expression, ast.literal_eval(line.strip())))
    return found


def texts(connection, query, *values):
    """The first column as the server wrote it."""
    result = connection.execute(query, values or None).pgresult
    found = [result.get_value(row, 0) for row in range(result.ntuples)]
    return ["NULL" if each is None else each.decode() for each in found]


@pytest.mark.parametrize(("settings", "expressions"), answers(), ids=lambda value: str(value)[4:40])
def test_texts_are_those_of_postgresql(connection, settings, expressions):
    for setting in settings.split(";"):
        connection.execute(setting)
    assert expressions
    for expression, wanted in expressions:
        try:
            found = texts(connection, f"SELECT {expression}")
        except psycopg.Error as error:
            found = [error.sqlstate]
        assert found == wanted, expression


@pytest.fixture
def days(connection):
    connection.execute(
        "CREATE TABLE days (id BIGINT PRIMARY KEY, day DATE, at TIMESTAMPTZ, long INTERVAL,"
        " data BYTEA, size DOUBLE PRECISION)"
    )
    connection.execute(
        "INSERT INTO days SELECT n, DATE '2003-02-01', TIMESTAMPTZ '2003-02-01 10:00+00',"
        " INTERVAL '1 day -1 hours', '\\x0041', 0.1::float8 + 0.2 FROM generate_series(1, 9) t(n)"
    )
    yield connection
    connection.execute("DROP TABLE days")


FORMS = (
    "-c datestyle=SQL,DMY -c intervalstyle=iso_8601 -c bytea_output=escape"
    " -c extra_float_digits=0 -c timezone=Europe/Berlin"
)
ROW = ("01/02/2003", "01/02/2003 11:00:00 CET", "P1DT-1H", "\\000A", "0.3")


def test_rows_of_a_table_in_the_forms_of_the_startup_packet(days, connect):
    """By scans, and by keys of other members."""
    session = connect(options=FORMS)
    assert session.info.parameter_status("DateStyle") == "SQL, DMY"
    assert session.info.parameter_status("IntervalStyle") == "iso_8601"
    for number in range(1, 10):
        for prepare in (False, True):
            result = session.execute(
                "SELECT day, at, long, data, size FROM days WHERE id = %s",
                (number,),
                prepare=prepare,
            ).pgresult
            assert tuple(result.get_value(0, n).decode() for n in range(5)) == ROW
    assert set(texts(session, "SELECT day FROM days")) == {ROW[0]}
    assert texts(session, "SELECT concat(day, '|', long) FROM days WHERE id = 1") == [
        "01/02/2003|P1DT-1H"
    ]
    with session.cursor(binary=True) as cursor:
        cursor.execute("SELECT day FROM days WHERE id = 1")
        assert cursor.fetchone() == (dt.date(2003, 2, 1),)


def test_a_prepared_statement_follows_set(days):
    query = "SELECT day::text FROM days WHERE id = %s"
    for style, wanted in (("ISO", "2003-02-01"), ("German", "01.02.2003"), ("SQL", "01/02/2003")):
        days.execute(f"SET datestyle = '{style}'")
        assert days.execute(query, (1,), prepare=True).fetchone() == (wanted,)
    days.execute("BEGIN")
    days.execute("SET LOCAL datestyle = 'MDY'")
    assert days.execute("SHOW datestyle").fetchone() == ("SQL, MDY",)
    assert days.execute(query, (1,), prepare=True).fetchone() == ("02/01/2003",)
    days.execute("ROLLBACK")
    assert days.execute("SHOW datestyle").fetchone() == ("SQL, DMY",)


def test_parameters_and_copies_are_read_in_the_order_of_the_session(days):
    days.execute("SET datestyle = 'German'")
    days.execute("INSERT INTO days (id, day) VALUES (10, %s)", ("03.04.2005",))
    days.execute("INSERT INTO days (id, day) VALUES (11, '04.05.2006'), (12, '05.06.2007')")
    with days.cursor().copy("COPY days (id, day) FROM STDIN") as copy:
        copy.write("13\t06.07.2008\n")
    with days.cursor().copy("COPY (SELECT day FROM days WHERE id > 9 ORDER BY id) TO STDOUT") as c:
        assert b"".join(c) == b"03.04.2005\n04.05.2006\n05.06.2007\n06.07.2008\n"
    days.execute("SET datestyle = 'ISO'")
    assert texts(days, "SELECT day FROM days WHERE id = 10") == ["2005-04-03"]


def test_definitions_keep_no_text_with_two_meanings(days):
    """A view, a default and a CHECK are read by sessions with other settings, too."""
    days.execute("SET datestyle = 'ISO, DMY'; SET intervalstyle = 'sql_standard'")
    for definition in (
        "CREATE VIEW v AS SELECT DATE '01/02/2003' AS day",
        "CREATE TABLE u (id BIGINT PRIMARY KEY, day DATE DEFAULT '31/12/2003')",
        "CREATE TABLE u (id BIGINT PRIMARY KEY, day DATE CHECK (day > '01/02/2003'))",
        "CREATE VIEW v AS SELECT INTERVAL '-1 2:00' AS long",
    ):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="another meaning") as caught:
            days.execute(definition)
        assert caught.value.diag.message_hint
    days.execute("CREATE VIEW v AS SELECT DATE '2003-02-01' AS day, '01/02/2003'::text AS written")
    days.execute("SET datestyle = 'ISO, MDY'")
    days.execute("CREATE OR REPLACE VIEW v AS SELECT DATE '01/02/2003' AS day, 'x' AS written")
    days.execute("SET datestyle = 'ISO, DMY'")
    assert texts(days, "SELECT day FROM v") == ["2003-01-02"]
    days.execute("DROP VIEW v")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("dmy", "ISO, DMY"),
        ("sql", "SQL, YMD"),
        ("german", "German, DMY"),
        ("German, YMD", "German, YMD"),
        ("postgres, euro", "Postgres, DMY"),
        ("default", "ISO, MDY"),
        ("sql, default", "SQL, MDY"),
        ("us", "ISO, MDY"),
        ("iso, german", None),
        ("mdy, dmy", None),
        ("bogus", None),
    ],
)
def test_datestyle_keeps_what_is_not_said(connection, value, shown):
    connection.execute("SET datestyle = 'iso, ymd'")
    if shown is None:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
            connection.execute(f"SET datestyle = '{value}'")
        assert caught.value.diag.message_primary == (
            f'invalid value for parameter "DateStyle": "{value}"'
        )
        return
    connection.execute(f"SET datestyle = '{value}'")
    assert connection.execute("SHOW datestyle").fetchone() == (shown,)
