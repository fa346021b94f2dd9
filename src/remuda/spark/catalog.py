"""All maps of a grid at a glance, and as temporary views of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from remuda.client.blocking.client import Client
from remuda.client.network.login import of_options
from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import NotSupported, UndefinedMap
from remuda.spark.frames import Option, read
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.types import spark_schema, spark_type

_SCHEMA: Final = (
    "map string, key array<string>, replicated boolean, "
    "columns array<struct<name: string, type: string, spark_type: string, nullable: boolean>>"
)


@dataclass(frozen=True, slots=True)
class Views:
    """``created``: the names of the views; ``skipped``: maps that Spark cannot read, and why."""

    created: tuple[str, ...]
    skipped: dict[str, str]


def maps(spark: SparkSession, address: str, **security: str) -> DataFrame:
    """A row for each map that the user may see: ``map``, ``key`` (empty: rows have none that users
    see), ``replicated`` and ``columns``, each with its name, its type in SQL and in Spark (NULL: it
    has none there), and whether it may be NULL. ``security``: as the options of the source. Raises
    MemberUnavailable, ..."""
    rows = [
        (
            schema.name,
            [] if schema.has_row_ids else list(schema.key),
            schema.replicated,
            [(c.name, str(c.type), _spark_name(c), c.nullable) for c in schema.shown],
        )
        for schema in _schemas(address, security)
    ]
    return spark.createDataFrame(rows, _SCHEMA)


def create_views(
    spark: SparkSession,
    address: str,
    names: Sequence[str] = (),
    *,
    prefix: str = "",
    **options: Option,
) -> Views:
    """A temporary view for each map (or each of ``names``), called as the map, behind ``prefix``.

    ``options`` are those of the source: ``at``, ``partitions_per_member``, ``user``, ... A map with
    a column that Spark has no type for is skipped, unless it was named. Raises UndefinedMap,
    NotSupported, MemberUnavailable, ...
    """
    security = Options.parse({"address": address, **{k: str(v) for k, v in options.items()}})
    with connect(address, security.security) as client:
        found = {schema.name: schema for schema in _all(client)}
    missing = [name for name in names if name not in found]
    if missing:
        raise UndefinedMap(
            f'map "{missing[0]}" does not exist', detail=f"maps: {', '.join(found) or 'none'}"
        )
    created, skipped = [], {}
    for name in names or found:
        try:
            spark_schema(found[name].shown)
        except NotSupported as error:
            if names:
                raise
            skipped[name] = error.message
            continue
        frame = read(spark, address, name, **options)  # type: ignore[arg-type]
        frame.createOrReplaceTempView(f"`{(prefix + name).replace('`', '``')}`")
        created.append(prefix + name)
    return Views(tuple(created), skipped)


def _schemas(address: str, security: dict[str, str]) -> list[MapSchema]:
    given = {("key" if name == "tls_key" else name): security[name] for name in security}
    with connect(address, of_options(given)) as client:
        return _all(client)


def _all(client: Client) -> list[MapSchema]:
    return sorted(client.cluster_info().maps, key=lambda schema: schema.name)


def _spark_name(column: Column) -> str | None:
    try:
        return spark_type(column.type).simpleString()
    except NotSupported:
        return None
