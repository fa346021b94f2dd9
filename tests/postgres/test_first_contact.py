"""What users meet first when something is wrong: ports, encodings, texts, levels, timeouts. They
get PostgreSQL's messages and SQLSTATEs."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.pq import DiagnosticField
from sqlalchemy.ext.asyncio import create_async_engine

import remuda


def state_and_text(result):
    field = result.error_field
    return field(DiagnosticField.SQLSTATE), field(DiagnosticField.MESSAGE_PRIMARY).decode()


def refused(connection, text, *arguments):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(text, *arguments)
    return caught.value.sqlstate, caught.value.diag.message_primary


def told(door, data):
    """Everything that the door answers to a stranger before it hangs up."""
    with socket.create_connection((door["host"], door["port"]), timeout=20) as stranger:
        stranger.sendall(data)
        answer = b""
        while piece := stranger.recv(4096):
            answer += piece
    return answer


# --- encodings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"a\0b", "0x00"),
        (b"\xff\xfe", "0xff"),
        (b"a\xc3(", "0xc3 0x28"),
        (b"\xe2\x82", "0xe2 0x82"),
    ],
)
def test_bytes_that_are_no_text_are_refused(connection, data, shown):
    expected = b"22021", f'invalid byte sequence for encoding "UTF8": {shown}'
    for form in (0, 1):
        result = connection.pgconn.exec_params(b"SELECT $1::text", [data], None, [form], 0)
        if b"\0" not in data or form:  # libpq ends a text at its first zero
            assert state_and_text(result) == expected
    if b"\0" not in data:
        result = connection.pgconn.exec_(b"SELECT '" + data + b" '")
        assert result.error_field(DiagnosticField.SQLSTATE) == b"22021"
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_prepared_read_by_key_refuses_such_bytes_too(connection, cluster):
    connection.execute("CREATE TABLE texts (id VARCHAR PRIMARY KEY, n BIGINT)")
    raw = connection.pgconn
    raw.prepare(b"s", b"SELECT n FROM texts WHERE id = $1", [25])
    for _ in range(2):
        assert state_and_text(raw.exec_prepared(b"s", [b"a\0"], [1], 1)) == (
            b"22021",
            'invalid byte sequence for encoding "UTF8": 0x00',
        )
    connection.execute("DROP TABLE texts")


def test_the_encoding_of_a_client(connect, connection):
    """psql asks for SQL_ASCII where the locale is C."""
    assert connect(client_encoding="SQL_ASCII").info.parameter_status("client_encoding") == (
        "SQL_ASCII"
    )
    raw = connection.pgconn
    raw.exec_(b"SET client_encoding TO 'sql_ascii'")
    assert raw.parameter_status(b"client_encoding") == b"SQL_ASCII"
    assert raw.exec_(b"SELECT 'gr\xc3\xbcn'").get_value(0, 0) == b"gr\xc3\xbcn"
    assert raw.exec_(b"RESET client_encoding").error_message == b""
    assert state_and_text(raw.exec_(b"SET client_encoding TO 'mule_internal'"))[0] == b"0A000"
    assert state_and_text(raw.exec_(b"SET client_encoding TO 'nix'")) == (
        b"22023",
        'invalid value for parameter "client_encoding": "nix"',
    )


def test_psql_connects_where_the_locale_is_c(door):
    command = [
        "psql",
        "-X",
        "-At",
        "-h",
        door["host"],
        "-p",
        str(door["port"]),
        "-U",
        "bob",
        "shop",
    ]
    found = subprocess.run(
        [*command, "-c", "SELECT 1"],
        env={**os.environ, "LC_ALL": "C", "PGCLIENTENCODING": "auto"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("1\n", "")


# --- transactions and timeouts -------------------------------------------------------------------


def test_a_level_is_shown_as_it_was_asked_for(connection):
    def shown(name="transaction_isolation"):
        return connection.execute(f"SHOW {name}").fetchone()[0]

    connection.execute("BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    assert shown() == "read uncommitted"
    connection.execute("COMMIT")
    assert shown() == "serializable"
    connection.execute("SET default_transaction_isolation = 'read uncommitted'")
    assert shown() == "read uncommitted"
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert (shown(), shown("default_transaction_isolation")) == ("read committed",) * 2
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    assert shown("transaction_read_only") == "on"
    assert refused(connection, "CREATE TABLE never (id BIGINT PRIMARY KEY)")[0] == "25006"
    connection.execute("RESET ALL")
    assert (shown(), shown("transaction_read_only")) == ("serializable", "off")


def test_statements_about_blocks_need_one_that_begin_has_opened(connection):
    """Several statements of one query are a transaction, and yet no block."""
    connection.execute("CREATE TEMP TABLE sent (n BIGINT)")
    for text, name in (
        ("SAVEPOINT s", "SAVEPOINT"),
        ("ROLLBACK TO s", "ROLLBACK TO SAVEPOINT"),
        ("RELEASE s", "RELEASE SAVEPOINT"),
        ("COMMIT AND CHAIN", "COMMIT AND CHAIN"),
        ("ROLLBACK AND CHAIN", "ROLLBACK AND CHAIN"),
    ):
        told = refused(connection, f"INSERT INTO sent VALUES (1); {text}; SELECT 1")
        assert told[:2] == ("25P01", f"{name} can only be used in transaction blocks")
    assert connection.execute("SELECT count(*) FROM sent").fetchone() == (0,)
    connection.execute("BEGIN; SAVEPOINT s; INSERT INTO sent VALUES (1); ROLLBACK TO s; COMMIT")
    assert connection.execute("SELECT count(*) FROM sent").fetchone() == (0,)


def test_a_savepoint_takes_back_that_a_transaction_only_reads(connection):
    def shown():
        return connection.execute("SHOW transaction_read_only").fetchone()[0]

    for end in ("ROLLBACK TO s", "RELEASE s"):
        connection.execute("BEGIN; SAVEPOINT s; SET TRANSACTION READ ONLY; SELECT 1")
        assert shown() == "on"
        connection.execute(end)
        assert shown() == "off"
        connection.execute("ROLLBACK")
    for begun in (
        "SET TRANSACTION READ ONLY; SAVEPOINT s",
        "SAVEPOINT s; SET TRANSACTION READ ONLY",
    ):
        connection.execute(f"BEGIN; {begun}")
        assert refused(connection, "SET TRANSACTION READ WRITE")[:2] == (
            "25001",
            "cannot set transaction read-write mode inside a read-only transaction",
        )
        connection.execute("ROLLBACK")
    connection.execute("BEGIN; SAVEPOINT s")
    assert refused(connection, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")[:2] == (
        "25001",
        "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
    )
    connection.execute("ROLLBACK")


def test_temporary_tables_are_written_where_others_are_only_read(connection):
    connection.execute("CREATE TEMP TABLE own (n BIGINT)")
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    connection.execute("INSERT INTO own VALUES (1), (2)")
    connection.execute("UPDATE own SET n = 3 WHERE n = 1")
    connection.execute("BEGIN")
    connection.execute("DELETE FROM own WHERE n = 2")
    with connection.cursor().copy("COPY own FROM STDIN") as copy:
        copy.write_row((4,))
    connection.execute("COMMIT")
    assert connection.execute("SELECT n FROM own ORDER BY n").fetchall() == [(3,), (4,)]
    connection.execute("RESET ALL")


def test_deferrable_is_kept_and_shown(connection):
    def shown(name="transaction_deferrable"):
        return connection.execute(f"SHOW {name}").fetchone()[0]

    connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
    assert (shown(), shown("transaction_read_only")) == ("on", "on")
    connection.execute("SET TRANSACTION NOT DEFERRABLE")
    assert shown() == "off"
    connection.execute("SET transaction_deferrable = on")
    assert shown() == "on"
    connection.execute("COMMIT")
    assert shown() == "off"
    connection.execute("SET default_transaction_deferrable TO 'on'")
    connection.execute("BEGIN")
    assert (shown(), shown("transaction_read_only")) == ("on", "off")
    connection.execute("COMMIT")
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION NOT DEFERRABLE")
    assert (shown(), shown("default_transaction_deferrable")) == ("off", "off")
    connection.execute("BEGIN TRANSACTION PESSIMISTIC DEFERRABLE")
    assert (shown(), shown("transaction_isolation")) == ("on", "repeatable read")
    connection.execute("ROLLBACK")


def test_read_uncommitted_sees_what_is_committed_meanwhile_and_nothing_else(connect):
    one, other = connect(), connect()
    one.execute("CREATE TABLE levels (id BIGINT PRIMARY KEY, n BIGINT)")
    one.execute("INSERT INTO levels VALUES (1, 0)")
    other.execute("BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    seen = []
    for change in ("UPDATE levels SET n = 1", "BEGIN", "UPDATE levels SET n = 2", "COMMIT"):
        one.execute(change)
        seen.append(other.execute("SELECT n FROM levels WHERE id = 1").fetchone()[0])
    assert seen == [1, 1, 1, 2]
    other.execute("COMMIT")
    one.execute("DROP TABLE levels")


def test_timeouts_have_the_states_of_postgresql(connect, connection):
    connection.execute("SET statement_timeout = 100")
    late = "57014", "canceling statement due to statement timeout"
    assert refused(connection, "SELECT pg_sleep(60)") == late
    connection.execute("RESET statement_timeout")
    connection.execute("SET idle_in_transaction_session_timeout = 100")
    connection.execute("BEGIN")
    stopped = connect()
    while stopped.execute("SELECT count(*) FROM sys.transactions").fetchone() != (0,):
        pass  # its own is none: it is in autocommit
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        connection.execute("SELECT 1")
    connection.execute("ROLLBACK")


def test_a_connection_that_is_lost_rolls_its_transaction_back(connect):
    one, other = connect(), connect()
    one.execute("CREATE TABLE lost (id BIGINT PRIMARY KEY)")
    one.execute("BEGIN")
    one.execute("INSERT INTO lost VALUES (1)")
    one.pgconn.finish()
    assert other.execute("SELECT count(*) FROM lost").fetchone() == (0,)
    other.execute("INSERT INTO lost VALUES (1)")
    other.execute("DROP TABLE lost")


@pytest.mark.parametrize("text", ["", ";", " ; ;", "-- a comment\n;", "/* ; */"])
def test_an_empty_statement_is_answered_as_one(connection, text):
    """SQLAlchemy's pool looks by such a one whether a connection of asyncpg lives."""
    for result in (
        connection.pgconn.exec_(text.encode()),
        connection.pgconn.exec_params(text.encode(), []),
    ):
        assert result.status == psycopg.pq.ExecStatus.EMPTY_QUERY


