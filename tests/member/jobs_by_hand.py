"""Jobs as the loader writes them, message by message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.rpc import arrow_stream, codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType


async def job(
    client: Any,
    rows: Sequence[tuple[Any, ...]],
    removed: Sequence[int] = (),
    *,
    overwrite: bool = False,
    insert: bool = False,
    table: str = "t",
    begun: Callable[[], Any] | None = None,
) -> int:
    """Write rows, and remove keys, as a job. The number of rows."""
    begin = user_pb2.JobBegin(map=table, overwrite=overwrite, insert_only=insert)
    handle = await client.ask(RpcType.JOB_BEGIN, begin, user_pb2.JobHandle)
    schema = codec.decode_schema(handle.schema)
    arrow = engine_schema(schema)

    async def write(sequence: int, batch: pa.RecordBatch, *, removal: bool) -> None:
        message = user_pb2.JobWrite(job=handle.job, task="0:0", sequence=sequence, removal=removal)
        body = [arrow_stream.encode(batch.schema, [batch])]
        await client.ask(RpcType.JOB_WRITE, message, user_pb2.Count, body)

    half = len(rows) // 2
    for sequence, part in enumerate((rows[:half], rows[half:])):
        if part:
            columns = [
                pa.array(c, f.type) for c, f in zip(zip(*part, strict=True), arrow, strict=True)
            ]
            await write(sequence, pa.record_batch(columns, schema=arrow), removal=False)
    if removed:
        keys = pa.record_batch(
            [pa.array(removed, arrow.field(0).type)], names=[arrow.field(0).name]
        )
        await write(2, keys, removal=True)
    if begun is not None:
        await begun()
    commit = user_pb2.JobCommit(job=handle.job, tasks=[user_pb2.JobTask(task="0:0")])
    count: int = (await client.ask(RpcType.JOB_COMMIT, commit, user_pb2.Count)).count
    return count
