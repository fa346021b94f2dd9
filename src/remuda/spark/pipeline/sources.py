"""Open a source: a DataFrame of what is there, or of what comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from remuda.errors import InputError, NotSupported
from remuda.spark.loading.splits import find_files
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.durations import parse_duration
from remuda.spark.pipeline.model import Source

_FILES_THAT_SPARK_INFERS: Final = ("parquet", "csv", "json", "delta")


def open_source(context: Context, source: Source) -> DataFrame:
    """Raises ``PipelineInvalid`` and its kin for what Spark or the cluster does not find."""
    with context.at(source.line, f"source {source.name}"):
        frame = _stream(context, source) if source.stream else _batch(context, source)
        if source.watermark is not None:
            # Spark has units of its own; seconds are among them.
            delay = f"{parse_duration(source.watermark.delay):.3f} seconds"
            frame = frame.withWatermark(source.watermark.column, delay)
        return frame


def _batch(context: Context, source: Source) -> DataFrame:
    if source.format == "arrow":
        return _arrow(context, source)
    paths = [context.path(path) for path in source.paths]
    reader = context.spark.read.format(_name(context, source)).options(**_options(context, source))
    if source.schema is not None:
        reader = reader.schema(context.values.fill(source.schema))
    elif source.format == "csv" and "inferSchema" not in source.options:
        reader = reader.option("inferSchema", "true")
    try:
        # Delta and others take exactly one path.
        return reader.load(paths if len(paths) > 1 else paths[0]) if paths else reader.load()
    except Exception as error:
        if source.format == "jdbc" and "driver" in str(error).lower():
            raise InputError(
                "there is no JDBC driver for this URL on Spark's class path",
                hint="Name its package or file: spark: {packages: [group:artifact:version]}.",
            ) from None
        raise


def _stream(context: Context, source: Source) -> DataFrame:
    reader = context.spark.readStream.format(_name(context, source))
    reader = reader.options(**_options(context, source))
    paths = [context.path(path) for path in source.paths]
    if len(paths) > 1:
        raise NotSupported("a stream reads one path", hint="A path may hold wildcards: in/*.csv.")
    if source.schema is not None:
        reader = reader.schema(context.values.fill(source.schema))
    elif source.format in _FILES_THAT_SPARK_INFERS[:3]:
        # A stream must know its columns before it reads: those of the files that are there.
        reader = reader.schema(_batch(context, source).schema)
    return reader.load(paths[0]) if paths else reader.load()


def _name(context: Context, source: Source) -> str:
    if source.format == "spark":
        return context.values.fill(source.options["provider"])
    return source.format


def _options(context: Context, source: Source) -> dict[str, str]:
    options = context.values.fill_all(source.options)
    options.pop("provider", None)
    if source.format == "remuda":
        return {**context.spark_options(source.grid), **options}
    return options


def _arrow(context: Context, source: Source) -> DataFrame:
    """Arrow IPC files, a task each: Spark has no reader of them."""
    files = [file for path in source.paths for file in find_files(context.path(path))]
    try:
        first = _reader(files[0]).schema
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{files[0]} cannot be read as arrow: {error}") from None
    plain = pa.schema([pa.field(f.name, _plain(f.type)) for f in first])
    schema = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    target = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for found in _batches(files[number]):
                    yield from _fitted(found, target, files[number])

    numbers = context.spark.range(0, len(files), 1, len(files))
    return numbers.mapInArrow(read, schema)


def _fitted(found: pa.Table, target: pa.Schema, path: str) -> list[pa.RecordBatch]:
    """As Spark wants the columns. Raises ``InputError`` for another layout, and for values that
    would change, such as parts of microseconds."""
    try:
        return found.select(target.names).cast(target).to_batches()  # type: ignore[no-any-return]
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise InputError(f"{path} does not have the columns of the first file: {error}") from None


def _reader(path: str) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    mapped = pa.memory_map(path)
    try:
        return pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped)


def _batches(path: str) -> Iterator[pa.Table]:
    reader = _reader(path)
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])
    else:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without what Spark does not know: dictionaries, large and view layouts, units."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(
            kind.bit_width, pa.decimal128(20, 0)
        )
    if pa.types.is_float16(kind):
        return pa.float32()
    return kind
