"""A program over both faces and PEP 249's module, checked by ``mypy --strict`` in test_typing.py;
it is never run. What ``reveal_type`` shows there is in a golden file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import reveal_type

import pyarrow as pa

import remuda
import remuda.aio
import remuda.dbapi


@dataclass
class Flight:
    carrier: str
    delay: float | None


def blocking() -> None:
    with remuda.connect("127.0.0.1:31010", retry_reads=1, max_connections=4) as client:
        flights = client.map("flights", Flight)
        flights.put(1, Flight("UA", None))
        flights.put_all({2: Flight("AA", 1.0)})
        reveal_type(flights.size())
        reveal_type(flights.put_if_absent(1, Flight("UA", 2.0)))
        reveal_type(flights)
        reveal_type(client.map("flights"))
        reveal_type(client.map("flights", Flight, key_type=int, near_cache=True))
        by_number = client.map("flights", Flight, key_type=int)
        reveal_type(by_number.get(1))
        reveal_type(by_number.get(1, default=0))
        reveal_type(by_number[1])
        reveal_type(by_number.get_all([1]))
        reveal_type(list(by_number.items()))
        reveal_type(by_number.setdefault(1, Flight("UA", None)))
        reveal_type(by_number.count())
        reveal_type(by_number.count(by="carrier"))
        for key in flights.keys(remuda.col("delay") > 30):
            print(key)
        with client.sql("SELECT carrier FROM flights WHERE delay > ?", 30, timeout=5) as cursor:
            reveal_type(cursor.fetchone())
            reveal_type(cursor.fetchall())
            reveal_type(cursor.rowcount)
        reveal_type(client.prepare("SELECT 1")().to_pandas())
        batches: pa.RecordBatchReader = client.sql("SELECT 1").to_arrow_reader()
        print(batches)
        reveal_type(client.execute_many("INSERT INTO t VALUES (?)", [(1,)]))
        reveal_type(client.describe("flights").columns)


async def asynchronous() -> None:
    other = await remuda.aio.connect([("127.0.0.1", 31010)])
    reveal_type(other)
    async with remuda.aio.connect() as client:
        flights = client.map("flights", Flight)
        await flights.put(1, Flight("UA", None))
        reveal_type(await flights.size())
        by_number = client.map("flights", Flight, key_type=int)
        reveal_type(await by_number.get(1))
        reveal_type(await by_number.count())
        reveal_type(await by_number.setdefault(1, Flight("UA", None)))
        reveal_type(await flights.put_if_absent(1, Flight("UA", 2.0)))
        async for key in flights.keys(remuda.col("delay") > 30):
            print(key)
        async with await client.sql("SELECT carrier FROM flights", timeout=5) as cursor:
            reveal_type(await cursor.fetchone())
            async for row in cursor:
                reveal_type(row)
        reveal_type(await client.execute_many("INSERT INTO t VALUES (?)", [(1,)]))
        reveal_type((await client.describe("flights")).columns)


def by_pep_249() -> None:
    with remuda.dbapi.connect(paramstyle="named") as connection, connection.cursor() as cursor:
        reveal_type(cursor.execute("SELECT :a", {"a": 1}).fetchall())
        reveal_type(cursor.description)
        try:
            connection.rollback()
        except connection.NotSupportedError as error:
            reveal_type(error.sqlstate)
