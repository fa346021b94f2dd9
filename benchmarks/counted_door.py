"""Statements by key at PostgreSQL's door, for ``calls.py``: a client that sends the messages of
asyncpg or libpq, for prepared reads and for texts with literals, and does no more than wait for
ReadyForQuery."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from counted_loop import CountingLoop
from counted_operations import NUMBERED, Grid, Operation

INSERT, INSERTED = "INSERT INTO numbered (name) VALUES ($1) RETURNING id", b"numbered"
"""A text, and the name under which it is prepared."""
SELECT = 'SELECT name, category, price, stock FROM items WHERE "__key" = $1'
INT2, INT8 = 21, 20
NAMES = {INT2: b"of int2\0", INT8: b"of int8\0"}
"""Prepared statements, by the type that is declared for the key."""
READY = b"Z\0\0\0\5I"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def messages(data: bytes) -> int:
    """How many messages of PostgreSQL's protocol these bytes are."""
    count = at = 0
    while at < len(data):
        at += 1 + struct.unpack_from("!i", data, at + 1)[0]
        count += 1
    return count


BIND_COMPLETE = message(b"2")
SYNC = message(b"S")


class RawClient(asyncio.BufferedProtocol):
    """One connection: a string of messages out, everything up to ReadyForQuery back."""

    def __init__(self) -> None:
        self._room = bytearray(64 * 1024)
        self._received = b""
        self._answer: asyncio.Future[bytes]
        self._transport: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.speak(messages)

    def get_buffer(self, sizehint: int) -> bytearray:
        del sizehint
        return self._room

    def buffer_updated(self, count: int) -> None:
        self._received += self._room[:count]
        if self._received.endswith(READY):
            self._answer.set_result(self._received)
            self._received = b""

    def ask(self, data: bytes) -> asyncio.Future[bytes]:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._answer

    def close(self) -> None:
        self._transport.close()


async def connected(loop: CountingLoop, address: str) -> RawClient:
    host, _, port = address.rpartition(":")
    _, client = await loop.create_connection(RawClient, host, int(port))
    startup = struct.pack("!i", 3 << 16) + b"user\0bench\0database\0bench\0\0"
    await client.ask(struct.pack("!i", len(startup) + 4) + startup)
    for oid, name in NAMES.items():
        parse = name + SELECT.encode() + b"\0" + struct.pack("!hI", 1, oid)
        await client.ask(message(b"P", parse) + SYNC)
    parse = INSERTED + b"\0" + INSERT.encode() + b"\0" + struct.pack("!h", 0)
    await client.ask(message(b"P", parse) + SYNC)
    return client


def bind(name: bytes, key: bytes) -> bytes:
    """The key and all columns in binary form."""
    head = b"\0" + name + struct.pack("!hhhi", 1, 1, 1, len(key))
    return message(b"B", head + key + struct.pack("!hh", 1, 1))


def by_asyncpg(key: int) -> bytes:
    """It uses the type that the server has told, and wants one row."""
    return bind(NAMES[INT8], struct.pack("!q", key)) + execute(1) + SYNC


def by_psycopg(key: int) -> bytes:
    """It declares the smallest type that holds the number, and asks for the columns."""
    return bind(NAMES[INT2], struct.pack("!h", key)) + message(b"D", b"P\0") + execute(0) + SYNC


def execute(limit: int) -> bytes:
    return message(b"E", b"\0" + struct.pack("!i", limit))


async def at_the_door(grid: Grid) -> dict[str, Operation]:
    """Through the first member: of keys that it owns, and of keys that another member owns."""
    await grid.client.sql(NUMBERED)
    client = await connected(grid.loop, grid.members[0].postgres.address)
    own, other = grid.keys_of(1, 2), grid.keys_of(2, 3)

    def read(keys: list[int], messages: Callable[[int], bytes]) -> Operation:
        async def operation(number: int) -> None:
            found = await client.ask(messages(keys[number]))
            assert found.startswith(BIND_COMPLETE), found
            assert f"name{keys[number]}".encode() in found, found

        return operation

    async def changed(number: int) -> None:
        """As ``pgbench -M simple`` sends it: no text comes twice."""
        text = f'UPDATE items SET stock = stock + {number} WHERE "__key" = {own[number]};'
        found = await client.ask(message(b"Q", text.encode() + b"\0"))
        assert b"UPDATE 1" in found, found

    async def inserted(number: int) -> None:
        """With a number of a sequence, which the first member or another one has."""
        name = f"name{number}".encode()
        found = await client.ask(bind(INSERTED + b"\0", name) + execute(0) + SYNC)
        assert b"INSERT 0 1" in found, found

    async def inserted_by_text(number: int) -> None:
        text = f"INSERT INTO numbered (name) VALUES ('literal{number}') RETURNING id"
        found = await client.ask(message(b"Q", text.encode() + b"\0"))
        assert b"INSERT 0 1" in found, found

    return {
        "door: UPDATE with new literals": changed,
        "door: INSERT that takes a number": inserted,
        "door: INSERT that takes a number, with new literals": inserted_by_text,
        "door: own key as asyncpg reads": read(own, by_asyncpg),
        "door: own key as psycopg reads": read(own, by_psycopg),
        "door: another member's key": read(other, by_asyncpg),
        "door: another member's key as psycopg reads": read(other, by_psycopg),
    }
