"""What ``spark-pipelines`` runs: files of trades, as they come, into a map of Remuda."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

# Spark lends its session to the files of a pipeline while it reads them.
spark = SparkSession.active()

dp.create_sink(
    name="trades",
    format="remuda",
    options={"address": os.environ["REMUDA_ADDRESS"], "map": "trades", "key": "id"},
)


@dp.temporary_view
def clean() -> DataFrame:
    arriving = spark.readStream.schema("id BIGINT, symbol STRING, quantity INT")
    return arriving.parquet(os.environ["TRADES_FOLDER"]).where("quantity > 0")


@dp.append_flow(target="trades")
def into_the_grid() -> DataFrame:
    return spark.readStream.table("clean")
