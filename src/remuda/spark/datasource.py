"""``format("remuda")``: the grid as a batch data source of Spark.

Reading::

    spark.read.format("remuda").option("address", a).option("map", "flights").load()
    spark.read.format("remuda").option("address", a).option("query", "SELECT ...").load()

Writing (append = put by key, overwrite = replace the whole content; all rows appear at once)::

    df.write.format("remuda").option("address", a).option("map", "flights").mode("append").save()

Spark finds the source by itself through the module ``pyspark_remuda``. Options: ``options.KNOWN``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader
from pyspark.sql.types import StructType

from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import UndefinedColumn
from remuda.spark.grid import connect, connecting, query_columns
from remuda.spark.options import Options
from remuda.spark.reader import RemudaReader
from remuda.spark.session import SOURCE_SETTINGS
from remuda.spark.types import spark_schema
from remuda.spark.writer import RemudaWriter


class RemudaDataSource(DataSource):
    """``format("remuda")``: maps and queries of a grid as DataFrames, DataFrames into maps.

    The options are those of ``remuda.spark.options.KNOWN``; ``address`` is needed always, ``map``
    or ``query`` for reading, ``map`` for writing. A write is one staged job: its rows appear
    together when it succeeds; mode ``append`` adds or replaces entries by key, ``overwrite``
    replaces all. Errors are Remuda's own, inside Spark's. Spark makes the object anew in each
    process.
    """

    @classmethod
    def name(cls) -> str:
        return "remuda"

    def schema(self) -> StructType:
        options = Options.parse(self.options).reads()
        with connect(options.address, options.security) as client:
            if options.query is not None:
                columns = query_columns(client, options.query)
                return spark_schema(_chosen("the query", columns, options.columns))
            assert options.map is not None
            found = client.describe(options.map)
        return spark_schema(_chosen(f"map {found.name}", found.columns, options.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = Options.parse(self.options).reads()
        described: MapSchema | None = None
        if options.map is not None:
            with connect(options.address, options.security) as client:
                described = client.describe(options.map)
        return RemudaReader(options, schema, described, connecting(options.security))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = Options.parse(self.options)
        return RemudaWriter.begin(options, schema, overwrite, connecting(options.security))


def _chosen(where: str, columns: tuple[Column, ...], names: Sequence[str]) -> tuple[Column, ...]:
    if not names:
        return columns
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise UndefinedColumn(
                f"{where} has no column {name}", detail=f"it has {', '.join(by_name)}"
            )
    return tuple(by_name[name] for name in names)


def read(
    spark: SparkSession,
    address: str,
    map: str | None = None,  # noqa: A002 (a map is what it is)
    *,
    query: str | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
    partitions_per_member: int = 1,
    at: int | None = None,
    **security: str,
) -> DataFrame:
    """A map, or the result of a query that the grid runs, as a DataFrame.

    Either ``map`` or ``query`` is given. ``columns`` and ``where`` (SQL) are applied by the
    members, before anything travels. ``at`` is a hybrid timestamp of the grid; by default the
    newest. ``security``: ``user``, ``password``, ``ca``, ``certificate``, ``tls_key``, as the
    options are named. Raises InputError, UndefinedMap, UndefinedColumn, MemberUnavailable, inside
    Spark's exceptions.
    """
    values: Mapping[str, str | None] = {
        "address": address,
        "map": map,
        "query": query,
        "columns": ",".join(columns) or None,
        "where": where,
        "partitions_per_member": str(partitions_per_member),
        "at": None if at is None else str(at),
        **security,
    }
    prepare(spark)
    reader = spark.read.format("remuda")
    for name, value in values.items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load()


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
