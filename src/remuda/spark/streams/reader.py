"""``spark.readStream.format("remuda")``: the changes of a map, from a snapshot of it or from a
moment on.

The changes between two offsets are always the same, so a batch that Spark repeats has the same
rows, whichever members have the partitions by then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from remuda.client.blocking.change_ranges import ChangeRanges
from remuda.client.blocking.client import Client
from remuda.client.blocking.tool_access import change_ranges, read_lease
from remuda.client.requests.change_batches import (
    BEFORE,
    CHANGE,
    COMMIT_TIMESTAMP,
    OWN_COLUMNS,
    TRANSACTION,
    check_not_ahead,
    snapshot_batch,
)
from remuda.client.requests.feeds import Place
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.timestamp import from_micros
from remuda.errors import (
    DuplicateColumn,
    InputError,
    RemudaError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
)
from remuda.limits import PARTITIONS
from remuda.spark.streams.offsets import (
    EARLIEST,
    SNAPSHOT,
    Offset,
    batch_start,
    is_before,
    starting_timestamp,
)
from remuda.spark.transfer.arrow_rows import arrow_schema, without_extensions
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.predicates import quote
from remuda.spark.transfer.reader import Connect, slices
from remuda.spark.transfer.slice_reading import Scan, read_slice
from remuda.spark.transfer.types import spark_schema

LEASE: Final = 600
"""Seconds for which the rows of a snapshot that is being read are kept, from batch to batch."""
REST: Final = from_micros(2_000_000)
"""A stream without changes moves its offset on once in so long, so that it does not expire."""


@dataclass(frozen=True)
class ChangeSlice(InputPartition):
    """The part of some partitions that one task reads: the rows of a snapshot if ``end`` is None,
    else the changes between two places."""

    address: str
    partitions: tuple[int, ...]
    map_id: int
    start: Place
    end: Place | None


class RemudaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans in one process, which lives as long as the query, and reads in others."""

    def __init__(
        self, options: Options, wanted: StructType, schema: MapSchema, connect_: Connect = connect
    ) -> None:
        check_stream_schema(wanted, schema, options)
        self.options = options
        self.wanted = wanted
        self.schema = schema
        self.connect = connect_
        self._client: Client | None = None
        self._until: Place | None = None
        """Where a run of what is available now ends."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    # --- planning -----------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        wanted = self.options.starting_from or ""
        ranges = self._ranges(0)
        timestamp, now = starting_timestamp(wanted), ranges.now()
        if timestamp is None:
            timestamp = ranges.earliest() if wanted.lower() == EARLIEST else now
        check_not_ahead(timestamp, now, 'option "startingFrom"')
        snapshot = wanted.lower() == SNAPSHOT
        offset = Offset.first(self.schema.map_id, timestamp, snapshot=snapshot)
        if snapshot:
            self._hold(offset)
        return offset.document()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self.options.max_rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = Offset.parse(start)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if begin.read is not None:
            return self._further_in_snapshot(begin, begin.read, rows).document()
        if self._until is not None and not is_before(begin.place, self._until):
            return start
        ranges = self._ranges(begin.map_id)
        if rows is None:
            now: Place = (ranges.now(), None, 0)
            end, found = now, int(ranges.changed(begin.place))
        else:
            end, found = ranges.place_after(begin.place, rows)
        if self._until is not None and is_before(self._until, end):
            end = self._until
        if not found and end[0] - begin.place[0] < REST and self._until is None:
            return start
        return begin.behind(end).document()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = (self._ranges(0).now(), None, 0)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raises ChangesExpired when what is wanted is not kept any more."""
        last = Offset.parse(end)
        first = batch_start(Offset.parse(start), last)
        if last.map_id != self.schema.map_id:
            raise UndefinedMap(
                f'map "{self.schema.name}" was dropped since the query began; another one has its '
                "name now",
                hint="Begin the query with a new checkpointLocation.",
            )
        found: list[InputPartition] = []
        view = self._grid().cluster_info().view
        parts = slices(view, self.options.partitions_per_member)
        if first.read is not None:
            stop = PARTITIONS if last.read is None else last.read
            wanted = set(range(first.read, stop))
            found += [
                ChangeSlice(address, mine, first.map_id, first.place, None)
                for address, numbers in parts
                if (mine := tuple(p for p in numbers if p in wanted))
            ]
        if last.read is None and is_before(first.place, last.place):
            self._ranges(first.map_id).changed(first.place)
            found += [
                ChangeSlice(address, numbers, first.map_id, first.place, last.place)
                for address, numbers in parts
            ]
        return found

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _further_in_snapshot(self, begin: Offset, read: int, rows: int | None) -> Offset:
        self._hold(begin)
        if rows is None:
            return begin.within(PARTITIONS)
        total = self._grid().map(self.schema.name).size()
        return begin.within(read + max(1, rows * PARTITIONS // max(total, 1)))

    def _hold(self, offset: Offset) -> None:
        """Keep the rows of a snapshot, as far as they are there: reading them tells otherwise."""
        timestamp = offset.place[0]
        with contextlib.suppress(RemudaError):
            run = f"stream-{offset.map_id}-{timestamp}"
            read_lease(self._grid(), run, timestamp, seconds=LEASE)

    def _grid(self) -> Client:
        if self._client is None:
            self._client = self.connect(self.options.address)
        return self._client

    def _ranges(self, map_id: int) -> ChangeRanges:
        return change_ranges(self._grid(), self.schema.name, map_id)

    # --- reading ------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ChangeSlice)
        target = arrow_schema(self.wanted)
        with self.connect(partition.address) as client:
            for batch in self._batches(client, partition):
                yield exact_changes(batch, target)

    def _batches(self, client: Client, part: ChangeSlice) -> Iterator[pa.RecordBatch]:
        if part.end is not None:
            ranges = change_ranges(client, self.schema.name, part.map_id)
            yield from ranges.read(part.start, part.end, part.partitions)
            return
        names = ", ".join(quote(column.name) for column in self.schema.shown)
        text = f"SELECT {names} FROM {quote(self.schema.name)}"  # noqa: S608 (quoted)
        timestamp = part.start[0]
        scan = Scan(text, (), timestamp, self.options.timeout)
        for batch in read_slice(client, scan, part.partitions):
            if batch.num_rows:
                yield snapshot_batch(batch, self.schema.shown, timestamp)


# --- schemas --------------------------------------------------------------------------------------


def stream_fields(schema: MapSchema, options: Options) -> StructType:
    """The columns of the map, then those of the change."""
    columns: tuple[Column, ...] = tuple(schema.shown)
    rows = spark_schema(columns)
    for column in columns:
        if column.name in OWN_COLUMNS:
            raise DuplicateColumn(
                f'column "{column.name}" of map "{schema.name}" has the name of a column that '
                "streams of changes add",
                hint="Rename it: ALTER TABLE ... RENAME COLUMN.",
            )
    own = [
        StructField(CHANGE, StringType()),
        StructField(COMMIT_TIMESTAMP, TimestampType()),
        StructField(TRANSACTION, LongType()),
    ]
    if options.images == "both":
        own.append(StructField(BEFORE, rows))
    found = StructType([*rows.fields, *own])
    if not options.columns:
        return found
    for name in options.columns:
        if name not in found.names:
            raise UndefinedColumn(
                f'the changes of map "{schema.name}" have no column {name}',
                detail=f"they have {', '.join(found.names)}",
            )
    return StructType([found[name] for name in options.columns])


def check_stream_schema(wanted: StructType, schema: MapSchema, options: Options) -> None:
    """Raises InputError, UndefinedColumn, TypeMismatch."""
    if options.starting_from is None:
        raise InputError(
            'a stream of remuda needs option "startingFrom": snapshot, latest, earliest or a moment'
        )
    starting_timestamp(options.starting_from)
    everything = {field.name: field for field in stream_fields(schema, options)}
    for field in wanted.fields:
        expected = everything.get(field.name)
        if expected is None:
            raise UndefinedColumn(
                f'the changes of map "{schema.name}" have no column {field.name}',
                detail=f"they have {', '.join(everything)}",
            )
        if field.dataType != expected.dataType:
            raise TypeMismatch(
                f'column {field.name} of the changes of map "{schema.name}": expected '
                f"{expected.dataType.simpleString()}, found {field.dataType.simpleString()} in the "
                "schema given to Spark"
            )


def exact_changes(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """The columns that ``target`` names, in its order and types. Raises UndefinedColumn when the
    map has lost one since the query began."""
    arrays = [_exact(_column(batch, field.name), field.type) for field in target]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _exact(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_struct(array.type):
        # By name: the map may have been altered since the query began.
        children = [_exact(_column(array, field.name), field.type) for field in wanted]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    array = without_extensions(array)
    return array if array.type == wanted else array.cast(wanted)


def _column(rows: pa.RecordBatch | pa.StructArray, name: str) -> pa.Array:
    names = rows.schema.names if isinstance(rows, pa.RecordBatch) else [f.name for f in rows.type]
    if name not in names:
        raise UndefinedColumn(
            f"the map has no column {name} any more: it was altered while the query ran",
            detail=f"its changes have {', '.join(names)}",
            hint="Start the query again: it goes on with the columns that there are.",
        )
    return rows.field(name) if isinstance(rows, pa.StructArray) else rows.column(name)
