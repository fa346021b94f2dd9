"""Rolling restarts of a cluster under mixed load: every member leaves by SIGTERM and is started
again at its old address, while clients of every kind work. No request may fail.

The members are processes. ``Load`` keeps what clients have met: every error is one failure.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import remuda
import remuda.aio
import remuda.dbapi
from remuda.client.blocking.client import Client
from remuda.client.embedded.ready import ReadyLines
from remuda.client.operations.near_cache import NearCache
from remuda.errors import RemudaError

START_TIMEOUT = 180.0
STOP_TIMEOUT = 90.0
KEYS = 400
"""Of each worker that writes."""
BESIDE = 2_000
"""Rows that nobody changes, to be scanned and moved."""
REQUEST_TIMEOUT = 60.0
UPDATE = "UPDATE counters SET n = n + 1 WHERE __key IN (?, ?)"
UPSERT = (
    "INSERT INTO names (__key, t) VALUES (?, ?) ON CONFLICT (__key) DO UPDATE SET t = excluded.t"
)
BY_KEY = "SELECT n FROM places WHERE __key = ?"
COMPLETE_TIMEOUT = 90.0
MOVED = re.compile(r"(?:copies moved|replicated map sent).* rows=(\d+) bytes=(\d+)")


class HeldPorts:
    """Ports of this host that no other process is given while they are held, also between the end
    of a member and its next start.

    Each port is bound by a socket that never listens. A member may bind the port as well, because
    both sides set SO_REUSEADDR; the kernel assigns the port neither to a socket that asks for any
    port nor to an outgoing connection. A port that is only chosen beforehand may be taken by either
    before its member starts.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [socket.socket() for _ in range(count)]
        for sock in self._sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", 0))
        self.numbers: list[int] = [sock.getsockname()[1] for sock in self._sockets]

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


@dataclass(frozen=True)
class Program:
    """The begin of the command line of a member, and what is added to its environment."""

    command: tuple[str, ...] = (sys.executable, "-P", "-m", "remuda.member")
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Restart:
    """What one restart took, in seconds: until the process had ended, until the next one served,
    until all copies were in place; and the rows and bytes of the copies that moved meanwhile."""

    leaving: float
    joining: float
    placing: float
    rows: int
    size: int
    status: int


class Fleet:
    """Member processes at addresses of their own, which they keep when they are restarted."""

    def __init__(
        self,
        folder: Path,
        members: int,
        settings: Mapping[str, object],
        program: Program | Sequence[Program] = Program(),
    ) -> None:
        """``program``: of all members, or of each."""
        self.folder = folder
        each = [program] * members if isinstance(program, Program) else list(program)
        self._programs: list[Program] = each
        self.settings = dict(settings)
        self._held = HeldPorts(4 * members)
        ports = self._held.numbers
        self._ports = [tuple(ports[4 * i : 4 * i + 4]) for i in range(members)]
        self._children: list[subprocess.Popen[bytes]] = []
        self._starts = 0
        try:
            size = ["--cluster-size", str(members)]
            for place in range(members):
                join = ["--join", self._control(0)] if place else []
                self._children.append(self._spawn(place, [*size, *join]))
            self._await(self._children)
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{user}" for user, _, _, _ in self._ports]

    @property
    def doors(self) -> list[int]:
        """The ports for PostgreSQL's clients."""
        return [door for _, _, _, door in self._ports]

    def restart(self, place: int, program: Program | None = None) -> Restart:
        """SIGTERM, and a process with another number at the same address, until every partition is
        where it belongs. ``program``: another one than before."""
        before, began = self.moved(), time.monotonic()
        status = self.leave([place])[0]
        left = time.monotonic()
        self.start(place, program=program)
        joined = time.monotonic()
        self.until_complete()
        rows, size = (now - then for now, then in zip(self.moved(), before, strict=True))
        return Restart(left - began, joined - left, time.monotonic() - joined, rows, size, status)

    def moved(self) -> tuple[int, int]:
        """Rows and bytes that members have sent each other when copies moved, by their logs."""
        rows = size = 0
        for log in self.folder.glob("member-*.log"):
            for line in log.read_text(errors="replace").splitlines():
                if found := MOVED.search(line):
                    rows, size = rows + int(found[1]), size + int(found[2])
        return rows, size

    def until_complete(self) -> None:
        """No partition is to be moved, or short of backups."""
        with remuda.connect(self.addresses) as client:
            deadline = time.monotonic() + COMPLETE_TIMEOUT
            states = "SELECT count(*) FROM sys.partitions WHERE state <> 'complete'"
            while client.sql(states).scalar():
                assert time.monotonic() < deadline, "copies are not where they belong"
                time.sleep(0.1)

    def leave(self, places: list[int]) -> list[int]:
        """Several at once; their exit statuses."""
        children = [self._children[place] for place in places]
        for child in children:
            child.send_signal(signal.SIGTERM)
        return [child.wait(STOP_TIMEOUT) for child in children]

    def start(self, place: int, through: int | None = None, program: Program | None = None) -> None:
        """A process at the address of one that has ended; it joins through another one."""
        if program is not None:
            self._programs[place] = program
        seed = self._control((place + 1) % len(self._ports) if through is None else through)
        self._children[place] = self._spawn(place, ["--join", seed])
        self._await([self._children[place]])

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _control(self, place: int) -> str:
        return f"127.0.0.1:{self._ports[place][1]}"

    def _spawn(self, place: int, flags: list[str]) -> subprocess.Popen[bytes]:
        self._starts += 1
        user, control, data, door = self._ports[place]
        program = self._programs[place]
        command = list(program.command)
        command += ["--log-file", str(self.folder / f"member-{place + 1}.log")]
        command += ["--user-port", str(user), "--control-port", str(control)]
        command += ["--data-port", str(data), "--postgres-port", str(door)]
        for name, value in self.settings.items():
            text = str(value)
            if name == "data_dir":  # each member has one of its own
                text = str(self.folder / f"{value}-{place + 1}")
            command += [f"--{name.replace('_', '-')}", text]
        with (self.folder / f"output-{place + 1}.log").open("ab") as errors:
            return subprocess.Popen(
                [*command, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **program.environment},
            )

    def _await(self, children: list[subprocess.Popen[bytes]]) -> None:
        with ReadyLines([child.stdout for child in children]) as lines:
            deadline = time.monotonic() + START_TIMEOUT
            while (event := lines.next(max(0.0, deadline - time.monotonic()))) is not None:
                if event[1] is None:
                    raise AssertionError(f"a member did not start: {event[2]}")
            if lines.missing:
                raise AssertionError(f"a member was not ready within {START_TIMEOUT:g} s")


