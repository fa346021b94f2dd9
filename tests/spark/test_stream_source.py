"""``readStream`` with Spark: from a snapshot through updates, a failed batch and a takeover."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from remuda.client.embedded.cluster import start

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]


class Batches:
    """What a query has given to ``foreachBatch``, by the number of the batch."""

    def __init__(self) -> None:
        self.by_number: dict[int, list[Any]] = {}
        self.lose: int | None = None
        """This process ends after the next batch, and the batch fails."""

    def __call__(self, frame: Any, number: int) -> None:
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        rows.sort(key=lambda row: (row["_transaction"], row["k"]))
        before = self.by_number.setdefault(number, rows)
        assert before == rows, "a batch that is repeated has the same rows"
        if self.lose is not None:
            pid, self.lose = self.lose, None
            os.kill(pid, signal.SIGKILL)
            raise ValueError("lost a member")

    def final(self) -> dict[int, int]:
        """What the changes come to; each must go on from the one before."""
        last: dict[int, int] = {}
        for number in sorted(self.by_number):
            for row in self.by_number[number]:
                before = None if row["_before"] is None else row["_before"]["v"]
                assert last.get(row["k"]) == before, row
                if row["_change"] == "delete":
                    del last[row["k"]]
                else:
                    last[row["k"]] = row["v"]
        return last


@pytest.mark.soak
def test_rows_are_exact_over_a_takeover(spark: Any, tmp_path: Path) -> None:
    with start(members=3) as cluster, cluster.connect() as client:
        batches = Batches()

        def run() -> None:
            """All that is there now."""
            frame = (
                spark.readStream.format("remuda")
                .options(address=",".join(cluster.addresses), map="m")
                .options(startingFrom="snapshot", maxRowsPerTrigger=400)
                .load()
            )
            query = frame.writeStream.foreachBatch(batches)
            query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
            query.start().awaitTermination()

        client.sql(
            "CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT) WITH (change_retention = '1 h')"
        )
        client.sql("INSERT INTO m SELECT i, 0 FROM generate_series(1, 300) g(i)")
        run()
        client.sql("UPDATE m SET v = v + 1")
        client.sql("DELETE FROM m WHERE k > 290")
        batches.lose = cluster.pids[1]
        with pytest.raises(Exception, match="lost a member"):
            run()
        run()
        found = {row.k: row.v for row in client.sql("SELECT k, v FROM m")}
        assert batches.final() == found
        assert sum(map(len, batches.by_number.values())) == 300 + 300 + 10
        client.sql("DROP TABLE m")
        client.sql("CREATE TABLE m (k BIGINT PRIMARY KEY, v BIGINT)")
        with pytest.raises(Exception, match=r"UndefinedMap: .*another one has its name now"):
            run()
