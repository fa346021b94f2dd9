"""The wire: round trips, pipelined requests and streams of large bodies, beside bare sockets.

Two processes on loopback. ``python benchmarks/rpc.py [--json]``; every figure stands next to the
floor that it is compared with, measured in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

import uvloop

from remuda.datatypes.sql import BIGINT
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.connection import ChannelKind
from remuda.rpc.frame import REQUEST, FrameReader, encode_head
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.packing import packer
from remuda.rpc.server import listen
from remuda.rpc.transport import Channel, Request, connect

ECHO, SINK = 110, 114
BODY = user_pb2.KeysRequest(map="flights", map_id=3, schema_version=1)
BODY.keys.append(packer((BIGINT,)).pack((12345,)))
RAW = b"x" * (BODY.ByteSize() + 16)
COUNT = user_pb2.Count(count=1)
LARGE = memoryview(bytes(4 << 20))
HELLO = user_pb2.UserToBitHandshake(support_timeout=True)


class _Echo(asyncio.Protocol):
    """The floor: what comes in goes out, without a frame or a message."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class _Sink(asyncio.BufferedProtocol):
    """The floor of streaming: counts, and answers one byte per 4 MiB."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(1 << 20))
        self.count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def get_buffer(self, _: int) -> memoryview:
        return self.view

    def buffer_updated(self, nbytes: int) -> None:
        before = self.count // len(LARGE)
        self.count += nbytes
        self.transport.write(b"." * (self.count // len(LARGE) - before))


def _handle(request: Request) -> None:
    if request.rpc_type == ECHO:
        body = user_pb2.KeysRequest.FromString(request.pbody)
        request.reply(ECHO, body)
    else:
        request.reply(SINK, COUNT)


def _bound() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


def serve(pipe: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        echo, sink = _bound(), _bound()
        await loop.create_server(_Echo, sock=echo)
        await loop.create_server(_Sink, sock=sink)
        server = await listen(
            _bound(), ChannelKind.USER, lambda _: user_pb2.BitToUserHandshake(), _handle
        )
        pipe.send((echo.getsockname()[1], sink.getsockname()[1], server.address[1]))
        await loop.create_future()

    uvloop.run(main())


def _latencies(call: Callable[[], object], count: int) -> list[float]:
    out = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        out.append((time.perf_counter() - start) * 1e6)
    return out[count // 10 :]


def _blocking_raw(port: int, count: int) -> list[float]:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = bytearray(65536)

    def call() -> None:
        sock.send(RAW)
        assert sock.recv_into(buffer) == len(RAW)

    result = _latencies(call, count)
    sock.close()
    return result


def _blocking_ours(port: int, count: int) -> list[float]:
    with BlockingChannel("127.0.0.1", port, HELLO) as channel:
        return _latencies(lambda: channel.request(ECHO, BODY), count)


class _Client(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.waiter: Any = None

    def data_received(self, data: bytes) -> None:
        self.waiter.set_result(data)


async def async_raw(port: int, count: int) -> list[float]:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(_Client, "127.0.0.1", port)
    out = []
    for _ in range(count):
        start = time.perf_counter()
        client.waiter = loop.create_future()
        client.transport.write(RAW)
        await client.waiter
        out.append((time.perf_counter() - start) * 1e6)
    client.transport.close()
    return out[count // 10 :]


async def async_ours(channel: Channel, count: int) -> list[float]:
    out = []
    for _ in range(count):
        start = time.perf_counter()
        await channel.request(ECHO, BODY)
        out.append((time.perf_counter() - start) * 1e6)
    return out[count // 10 :]


async def _pipelined(channel: Channel, count: int, depth: int = 256) -> float:
    """Requests per second with ``depth`` of them in flight."""
    done = asyncio.get_running_loop().create_future()
    sent = answered = 0

    def on_reply(_: object) -> None:
        nonlocal sent, answered
        answered += 1
        if sent < count:
            sent += 1
            channel.request_nowait(ECHO, BODY, (), on_reply)
        elif answered == count:
            done.set_result(None)

    start = time.perf_counter()
    for _ in range(depth):
        sent += 1
        channel.request_nowait(ECHO, BODY, (), on_reply)
    await done
    return count / (time.perf_counter() - start)


async def _stream(channel: Channel, count: int, depth: int = 4) -> float:
    """GB/s of 4 MiB bodies with ``depth`` requests in flight."""
    gate = asyncio.Semaphore(depth)

    async def one() -> None:
        async with gate:
            await channel.request(SINK, common_pb2.Ack(ok=True), (LARGE,))

    start = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(count)])
    return count * len(LARGE) / (time.perf_counter() - start) / 1e9


def _stream_raw(port: int, count: int) -> float:
    sock = socket.create_connection(("127.0.0.1", port))
    start = time.perf_counter()
    for _ in range(count):
        sock.sendall(LARGE)
    got = 0
    while got < count:
        got += len(sock.recv(4096))
    return count * len(LARGE) / (time.perf_counter() - start) / 1e9


def _stream_blocking(port: int, count: int) -> float:
    with BlockingChannel("127.0.0.1", port, HELLO) as channel:
        start = time.perf_counter()
        for index in range(count):
            channel.send_request(SINK, common_pb2.Ack(ok=True), (LARGE,))
            if index >= 4:
                channel.receive()
        for _ in range(4):
            channel.receive()
        return count * len(LARGE) / (time.perf_counter() - start) / 1e9


def _frames_only(count: int) -> float:
    """Nanoseconds to cut one small frame out of a full buffer (no socket)."""
    data = encode_head(REQUEST, 1000, ECHO, BODY.SerializeToString()) * 1000
    reader = FrameReader()
    start = time.perf_counter()
    for _ in range(count):
        reader.room[: len(data)] = data
        assert len(reader.received(len(data))) == 1000
    return (time.perf_counter() - start) / count / 1000 * 1e9


def measure(scale: float = 1.0) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    echo, sink, port = ours.recv()
    count = int(4000 * scale)
    figures: dict[str, float] = {}

    def record(name: str, raw: list[list[float]], own: list[list[float]]) -> None:
        floor = statistics.median(x for run in raw for x in run)
        mine = statistics.median(x for run in own for x in run)
        figures[f"{name} floor p50 µs"] = floor
        figures[f"{name} p50 µs"] = mine
        figures[f"{name} ratio"] = mine / floor

    async def asynchronous(loop_name: str) -> None:
        channel = await connect("127.0.0.1", port, ChannelKind.USER, HELLO)
        raw, own = [], []
        for _ in range(3):  # in turns, so that a noisy moment meets both
            raw.append(await async_raw(echo, count))
            own.append(await async_ours(channel, count))
        record(f"{loop_name} round trip", raw, own)
        figures[f"{loop_name} pipelined 256 requests/s"] = await _pipelined(channel, 20 * count)
        figures[f"{loop_name} 4 MiB GB/s"] = await _stream(channel, int(300 * scale))
        channel.close()

    try:
        pairs = [(_blocking_raw(echo, count), _blocking_ours(port, count)) for _ in range(3)]
        record("blocking round trip", [a for a, _ in pairs], [b for _, b in pairs])
        uvloop.run(asynchronous("uvloop"))
        asyncio.run(asynchronous("asyncio"))
        figures["blocking 4 MiB GB/s"] = _stream_blocking(port, int(300 * scale))
        figures["raw socket to asyncio 4 MiB GB/s"] = _stream_raw(sink, int(300 * scale))
        figures["cut one small frame ns"] = _frames_only(100)
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    figures = measure(arguments.scale)
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:40} {value:12,.2f}")


if __name__ == "__main__":
    main()
