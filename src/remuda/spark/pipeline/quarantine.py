"""Keep the rows that were put aside, each with its reasons and the run that refused it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import JSON, TIMESTAMPTZ, VARCHAR, array
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.expectations import REASONS
from remuda.spark.pipeline.quoting import quoted
from remuda.spark.pipeline.target_files import local_path, replace_folder

COLUMNS: Final = (
    Column("id", VARCHAR, nullable=False),
    Column("pipeline", VARCHAR),
    Column("run", VARCHAR),
    Column("view", VARCHAR),
    Column("reasons", array(VARCHAR)),
    Column("record", JSON),
    Column("at", TIMESTAMPTZ),
)
"""Of a map of rows that were put aside: ``record`` is the row."""


def make_map(context: Context, name: str) -> None:
    schema = MapSchema(name=name, columns=COLUMNS, key=("id",), partition_by=("id",))
    with context.client() as client:
        client.create_map(schema, if_not_exists=True)


def keep(context: Context, aside: Mapping[str, DataFrame], rows: int, *, again: bool) -> None:
    """Write ``aside`` (view -> rows with ``_reasons``), ``rows`` in all. ``again``: the run may
    have been tried before, and the rows that it kept then are replaced."""
    quarantine = context.pipeline.quarantine
    if quarantine is None or not (rows or again):
        return
    with context.at(1, f"quarantine: {quarantine.label}"):
        if quarantine.map is not None:
            make_map(context, quarantine.map)
            if again:
                with (
                    context.client() as client,
                    client.sql(
                        f"DELETE FROM {quoted(quarantine.map)} WHERE pipeline = ? AND run = ?",  # noqa: S608
                        context.pipeline.name,
                        context.run,
                    ),
                ):
                    pass
            for view, frame in aside.items():
                records = record_frame(context, view, frame)
                options = {**context.spark_options(), "map": quarantine.map}
                records.write.format("remuda").options(**options).mode("append").save()
            return
        for view, frame in aside.items():
            replace_folder(context, frame, f"{folder(context, view)}/run={context.run}")


def folder(context: Context, view: str) -> str:
    """Where the rows of ``view`` are kept, as Parquet with all their columns."""
    quarantine = context.pipeline.quarantine
    assert quarantine is not None
    assert quarantine.path is not None
    base = context.path(quarantine.path).rstrip("/")
    if (local := local_path(base)) is not None:
        local.mkdir(parents=True, exist_ok=True)
    return f"{base}/{view}"


def record_frame(context: Context, view: str, frame: DataFrame) -> DataFrame:
    """The rows as ``COLUMNS``."""
    names = [F.col(f"`{name}`") for name in frame.columns if name != REASONS]
    return frame.select(
        F.uuid().alias("id"),
        F.lit(context.pipeline.name).alias("pipeline"),
        F.lit(context.run).alias("run"),
        F.lit(view).alias("view"),
        F.col(REASONS).alias("reasons"),
        F.to_json(F.struct(*names)).alias("record"),
        F.current_timestamp().alias("at"),
    )