def test_a_pool_of_sqlalchemy_pings_connections_of_asyncpg(door):
    async def ping() -> int:
        url = f"postgresql+asyncpg://bob@{door['host']}:{door['port']}/shop"
        engine = create_async_engine(url, pool_pre_ping=True, pool_size=1)
        for _ in range(3):
            async with engine.connect() as found:
                one = (await found.execute(sa.text("SELECT 1"))).scalar_one()
        await engine.dispose()
        return one

    assert asyncio.run(asyncio.wait_for(ping(), 60)) == 1


# --- sizes ---------------------------------------------------------------------------------------


def test_thousands_of_parameters(connection):
    most = 5_000
    text = f"SELECT count(*) FROM (VALUES (1)) AS t(x) WHERE x IN ({', '.join(['%s'] * most)})"
    assert connection.execute(text, [1] * most).fetchone() == (1,)


def test_a_statement_that_is_too_long_says_so(connection):
    state, text = refused(connection, f"SELECT length('{'x' * 4_200_000}')")
    assert state == "54000"
    assert "the limit is 4194304" in text
    assert connection.execute("SELECT 1").fetchone() == (1,)


# --- wrong ports -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\4",
        struct.pack("!ii", 100_000_000, 196_608),
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
    ids=["HTTP", "an empty packet", "a huge packet", "TLS without asking"],
)
def test_strangers_hear_what_the_port_speaks(door, data):
    answer = told(door, data)
    assert b"C08P01\0" in answer
    assert b"Minvalid length of startup packet\0" in answer
    assert b"HThis port speaks PostgreSQL's protocol alone.\0" in answer


def test_a_client_of_version_2_hears_which_versions_there_are(door):
    answer = told(door, struct.pack("!ii", 16, 2 << 16) + bytes(8))
    assert b"C0A000\0Munsupported frontend protocol 2.0: server supports 3.0 to 3." in answer


def test_a_message_that_is_too_large_is_refused(connection):
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as stream:
        stream.settimeout(20)
        stream.sendall(b"Q" + struct.pack("!i", 2_000_000_000))
        assert b"C08P01\0Ma message of 2000000000 bytes is longer than " in stream.recv(4096)


def test_a_client_of_remuda_at_this_port_hears_where_to_go(door):
    with pytest.raises(remuda.errors.RemudaError) as caught:
        remuda.connect(f"{door['host']}:{door['port']}")
    assert "PostgreSQL's clients are served at this address." in caught.value.hint


def test_psql_at_the_port_of_remudas_clients_ends(cluster):
    host, port = cluster.members[0].user.split(":")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host=host, port=port, user="bob", dbname="shop", connect_timeout=10)
