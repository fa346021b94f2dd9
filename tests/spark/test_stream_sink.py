"""``writeStream``: each batch exactly once, over failures in every phase of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql.datasource import DataSource

from remuda.client.blocking.tool_access import change_ranges
from remuda.spark.datasource import RemudaDataSource

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest, client: Any) -> Iterator[str]:
    made = "w_" + "".join(c if c.isalnum() else "_" for c in request.node.name)[-40:].lower()
    yield made
    client.drop_map(made, if_exists=True)


def failing_source(folder: Path) -> type[DataSource]:
    """A source whose sink fails once where a file in ``folder`` says so: ``PHASE-BATCH``."""

    def fails(phase: str, batch: int) -> None:
        place = folder / f"{phase}-{batch}"
        if place.exists():
            place.unlink()
            raise ValueError(f"a problem in {place.name}")

    class Failing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "remuda_failing"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            writer = RemudaDataSource(self.options).streamWriter(schema, overwrite)

            class Sink(type(writer)):  # type: ignore[misc]
                def write(self, iterator: Any) -> Any:
                    found = super().write(iterator)
                    context = TaskContext.get()
                    if context.attemptNumber() == 0 and context.partitionId() == 0:
                        fails("task", int(context.getLocalProperty("streaming.sql.batchId")))
                    return found

                def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
                    fails("before", batchId)
                    super().commit(messages, batchId)
                    fails("after", batchId)

            writer.__class__ = Sink
            return writer

    return Failing


def put(folder: Path, number: int, **columns: list[Any]) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # the order of the batches


def start(frame: Any, address: str, name: str, checkpoint: Path, **options: Any) -> Any:
    given = {"address": address, "map": name, "checkpointLocation": str(checkpoint), **options}
    kind, mode = given.pop("format", "remuda"), given.pop("mode", "append")
    writer = frame.writeStream.format(kind).options(**given).outputMode(mode)
    return writer.trigger(availableNow=True).start()


def written(client: Any, name: str) -> list[tuple[int, int]]:
    """Every write that the map has seen, in the order of their commits."""
    ranges = change_ranges(client, name)
    end = (ranges.now(), None, 0)
    rows = [r for b in ranges.read((0, None, 0), end, range(271)) for r in b.to_pylist()]
    return [(r["k"], r["v"]) for r in sorted(rows, key=lambda r: (r["_transaction"], r["k"]))]


@pytest.mark.soak
@pytest.mark.parametrize(
    "failures",
    [
        ("task-0", "after-0"),
        ("task-0", "before-0", "after-0", "task-1", "before-1", "after-1", "before-2"),
    ],
    ids=["twice", "everywhere"],
)
def test_every_batch_once(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path, failures: tuple[str, ...]
) -> None:
    """A failed task is tried again; a commit that fails, or whose answer is lost, ends the query,
    and it goes on from its checkpoint."""
    client.sql(
        f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, v BIGINT) WITH (change_retention = '1 h')"
    )
    folder, marks = tmp_path / "in", tmp_path / "marks"
    marks.mkdir()
    for number in range(3):
        put(folder, number, k=list(range(4)), v=[number] * 4)
    for failure in failures:
        (marks / failure).touch()
    spark.dataSource.register(failing_source(marks))
    frame = (
        spark.readStream.schema("k long, v long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )
    runs = 0
    while True:
        runs += 1
        query = start(frame, address, name, tmp_path / "c", format="remuda_failing")
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            assert "a problem in" in str(error)
            assert runs < 10
        else:
            break
    assert runs == 1 + sum("task" not in failure for failure in failures)
    assert not list(marks.iterdir())
    assert written(client, name) == [(k, batch) for batch in range(3) for k in range(4)]
    streams = client.sql(
        "SELECT batch, done FROM remuda_streams WHERE query = ?", str(query.id)
    ).fetchall()
    assert [tuple(row) for row in streams] == [(2, True)]


@pytest.fixture
def one_partition(spark: Any) -> Iterator[None]:
    """A stream with a state has a task for each partition of it, in each batch."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.usefixtures("one_partition")
def test_updates_and_change_sets(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path
) -> None:
    """Spark refuses mode update for sinks in Python: there it is ``foreachBatch``."""
    folder, failing = tmp_path / "in", [0]

    def run() -> None:
        counts = spark.readStream.schema("k long").parquet(str(folder)).groupBy("k").count()

        def upsert(frame: Any, number: int) -> None:
            writer = frame.write.format("remuda").option("of_stream", "counts")
            writer.options(address=address, map=name, key="k").mode("append").save()
            if number in failing:
                failing.remove(number)
                raise ValueError("a problem behind the commit")

        query = counts.writeStream.foreachBatch(upsert).outputMode("update")
        query = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        query.start().awaitTermination()

    def held() -> list[tuple[int, int]]:
        rows = client.sql(f'SELECT k, "count" FROM {name} ORDER BY k').fetchall()
        return [tuple(row) for row in rows]

    put(folder, 0, k=[1, 1, 2, 2, 3])
    with pytest.raises(Exception, match="a problem behind the commit"):
        run()
    client.sql(f'UPDATE {name} SET "count" = 100 WHERE k = 3')
    run()
    assert held() == [(1, 2), (2, 2), (3, 100)], "the batch was not written once more"
    changes = tmp_path / "changes"
    put(changes, 0, k=[1, 2, 9], count=[0, 20, 90], op=["delete", "update", "insert"])
    frame = spark.readStream.schema("k long, count long, op string").parquet(str(changes))
    options = {"write": "changes", "operation": "op"}
    start(frame, address, name, tmp_path / "c2", **options).awaitTermination()
    assert held() == [(2, 20), (3, 100), (9, 90)]
