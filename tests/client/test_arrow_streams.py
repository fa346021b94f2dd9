"""Cursors as Arrow streams: whoever reads the Arrow C protocol reads them, at its own pace."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.errors import InputError, QueryCanceled

COLUMNS = (Column("id", sql.BIGINT), Column("name", sql.varchar()))


def page(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch(
        {"id": range(start, start + count), "name": [f"n{i}" for i in range(start, start + count)]}
    )


@pytest.fixture
def pages(grid, script):
    grid.scripts["q"] = script(COLUMNS, tuple(page(start, 10) for start in range(0, 100, 10)))


@pytest.mark.usefixtures("pages")
class TestReaders:
    def test_pyarrow(self, client):
        reader = client.sql("q").to_arrow_reader()
        assert isinstance(reader, pa.RecordBatchReader)
        assert reader.schema.names == ["id", "name"]
        assert reader.read_next_batch().num_rows == 10
        assert reader.read_all().num_rows == 90

    def test_the_c_stream(self, client):
        table = pa.table(client.sql("q"))
        assert table.column("id").to_pylist() == list(range(100))
        assert pa.RecordBatchReader.from_stream(client.sql("q")).read_all().num_rows == 100

    def test_duckdb(self, client):
        with duckdb.connect() as connection:
            rows = client.sql("q").to_arrow_reader()
            found = connection.execute("SELECT count(*), max(name), sum(id) FROM rows").fetchone()
            assert found == (100, "n99", 4950)
            del rows

    def test_a_cursor_that_was_begun_gives_the_rest(self, client):
        cursor = client.sql("q")
        assert cursor.fetchone() == (0, "n0")
        assert cursor.to_arrow_reader().read_all().num_rows == 90

    def test_an_empty_result_has_its_schema(self, client, grid, script):
        grid.scripts["none"] = script(COLUMNS, (page(0, 0),))
        assert client.sql("none").to_arrow_reader().read_all().schema.names == ["id", "name"]


def test_a_slow_reader_holds_the_members_back(client, grid, script):
    grid.scripts["endless"] = script(COLUMNS, (page(0, 10),), endless=True)
    reader = client.query("endless", member=1).to_arrow_reader()
    running = grid.members[0].running[0]
    for count in range(1, 40):
        assert reader.read_next_batch().num_rows == 10
        assert running.sent <= count + grid.members[0].window + 1
    del reader


def test_what_ends_the_statement_ends_the_stream(client, grid, script):
    grid.scripts["fails"] = script(COLUMNS, (page(0, 10),), error=QueryCanceled("too much"))
    reader = client.sql("fails").to_arrow_reader()
    reader.read_next_batch()
    with pytest.raises(QueryCanceled, match="too much"):
        reader.read_next_batch()
    cursor = client.sql("fails")
    reader = cursor.to_arrow_reader()
    cursor.close()
    with pytest.raises(InputError, match="cursor is closed"):
        reader.read_all()
