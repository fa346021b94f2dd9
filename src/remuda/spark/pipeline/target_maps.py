"""Write a view into a map: the map and its indexes made if need be, all rows at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from remuda.client.blocking.client import Client
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import InvalidDefinition, RemudaError, UndefinedColumn, UndefinedMap
from remuda.spark.failures import written
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.document import nearest
from remuda.spark.pipeline.model import Index, MapTarget, Mode
from remuda.spark.pipeline.quoting import quoted
from remuda.spark.pipeline.report import TargetReport
from remuda.spark.transfer.change_sets import key_positions
from remuda.spark.transfer.fit import SourceColumn, check_key, check_replicated, fit, new_schema
from remuda.spark.transfer.types import spark_type
from remuda.spark.transfer.writer import source_columns

_ROWS: Final = "remuda_rows"
_MODES: Final[Mapping[Mode, tuple[str, Mapping[str, str]]]] = {
    "append": ("append", {}),
    "overwrite": ("overwrite", {}),
    "insert": ("append", {"write": "insert"}),
    "delete": ("append", {"write": "delete"}),
    "changes": ("append", {"write": "changes"}),
}
"""Spark's mode, and options of the data source, for each mode of a target."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """``frame`` has the columns and types of the map. ``created``: the map was made for it."""

    target: MapTarget
    frame: DataFrame
    created: bool


def prepare_map(context: Context, target: MapTarget) -> Prepared:
    """Make the map and its indexes if they are missing; check that the view fits. Raises what
    ``new_schema`` and ``fit`` raise; nothing is left then."""
    with context.at(target.line, target.label):
        frame = cast(context.views[target.source], target.types)
        columns = _columns(frame, target)
        with context.client(target.grid) as client:
            schema, exists = _schema(client, target, columns)
            _check_columns(schema, columns, target)
            if not exists:
                client.create_map(schema)
            try:
                _make_indexes(client, schema, target.indexes)
            except BaseException:
                if not exists:
                    client.drop_map(target.map, if_exists=True)
                raise
        return Prepared(target, frame, not exists)


def prepare_maps(context: Context, prepared: list[Prepared]) -> None:
    """Add all map targets to ``prepared``, one by one: those before a failure are dropped again."""
    for target in context.pipeline.maps:
        prepared.append(prepare_map(context, target))  # noqa: PERF401 (see above)


def check_map(context: Context, target: MapTarget) -> str:
    """The work of ``prepare_map``, without doing it; raises the same errors."""
    with context.at(target.line, target.label):
        frame = cast(context.views[target.source], target.types)
        columns = _columns(frame, target)
        with context.client(target.grid) as client:
            schema, exists = _schema(client, target, columns)
        _check_columns(schema, columns, target)
        for index in target.indexes:
            _check_index(schema, index)
        if not exists:
            return f"map {target.map} does not exist and will be made"
        missing = [i.name for i in target.indexes if i.name not in _index_names(schema)]
        made = f", without the index {', '.join(missing)}, which will be made" if missing else ""
        return f"map {target.map} exists{made}"


def forget_map(context: Context, prepared: Prepared) -> None:
    """Drop the map that was made for a run that failed, unless it has got entries."""
    with context.client(prepared.target.grid) as client:
        if client.map(prepared.target.map).size() == 0:
            client.drop_map(prepared.target.map, if_exists=True)


def write_map(context: Context, prepared: Prepared) -> TargetReport:
    """Write all rows, or none."""
    target = prepared.target
    started = time.perf_counter()
    mode, _ = _MODES[target.mode]

    def write() -> Observation:
        counted = Observation(_ROWS)  # which counts the rows of one run
        frame = latest_rows(prepared.frame, target).observe(
            counted, F.count(F.lit(1)).alias("rows")
        )
        frame.write.format("remuda").options(**write_options(context, target)).mode(mode).save()
        return counted

    with context.at(target.line, target.label):
        counted = written(write)
    rows = int(counted.get["rows"])
    return TargetReport(target.label, rows, time.perf_counter() - started)


def latest_rows(frame: DataFrame, target: MapTarget) -> DataFrame:
    """Of rows with one key the one that is highest in column ``latest``, without that column."""
    if target.latest is None:
        return frame
    rest = [F.col(f"`{name}`") for name in frame.columns if name != target.latest]
    keys = [F.col(f"`{name}`") for name in target.key]
    chosen = F.max_by(F.struct(*rest), F.col(f"`{target.latest}`")).alias("_row")
    return frame.groupBy(*keys).agg(chosen).select("_row.*")


