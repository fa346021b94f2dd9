"""Spark writes into members without room: an error in Remuda's words, and nothing stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remuda.client.embedded.cluster import start
from remuda.errors import StorageFull
from remuda.spark import load, write

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def small() -> Iterator[Any]:
    with start(members=2, settings={"storage_memory": 12_000_000}) as cluster:
        yield cluster


def test_a_frame_that_does_not_fit(spark: Any, small: Any, tmp_path: Any) -> None:
    address = small.addresses[0]
    with small.connect() as client:
        client.sql("CREATE TABLE full_t (k BIGINT PRIMARY KEY, v VARCHAR)")
        client.sql("CREATE INDEX full_i ON full_t (v)")
        large = spark.range(0, 40_000, 1, 4).selectExpr("id AS k", "repeat('x', 1000) AS v")
        large.write.parquet(str(tmp_path / "rows"))

        def fails(act: Any) -> None:
            with pytest.raises(StorageFull, match=r"member \d has no room for a write") as caught:
                act()
            error = caught.value
            assert (error.sqlstate, error.retryable) == ("53200", True)
            assert "may store" in error.message
            assert "storage_memory" in (error.hint or "")
            for foreign in ("Traceback", "py4j", "java", "pyspark", "File "):
                assert foreign not in str(error)

        fails(lambda: write(large, address, "full_t"))
        fails(lambda: write(large, address, "full_t", write="insert"))
        fails(lambda: load(spark, str(tmp_path / "rows"), address=address, map="full_t"))
        assert client.map("full_t").size() == 0
        # Nothing stays staged; what tasks had on its way when their job was aborted goes, too. The
        # suite's timeout bounds it.
        while client.sql("SELECT max(storage_held) FROM sys.members").scalar() > 1_000_000:
            pass
        write(large.where("k < 2000"), address, "full_t")
        assert client.map("full_t").size() == 2000
