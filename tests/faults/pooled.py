"""The load of ``rolling`` by PostgreSQL's clients: psycopg's pool, which checks a connection before
it hands it out. No request may fail, though psycopg retries none."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

import psycopg
from psycopg_pool import ConnectionPool
from rolling import KEYS, REQUEST_TIMEOUT, Load

READ = "SELECT n FROM pooled WHERE id = %s"
ADD = "UPDATE pooled SET n = n + 1 WHERE id = %s"
WORKERS = 3


class Pooled:
    """Workers over one pool. What they meet is told to a ``Load``."""

    def __init__(self, load: Load, doors: list[int]) -> None:
        self._load = load
        self._stop = threading.Event()
        with load.connect() as client:
            client.sql("CREATE TABLE pooled (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
            keys = WORKERS * KEYS
            client.sql(f"INSERT INTO pooled SELECT x, 0 FROM generate_series(0, {keys - 1}) t(x)")
        conninfo = psycopg.conninfo.make_conninfo(
            host=",".join("127.0.0.1" for _ in doors),
            port=",".join(map(str, doors)),
            user="bob",
            dbname="shop",
            load_balance_hosts="random",
        )
        self._pool = ConnectionPool(
            conninfo,
            min_size=WORKERS,
            max_size=WORKERS + 1,
            check=ConnectionPool.check_connection,
            timeout=REQUEST_TIMEOUT,
            open=True,
        )
        self._threads = [
            threading.Thread(target=self._work, args=(place,), daemon=True)
            for place in range(WORKERS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(REQUEST_TIMEOUT + 30)
            if thread.is_alive():
                self._load.failures.append("a worker of the pool hangs")
        self._pool.close()

    def _work(self, place: int) -> None:
        """Every increment that was committed is there at the end, and no other."""
        added: Counter[int] = Counter()
        n = 0
        while not self._stop.wait(max(0.004, self._load.pause)):
            n += 1
            key = place * KEYS + n % KEYS
            began = time.monotonic()
            name = ("pool: read", "pool: transaction", "pool: autocommit")[n % 3]
            try:
                with self._pool.connection() as connection:
                    if name == "pool: read":
                        found = connection.execute(READ, (key,)).fetchone()
                        assert found == (added[key],), f"key {key}: {found}, not {added[key]}"
                    elif name == "pool: transaction":
                        connection.execute(ADD, (key,))
                        connection.execute(ADD, (key,))
                    else:
                        connection.autocommit = True
                        connection.execute(ADD, (key,))
                        connection.autocommit = False
            except (psycopg.Error, AssertionError) as error:
                at = time.strftime("%H:%M:%S")
                self._load.failures.append(f"{at} {name}: {type(error).__name__}: {error}")
                if isinstance(error, AssertionError):
                    return
            else:
                added[key] += {"pool: read": 0, "pool: transaction": 2}.get(name, 1)
            self._load.done[name] += 1
            longest = self._load.longest.get(name, 0.0)
            self._load.longest[name] = max(longest, time.monotonic() - began)
