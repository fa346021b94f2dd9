"""Servers of other databases on free ports of this machine, for one benchmark at a time.

Each gives None, and says why, when its server or its Python client is not installed. Nothing is
left behind: their data lies in temporary directories.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_TIMEOUT = 30.0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def have(module: str, peer: str) -> bool:
    """Whether the client of a peer is installed."""
    if importlib.util.find_spec(module) is None:
        print(f"({peer}: its client {module} is not installed: not measured; ./run bench does it)")
        return False
    return True


def when_ready(ready: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            ready()
        except Exception as error:  # whatever a server that starts answers
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} does not answer: {error}") from error
            time.sleep(0.05)
        else:
            return


# --- Redis ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Redis:
    port: int
    pids: tuple[int, ...]
    """The primary's and, where it has one, its replica's."""


@contextlib.contextmanager
def redis(*, replica: bool) -> Iterator[Redis | None]:
    """In memory only: no snapshots, no log. ``replica``: a second server that copies the first."""
    program = shutil.which("redis-server")
    if program is None:
        print("(Redis: redis-server is not installed: not measured)")
    if program is None or not have("redis", "Redis"):
        yield None
        return
    client = importlib.import_module("redis")
    ports = [free_port() for _ in range(1 + replica)]
    with tempfile.TemporaryDirectory(prefix="remuda-redis-") as folder:
        servers = []
        try:
            for index, port in enumerate(ports):
                command = [program, "--port", str(port), "--save", "", "--appendonly", "no",
                           "--bind", "127.0.0.1", "--dir", folder]  # fmt: skip
                if index:
                    command += ["--replicaof", "127.0.0.1", str(ports[0])]
                servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
                connection = client.Redis(port=port)
                when_ready(connection.ping, "redis-server")
            if replica:
                main = client.Redis(port=ports[0])
                when_ready(lambda: _require(_replicates(main)), "the replica of Redis")
            yield Redis(ports[0], tuple(server.pid for server in servers))
        finally:
            for server in servers:
                server.terminate()
                server.wait()


def _replicates(main: object) -> bool:
    main.set("probe", "1")  # type: ignore[attr-defined]
    return bool(main.execute_command("WAIT", 1, 100) == 1)  # type: ignore[attr-defined]


def _require(condition: bool) -> None:
    if not condition:
        raise RuntimeError("it does not follow yet")


# --- PostgreSQL ----------------------------------------------------------------------------------


def _postgres_program(name: str) -> str | None:
    """On PATH, or where Debian puts it: the newest version there is."""
    found = shutil.which(name)
    if found is not None:
        return found
    places = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: float(p.parts[-3])
    )
    return str(places[-1]) if places else None


@contextlib.contextmanager
def postgres(*, replica: bool = False) -> Iterator[str | None]:
    """The connection string of a server that writes its log to disk as it does by default. A
    session asks for ``synchronous_commit`` as it likes. ``replica``: a commit waits until a second
    server has its log, too."""
    initdb, server = _postgres_program("initdb"), _postgres_program("postgres")
    if initdb is None or server is None:
        print("(PostgreSQL: initdb and postgres are not installed: not measured)")
    if initdb is None or server is None or not have("psycopg", "PostgreSQL"):
        yield None
        return
    # It refuses to run as root: then as the user whom Debian's package has made.
    user = "postgres" if os.geteuid() == 0 else None
    psycopg = importlib.import_module("psycopg")
    with tempfile.TemporaryDirectory(prefix="remuda-postgres-", ignore_cleanup_errors=True) as top:
        if user is not None:
            shutil.chown(top, user)
        data, ports = str(Path(top) / "data"), (free_port(), free_port())
        subprocess.run([initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, user=user, cwd=top)  # fmt: skip
        running: list[subprocess.Popen[bytes]] = []

        def start(folder: str, port: int) -> str:
            process = subprocess.Popen(
                [server, "-D", folder, "-p", str(port), "-h", "127.0.0.1", "-k", top,
                 "-c", "max_connections=400", "-c", "shared_buffers=512MB",
                 "-c", "max_wal_size=4GB", "-c", "max_pred_locks_per_transaction=256"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd=top,
            )  # fmt: skip
            running.append(process)
            address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
            when_ready(lambda: psycopg.connect(address).close(), "postgres")
            return address

        try:
            address = start(data, ports[0])
            if replica:
                copy = str(Path(top) / "replica")
                subprocess.run([_postgres_program("pg_basebackup"), "-D", copy, "-d", address,
                                "-R", "-c", "fast", "--no-sync"],
                               check=True, user=user, cwd=top)  # fmt: skip
                start(copy, ports[1])
                with psycopg.connect(address, autocommit=True) as main:
                    main.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                    main.execute("SELECT pg_reload_conf()")
                    when_ready(lambda: _require(_is_synchronous(main)), "the replica of PostgreSQL")
            yield address
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGINT)
                process.wait()


def postgres_pids(address: str) -> tuple[int, ...]:
    """The servers, the replica as well; their sessions are processes below them."""
    psycopg = importlib.import_module("psycopg")
    with psycopg.connect(address) as connection:
        folder = Path(connection.execute("SHOW data_directory").fetchone()[0])
    files = sorted(folder.parent.glob("*/postmaster.pid"))
    return tuple(int(file.read_text(encoding="ascii").split()[0]) for file in files)


def _is_synchronous(main: Any) -> bool:
    found = main.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone()
    return found is not None


# --- processor time and memory -------------------------------------------------------------------


def processor_seconds(pids: tuple[int, ...]) -> float:
    """User and system time of these processes and of those below them."""
    used, parents = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:  # it has ended
                continue
            fields = text.rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = int(fields[11]) + int(fields[12])

    def below(pid: int) -> bool:
        while pid not in pids:
            if (pid := parents.get(pid, 0)) == 0:
                return False
        return True

    return sum(ticks for pid, ticks in used.items() if below(pid)) / os.sysconf("SC_CLK_TCK")


def resident(pids: tuple[int, ...] | list[int]) -> int:
    """Bytes of physical memory that these processes hold."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total