def write_options(context: Context, target: MapTarget) -> dict[str, str]:
    """Options of ``format("remuda")`` for batches and streams."""
    options = {
        **context.spark_options(target.grid),
        "map": target.map,
        **_MODES[target.mode][1],
        **context.values.fill_all(target.options),
    }
    if target.operation is not None:
        options["operation"] = target.operation
    return options


def cast(frame: DataFrame, types: Mapping[str, SqlType]) -> DataFrame:
    """The columns of ``types`` as Spark's equal of those. Raises ``UndefinedColumn``."""
    for name, wanted in types.items():
        if name not in frame.columns:
            raise UndefinedColumn(
                f"types: there is no column {name}",
                detail=f"there are: {', '.join(frame.columns)}",
                hint=nearest(name, frame.columns),
            )
        kind = spark_type(wanted)
        if frame.schema[name].dataType != kind:
            frame = frame.withColumn(name, F.col(f"`{name}`").cast(kind))
    return frame


def _columns(frame: DataFrame, target: MapTarget) -> list[SourceColumn]:
    found = []
    for name, what in ((target.operation, "say the operation"), (target.latest, "order the rows")):
        if name is not None and name not in frame.columns:
            raise UndefinedColumn(
                f"there is no column {name}, which is to {what}",
                detail=f"there are: {', '.join(frame.columns)}",
                hint=nearest(name, frame.columns),
            )
    for column in source_columns(frame.schema):
        wanted = target.types.get(column.name)
        if column.name not in (target.operation, target.latest):
            found.append(
                column if wanted is None else SourceColumn(column.name, wanted, str(wanted))
            )
    return found


def _schema(
    client: Client, target: MapTarget, columns: Sequence[SourceColumn]
) -> tuple[MapSchema, bool]:
    """The schema that the map has or will have, and whether it exists."""
    try:
        schema = client.describe(target.map)
    except UndefinedMap:
        if target.mode == "delete":
            raise
        made = new_schema(
            target.map,
            columns,
            target.key,
            replicated=bool(target.replicated),
            partition_by=target.partition_by,
        )
        return made, False
    check_key(schema, target.key)
    check_replicated(schema, target.replicated)
    if schema.has_row_ids and target.mode != "overwrite":
        raise InvalidDefinition(
            f"map {schema.name} has no key: each run would add its rows once more",
            hint="Give the map a key, or replace what it has: mode: overwrite.",
        )
    return schema, True


def _check_columns(schema: MapSchema, columns: Sequence[SourceColumn], target: MapTarget) -> None:
    if target.mode == "delete":
        key_positions(schema, columns)
    else:
        fit(schema, columns)


def _make_indexes(client: Client, schema: MapSchema, indexes: Sequence[Index]) -> None:
    known = _index_names(client.describe(schema.name))
    for index in indexes:
        _check_index(schema, index)
        if index.name in known:
            continue
        columns = ", ".join(_index_column(column) for column in index.columns)
        text = (
            f"CREATE INDEX IF NOT EXISTS {quoted(index.name)} ON {quoted(schema.name)} "
            f"USING {index.kind} ({columns})"
        )
        with client.sql(text):
            pass


def _check_index(schema: MapSchema, index: Index) -> None:
    names = [column.name for column in schema.columns]
    for column in index.columns:
        name = column.split()[0]
        if name not in names:
            raise UndefinedColumn(
                f"index {index.name}: there is no column {name}",
                detail=f"there are: {', '.join(names)}",
                hint=nearest(name, names),
            )


def _index_names(schema: MapSchema) -> list[str]:
    return [index.name for index in schema.indexes]


def _index_column(column: str) -> str:
    name, *direction = column.split()
    return " ".join([quoted(name), *direction])


def drop_quietly(context: Context, prepared: Sequence[Prepared]) -> None:
    """After a failure: errors that follow from it must not hide it."""
    for one in prepared:
        if one.created:
            try:
                forget_map(context, one)
            except RemudaError as error:
                context.tell(f"map {one.target.map} is left, empty: {error.message}")
