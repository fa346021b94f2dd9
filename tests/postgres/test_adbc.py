"""ADBC's driver of PostgreSQL, where it is installed: binary COPY both ways, and the catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest

adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="no adbc-driver-postgresql")


@pytest.fixture
def connected(door):
    uri = f"postgresql://bob@{door['host']}:{door['port']}/shop"
    with adbc.connect(uri, autocommit=True) as connection:
        yield connection


def test_frames_go_in_and_come_out(connected):
    rows = pa.table({"id": range(100_000), "name": [str(number) for number in range(100_000)]})
    with connected.cursor() as cursor:
        assert cursor.adbc_ingest("ingested", rows, mode="replace") == rows.num_rows
        assert cursor.adbc_ingest("ingested", rows.slice(0, 2), mode="append") == 2
        cursor.execute("SELECT id, name FROM ingested WHERE id < $1 ORDER BY id", (2,))
        assert cursor.fetchall() == [(0, "0"), (0, "0"), (1, "1"), (1, "1")]
        cursor.execute("DROP TABLE ingested")


def test_a_table_has_a_schema(connected, items):
    assert connected.adbc_get_table_schema("items").names == ["id", "name", "price", "born"]
    with pytest.raises(adbc.ProgrammingError, match="does not exist"):
        connected.adbc_get_table_schema("no_such_table")
