"""Polars, connectorx and JupySQL: frames and notebooks over the door."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal

import connectorx
import polars as pl
import pytest
from IPython.core.interactiveshell import InteractiveShell

BORN = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


@pytest.fixture
def uri(door, items, numbers):
    return f"postgresql://bob@{door['host']}:{door['port']}/shop"


def test_polars_reads_by_connectorx(uri):
    query = "SELECT id, name, price, born FROM items ORDER BY id"
    frame = pl.read_database_uri(query, uri, protocol="cursor")
    assert frame.rows() == [
        (1, "saw", Decimal("19.50"), BORN),
        (2, "nail", Decimal("0.10"), None),
    ]
    assert frame.schema["id"] == pl.Int64


def test_polars_reads_by_sqlalchemy_and_a_connection(uri, connection):
    frame = pl.read_database("SELECT name, half FROM numbers WHERE id <= 2 ORDER BY id", connection)
    assert frame.to_dict(as_series=False) == {"name": ["n1", "n2"], "half": [0.5, 1.0]}


def test_connectorx_reads_in_partitions(uri):
    """It asks for the smallest and the largest number, and reads each part by a connection."""
    table = connectorx.read_sql(
        uri, "SELECT * FROM numbers", return_type="arrow", protocol="cursor",
        partition_on="id", partition_num=3,
    )  # fmt: skip
    assert sorted(table["id"].to_pylist()) == list(range(1, 3001))


@pytest.mark.parametrize("protocol", ["binary", "csv"])
def test_connectorx_reads_by_copy(uri, protocol):
    table = connectorx.read_sql(
        uri, "SELECT * FROM numbers", return_type="arrow", protocol=protocol
    )
    assert sorted(table["id"].to_pylist()) == list(range(1, 3001))


@pytest.mark.soak
def test_jupysql_answers_in_a_notebook(uri, monkeypatch):
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")
    monkeypatch.setitem(sys.modules, "pyspark", None)  # it wants all of Spark Connect
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "sql")
    shell.run_line_magic("sql", uri.replace("postgresql:", "postgresql+psycopg:"))
    shell.run_cell("found = %sql SELECT id, name FROM items ORDER BY id").raise_error()
    frame = shell.user_ns["found"].DataFrame()
    assert frame.to_dict("list") == {"id": [1, 2], "name": ["saw", "nail"]}
    shell.run_cell("%sqlcmd tables").raise_error()
    shell.run_cell("%sqlcmd columns --table items").raise_error()
