"""What is not supported, over the door: SQLSTATE, a hint, the place, and a session that goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from sql_absent import FURTHER

REFUSED = {text: "0A000" for _, text in FURTHER} | {
    "CREATE ROLE app LOGIN": "0A000",
    "CREATE TRIGGER t AFTER INSERT ON flights EXECUTE FUNCTION f()": "0A000",
    "CREATE EXTENSION hstore": "0A000",
    "SELECT * FROM flights FOR UPDATE SKIP LOCKED": "0A000",
    "GRANT SELECT ON flights TO app WITH GRANT OPTION": "0A000",
    "SET standard_conforming_strings = off": "0A000",
    "SET client_encoding = 'mule_internal'": "0A000",
    "COPY flights TO '/tmp/flights'": "42501",
    "COPY flights FROM PROGRAM 'cat flights'": "42501",
    "SET work_men = '1MB'": "42704",
    "SET datestyle = 'mayan'": "22023",
    "SELECT * FROM flihgts": "42P01",
    "SELECT carier FROM flights": "42703",
    "SELECT uper(carrier) FROM flights": "42883",
    "SELECT carrier + 1 FROM flights": "42883",
    "SELECT DATE '31/12/2003'": "22008",
}
"""With the SQLSTATEs of PostgreSQL 15, or 0A000 where it has the feature."""


@pytest.fixture(scope="module")
def tables(cluster):
    with cluster.connect() as client:
        client.sql("CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier VARCHAR(2), delay INT)")
        client.sql("CREATE TABLE airlines (id BIGINT PRIMARY KEY, carrier VARCHAR(2))")
        client.sql("INSERT INTO flights VALUES (1, 'LH', 5)")


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "extended"])
def test_every_refusal_has_its_sqlstate_and_a_hint(tables, connection, prepare):
    without = []
    for text, state in REFUSED.items():
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(text, prepare=prepare)
        told = caught.value.diag
        assert (caught.value.sqlstate, told.severity_nonlocalized) == (state, "ERROR"), text
        if not told.message_hint:
            without.append(f"{text}: {told.message_primary}")
        assert connection.execute("SELECT carrier FROM flights").fetchall() == [("LH",)]
    assert without == []
