"""The changes of a map as Parquet files: a snapshot first, then every change, each exactly once.

    python examples/change_stream_to_parquet.py

It starts a cluster of its own, writes to a map, streams the changes into a folder in two runs of
one query, and finds in the files what the map holds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

import remuda
import remuda.spark


def stream(spark: SparkSession, address: str, folder: Path) -> None:
    """Write what is new in map ``orders`` below ``folder``, and end."""
    changes = (
        spark.readStream.format("remuda")
        .options(address=address, map="orders", startingFrom="snapshot")
        .load()
    )
    query = (
        changes.writeStream.format("parquet")
        .option("path", str(folder / "changes"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def newest(spark: SparkSession, folder: Path) -> dict[int, str]:
    """What the changes come to: of each key the last one, unless it is a delete."""
    changes = spark.read.parquet(str(folder / "changes"))
    last = F.max_by(F.struct("_change", "state"), "_transaction").alias("last")
    rows = changes.groupBy("id").agg(last).where("last._change <> 'delete'").collect()
    return {row["id"]: row["last"]["state"] for row in rows}


def run(spark: SparkSession, folder: Path) -> dict[int, str]:
    """The whole example; returns what the map holds, and what the files hold as well."""
    with remuda.start(members=2) as cluster, cluster.connect() as client:
        client.sql(
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, state TEXT) "
            "WITH (change_retention = '1 d')"
        )
        client.sql("INSERT INTO orders VALUES (1, 'new'), (2, 'new'), (3, 'new')")
        stream(spark, cluster.address, folder)
        client.sql("UPDATE orders SET state = 'paid' WHERE id < 3")
        client.sql("DELETE FROM orders WHERE id = 3")
        client.map("orders").put(4, {"state": "new"})
        stream(spark, cluster.address, folder)
        held = {row.id: row.state for row in client.sql("SELECT id, state FROM orders")}
    found = newest(spark, folder)
    if found != held:
        raise RuntimeError(f"the files hold {found}, the map {held}")
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(run(remuda.spark.session("change stream to Parquet"), Path(place)))
