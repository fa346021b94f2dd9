"""``format("remuda")``: the grid as a batch data source of Spark.

Reading::

    spark.read.format("remuda").option("address", a).option("map", "flights").load()
    spark.read.format("remuda").option("address", a).option("query", "SELECT ...").load()

Writing (append = put by key, overwrite = replace the whole content; all rows appear at once)::

    df.write.format("remuda").option("address", a).option("map", "flights").mode("append").save()

Spark finds the source by itself through the module ``pyspark_remuda``. Options: ``options.KNOWN``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from remuda.datatypes.schema import MapSchema
from remuda.errors import InputError
from remuda.spark.session import SOURCE_SETTINGS
from remuda.spark.streams.reader import RemudaStreamReader, stream_fields
from remuda.spark.streams.writer import ForeachBatchWriter, RemudaStreamWriter
from remuda.spark.transfer.grid import connect, connecting, query_columns
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.reader import RemudaReader
from remuda.spark.transfer.tables import keeping_options, options_of
from remuda.spark.transfer.types import chosen_schema
from remuda.spark.transfer.writer import RemudaWriter

if TYPE_CHECKING:
    from remuda.spark.transfer.cut_reader import CutReader


class RemudaDataSource(DataSource):
    """``format("remuda")``: maps and queries of a grid as DataFrames, DataFrames into maps.

    The options are those of ``remuda.spark.transfer.options.KNOWN``; ``address`` is needed always,
    ``map`` or ``query`` for reading, ``map`` for writing. A write is one staged job: its rows
    appear together when it succeeds; mode ``append`` adds or replaces entries by key, ``overwrite``
    replaces all. Errors are Remuda's own, inside Spark's. Spark makes the object anew in each
    process.
    """

    @classmethod
    def name(cls) -> str:
        return "remuda"

    def schema(self) -> StructType:
        return keeping_options(self._schema(), self.options)

    def _schema(self) -> StructType:
        options = Options.parse(self.options)
        if options.starting_from is not None:
            with connect(options.address, options.security) as client:
                return stream_fields(client.describe(options.streams()), options)
        options = options.reads()
        if options.of_a_cut:
            return _cut_reader().open(options).wanted
        with connect(options.address, options.security) as client:
            if options.query is not None:
                columns = query_columns(client, options.query)
                return chosen_schema("the query", columns, options.columns)
            assert options.map is not None
            found = client.describe(options.map)
        return chosen_schema(f"map {found.name}", found.columns, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = Options.parse(options_of(schema, self.options)).reads()
        if options.starting_from is not None:
            raise InputError('option "startingFrom" goes with readStream')
        if options.of_a_cut:
            return _cut_reader().open(options, schema)
        described: MapSchema | None = None
        if options.map is not None:
            with connect(options.address, options.security) as client:
                described = client.describe(options.map)
        return RemudaReader(options, schema, described, connecting(options.security))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = Options.parse(options_of(schema, self.options))
        if options.of_stream is not None:
            connect_ = connecting(options.security)
            return ForeachBatchWriter(
                RemudaStreamWriter.begin(options, schema, overwrite, connect_)
            )
        return RemudaWriter.begin(options, schema, overwrite, connecting(options.security))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = Options.parse(self.options)
        with connect(options.address, options.security) as client:
            described = client.describe(options.streams())
        return RemudaStreamReader(options, schema, described, connecting(options.security))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        options = Options.parse(self.options)
        return RemudaStreamWriter.begin(options, schema, overwrite, connecting(options.security))


def prepare(spark: SparkSession) -> SparkSession:
    """Make a session that others made ready: the source registered, filters pushed, TIME known.

    It also becomes the session of this thread: Spark looks for sources of the format in that one
    and in no other, so that a session made by another thread would know none.
    """
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(RemudaDataSource)
    for name, value in SOURCE_SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def _cut_reader() -> type[CutReader]:
    # It replays as members do, with their engine: seconds of imports in every Python worker.
    from remuda.spark.transfer.cut_reader import CutReader  # noqa: PLC0415

    return CutReader
