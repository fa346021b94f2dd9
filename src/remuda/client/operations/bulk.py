"""Whole tables at once: Arrow and pandas data into a map, as one staged job."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from remuda.client.core.core import Core
from remuda.client.core.tries import MAYBE_AGAIN, Tries, of_write
from remuda.client.network.deadline import GRACE, Deadline
from remuda.client.operations.commit import abort_job, begin_job, commit_job
from remuda.client.operations.job_target import Target
from remuda.client.operations.row_writer import JobWriter, check_not_null
from remuda.client.requests import requests
from remuda.client.values.arrow_stream import encode_stream, pieces
from remuda.client.values.defaults import Defaults
from remuda.client.values.inference import infer_table_schema
from remuda.datatypes.arrow import engine_schema, to_engine
from remuda.datatypes.conformance import check_row_sizes
from remuda.datatypes.schema import ROW_ID, MapSchema
from remuda.errors import (
    DataError,
    InvalidDefinition,
    JobAborted,
    JobInterrupted,
    NotNullViolation,
    NotServed,
    ObjectMismatch,
    RemudaError,
    SchemaChanged,
    TypeMismatch,
)
from remuda.limits import BATCH_ROWS

_CLIENT_ROW_IDS = 0x7FF << 52
"""Keys that clients make for maps without a key of their own; those that members make are below."""


def as_table(data: Any) -> pa.Table | None:
    """Arrow and pandas data as an Arrow table; None for everything else. Raises ObjectMismatch."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    # A DataFrame exists only after its module was imported (another thread may be about to).
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if frame is not None and isinstance(data, frame):
        try:
            return pa.Table.from_pandas(data, preserve_index=False)
        except (pa.ArrowException, ValueError) as problem:  # which value, in which column
            raise ObjectMismatch(
                "the DataFrame cannot be stored", detail="; ".join(map(str, problem.args))
            ) from problem
    return None


async def create_for(
    core: Core,
    name: str,
    found: pa.Schema,
    key: Sequence[str] | None,
    replicated: bool,
    *,
    deadline: Deadline,
) -> MapSchema:
    """Create the map that the table defines; another's, when someone else was first."""
    schema = infer_table_schema(name, found, key or (), replicated)
    call = requests.create_map(schema, True)
    return (await core.call(None, call, deadline=deadline)).schema


def check_key(schema: MapSchema, key: Sequence[str] | None) -> None:
    if key is not None and tuple(key) != schema.key:
        raise InvalidDefinition(
            f'map "{schema.name}" exists with the key ({", ".join(schema.key)}), '
            f"not ({', '.join(key)})"
        )


async def put_table(
    core: Core, schema: MapSchema, table: pa.Table, deadline: Deadline, ttl: int | None = None
) -> int:
    """Upsert the rows of a table: all checked before anything is sent, visible together."""
    return await put_batches(core, schema, engine_batches(schema, table), deadline, ttl)


async def put_batches(
    core: Core,
    schema: MapSchema,
    batches: Sequence[pa.RecordBatch],
    deadline: Deadline,
    ttl: int | None = None,
) -> int:
    """Upsert rows in engine form, visible together. Raises SchemaChanged when the map has got
    another schema than the one that they were made for."""
    deadline = core.lasting(deadline)
    if core.in_transaction:
        return await _put_in_transaction(core, schema, batches, ttl, deadline)
    tries: Tries | None = None
    while True:
        committing: list[str] = []
        try:
            return await _put_batches(core, schema, batches, committing, ttl=ttl, deadline=deadline)
        except JobAborted as error:
            # Before its commit, a job ends only when the grid rolls it back.
            if error.may_have_run or (committing and not isinstance(error, JobInterrupted)):
                raise
            tries = tries or core.tries(core.settings.retry_writes, deadline)
            await tries.after(error)
        except MAYBE_AGAIN as error:
            tries = tries or core.tries(core.settings.retry_writes, deadline)
            if committing:
                await tries.after(of_write(error))
            elif error.may_have_run:  # nothing that was staged has become visible, whatever broke
                await tries.after(NotServed(error.message, member=error.member))
            else:
                await tries.after(error)


