"""Increments that are counted by clients of several kinds, beside the load of ``rolling``: every
counter must equal the increments that were acknowledged, and a stream of changes must have told
each of them once. No request may fail.

The kinds: a statement that a blocking client prepared once, transactions of two keys of a blocking
client, the same of an asyncio client, and transactions of two keys by an asynchronous pool of
psycopg.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg_pool import AsyncConnectionPool
from rolling import REQUEST_TIMEOUT, Load

import remuda.aio
from remuda.errors import RemudaError

KEYS = 60
"""Of each worker, at a multiple of it."""
ADD = "UPDATE counted SET n = n + 1 WHERE id = ?"
ADD_BOTH = "UPDATE counted SET n = n + 1 WHERE id IN (%s, %s)"
FOLLOWING_TIMEOUT = 30.0
"""Seconds until the stream must have told the last change."""
PAUSE = 0.02


class Counted:
    """Workers from ``__enter__`` to ``__exit__``, which compares. What they meet is told to a
    ``Load``."""

    def __init__(self, load: Load, doors: list[int]) -> None:
        self._load = load
        self._pause = max(PAUSE, load.pause)
        self._stop = threading.Event()
        self._conninfo = psycopg.conninfo.make_conninfo(
            host=",".join("127.0.0.1" for _ in doors),
            port=",".join(map(str, doors)),
            user="bob",
            dbname="shop",
            load_balance_hosts="random",
        )
        workers = [self._prepared, self._pairs, self._asynchronous, self._pool]
        with load.connect() as client:
            client.sql("CREATE TABLE counted (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
            last = KEYS * len(workers) - 1
            client.sql(f"INSERT INTO counted SELECT x, 0 FROM generate_series(0, {last}) t(x)")
        self._counts: Counter[int] = Counter()
        """Acknowledged increments by key: each worker has keys of its own."""
        self._followed: Counter[int] = Counter()
        self._ended = threading.Event()
        """Nothing is incremented any more."""
        following = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(following,), daemon=True)]
        self._threads += [
            threading.Thread(target=self._work, args=(worker, place * KEYS), daemon=True)
            for place, worker in enumerate(workers)
        ]
        self._following = following

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
            self._following.wait(REQUEST_TIMEOUT)  # the first one tells when its stream has begun
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        follower, *workers = self._threads
        for thread in workers:
            self._end(thread)
        self._ended.set()
        self._end(follower)
        with self._load.connect() as client:
            found = {row[0]: row[1] for row in client.sql("SELECT id, n FROM counted")}
        self._compare("counters", found)
        self._compare("changes", self._followed)

    def _end(self, thread: threading.Thread) -> None:
        thread.join(REQUEST_TIMEOUT + FOLLOWING_TIMEOUT)
        if thread.is_alive():
            self._load.failures.append(f"counted: {thread.name} hangs")

    def _compare(self, what: str, found: dict[int, int] | Counter[int]) -> None:
        wrong = {key: (n, self._counts[key]) for key, n in found.items() if n != self._counts[key]}
        if wrong:
            shown = dict(list(wrong.items())[:5])
            self._load.failures.append(f"counted: {what}, as found and as acknowledged: {shown}")

    # --- workers ---

    def _work(self, worker: Callable[[int], None], first: int) -> None:
        try:
            worker(first)
        except BaseException as error:
            self._load.failures.append(f"counted: {worker.__name__.strip('_')}: {error!r}")
            raise

    def _done(self, name: str, began: float, keys: tuple[int, ...]) -> None:
        """Acknowledged: one increment of each key."""
        self._counts.update(keys)
        self._told(name, began)

    def _told(self, name: str, began: float) -> None:
        load, name = self._load, f"counted: {name}"
        load.done[name] += 1
        load.longest[name] = max(load.longest.get(name, 0.0), time.monotonic() - began)

    def _failed(self, name: str, error: BaseException) -> None:
        at = time.strftime("%H:%M:%S")
        self._load.failures.append(f"{at} counted: {name}: {type(error).__name__}: {error}")

    def _prepared(self, first: int) -> None:
        with self._load.connect() as client:
            add = client.prepare(ADD)
            n = 0
            while not self._stop.wait(self._pause):
                n += 1
                key, began = first + n % KEYS, time.monotonic()
                try:
                    add(key)
                    self._done("prepared", began, (key,))
                except RemudaError as error:
                    self._failed("prepared", error)

    def _pairs(self, first: int) -> None:
        def both(tx: Any, keys: tuple[int, int]) -> None:
            for key in keys:
                tx.sql(ADD, key)

        with self._load.connect() as client:
            n = 0
            while not self._stop.wait(self._pause):
                n += 1
                keys, began = _pair(first, n), time.monotonic()
                try:
                    client.run_transaction(lambda tx, keys=keys: both(tx, keys))
                    self._done("two keys", began, keys)
                except RemudaError as error:
                    self._failed("two keys", error)

    def _asynchronous(self, first: int) -> None:
        async def work() -> None:
            async with remuda.aio.connect(
                self._load.addresses, request_timeout=REQUEST_TIMEOUT
            ) as client:

                async def act(keys: tuple[int, int]) -> None:
                    async def both(tx: Any) -> None:
                        counted = tx.map("counted")
                        for key in sorted(keys):
                            row = await counted.get(key)
                            await counted.put(key, {"n": row.n + 1})

                    await client.run_transaction(both)

                await self._turns("asyncio, two keys", first, act)

        asyncio.run(work())

    def _pool(self, first: int) -> None:
        async def work() -> None:
            async with AsyncConnectionPool(
                self._conninfo,
                min_size=1,
                max_size=2,
                check=AsyncConnectionPool.check_connection,
                timeout=REQUEST_TIMEOUT,
            ) as pool:

                async def act(keys: tuple[int, int]) -> None:
                    async with pool.connection() as connection:
                        await connection.execute(ADD_BOTH, keys, prepare=True)

                await self._turns("psycopg, two keys", first, act)

        asyncio.run(work())

    async def _turns(
        self, name: str, first: int, act: Callable[[tuple[int, int]], Awaitable[None]]
    ) -> None:
        n = 0
        while not await asyncio.to_thread(self._stop.wait, self._pause):
            n += 1
            keys, began = _pair(first, n), time.monotonic()
            try:
                await act(keys)
                self._done(name, began, keys)
            except (RemudaError, psycopg.Error) as error:
                self._failed(name, error)

    # --- changes ---

    def _follow(self, following: threading.Event) -> None:
        try:
            with self._load.connect() as client, client.map("counted").changes() as stream:
                following.set()
                self._read(stream)
        except BaseException as error:
            self._failed("changes", error)
            raise
        finally:
            following.set()

    def _read(self, stream: Any) -> None:
        """Each change goes on from the one before, until all that was acknowledged is there."""
        deadline = float("inf")
        while time.monotonic() < deadline:
            if self._ended.is_set():
                if self._followed == self._counts:
                    return
                deadline = min(deadline, time.monotonic() + FOLLOWING_TIMEOUT)
            began = time.monotonic()
            batch = stream.read(0.5)
            if batch is None:
                continue
            self._told("batches of changes", began)
            for row in batch.to_pylist():
                key, before, after = row["id"], row["_before"]["n"], row["n"]
                if before != self._followed[key] or after <= before:
                    self._load.failures.append(
                        f"counted: changes: key {key} from {before} to {after},"
                        f" after {self._followed[key]}"
                    )
                self._followed[key] = after


def _pair(first: int, n: int) -> tuple[int, int]:
    """Two different keys of a worker."""
    return first + n % KEYS, first + (n + 1 + n % (KEYS - 1)) % KEYS
