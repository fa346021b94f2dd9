"""Statements by key at PostgreSQL's door, for ``calls.py``: a client that sends the messages of
asyncpg or libpq, for prepared statements and for texts with literals, alone and in transactions,
and does no more than wait for ReadyForQuery."""

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
IN_TRANSACTION = {
    b"change\0": 'UPDATE items SET stock = stock + $2 WHERE "__key" = $1',
    b"read\0": 'SELECT stock FROM items WHERE "__key" = $1',
    b"new\0": (
        'INSERT INTO items ("__key", name, category, price, stock) '
        "VALUES ($1 + 1000000, 'new', 'new', 1, $2)"
    ),
}
READY = tuple([b"Z\0\0\0\5" + status for status in (b"I", b"T", b"E")])


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
    parses = [
        name + SELECT.encode() + b"\0" + struct.pack("!hI", 1, oid) for oid, name in NAMES.items()
    ]
    for name, text in IN_TRANSACTION.items():
        parses.append(name + text.encode() + b"\0" + struct.pack("!h", 0))
    parses.append(INSERTED + b"\0" + INSERT.encode() + b"\0" + struct.pack("!h", 0))
    for parse in parses:
        prepared = await client.ask(message(b"P", parse) + SYNC)
        assert prepared.startswith(message(b"1")), prepared
    return client


def bind(name: bytes, key: bytes) -> bytes:
    """The key and all columns in binary form."""
    head = b"\0" + name + struct.pack("!hhhi", 1, 1, 1, len(key))
    return message(b"B", head + key + struct.pack("!hh", 1, 1))


def by_pgbench(name: bytes, *values: int) -> bytes:
    """With ``-M prepared``: all in text form."""
    texts = [str(value).encode() for value in values]
    body = b"\0" + name + struct.pack("!hh", 0, len(texts))
    body += b"".join([struct.pack("!i", len(text)) + text for text in texts])
    return message(b"B", body + struct.pack("!h", 0)) + execute(0) + SYNC


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

    async def transaction(number: int) -> None:
        """A small one of ``pgbench -M prepared``: a row is changed and read, another one is new."""
        key = own[number]
        for said, data in (
            (b"BEGIN", message(b"Q", b"BEGIN;\0")),
            (b"UPDATE 1", by_pgbench(b"change\0", key, 1)),
            (b"SELECT 1", by_pgbench(b"read\0", key)),
            (b"INSERT 0 1", by_pgbench(b"new\0", key, 1)),
            (b"COMMIT", message(b"Q", b"END;\0")),
        ):
            found = await client.ask(data)
            assert said in found, found

    return {
        "door: UPDATE with new literals": changed,
        "door: INSERT that takes a number": inserted,
        "door: INSERT that takes a number, with new literals": inserted_by_text,
        "door: transaction of three statements by key": transaction,
        "door: own key as asyncpg reads": read(own, by_asyncpg),
        "door: own key as psycopg reads": read(own, by_psycopg),
        "door: another member's key": read(other, by_asyncpg),
        "door: another member's key as psycopg reads": read(other, by_psycopg),
    }
