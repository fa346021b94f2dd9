"""Maps as DataFrames and DataFrames into maps, with Remuda's own errors in place of Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from remuda.spark.datasource import prepare
from remuda.spark.failures import explained, written
from remuda.spark.transfer.options import WriteMode

Option = str | int | float | bool | None


def read(
    spark: SparkSession,
    address: str = "",
    map: str | None = None,  # noqa: A002 (a map is what it is)
    *,
    query: str | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
    partitions_per_member: int | None = None,
    at: int | None = None,
    **options: Option,
) -> DataFrame:
    """A map, or the result of a query that the grid runs, as a DataFrame.

    Either ``map`` or ``query`` is given. ``columns`` and ``where`` (SQL) are applied by the
    members, before anything travels. ``at`` is a hybrid timestamp of the grid; by default each job
    takes the newest when it begins. ``options`` are others of the source
    (``spark.transfer.options.KNOWN``), such as ``user``, ``password`` and ``ca``, or ``snapshot``,
    ``cut`` and ``store``, with which a map is read as it was, without a cluster.

    Raises InputError, UndefinedMap, UndefinedColumn, MemberUnavailable.
    """
    prepare(spark)
    reader = spark.read.format("remuda")
    chosen: dict[str, Option] = {
        "address": address or None,
        "map": map,
        "query": query,
        "columns": ",".join(columns) or None,
        "where": where,
        "partitions_per_member": partitions_per_member,
        "at": at,
        **options,
    }
    for name, value in chosen.items():
        if value is not None:
            reader = reader.option(name, _text(value))
    with explained():
        frame = reader.load()
        _ = frame.schema  # Connect looks at the source only when it is asked something
    return frame


def write(
    frame: DataFrame,
    address: str,
    map: str,  # noqa: A002 (a map is what it is)
    *,
    mode: Literal["append", "overwrite"] = "append",
    write: WriteMode = "upsert",
    operation: str | None = None,
    key: str | Sequence[str] = (),
    **options: Option,
) -> None:
    """Write a DataFrame into ``map``: all of it appears at once, or nothing does.

    ``mode`` "overwrite" replaces the whole content. ``write``: "upsert" adds and replaces entries
    by key, "insert" fails when one exists, "delete" removes the entries with the keys of the frame,
    "changes" does what the column ``operation`` says: insert, update, upsert, delete. An unknown
    map is made with ``key``. No key may occur twice. ``options``: ``spark.transfer.options.KNOWN``.

    Raises TypeMismatch, UndefinedColumn, NotNullViolation, UniqueViolation (with a key), and others
    of InputError; JobAborted, MemberUnavailable. Nothing is written then. When members leave or
    are lost while it runs and the grid rolls its job back, the frame is computed and written again.
    """
    prepare(frame.sparkSession)
    chosen: dict[str, Option] = {
        "address": address,
        "map": map,
        "write": write,
        "operation": operation,
        "key": (key if isinstance(key, str) else ",".join(key)) or None,
        **options,
    }
    writer = frame.write.format("remuda").mode(mode)
    for name, value in chosen.items():
        if value is not None:
            writer = writer.option(name, _text(value))
    with explained():
        written(writer.save)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
