"""``format("remuda")``: the grid as a batch data source of Spark.

Reading::

    spark.read.format("remuda").option("address", a).option("map", "flights").load()
    spark.read.format("remuda").option("address", a).option("query", "SELECT ...").load()

Writing (append = put by key, overwrite = replace the whole content; all rows appear at once)::

    df.write.format("remuda").option("address", a).option("map", "flights").mode("append").save()

Spark finds the source by itself through the module ``pyspark_remuda``. Options: ``options.KNOWN``.
Imports in methods keep the client out of workers that read a cut of a snapshot.
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

from remuda.errors import InputError
from remuda.spark.session import SOURCE_SETTINGS
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.tables import keeping_options, options_of

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
            from remuda.spark import grid_source  # noqa: PLC0415

            return grid_source.stream_schema(options)
        options = options.reads()
        if options.of_a_cut:
            return _cut_reader().open(options).wanted
        from remuda.spark import grid_source  # noqa: PLC0415

        return grid_source.batch_schema(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = Options.parse(options_of(schema, self.options)).reads()
        if options.starting_from is not None:
            raise InputError('option "startingFrom" goes with readStream')
        if options.of_a_cut:
            return _cut_reader().open(options, schema)
        from remuda.spark import grid_source  # noqa: PLC0415

        return grid_source.reader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = Options.parse(options_of(schema, self.options))
        from remuda.spark import grid_source  # noqa: PLC0415

        return grid_source.writer(options, schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from remuda.spark import grid_source  # noqa: PLC0415

        return grid_source.stream_reader(Options.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from remuda.spark import grid_source  # noqa: PLC0415

        return grid_source.stream_writer(Options.parse(self.options), schema, overwrite)


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
    # It replays logs as members do, with their stores: most Python workers never need it.
    from remuda.spark.transfer.cut_reader import CutReader  # noqa: PLC0415

    return CutReader
