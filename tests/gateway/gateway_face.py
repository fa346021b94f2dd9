"""A member in a loop of its own in a thread, and what tests ask of it and its gateway."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from remuda.config import MemberConfig
from remuda.member.member import Member
from remuda.world import system_world

TABLE = """CREATE TABLE flights (
    id BIGINT PRIMARY KEY, carrier VARCHAR(2) NOT NULL, small SMALLINT, ok BOOLEAN,
    delay DOUBLE PRECISION, price DECIMAL(7,2), day DATE, at TIME, moment TIMESTAMP,
    tags TEXT[], raw BYTEA, doc JSON,
    code UUID, span INTERVAL)"""
ROWS = """INSERT INTO flights VALUES
    (1, 'UA', -3, true, 1.5, 12.50, '2024-02-29', '10:11:12', '2024-02-29 10:11:12', ARRAY['a','b'],
     '\\x00ff', '{"k": [1]}', '00112233-4455-6677-8899-aabbccddeeff', '1 mon 2 days 03:04:05.5'),
    (2, 'DL', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


@dataclass
class Face:
    """``http`` and ``user`` are host:port of the gateway and of the member."""

    http: str
    user: str
    member: Any
    loop: asyncio.AbstractEventLoop

    @property
    def host(self) -> str:
        return self.http.partition(":")[0]

    @property
    def port(self) -> int:
        return int(self.http.partition(":")[2])

    def post(self, query: str, **fields: Any) -> requests.Response:
        body = {"queryType": "SQL", "query": query, **fields}
        return requests.post(f"http://{self.http}/query.json", json=body, timeout=60)

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(f"http://{self.http}{path}", timeout=60, **options)

    def gauges(self) -> dict[str, int]:
        async def ask() -> dict[str, int]:
            return dict(self.member.gauges())

        return asyncio.run_coroutine_threadsafe(ask(), self.loop).result(30)


@contextmanager
def serving(config: MemberConfig) -> Iterator[tuple[Member, asyncio.AbstractEventLoop]]:
    """A member in a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def started() -> Member:
        member = Member(config, system_world())
        await member.start()
        return member

    member = asyncio.run_coroutine_threadsafe(started(), loop).result(60)
    try:
        yield member, loop
    finally:
        asyncio.run_coroutine_threadsafe(member.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
