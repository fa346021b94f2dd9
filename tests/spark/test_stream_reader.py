"""Offsets and rows of a stream's reader over a real grid, with a stand-in for Spark's engine."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.datasource import ReadAllAvailable

from remuda.errors import (
    ChangesExpired,
    DuplicateColumn,
    InputError,
    RemudaError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
)
from remuda.limits import PARTITIONS
from remuda.spark.datasource import RemudaDataSource
from remuda.spark.streams.offsets import Offset, starting_timestamp

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        made.sql("CREATE TABLE source (k BIGINT PRIMARY KEY, v BIGINT, u UUID, a BIGINT[]) "
                 "WITH (change_retention = '1 h')")  # fmt: skip
        yield made
        made.drop_map("source", if_exists=True)


class Query:
    """Spark as a reader meets it: it keeps the end of each batch, begins anew when it restarts, and
    repeats the last batch if that was not finished."""

    def __init__(self, address: str, **options: str) -> None:
        given = {"address": address, "map": "source", "startingFrom": "snapshot", **options}
        self.source = RemudaDataSource(given)
        self.ends: list[dict[str, Any]] = []
        self.done = 0
        self.batches: dict[int, list[Any]] = {}

    def run(self, finish: int = 1000) -> list[list[Any]]:
        """All that is available now, but only so many batches are finished."""
        reader: Any = self.source.streamReader(self.source.schema())
        reader.prepareForTriggerAvailableNow()
        before = len(self.batches)
        try:
            while True:
                if len(self.ends) == self.done:
                    start = self.ends[-1] if self.ends else reader.initialOffset()
                    end = reader.latestOffset(start, reader.getDefaultReadLimit())
                    if end == start:
                        break
                    self.ends.append(end)
                start = self.ends[-2] if len(self.ends) > 1 else reader.initialOffset()
                self._read(reader, start, self.ends[-1])
                if not finish:
                    break
                finish -= 1
                self.done = len(self.ends)
        finally:
            reader.stop()
        return [self.batches[number] for number in range(before, len(self.batches))]

    def _read(self, reader: Any, start: Any, end: Any) -> None:
        reader = pickle.loads(pickle.dumps(reader))
        rows = []
        for part in pickle.loads(pickle.dumps(reader.partitions(start, end))):
            for batch in reader.read(part):
                rows += batch.to_pylist()
        rows.sort(key=lambda row: (row["_transaction"], row["k"]))
        number = len(self.ends) - 1
        assert self.batches.setdefault(number, rows) == rows, "a repeated batch has the same rows"

    @property
    def rows(self) -> list[Any]:
        return [row for number in sorted(self.batches) for row in self.batches[number]]

    def final(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for row in self.rows:
            before = None if row["_before"] is None else row["_before"]["v"]
            assert last.get(row["k"]) == before, row
            if row["_change"] == "delete":
                del last[row["k"]]
            else:
                last[row["k"]] = row["v"]
        return last


def insert(client: Any, first: int, last: int) -> None:
    client.sql(
        f"INSERT INTO source SELECT i, 0, NULL, ARRAY[i] FROM generate_series({first}, {last}) g(i)"
    )


def held(client: Any) -> dict[int, int]:
    return {row.k: row.v for row in client.sql("SELECT k, v FROM source")}


@pytest.mark.parametrize("limit", ["", "40"])
def test_snapshot_then_changes(client: Any, address: str, limit: str) -> None:
    insert(client, 1, 100)
    query = Query(address, **({"maxRowsPerTrigger": limit} if limit else {}))
    assert query.run()
    assert query.final() == held(client)
    assert len(query.rows) == 100
    client.sql("UPDATE source SET v = k, u = '00000000-0000-0000-0000-000000000001' WHERE k < 90")
    client.sql("DELETE FROM source WHERE k > 80")
    client.map("source").put(500, {"v": 5, "u": None, "a": None})
    changes = query.run()
    assert query.final() == held(client)
    assert sum(map(len, changes)) == 89 + 20 + 1
    if limit:
        assert max(map(len, changes)) == int(limit), "also within one commit"
    row = next(r for r in query.rows if r["_change"] == "update" and r["k"] == 85)
    assert row["u"] == "00000000-0000-0000-0000-000000000001"
    assert row["_before"] == {"k": 85, "v": 0, "u": None, "a": [85]}


def test_batches_that_are_repeated(client: Any, address: str) -> None:
    """Each is read twice, by another reader; meanwhile the map changes."""
    insert(client, 1, 60)
    query = Query(address, maxRowsPerTrigger="20")
    for _ in range(4):
        query.run(finish=0)
        client.sql("UPDATE source SET v = v + 1 WHERE k < 10")
        query.run(finish=1)
    query.run()
    assert query.final() == held(client)
    assert len(query.rows) == 60 + 4 * 9


@pytest.mark.parametrize("start", ["latest", "earliest", "moment"])
def test_where_a_stream_begins(client: Any, address: str, start: str) -> None:
    insert(client, 1, 5)
    wanted = str(client.cluster_info().clock) if start == "moment" else start
    query = Query(address, startingFrom=wanted)
    if start == "latest":  # the first batch ends after the change, and is repeated
        reader: Any = query.source.streamReader(query.source.schema())
        first = reader.initialOffset()
        insert(client, 6, 9)
        query.ends.append(reader.latestOffset(first, ReadAllAvailable()))
        reader.stop()
    else:
        insert(client, 6, 9)
    query.run()
    begin = 1 if start == "earliest" else 6
    assert [row["k"] for row in query.rows] == list(range(begin, 10))


def test_columns_images_and_own_schemas(client: Any, address: str) -> None:
    insert(client, 1, 1)
    options = {"address": address, "map": "source", "startingFrom": "snapshot"}
    names = RemudaDataSource(options).schema().names
    assert names[4:] == ["_change", "_commit_timestamp", "_transaction", "_before"]
    after = RemudaDataSource({**options, "images": "after"}).schema().names
    assert after == names[:-1]
    source = RemudaDataSource({**options, "columns": "_change,k"})
    reader: Any = source.streamReader(source.schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    found = [b for part in reader.partitions(start, end) for b in reader.read(part)]
    assert pa.Table.from_batches(found).to_pylist() == [{"_change": "snapshot", "k": 1}]
    reader.stop()
    with pytest.raises(TypeMismatch, match="column k of the changes"):
        source.streamReader(T.StructType([T.StructField("k", T.StringType())]))
    with pytest.raises(UndefinedColumn, match="have no column nix"):
        source.streamReader(T.StructType([T.StructField("nix", T.StringType())]))


def test_a_map_that_is_altered_while_a_query_runs(client: Any, address: str) -> None:
    insert(client, 1, 1)
    options = {"address": address, "map": "source", "startingFrom": "latest"}
    readers: list[Any] = []
    for columns in ("k,a,_before", "k,_change"):
        source = RemudaDataSource({**options, "columns": columns})
        readers.append(source.streamReader(source.schema()))
    whole, part = readers
    start = part.initialOffset()
    client.sql("UPDATE source SET v = 7, a = ARRAY[7]")
    client.sql("ALTER TABLE source DROP COLUMN v")
    client.sql("ALTER TABLE source ADD COLUMN v BIGINT")  # the last one now
    end = part.latestOffset(start, ReadAllAvailable())

    def rows(reader: Any) -> list[Any]:
        parts = reader.partitions(start, end)
        return [row for p in parts for batch in reader.read(p) for row in batch.to_pylist()]

    assert rows(whole) == [{"k": 1, "a": [7], "_before": {"k": 1, "v": None, "u": None, "a": [1]}}]
    client.sql("ALTER TABLE source DROP COLUMN a")
    assert rows(part) == [{"k": 1, "_change": "update"}]
    with pytest.raises(UndefinedColumn, match="no column a any more") as caught:
        rows(whole)
    assert "Start the query again" in (caught.value.hint or "")
    for reader in readers:
        reader.stop()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingFrom": "²"}, "is snapshot, latest, earliest or a moment"),
        ({"startingFrom": "yesterday"}, "is snapshot, latest, earliest or a moment"),
        ({"startingFrom": "2024-01-31 12:00:00"}, "A moment has a time zone"),
        ({"startingFrom": "9999-01-01 00:00:00+00:00"}, "lies in the future"),
        ({"startingFrom": "9" * 30}, "lies in the future"),
        ({"maxRowsPerTrigger": "0"}, "must be at least 1"),
        ({"images": "none"}, "must be both or after"),
        ({"query": "SELECT 1"}, 'reads the changes of option "map"'),
        ({"where": "k = 1"}, 'reads the changes of option "map"'),
        ({"at": "5"}, "no timestamp to read at"),
        ({"columns": "nix"}, "have no column nix"),
    ],
)
def test_wrong_options(client: Any, address: str, options: dict[str, str], text: str) -> None:
    with pytest.raises(RemudaError, match=text):
        Query(address, **options).run()


def test_options_of_the_other_kind_of_read(client: Any, address: str) -> None:
    source = RemudaDataSource({"address": address, "map": "source"})
    with pytest.raises(InputError, match='needs option "startingFrom"'):
        source.streamReader(source.schema())
    stream = RemudaDataSource({"address": address, "map": "source", "startingFrom": "latest"})
    with pytest.raises(InputError, match="goes with readStream"):
        stream.reader(stream.schema())
    client.sql("ALTER TABLE source ADD COLUMN _change TEXT")
    with pytest.raises(DuplicateColumn, match="_change"):
        stream.schema()


def test_what_a_checkpoint_cannot_go_on_with(
    client: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(client, 1, 3)
    query = Query(address)
    query.run()
    insert(client, 4, 6)
    gone = ChangesExpired("the changes are not kept", detail="They are there since then.")

    class Expired:
        """The members say that they do not have the changes any more."""

        def __init__(self, *_: Any) -> None:
            pass

        def __getattr__(self, _name: str) -> Any:
            raise gone

    with monkeypatch.context() as patched:
        reader: Any = query.source.streamReader(query.source.schema())
        end = Offset.parse(query.ends[-1])
        later = end.behind((end.place[0] + 10**9, None, 0)).document()
        patched.setattr(type(reader), "_ranges", Expired)
        with pytest.raises(ChangesExpired):
            reader.latestOffset(query.ends[-1], ReadAllAvailable())
        with pytest.raises(ChangesExpired):  # also when a batch is repeated: on the driver
            reader.partitions(query.ends[-1], later)
        reader.stop()
    client.sql("DROP TABLE source")
    client.sql("CREATE TABLE source (k BIGINT PRIMARY KEY, v BIGINT)")
    with pytest.raises(UndefinedMap, match="another one has its name now"):
        query.run()
    query.ends[-1] = {"topic": 5}
    with pytest.raises(InputError, match="not one of remuda"):
        query.run()


def test_offsets_as_documents() -> None:
    first = Offset.first(7, 1000, snapshot=True)
    for offset in (
        first,
        first.within(5),
        first.within(PARTITIONS),
        first.behind((2000, None, 0)),
        first.behind((2000, 5, 2**64 - 1)),
    ):
        assert Offset.parse(offset.document()) == offset
    assert first.within(PARTITIONS).read is None
    assert starting_timestamp("1970-01-01T00:00:01+00:00") == 10**6 << 10
    assert starting_timestamp("17") == 17
    assert starting_timestamp("Latest") is None
