"""Exchanges and queries: bytes between two members beside a bare socket, a thousand queries at a
time, how long a cancelled query leaves traces, whether members grow with the number of statements
that they have served, and the empty round trip beside a bare echo.

``python benchmarks/exchange.py [--scale 1.0]``. Members are processes on loopback; what is compared
is measured in turns, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import uvloop

import remuda
import rpc
from remuda.datatypes.hashes.keyhash import hash_arrays, partitions_of
from remuda.datatypes.sql import BIGINT
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Channel, Request, connect

ROUNDS = 7
CONCURRENT = 1000
CANCELS = 20
COLUMNS = ("a", "b", "c", "d")
SHORT = "SELECT count(*), sum(v) FROM small WHERE v > 500"
ENDLESS = (
    "SELECT count(*) FROM wide x, wide y WHERE x.a + y.b > 0 AND x.c < y.d AND x.a * y.b < x.c"
)


# --- throughput ---


def wide_rows(count: int) -> pa.Table:
    """``count`` rows of a key and four nullable doubles: 32 bytes that the query moves."""
    chance = np.random.default_rng(1)
    columns = {name: pa.array(chance.random(count)) for name in COLUMNS}
    return pa.table({"k": pa.array(np.arange(count)), **columns})


def moved(client: remuda.Client) -> float:
    """Seconds to bring the rows of both members to the first, which does next to nothing with
    them. The other half of the rows, its own, does not cross the wire."""
    counts = ", ".join(f"count({name})" for name in COLUMNS)
    inner = f"SELECT {', '.join(COLUMNS)} FROM wide LIMIT 1000000000"
    start = time.perf_counter()
    with client.sql(f"SELECT {counts} FROM ({inner}) s") as cursor:
        cursor.fetchall()
    return time.perf_counter() - start


def _receive(sock: socket.socket) -> None:
    peer, _ = sock.accept()
    view = memoryview(bytearray(1 << 20))
    while True:
        wanted = int.from_bytes(peer.recv(8), "little")
        if not wanted:
            return
        while wanted > 0:
            got = peer.recv_into(view)
            if not got:
                return
            wanted -= got
        peer.sendall(b".")


class RawCopy:
    """The floor: the same number of bytes through one socket into another process."""

    def __init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self._process = multiprocessing.get_context("fork").Process(
            target=_receive, args=(listener,), daemon=True
        )
        self._process.start()
        self._sock = socket.create_connection(listener.getsockname())
        self._block = memoryview(bytes(4 << 20))

    def seconds(self, count: int) -> float:
        start = time.perf_counter()
        self._sock.sendall(count.to_bytes(8, "little"))
        while count > 0:
            part = min(count, len(self._block))
            self._sock.sendall(self._block[:part])
            count -= part
        self._sock.recv(1)
        return time.perf_counter() - start

    def close(self) -> None:
        self._sock.close()
        self._process.terminate()


def throughput(scale: float) -> None:
    raw = RawCopy()  # forked before there are threads here
    with remuda.start(members=2) as cluster, cluster.connect() as client:
        rows = wide_rows(int(16_000_000 * scale))
        definition = ", ".join(f"{name} DOUBLE" for name in COLUMNS)
        with client.sql(f"CREATE TABLE wide (k BIGINT PRIMARY KEY, {definition})"):
            pass
        client.map("wide").put_all(rows)
        size = remote_bytes(client, rows.column("k").combine_chunks())
        moved(client)
        raw.seconds(size)
        ours, floor = [], []
        for _ in range(ROUNDS):
            ours.append(moved(client))
            floor.append(raw.seconds(size))
    raw.close()
    mine, bare = (size / statistics.median(times) / 1e9 for times in (ours, floor))
    print(f"exchange between two members, GB/s      {mine:10.2f}   ({size / 1e6:.0f} MB a time)")
    print(f"raw socket copy, GB/s                   {bare:10.2f}")
    print(f"ratio (target at least 0.6)             {mine / bare:10.2f}", flush=True)


def remote_bytes(client: remuda.Client, keys: pa.Array) -> int:
    """What crosses the wire: the rows of the second member."""
    with client.sql("SELECT partition FROM sys.partitions WHERE member = 2") as cursor:
        owned = [partition for (partition,) in cursor]
    partitions = partitions_of(hash_arrays([keys], [BIGINT]))
    return int(np.isin(partitions, owned).sum()) * 8 * len(COLUMNS)


# --- many queries at once ---


class Session:
    """One connection that runs one query at a time, by hand: no thread, no pool."""

    channel: Channel

    def __init__(self) -> None:
        self.result: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, address: str) -> Session:
        session = cls()
        host, port = address.rsplit(":", 1)
        hello = user_pb2.UserToBitHandshake(channel=user_pb2.USER, support_listening=True)
        hello.properties.properties.add(key="remuda.results", value="arrow")
        session.channel = await connect(host, int(port), ChannelKind.USER, hello, session.handle)
        return session

    def handle(self, request: Request) -> None:
        if request.rpc_type == RpcType.QUERY_RESULT:
            message = user_pb2.QueryResult.FromString(request.pbody)
            failure = message.error[0].message if message.error else None
            if not self.result.done():
                self.result.set_result(failure)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    async def start(self, text: str) -> common_pb2.QueryId:
        self.result = asyncio.get_running_loop().create_future()
        message = user_pb2.RunQuery(type=user_pb2.SQL, plan=text)
        reply = await self.channel.request(RpcType.RUN_QUERY, message)
        return common_pb2.QueryId.FromString(reply.pbody)

    async def run(self, text: str) -> tuple[float, str | None]:
        begun = time.perf_counter()
        try:
            await self.start(text)
            failure = await self.result
        except remuda.errors.RemudaError as error:
            failure = str(error)
        return time.perf_counter() - begun, failure


def resident(pids: tuple[int, ...]) -> float:
    """Resident MB of some processes together."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def crowd(addresses: tuple[str, ...], pids: tuple[int, ...], rounds: int) -> None:
    sessions = [
        await Session.open(addresses[number % len(addresses)]) for number in range(CONCURRENT)
    ]
    await asyncio.gather(*(session.run(SHORT) for session in sessions))
    held, times, failures = [resident(pids)], [], []
    for _ in range(rounds):
        for seconds, failure in await asyncio.gather(*(s.run(SHORT) for s in sessions)):
            times.append(seconds * 1e3)
            failures += [failure] if failure is not None else []
        held.append(resident(pids))
    for session in sessions:
        session.channel.close()
    p50, p99 = np.percentile(times, [50, 99])
    print(f"\n{CONCURRENT} queries at a time on 3 members, {rounds} rounds:")
    print(f"p50 ms                                  {p50:10.1f}")
    print(f"p99 ms                                  {p99:10.1f}")
    print(f"p99 / p50 (target at most 20)           {p99 / p50:10.2f}")
    print(f"failures (target none)                  {len(failures):10d}   {set(failures) or ''}")
    print(f"resident MB after each round            {_row(held)}", flush=True)


