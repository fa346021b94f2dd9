"""The time zone of a session of PostgreSQL's clients: texts, settings, parameters, plans.

Computations of SQL with a zone are in tests/slt/files/session_zones.slt.
"""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import psycopg
import pytest

NOON = dt.datetime(2024, 7, 1, 10, 0, tzinfo=dt.UTC)
BERLIN = "Europe/Berlin"


@pytest.fixture
def at(connection):
    connection.execute("CREATE TABLE zoned_at (id BIGINT PRIMARY KEY, at TIMESTAMPTZ)")
    connection.execute("INSERT INTO zoned_at VALUES (1, %s)", (NOON,))
    yield connection
    connection.execute("DROP TABLE zoned_at")


def text(connection, query, *values):
    """The first value of the result as the server wrote it."""
    cursor = connection.execute(query, values)
    return cursor.pgresult.get_value(0, 0).decode()


@pytest.mark.parametrize(
    ("given", "shown", "noon"),
    [
        ("europe/berlin", BERLIN, "2024-07-01 12:00:00+02"),
        ("-7", "<-07>+07", "2024-07-01 03:00:00-07"),
        ("+02:00", "+02:00", "2024-07-01 08:00:00-02"),
        ("Asia/Kolkata", "Asia/Kolkata", "2024-07-01 15:30:00+05:30"),
        ("GMT", "GMT", "2024-07-01 10:00:00+00"),
    ],
)
def test_the_startup_packet_names_a_zone(at, connect, given, shown, noon):
    session = connect(options=f"-c timezone={given}")
    assert session.info.parameter_status("TimeZone") == shown
    assert text(session, "SHOW TimeZone") == shown
    assert text(session, "SELECT at FROM zoned_at WHERE id = 1") == noon
    assert text(session, "SELECT at FROM zoned_at") == noon
    assert text(session, "SELECT at FROM zoned_at WHERE id = %s", 1) == noon


def test_moments_stay_the_same_in_every_form(at, connect):
    session = connect(options=f"-c timezone={BERLIN}")
    for binary in (False, True):
        cursor = session.cursor(binary=binary)
        (found,) = cursor.execute("SELECT at FROM zoned_at WHERE id = %s", (1,)).fetchone()
        assert found == NOON
        assert found.tzinfo == ZoneInfo(BERLIN)


def test_set_changes_what_prepared_statements_say(at):
    query = "SELECT at::text, at::date, extract(hour FROM at) FROM zoned_at WHERE id = %s"
    for zone, hour in [("UTC", 10), (BERLIN, 12), ("Asia/Tokyo", 19), ("UTC", 10)]:
        at.execute(f"SET TimeZone = '{zone}'")
        assert at.info.parameter_status("TimeZone") == zone
        found = at.execute(query, (1,), prepare=True).fetchone()
        assert found[1:] == (dt.date(2024, 7, 1), hour)
        assert found[0].startswith(f"2024-07-01 {hour}:00:00+")


@pytest.mark.parametrize("prepare", [False, True])
def test_parameters_without_a_zone_are_of_the_session(at, prepare):
    at.execute(f"SET TimeZone = '{BERLIN}'")
    write = "INSERT INTO zoned_at VALUES (%s, %s)"
    at.execute(write, (2, "2024-07-01 12:00"), prepare=prepare)
    at.execute(write, (3, dt.datetime(2024, 7, 1, 12)), prepare=prepare)  # noqa: DTZ001 (local)
    at.execute(write, (4, dt.date(2024, 7, 1)), prepare=prepare)
    with at.cursor(binary=True) as cursor:
        cursor.execute("SELECT at FROM zoned_at WHERE id > 1 ORDER BY id")
        midnight = dt.datetime(2024, 6, 30, 22, tzinfo=dt.UTC)
        assert [row[0] for row in cursor] == [NOON, NOON, midnight]
    found = at.execute("SELECT id FROM zoned_at WHERE at = %s ORDER BY id", ("2024-07-01 12:00",))
    assert found.fetchall() == [(1,), (2,), (3,)]


def test_set_local_ends_with_its_transaction(at):
    with at.transaction():
        at.execute(f"SET LOCAL TIME ZONE '{BERLIN}'")
        assert at.info.parameter_status("TimeZone") == BERLIN
        assert text(at, "SELECT at FROM zoned_at") == "2024-07-01 12:00:00+02"
    assert at.info.parameter_status("TimeZone") == "UTC"
    assert text(at, "SELECT at FROM zoned_at") == "2024-07-01 10:00:00+00"


def test_ways_to_set_a_zone(connection):
    for statement, shown in [
        ("SET TIME ZONE 'America/New_York'", "America/New_York"),
        ("SET TIME ZONE INTERVAL '-08:30' HOUR TO MINUTE", "<-08:30>+08:30"),
        ("SET TIME ZONE 5.5", "<+05:30>-05:30"),
        ("SET TIME ZONE -7", "<-07>+07"),
        ("SELECT set_config('timezone', 'asia/tokyo', false)", "Asia/Tokyo"),
        ("SET TIME ZONE LOCAL", "UTC"),
        ("SET TimeZone TO 'EST5EDT'", "EST5EDT"),
        ("RESET TimeZone", "UTC"),
    ]:
        connection.execute(statement)
        assert text(connection, "SHOW TIME ZONE") == shown


@pytest.mark.parametrize("zone", ["PDT", "Mars/Olympus", "200", "", "INTERVAL"])
def test_zones_that_are_none(connection, zone):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match='parameter "TimeZone"'):
        connection.execute(f"SET TimeZone = '{zone}'")


def test_arrays_and_many_rows(at, connect):
    session = connect(options=f"-c timezone={BERLIN}")
    cursor = session.execute(
        "SELECT timestamptz '2024-01-01 00:00' + n * interval '1 day'"
        " FROM generate_series(0, 300) t(n)"
    )
    found = [cursor.pgresult.get_value(n, 0).decode() for n in range(301)]
    assert found[0] == "2024-01-01 00:00:00+01"
    assert found[90:92] == ["2024-03-31 00:00:00+01", "2024-04-01 00:00:00+02"]
    assert found[300] == "2024-10-27 00:00:00+02"
    array = text(session, "SELECT array[at, NULL] FROM zoned_at")
    assert array == '{"2024-07-01 12:00:00+02",NULL}'
