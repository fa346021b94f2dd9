"""DuckDB's extension ``postgres`` over the door: it reads, joins, inserts and defines. It asks for
the pages of a table that it has filled, and names rows by their place, where docs/postgres.md tells
another way."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

PROGRAM = Path(__file__).with_name("attached_by_duckdb.py")
Duckdb = Callable[[str], Any]


@pytest.fixture(scope="module")
def duckdb(python_of_programs: Path, door: dict[str, Any]) -> Iterator[Duckdb]:
    """Runs a statement, and tells its rows; or the text of its error."""
    given = f"host={door['host']} port={door['port']} user=bob dbname=shop"
    options = {"PGOPTIONS": "-c definitions_in_transactions=transactional"}
    process = subprocess.Popen(
        [str(python_of_programs), str(PROGRAM), given],
        env=os.environ | options, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def run(text: str) -> Any:
        print(json.dumps(text), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        return answer.get("rows", answer.get("error"))

    yield run
    process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()


def test_it_defines_fills_reads_and_joins(
    duckdb: Duckdb, connection: psycopg.Connection[Any]
) -> None:
    assert duckdb("SET pg_use_ctid_scan = false") == []
    duckdb(
        "CREATE TABLE grid.tools (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL,"
        " price DECIMAL(10,2), made TIMESTAMP, tags VARCHAR[], ok BOOLEAN, weight DOUBLE)"
    )
    filled = (
        "INSERT INTO grid.tools SELECT i, 'n' || i, i / 4, TIMESTAMP '2024-01-01' + INTERVAL (i)"
        " HOUR, ['a', 'b' || i], i % 2 = 0, i / 8 FROM range(3000) r(i)"
    )
    assert duckdb(filled) == [[3000]]
    found = duckdb("SELECT count(*), sum(price), max(made)::VARCHAR FROM grid.tools")
    assert found == [[3000, "1124625.00", "2024-05-04 23:00:00"]]
    assert connection.execute("SELECT sum(weight), count(*) FILTER (WHERE ok) FROM tools").fetchone(
    ) == (562312.5, 1500)  # fmt: skip
    assert duckdb("SELECT name, tags FROM grid.tools WHERE id = 7") == [["n7", ["a", "b7"]]]
    joined = (
        "SELECT t.name, l.x FROM grid.tools t JOIN (VALUES (1, 'one'), (2, 'two')) l(i, x)"
        " ON t.id = l.i ORDER BY 1"
    )
    assert duckdb(joined) == [["n1", "one"], ["n2", "two"]]
    assert duckdb("CREATE TABLE grid.few AS SELECT id, price FROM grid.tools WHERE id < 5") == [[5]]
    assert duckdb("SELECT * FROM postgres_query('grid', 'SELECT max(id) FROM few')") == [[4]]
    assert duckdb("CALL postgres_execute('grid', 'UPDATE few SET price = 9 WHERE id = 4')") == []
    assert duckdb("SELECT price FROM grid.few WHERE id = 4") == [["9.00"]]
    duckdb("CREATE VIEW grid.cheap_few AS SELECT 1 AS x")
    assert duckdb("SELECT * FROM grid.cheap_few") == [[1]]
    duckdb("DROP VIEW grid.cheap_few")
    for name in ("few", "tools"):
        assert duckdb(f"DROP TABLE grid.{name}") == []


def test_a_transaction_is_rolled_back(
    duckdb: Duckdb, connection: psycopg.Connection[Any], items: str
) -> None:
    duckdb("BEGIN")
    assert duckdb(f"INSERT INTO grid.{items} VALUES (50, 'vise', 1.5, NULL)") == [[1]]
    duckdb("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM items WHERE id = 50").fetchone() == (0,)


def test_rows_have_no_place(duckdb: Duckdb, items: str) -> None:
    for text in (f"UPDATE grid.{items} SET price = 1", f"DELETE FROM grid.{items} WHERE id = 1"):
        assert "the system column ctid is not supported" in duckdb(text)
        assert "Name rows by the columns of their key" in duckdb(text)