async def _put_in_transaction(
    core: Core,
    schema: MapSchema,
    batches: Sequence[pa.RecordBatch],
    ttl: int | None,
    deadline: Deadline,
) -> int:
    """The commit makes them visible, together with everything else."""
    asked = requests.MapRequests(schema, core.clock, core.view.number)
    rows = 0
    for batch in batches:
        for piece in pieces(batch):
            call = asked.put_batch(encode_stream(piece.schema, [piece]), ttl)
            rows += await core.call(None, call, deadline=_bounded(deadline))
    return rows


async def _put_batches(
    core: Core,
    schema: MapSchema,
    batches: Sequence[pa.RecordBatch],
    committing: list[str],
    *,
    ttl: int | None,
    deadline: Deadline,
) -> int:
    """``committing`` gets the name of the job when its commit begins."""
    bounded = _bounded(deadline)
    job, schema_there = await begin_job(core, schema.name, False, "put_all", deadline=bounded)
    try:
        if (schema_there.map_id, schema_there.version) != (schema.map_id, schema.version):
            raise SchemaChanged(f'map "{schema.name}" has changed since its rows were made')
        target = Target(job, schema_there, core.view)
        async with JobWriter(target, "0:0", core, deadline) as writer:
            for batch in batches:
                await writer.write(batch)
            task = await writer.finish()
        committing.append(job)
        rows = await commit_job(core, job, [task], ttl, bounded)
        core.wrote(schema.name)
        return rows
    except BaseException:
        with contextlib.suppress(RemudaError):  # what broke the job may be why this fails
            await abort_job(core, job, _bounded(deadline.later(GRACE)))
        raise


def _bounded(deadline: Deadline) -> Deadline | None:
    """None: as long as each of the requests may take."""
    return None if deadline.seconds is None else deadline


def engine_batches(schema: MapSchema, table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in the engine's form; ObjectMismatch names map, field, expected and found type."""
    unknown = [name for name in table.column_names if name not in schema.position]
    if unknown:
        raise ObjectMismatch(
            f'map "{schema.name}" has no column for the field "{unknown[0]}"',
            detail="columns: " + ", ".join(str(column) for column in schema.columns),
        )
    target, defaults = engine_schema(schema), Defaults(schema)
    arrays = []
    for column, field in zip(schema.columns, target, strict=True):
        position = table.schema.get_field_index(column.name)
        if position < 0:
            if column.name == ROW_ID:
                arrays.append(row_ids(table.num_rows))
                continue
            if column.default is not None:
                arrays.append(defaults.array(schema.position[column.name], table.num_rows))
                continue
            if not (column.nullable or column.generated):
                raise ObjectMismatch(
                    f'map "{schema.name}", field "{column.name}": '
                    f"expected {column.type}, found no such column"
                )
            arrays.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            arrays.append(to_engine(table.column(position), column.type))
        except (DataError, TypeMismatch) as error:
            raise ObjectMismatch(
                f'map "{schema.name}", field "{column.name}": {error.message}'
            ) from error
    whole = pa.RecordBatch.from_arrays(arrays, schema=target)
    try:
        check_not_null(schema.given, whole)
    except NotNullViolation as error:
        raise ObjectMismatch(error.message) from error
    check_row_sizes(schema, whole)
    return [whole.slice(at, BATCH_ROWS) for at in range(0, whole.num_rows, BATCH_ROWS)]


def row_ids(rows: int) -> pa.Array:
    """Keys for rows of a map that makes its own: a random stretch of a range for clients."""
    first = _CLIENT_ROW_IDS + secrets.randbits(51)
    return pa.array(range(first, first + rows), pa.int64())
