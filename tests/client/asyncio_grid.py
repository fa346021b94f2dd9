"""What the tests of the asyncio face share: a client of the fake members, and looks at it."""

from __future__ import annotations

import asyncio

import pyarrow as pa

import remuda
import remuda.aio
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.rpc.messages import user_pb2

COLUMNS = (Column("id", sql.BIGINT),)

GET = user_pb2.MAP_GET


def page(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(start, start + count), pa.int64())})


def run(grid, scenario, **options):
    async def main():
        async with remuda.aio.connect(grid.addresses, **options) as client:
            await scenario(client)

    asyncio.run(main())


def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.001)

    return wait()


def loads(client):
    """Requests and conversations under way, over all connections."""
    return sum(line.load for port in client._core.members.ports for line in port._lines)
