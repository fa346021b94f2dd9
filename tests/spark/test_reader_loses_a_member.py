"""A read whose member is killed in the middle goes on from the new owners: every row once, all of
one moment, while others write."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812

from remuda.client.embedded.cluster import start
from remuda.spark.transfer import slice_reading
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.reader import RemudaReader

pytestmark = [pytest.mark.cluster]

ROWS = 30_000
WANTED = T.StructType([T.StructField("k", T.LongType()), T.StructField("v", T.LongType())])


def test_rows_of_a_lost_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_reading, "SCAN_PAGE_ROWS", 100)
    settings = {"backups": 1, "heartbeat_interval": 0.1, "heartbeat_timeout": 2.0}
    with start(members=3, settings=settings) as cluster, cluster.connect() as client:
        client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
        client.map("m").put_all(pa.table({"k": range(ROWS), "v": [1] * ROWS}))
        options = Options.parse({"address": ",".join(cluster.addresses), "map": "m"}).reads()
        reader = RemudaReader(options, WANTED, client.describe("m"))
        parts: list[Any] = list(reader.partitions())
        found: list[pa.RecordBatch] = []
        for index, part in enumerate(parts):
            for number, batch in enumerate(reader.read(replace(part, pieces=8))):
                found.append(batch)
                if (index, number) == (0, 0):
                    client.sql("UPDATE m SET v = 2 WHERE k % 2 = 0")
                if (index, number) == (1, 0):
                    os.kill(cluster.pids[1], signal.SIGKILL)
        table = pa.Table.from_batches(found)
        assert sorted(table["k"].to_pylist()) == list(range(ROWS))
        assert set(table["v"].to_pylist()) == {1}, "all of the moment at which the read began"
