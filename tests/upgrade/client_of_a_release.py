"""The clients of a release, against members of any: ``python client_of_a_release.py ADDRESS...``.

It uses names that the release before has. The data source is used as Spark's driver and its Python
workers use it, without the time that Spark takes to start. Prints the release.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pyarrow as pa

import remuda
import remuda.aio
from remuda.spark.datasource import RemudaDataSource

ROWS = 100


def blocking(addresses: list[str]) -> None:
    with remuda.connect(addresses) as client:
        client.sql("CREATE TABLE IF NOT EXISTS by_release (__key BIGINT PRIMARY KEY, n BIGINT)")
        client.sql("TRUNCATE TABLE by_release")
        table = client.map("by_release")
        table.put_all({key: {"n": key} for key in range(ROWS)})
        assert table.get(7).n == 7
        total = client.prepare("SELECT sum(n) FROM by_release WHERE __key >= ?")
        assert total(0).scalar() == 4950
        with table.changes() as changes:
            with client.transaction() as tx:
                tx.map("by_release").put(7, {"n": 8})
                tx.sql("UPDATE by_release SET n = n + 1 WHERE __key IN (8, 9)")
            told = [changes.read(30.0)]
            while sum(batch.num_rows for batch in told) < 3:
                told.append(changes.read(30.0))
        rows = {row["__key"]: row["n"] for batch in told for row in batch.to_pylist()}
        assert rows == {7: 8, 8: 9, 9: 10}, rows
        assert total(0).scalar() == 4953


async def asynchronous(addresses: list[str]) -> None:
    async with remuda.aio.connect(addresses) as client:
        table = client.map("by_release")

        async def increment(tx: Any) -> None:
            row = await tx.map("by_release").get(10)
            await tx.map("by_release").put(10, {"n": row.n + 1})

        await client.run_transaction(increment)
        assert (await table.get(10)).n == 11
        cursor = await client.sql("SELECT count(*) FROM by_release WHERE n > __key")
        assert [tuple(row) for row in await cursor.fetchall()] == [(4,)]


def spark(addresses: list[str]) -> None:
    given = {"address": ",".join(addresses), "map": "by_release"}
    source = RemudaDataSource(given)
    schema = source.schema()
    writer: Any = source.writer(schema, False)
    batch = pa.record_batch({"__key": [1000, 1001], "n": [1, 2]})
    writer.commit([writer.write(iter([batch]))])
    reader: Any = source.reader(schema)
    found = _rows(reader, reader.partitions())
    assert len(found) == ROWS + 2, found
    assert (found[7], found[1001]) == (8, 2)
    stream = RemudaDataSource({**given, "startingFrom": "snapshot"})
    changes: Any = stream.streamReader(stream.schema())
    changes.prepareForTriggerAvailableNow()
    start = changes.initialOffset()
    end = changes.latestOffset(start, changes.getDefaultReadLimit())
    assert _rows(changes, changes.partitions(start, end)) == found
    changes.stop()


def _rows(reader: Any, parts: Any) -> dict[int, int]:
    batches = [batch for part in parts for batch in reader.read(part)]
    return {row["__key"]: row["n"] for batch in batches for row in batch.to_pylist()}


if __name__ == "__main__":
    blocking(sys.argv[1:])
    asyncio.run(asynchronous(sys.argv[1:]))
    spark(sys.argv[1:])
    print(remuda.__version__)