@dataclass
class Load:
    """Workers of every kind over one cluster, and what they have met."""

    addresses: list[str]
    pause: float = 0.0
    """Seconds, at least, between two requests of a worker: what few requests show costs little."""
    failures: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        with self.connect() as client:
            client.sql("CREATE TABLE counters (__key BIGINT PRIMARY KEY, n BIGINT)")
            client.sql("CREATE TABLE accounts (__key BIGINT PRIMARY KEY, n BIGINT)")
            client.sql("CREATE TABLE places (__key BIGINT PRIMARY KEY, n BIGINT)")
            client.sql(
                "CREATE TABLE names (__key BIGINT PRIMARY KEY, t VARCHAR) WITH (replicated = true)"
            )
            client.map("places").put_all({key: {"n": key} for key in range(BESIDE)})
            client.map("names").put_all({key: {"t": f"name {key}"} for key in range(50)})
            for name in ("counters", "accounts"):
                client.map(name).put_all({key: {"n": 0} for key in range(10 * KEYS)})

    def connect(self) -> Client:
        return remuda.connect(self.addresses, request_timeout=REQUEST_TIMEOUT)

    def begin(self) -> None:
        workers = [
            self._entries,
            self._updates,
            self._scans,
            self._cursors,
            self._transactions,
            self._statements,
            self._listening,
            self._near,
            self._asynchronous,
        ]
        for place, worker in enumerate(workers):
            thread = threading.Thread(target=self._work, args=(worker, place), daemon=True)
            thread.start()
            self._threads.append(thread)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(REQUEST_TIMEOUT + 30)
            if thread.is_alive():
                self.failures.append(f"{thread.name} hangs")

    # --- workers ---

    def _work(self, worker: Callable[[int], None], place: int) -> None:
        name = worker.__name__.strip("_")
        while not self._stop.is_set():
            try:
                worker(place)
            except RemudaError as error:  # a request that was none of ``_ask``'s
                self._failed(name, error)
                time.sleep(0.1)
            except AssertionError as error:
                self.failures.append(f"{name}: wrong: {error}")
                return
            except BaseException as error:
                self.failures.append(f"{name}: {error!r}")
                raise

    def _failed(self, name: str, error: BaseException) -> None:
        at = time.strftime("%H:%M:%S")
        self.failures.append(f"{at} {name}: {type(error).__name__}: {error}")

    def _ask(self, name: str, act: Callable[..., Any], *given: Any) -> Any:
        began = time.monotonic()
        try:
            return act(*given)
        except RemudaError as error:
            self._failed(name, error)
            return None
        finally:
            self.done[name] += 1
            self.longest[name] = max(self.longest.get(name, 0.0), time.monotonic() - began)

    def _running(self, pause: float = 0.004) -> bool:
        return not self._stop.wait(max(pause, self.pause))

    def _entries(self, place: int) -> None:
        known: dict[int, int] = {}
        with self.connect() as client:
            counters = client.map("counters")
            n = 0
            while self._running():
                n += 1
                key = place * KEYS + n * 7919 % KEYS
                if n % 3 == 0:
                    known.pop(key, None)
                    self._ask("put", counters.put, key, {"n": n})
                    known[key] = n
                elif n % 40 == 1:
                    mine = {place * KEYS + (n + i) % KEYS: {"n": n} for i in range(30)}
                    self._ask("put_all", counters.put_all, mine)
                    known.update(dict.fromkeys(mine, n))
                elif n % 41 == 1:
                    self._ask("compute", counters.compute, key, "n = n + 1")
                    known.pop(key, None)
                else:
                    row = self._ask("get", counters.get, key)
                    if row is not None and key in known:
                        assert row.n == known[key], f"key {key}: {row.n}, not {known[key]}"

    def _updates(self, place: int) -> None:
        counts: Counter[int] = Counter()
        first = place * KEYS
        with self.connect() as client:
            client.map("counters").put_all({first + i: {"n": 0} for i in range(KEYS)})
            n = 0
            while self._running():
                n += 1
                a, b = first + n % KEYS, first + (n * 31 + 7) % KEYS
                self._ask("UPDATE", client.sql, UPDATE, a, b)
                counts.update({a, b})
                if n % 10 == 0:
                    self._ask("INSERT", client.sql, UPSERT, 1000 + n % 50, str(n))
            rows = client.sql(
                "SELECT __key, n FROM counters WHERE __key BETWEEN ? AND ?", first, first + KEYS - 1
            )
            found = {row[0]: row[1] for row in rows}
            if not any("UPDATE" in failure for failure in self.failures):
                wrong = {k: (n, counts[k]) for k, n in found.items() if n != counts[k]}
                assert not wrong, f"rows that were updated: {dict(list(wrong.items())[:5])}"

    def _scans(self, _place: int) -> None:
        with self.connect() as client:
            count = client.prepare("SELECT count(*), sum(n) FROM places")
            joined = "SELECT count(*) FROM places p JOIN names a ON a.__key = p.n"
            while self._running(0.01):
                row = self._ask("SELECT", lambda: count().fetchone())
                if row is not None:
                    assert row[0] == BESIDE, f"{row[0]} rows, not {BESIDE}"
                found = self._ask("join", lambda: client.sql(joined).scalar())
                assert found is None or found >= 50
                self._ask("SELECT by key", lambda: client.sql(BY_KEY, 77).scalar())

    def _cursors(self, _place: int) -> None:
        def read(client: Client) -> None:
            cursor = client.query("SELECT __key, n FROM places", page_rows=200)
            rows = 0
            while page := cursor.fetchmany(200):
                rows += len(page)
                time.sleep(0.02)
            assert rows == BESIDE, f"a cursor gave {rows} rows, not {BESIDE}"

        with self.connect() as client:
            while self._running(0.01):
                self._ask("cursor", lambda: read(client))

    def _transactions(self, place: int) -> None:
        first = place * KEYS
        n = 0

        def transact(client: Client) -> None:
            with client.transaction(concurrency=("optimistic", "pessimistic")[n % 2]) as tx:
                counters = tx.map("accounts")
                a, b = first + n % KEYS, first + (n * 17 + 3) % KEYS
                if a == b:
                    return
                one, two = counters.get(a), counters.get(b)
                counters.put(a, {"n": one.n - 1})
                counters.put(b, {"n": two.n + 1})
                time.sleep(0.02)

        with self.connect() as client:
            while self._running():
                n += 1
                self._ask("transaction", lambda: transact(client))
            sums = "SELECT sum(n) FROM accounts WHERE __key BETWEEN ? AND ?"
            found = client.sql(sums, first, first + KEYS - 1).scalar()
            assert found == 0, f"transfers left a sum of {found}"

    def _statements(self, place: int) -> None:
        """BEGIN and COMMIT of the database API."""
        first = place * KEYS
        n = 0
        with remuda.dbapi.connect(self.addresses) as connection:
            cursor = connection.cursor()

            def transact() -> None:
                cursor.execute("SELECT n FROM accounts WHERE __key = ?", (first + n % KEYS,))
                cursor.fetchall()
                cursor.execute("UPDATE accounts SET n = n + 1 WHERE __key = ?", (first + n % KEYS,))
                time.sleep(0.01)
                connection.commit()

            while self._running():
                n += 1
                try:
                    self._ask("DB-API", transact)
                except remuda.dbapi.Error as error:
                    self._failed("DB-API", error)
                    connection.rollback()

    def _listening(self, place: int) -> None:
        """Every change is heard of, in the order of each key."""
        first = place * KEYS
        heard: dict[int, int] = {}
        counts: Counter[str] = Counter()

        def on_event(event: Any) -> None:
            counts[event.kind.name if hasattr(event, "kind") else "event"] += 1
            if (
                event.key is not None
                and first <= event.key < first + KEYS
                and event.value is not None
            ):
                heard[event.key] = event.value.n

        with self.connect() as client, client.map("counters").listen(on_event):
            counters = client.map("counters")
            written: dict[int, int] = {}
            n = 0
            while self._running():
                n += 1
                key = first + n % 50
                self._ask("put", counters.put, key, {"n": n})
                written[key] = n
            deadline = time.monotonic() + 20
            while heard != written and time.monotonic() < deadline:
                time.sleep(0.05)
            assert heard == written, f"a listener has missed changes: {dict(counts)}"
            assert "LOST" not in counts, f"a listener had a gap: {dict(counts)}"

    def _near(self, place: int) -> None:
        first = place * KEYS
        with self.connect() as client:
            near = client.map("counters", near_cache=NearCache())
            n = 0
            while self._running():
                n += 1
                key = first + n % 20
                if n % 5 == 0:
                    self._ask("near put", near.put, key, {"n": n})
                    found = self._ask("near get", near.get, key)
                    assert found is None or found.n == n, "a near cache has not what it wrote"
                else:
                    self._ask("near get", near.get, key)

    def _asynchronous(self, place: int) -> None:
        asyncio.run(self._async_work(place))

    async def _async_work(self, place: int) -> None:
        first = place * KEYS
        async with remuda.aio.connect(self.addresses, request_timeout=REQUEST_TIMEOUT) as client:
            counters = client.map("counters")

            async def asked(name: str, work: Any) -> Any:
                began = time.monotonic()
                try:
                    return await work
                except RemudaError as error:
                    self._failed(f"async {name}", error)
                    return None
                finally:
                    self.done[f"async {name}"] += 1
                    self.longest[f"async {name}"] = max(
                        self.longest.get(f"async {name}", 0.0), time.monotonic() - began
                    )

            async def scan() -> int:
                cursor = await client.sql("SELECT __key FROM places")
                return len(await cursor.fetchall())

            async def transfer(tx: Any) -> None:
                mine = tx.map("accounts")
                one = await mine.get(first + 300)
                await mine.put(first + 300, {"n": one.n + 1})

            async def many() -> None:
                n = 0
                while not self._stop.is_set():
                    n += 1
                    await asked("put", counters.put(first + n % 200, {"n": n}))
                    await asked("get", counters.get(first + n % 200))
                    await asyncio.sleep(max(0.005, self.pause))

            async def rest() -> None:
                while not self._stop.is_set():
                    rows = await asked("SELECT", scan())
                    assert rows in {None, BESIDE}, f"{rows} rows"
                    await asked("run_transaction", client.run_transaction(transfer))
                    await asyncio.sleep(max(0.01, self.pause))

            await asyncio.gather(many(), many(), rest())


def report(load: Load, restarts: list[Restart]) -> str:
    slow = {name: round(seconds, 2) for name, seconds in sorted(load.longest.items())}
    lines = [
        f"requests {sum(load.done.values())}, failures {len(load.failures)}",
        f"longest, in seconds: {json.dumps(slow)}",
    ]
    lines += [
        f"restart {place}: left in {one.leaving:.1f} s, joined in {one.joining:.1f} s, copies in "
        f"place after {one.placing:.1f} s; {one.rows} rows, {one.size / 1e6:.2f} MB moved"
        for place, one in enumerate(restarts, 1)
    ]
    return "\n".join(lines + load.failures[:60])
