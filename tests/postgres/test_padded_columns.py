"""CHAR(n): clients get values with blanks up to n characters, as from PostgreSQL 15, in every way
that rows take to them."""

from __future__ import annotations

import psycopg
import pytest

VALUES = ((1, "ab   "), (2, "     "), (3, "abcde"), (4, None), (5, "é\U0001f40e   "))


@pytest.fixture(scope="module")
def padded(cluster):
    with cluster.connect() as client:
        client.sql("CREATE TABLE padded (id BIGINT PRIMARY KEY, c CHAR(5), v VARCHAR(5))")
        client.sql(
            "INSERT INTO padded VALUES (1, 'ab', 'ab '), (2, '', ''), (3, 'abcde', 'x'),"
            " (4, NULL, NULL), (5, 'é\U0001f40e ', 'y')"
        )
        assert client.sql("SELECT c FROM padded WHERE id = 1").fetchone() == ("ab",)
    return "padded"


@pytest.mark.parametrize("binary", [False, True])
def test_rows_of_a_scan_and_by_key(connect, padded, binary):
    connection = connect(1)
    cursor = connection.cursor(binary=binary)
    assert cursor.execute("SELECT id, c FROM padded ORDER BY id").fetchall() == [*VALUES]
    for _ in range(8):  # prepared from the sixth on, and read by the owner of the key
        for key, value in VALUES:
            found = cursor.execute("SELECT c FROM padded WHERE id = %s", (key,)).fetchone()
            assert found == (value,)
    assert cursor.execute("SELECT 'q'::char(3), 'q'::char(1), 'q'::bpchar").fetchone() == (
        "q  ",
        "q",
        "q",
    )


def test_blanks_at_the_end_mean_nothing(connection, padded):
    found = connection.execute(
        "SELECT c = 'ab', c = 'ab      ', length(c), c || '|', c::text || '|', c::varchar || '|'"
        " FROM padded WHERE id = 1"
    ).fetchone()
    assert found == (True, True, 2, "ab|", "ab|", "ab|")
    for given in ("ab", "ab   "):
        text = "SELECT id FROM padded WHERE c = %s"
        assert connection.execute(text, (given,)).fetchall() == [(1,)]
        text = "UPDATE padded SET c = %s WHERE id = 1 RETURNING c"
        assert connection.execute(text, (given,)).fetchone() == ("ab   ",)


def test_copy(connection, padded):
    with connection.cursor().copy("COPY (SELECT c, v FROM padded ORDER BY id) TO STDOUT") as rows:
        assert b"".join(rows).splitlines()[0] == b"ab   \tab "
    with connection.cursor().copy("COPY padded (id, c) FROM STDIN") as rows:
        rows.write_row((9, "z "))
    assert connection.execute("SELECT c FROM padded WHERE id = 9").fetchone() == ("z    ",)
    connection.execute("DELETE FROM padded WHERE id = 9")


def test_too_long_values_are_refused(connection, padded):
    with pytest.raises(psycopg.errors.StringDataRightTruncation):
        connection.execute("INSERT INTO padded VALUES (8, 'abcdef', 'x')")
    connection.execute("INSERT INTO padded VALUES (8, 'abcde   ', 'x')")
    assert connection.execute("SELECT c FROM padded WHERE id = 8").fetchone() == ("abcde",)
    connection.execute("DELETE FROM padded WHERE id = 8")