# --- cancel ---


def traces(client: remuda.Client) -> tuple[int, int]:
    """(fragments, bytes) that members have for queries."""
    with client.sql("SELECT sum(fragments), sum(memory_held) FROM sys.members") as cursor:
        fragments, held = cursor.fetchall()[0]
    return int(fragments or 0), int(held or 0)


async def cancelled(address: str, client: remuda.Client, idle: tuple[int, int]) -> float:
    """Milliseconds from the wish to cancel until no member has anything of the query; each look at
    the members, a query of its own, is part of it."""
    session = await Session.open(address)
    loop = asyncio.get_running_loop()
    handle = await session.start(ENDLESS)
    while (await loop.run_in_executor(None, traces, client))[0] <= idle[0]:
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.2)  # well into its work
    start = time.perf_counter()
    await session.channel.request(RpcType.CANCEL_QUERY, handle)
    while await loop.run_in_executor(None, traces, client) != idle:
        await asyncio.sleep(0)
    seconds = time.perf_counter() - start
    failure = await session.result
    assert failure is not None, "it was to be cancelled"
    session.channel.close()
    return seconds * 1e3


def queries(scale: float) -> None:
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        with client.sql("CREATE TABLE small (k BIGINT PRIMARY KEY, v BIGINT)"):
            pass
        keys = pa.array(np.arange(3000))
        client.map("small").put_all(pa.table({"k": keys, "v": pa.array(np.arange(3000) % 1000)}))
        definition = ", ".join(f"{name} DOUBLE" for name in COLUMNS)
        with client.sql(f"CREATE TABLE wide (k BIGINT PRIMARY KEY, {definition})"):
            pass
        client.map("wide").put_all(wide_rows(100_000))
        uvloop.run(crowd(cluster.addresses, cluster.pids, max(2, int(5 * scale))))
        time.sleep(1.0)
        idle = traces(client)

        async def cancels() -> list[float]:
            return [await cancelled(cluster.address, client, idle) for _ in range(CANCELS)]

        times = uvloop.run(cancels())
    print(f"\ncancel until all is free, ms (target 100) {statistics.median(times):8.1f} median,"
          f" {max(times):.1f} at most of {CANCELS}", flush=True)  # fmt: skip


# --- memory ---


def _row(sizes: list[float]) -> str:
    return " ".join(f"{size:6.0f}" for size in sizes)


def statements(scale: float) -> None:
    """One after the other. What members keep of the last ones fills up at first: ids, profiles,
    plans, and what Arrow and Python keep free."""
    with remuda.start(members=2) as cluster, cluster.connect() as client:
        with client.sql("CREATE TABLE small (k BIGINT PRIMARY KEY, v BIGINT)"):
            pass
        keys = pa.array(np.arange(3000))
        client.map("small").put_all(pa.table({"k": keys, "v": pa.array(np.arange(3000) % 1000)}))
        held = [resident(cluster.pids)]
        for _ in range(max(4, int(16 * scale))):
            for _ in range(1000):
                with client.sql(SHORT) as cursor:
                    cursor.fetchall()
            held.append(resident(cluster.pids))
    print("\nresident MB of 2 members, at first and after each 1,000 short statements:")
    print(_row(held), flush=True)


# --- round trip ---


def round_trip(scale: float) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=rpc.serve, args=(theirs,), daemon=True)
    process.start()
    echo, _, port = ours.recv()
    count = int(4000 * scale)

    async def both() -> tuple[float, float]:
        channel = await connect("127.0.0.1", port, ChannelKind.USER, rpc.HELLO)
        raw: list[float] = []
        own: list[float] = []
        for _ in range(5):
            raw += await rpc.async_raw(echo, count)
            own += await rpc.async_ours(channel, count)
        channel.close()
        return statistics.median(raw), statistics.median(own)

    try:
        floor, mine = uvloop.run(both())
    finally:
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    print(f"\nraw asyncio echo p50, µs                {floor:10.1f}")
    print(f"empty round trip p50, µs                {mine:10.1f}")
    print(f"ratio (target at most 1.5)              {mine / floor:10.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", choices=["throughput", "queries", "statements", "round_trip"])
    options = parser.parse_args()
    parts: dict[str, Any] = {
        "throughput": throughput, "queries": queries, "statements": statements,
        "round_trip": round_trip,
    }  # fmt: skip
    for name, part in parts.items():
        if options.only in (None, name):
            part(options.scale)
    assert threading.active_count() < 20
    return 0


if __name__ == "__main__":
    sys.exit(main())
