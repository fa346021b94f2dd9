"""Shuffle a DataFrame so that each task has rows of one member only.

A write routes its rows inside its tasks anyway, each task to all members; that is faster while
members are few. With many members, fewer connections and larger frames pay for the shuffle.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from remuda.client.network.login import of_options
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind
from remuda.datatypes.view import View
from remuda.errors import InputError, UndefinedColumn
from remuda.limits import PARTITIONS
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.types import spark_type

_TASK: Final = "__remuda_task"


def co_partitioned(
    frame: DataFrame,
    address: str,
    map: str,  # noqa: A002 (a map is what it is)
    *,
    tasks_per_member: int = 1,
    **security: str,
) -> DataFrame:
    """``frame`` in ``members x tasks_per_member`` partitions, each with rows of one member of the
    grid, as the map's partitions lie now (rows find their owners when they have moved since).

    A replicated map needs no such thing, and the frame comes back as it is. Raises UndefinedMap,
    UndefinedColumn, InputError, MemberUnavailable.
    """
    if tasks_per_member < 1:
        raise InputError("tasks_per_member must be at least 1")
    given = {("key" if name == "tls_key" else name): security[name] for name in security}
    with connect(address, of_options(given)) as client:
        schema, view = client.describe(map), client.cluster_info().view
    if schema.replicated:
        return frame
    tasks = task_of_partition(view, tasks_per_member)
    table = F.array(*(F.lit(task) for task in tasks))
    task = F.element_at(table, partition_of(frame, schema) + 1)
    count = max(tasks) + 1
    return frame.withColumn(_TASK, task).repartitionById(count, F.col(_TASK)).drop(_TASK)


def partition_of(frame: DataFrame, schema: MapSchema) -> SparkColumn:
    """The partition of each row, as the grid computes it: ``pmod(xxhash64(...), 271)``."""
    hashed = []
    for name in schema.partition_by:
        if name not in frame.columns:
            raise UndefinedColumn(
                f"column {name} of map {schema.name}, which says where rows belong, is not in the "
                "DataFrame"
            )
        hashed.append(_hashed(frame, schema.column(name)))
    return F.pmod(F.xxhash64(*hashed), F.lit(PARTITIONS)).cast("int")


def _hashed(frame: DataFrame, column: Column) -> SparkColumn:
    # The hash of 5 as INTEGER is not that of 5 as BIGINT: each in the map's type.
    value = frame[f"`{column.name.replace('`', '``')}`"].cast(spark_type(column.type))
    if column.type.kind is Kind.UUID:
        return F.lower(value)
    return value


def task_of_partition(view: View, tasks_per_member: int) -> list[int]:
    """For each partition the task that gets it; tasks are numbered from 0 without gaps."""
    numbers: dict[tuple[int, int], int] = {}
    found = []
    for partition, owner in enumerate(view.owners):
        place = owner, partition % tasks_per_member
        found.append(numbers.setdefault(place, len(numbers)))
    return found
