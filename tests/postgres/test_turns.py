"""Prepared reads by key that are answered in one turn, beside the same reads in a transaction,
which take the general way."""

from __future__ import annotations

import struct

import psycopg
import pytest
from psycopg.pq import ExecStatus

KEYS = (1, 2, 3, 4, 5, 6, 7, 8, 999)
"""Of several members; there is no entry 999."""
QUERIES = (
    "SELECT * FROM kinds WHERE id = $1",
    "SELECT price, id FROM kinds WHERE id = $1",
    "SELECT 10 / (id - 3) AS part, upper(name) FROM kinds WHERE id = $1",
    "SELECT name FROM kinds WHERE id = $1 AND price > 2",
    "SELECT id FROM kinds WHERE id IN ($1, 2)",
)


@pytest.fixture(scope="module")
def kinds(cluster):
    with cluster.connect() as client:
        client.sql(
            "CREATE TABLE kinds (id BIGINT PRIMARY KEY, name VARCHAR, price DECIMAL(10, 2),"
            " born TIMESTAMPTZ, tags VARCHAR[], half DOUBLE PRECISION, alive BOOLEAN, body JSON)"
        )
        client.sql(
            "INSERT INTO kinds SELECT x, 'n' || x, x * 1.5, TIMESTAMPTZ '2024-01-31 12:00:00+00',"
            " ARRAY['a', NULL], x / 2.0, x % 2 = 0, '{\"a\": 1}'"
            " FROM generate_series(1, 7) t(x)"
        )
        client.sql("INSERT INTO kinds (id) VALUES (8)")
    return "kinds"


def answer(found):
    """All that a client sees of a result, or of an error."""
    if found.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return found.error_field(psycopg.pq.DiagnosticField.SQLSTATE), found.error_message
    columns = [(found.fname(i), found.ftype(i), found.fformat(i)) for i in range(found.nfields)]
    rows = [
        [found.get_value(row, column) or b"NULL" for column in range(found.nfields)]
        for row in range(found.ntuples)
    ]
    return columns, sorted(rows), found.command_status


def both(connection, name, values, formats, result):
    """The answers in one turn and in a transaction."""
    raw = connection.pgconn
    arguments = (name, values, formats, result)
    turn = answer(raw.exec_prepared(*arguments))
    raw.exec_(b"BEGIN")
    general = answer(raw.exec_prepared(*arguments))
    raw.exec_(b"ROLLBACK")
    return turn, general


@pytest.mark.parametrize("text", QUERIES)
def test_reads_in_one_turn_answer_as_reads_in_a_transaction_do(connection, kinds, text):
    raw = connection.pgconn
    answers = []
    for oid, layout in ((0, "!q"), (21, "!h"), (23, "!i"), (20, "!q")):
        name = f"of {oid}".encode()
        raw.prepare(name, text.encode(), [oid])
        for result in (0, 1):
            for key in KEYS:
                binary = both(connection, name, [struct.pack(layout, key)], [1], result)
                written = both(connection, name, [str(key).encode()], [0], result)
                assert binary[0] == binary[1] == written[0] == written[1], key
                answers.append(binary[0])
            for value, form in ((None, 1), (b"abc", 0), (b"abc", 1), (b"", 0)):
                turn, general = both(connection, name, [value], [form], result)
                assert turn == general, value
    assert any(len(found) == 3 and found[1] for found in answers)


def test_a_time_zone_concerns_reads_in_one_turn(connection, kinds):
    raw = connection.pgconn
    raw.prepare(b"s", b"SELECT born FROM kinds WHERE id = $1", [20])
    arguments = (b"s", [struct.pack("!q", 1)], [1], 0)
    assert raw.exec_prepared(*arguments).get_value(0, 0) == b"2024-01-31 12:00:00+00"
    connection.execute("SET TIME ZONE 'Asia/Tokyo'")
    assert raw.exec_prepared(*arguments).get_value(0, 0) == b"2024-01-31 21:00:00+09"


def test_a_prepared_read_whose_columns_were_altered_says_so(connection, cluster):
    connection.execute("CREATE TABLE altered (id BIGINT PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO altered VALUES (1, 2)")
    raw = connection.pgconn
    raw.prepare(b"s", b"SELECT * FROM altered WHERE id = $1", [20])
    arguments = (b"s", [struct.pack("!q", 1)], [1], 0)
    assert raw.exec_prepared(*arguments).get_value(0, 1) == b"2"
    connection.execute("ALTER TABLE altered ALTER COLUMN n SET DATA TYPE BIGINT")
    state, text = answer(raw.exec_prepared(*arguments))
    assert (state, b"cached plan must not change result type" in text) == (b"0A000", True)
    connection.execute("DROP TABLE altered")
