"""The data source over a running cluster: the answers of ``RemudaDataSource`` with a client.

It is a module of its own, because a worker that reads a cut of a snapshot needs no client.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from remuda.datatypes.schema import MapSchema
from remuda.spark.streams.reader import RemudaStreamReader, stream_fields
from remuda.spark.streams.writer import ForeachBatchWriter, RemudaStreamWriter
from remuda.spark.transfer.grid import connect, connecting, query_columns
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.reader import RemudaReader
from remuda.spark.transfer.types import chosen_schema
from remuda.spark.transfer.writer import RemudaWriter


def stream_schema(options: Options) -> StructType:
    with connect(options.address, options.security) as client:
        return stream_fields(client.describe(options.streams()), options)


def batch_schema(options: Options) -> StructType:
    with connect(options.address, options.security) as client:
        if options.query is not None:
            columns = query_columns(client, options.query)
            return chosen_schema("the query", columns, options.columns)
        assert options.map is not None
        found = client.describe(options.map)
    return chosen_schema(f"map {found.name}", found.columns, options.columns)


def reader(options: Options, schema: StructType) -> DataSourceReader:
    described: MapSchema | None = None
    if options.map is not None:
        with connect(options.address, options.security) as client:
            described = client.describe(options.map)
    return RemudaReader(options, schema, described, connecting(options.security))


def writer(options: Options, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    connect_ = connecting(options.security)
    if options.of_stream is not None:
        return ForeachBatchWriter(RemudaStreamWriter.begin(options, schema, overwrite, connect_))
    return RemudaWriter.begin(options, schema, overwrite, connect_)


def stream_reader(options: Options, schema: StructType) -> DataSourceStreamReader:
    with connect(options.address, options.security) as client:
        described = client.describe(options.streams())
    return RemudaStreamReader(options, schema, described, connecting(options.security))


def stream_writer(
    options: Options, schema: StructType, overwrite: bool
) -> DataSourceStreamArrowWriter:
    return RemudaStreamWriter.begin(options, schema, overwrite, connecting(options.security))
