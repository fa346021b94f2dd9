"""A program of its own, run by ``test_safe_paths.py`` in a folder that it should import nothing
from: a session, a function in Python on its workers, a member inside Spark, the data source."""

from __future__ import annotations

from pyspark.sql.functions import udf

from remuda.spark.hosting.start import start_cluster
from remuda.spark.session import session


def main() -> None:
    spark = session("safe paths", "local[2]", quick=True)

    @udf("long")
    def imported(number: int) -> int:
        import csv  # noqa: PLC0415 (in the worker)
        import statistics  # noqa: PLC0415

        return int(statistics.mean([number, csv.QUOTE_ALL]))

    try:
        assert spark.range(1).select(imported("id")).collect()[0][0] == 0
        with start_cluster(
            spark, members=1, backups=0, memory="256m", replacements=0, timeout=250
        ) as cluster:
            with cluster.connect() as client:
                client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
                client.sql("INSERT INTO t VALUES (7)")
            found = spark.read.format("remuda").option("address", cluster.address).load("t")
            assert [row.id for row in found.collect()] == [7]
    finally:
        spark.stop()
    print("all was found")


main()
