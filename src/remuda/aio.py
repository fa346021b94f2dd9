"""The client for asyncio: everything of ``remuda.Client``, as coroutines.

    import asyncio

    import remuda.aio

    async def main() -> None:
        async with remuda.aio.connect("127.0.0.1:31010") as client:
            flights = client.map("flights")
            first, second = await asyncio.gather(flights.get(1), flights.get(2))
            async for row in await client.sql("SELECT carrier, delay FROM flights"):
                print(row.carrier, row.delay)

    asyncio.run(main())

A client belongs to the event loop that it was connected on; any number of its tasks may use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.first_use import on_first_use

if TYPE_CHECKING:
    from remuda.client.asynchronous.client import Client
    from remuda.client.asynchronous.connect import connect
    from remuda.client.asynchronous.cursor import Cursor
    from remuda.client.asynchronous.ids import Ids
    from remuda.client.asynchronous.jobs import Job
    from remuda.client.asynchronous.listener import Listener
    from remuda.client.asynchronous.map import Map
    from remuda.client.asynchronous.near_map import NearMap
    from remuda.client.asynchronous.prepared import Statement
    from remuda.client.asynchronous.transaction import Transaction
    from remuda.client.operations.row_writer import JobWriter

__all__ = [
    "Client",
    "Cursor",
    "Ids",
    "Job",
    "JobWriter",
    "Listener",
    "Map",
    "NearMap",
    "Statement",
    "Transaction",
    "connect",
]

__getattr__ = on_first_use(
    globals(),
    {
        "Client": "remuda.client.asynchronous.client",
        "Cursor": "remuda.client.asynchronous.cursor",
        "Job": "remuda.client.asynchronous.jobs",
        "JobWriter": "remuda.client.operations.row_writer",
        "Ids": "remuda.client.asynchronous.ids",
        "Listener": "remuda.client.asynchronous.listener",
        "Map": "remuda.client.asynchronous.map",
        "NearMap": "remuda.client.asynchronous.near_map",
        "Statement": "remuda.client.asynchronous.prepared",
        "Transaction": "remuda.client.asynchronous.transaction",
        "connect": "remuda.client.asynchronous.connect",
    },
)
