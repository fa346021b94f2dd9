"""Hazelcast and Ignite: three members each with one synchronous backup, and their clients in Java.

``java/pom.xml`` names their jars. Maven copies them once into ``.cache/java-peers`` (it needs the
network then), and ``javac`` compiles the programs in ``java``. Without Java, its compiler, Maven or
the network there is no peer, and the reason is printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import peers
from closed_loop import Figures

PROGRAMS = Path(__file__).resolve().parent / "java"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "java-peers"
MEMBERS = 3
FETCH = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies"
FETCH_LIMIT = 300.0
"""Seconds."""
FILL_LIMIT = 240.0
"""Seconds."""
HEAP = ["-XX:+UseSerialGC", "-Xms256m", "-Xmx768m"]
HAZELCAST_OPENS = [
    "--add-modules=java.se",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/sun.nio.ch",
            "java.management/sun.management",
            "jdk.management/com.sun.management.internal",
        )
    ),
]
IGNITE_OPENS = [
    "-DIGNITE_QUIET=true",
    "-DIGNITE_UPDATE_NOTIFIER=false",
    "-DIGNITE_NO_ASCII=true",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/jdk.internal.access",
            "java.base/jdk.internal.misc",
            "java.base/sun.nio.ch",
            "java.base/sun.util.calendar",
            "java.base/sun.reflect.generics.reflectiveObjects",
            "java.base/java.io",
            "java.base/java.nio",
            "java.base/java.net",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.locks",
            "java.base/java.util.concurrent.atomic",
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.math",
            "java.base/java.time",
            "java.base/java.text",
            "java.sql/java.sql",
            "java.management/com.sun.jmx.mbeanserver",
            "java.management/sun.management",
            "jdk.internal.jvmstat/sun.jvmstat.monitor",
            "jdk.management/com.sun.management.internal",
            "java.desktop/java.awt.font",
        )
    ),
]


@dataclass(frozen=True)
class JavaCluster:
    ports: tuple[int, ...]
    """Those for clients."""
    pids: tuple[int, ...]
    class_path: str


def class_path() -> str | None:
    """Of the jars and of our compiled programs."""
    missing = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    if missing:
        absent = " and ".join(missing)
        print(f"(Hazelcast and Ignite: {absent} not installed: not measured)")
        return None
    sources = sorted(PROGRAMS.iterdir())
    content = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = CACHE / content
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            reason = _make(Path(made))
            if reason:
                print(f"(Hazelcast and Ignite: {reason}: not measured)")
                return None
            Path(made).rename(folder)
            Path(made).mkdir()  # for the context manager to remove
    return f"{folder}/classes:{folder}/jars/*"


def _make(folder: Path) -> str | None:
    """The reason if it cannot."""
    fetch = ["mvn", "-q", "-B", FETCH, f"-DoutputDirectory={folder}/jars"]
    compiling = ["javac", "-d", str(folder / "classes"), "-cp", f"{folder}/jars/*"]
    compiling += [str(source) for source in sorted(PROGRAMS.glob("*.java"))]
    for what, command in (("Maven fetched no jars", fetch), ("javac failed", compiling)):
        try:
            found = subprocess.run(
                command,
                cwd=PROGRAMS,
                capture_output=True,
                text=True,
                timeout=FETCH_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{what} within {FETCH_LIMIT:g} s"
        if found.returncode:
            lines = [line for line in (found.stdout + found.stderr).splitlines() if line.strip()]
            return f"{what} ({lines[0].strip() if lines else found.returncode})"
    return None


@contextlib.contextmanager
def hazelcast(path: str | None) -> Iterator[JavaCluster | None]:
    """Its members, found by one another over TCP."""
    if path is None or not peers.have("hazelcast", "Hazelcast"):
        yield None
        return
    ports = [str(peers.free_port()) for _ in range(MEMBERS)]
    commands = [["HazelcastMember", port, *ports] for port in ports]
    with _running(path, HAZELCAST_OPENS, commands, "Hazelcast") as pids:
        yield pids and JavaCluster(tuple(map(int, ports)), pids, path)


@contextlib.contextmanager
def ignite(path: str | None) -> Iterator[JavaCluster | None]:
    """Its members, in memory, found by one another over TCP."""
    if path is None or not peers.have("pyignite", "Ignite"):
        yield None
        return
    discovery, inner, ports = (
        [str(peers.free_port()) for _ in range(MEMBERS)] for _ in range(MEMBERS)
    )
    with tempfile.TemporaryDirectory(prefix="remuda-ignite-", ignore_cleanup_errors=True) as top:
        commands = [
            ["IgniteMember", top, *own, *discovery]
            for own in zip(discovery, inner, ports, strict=True)
        ]
        with _running(path, IGNITE_OPENS, commands, "Ignite") as pids:
            yield pids and JavaCluster(tuple(map(int, ports)), pids, path)


@contextlib.contextmanager
def _running(
    path: str, options: Sequence[str], commands: Sequence[Sequence[str]], peer: str
) -> Iterator[tuple[int, ...] | None]:
    """Processes that have said that they are ready; None, and why, when one ends before."""
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        started = [
            stack.enter_context(_program(path, options, command, errors)) for command in commands
        ]
        ready = [_says_ready(program) for program in started]
        if not all(ready):
            errors.seek(0)
            text = errors.read().strip().splitlines() or ["it said nothing"]
            print(f"({peer}: a member ended at its start ({text[0]}): not measured)")
            yield None
        else:
            yield tuple(program.pid for program in started)


@contextlib.contextmanager
def _program(
    path: str, options: Sequence[str], command: Sequence[str], errors: IO[str] | int
) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        ["java", *HEAP, *options, "-cp", path, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def _says_ready(program: subprocess.Popen[str]) -> bool:
    assert program.stdout is not None
    return any(line.strip() == "ready" for line in program.stdout)


# --- clients in Java -----------------------------------------------------------------------------


class JavaClients:
    """A process of Java that runs the same loop as ``closed_loop.Clients``, with one instance of
    the client for all its threads."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def fill(self) -> str | None:
        """Write all entries. The reason if that fails, or does not end within FILL_LIMIT."""
        ending = threading.Timer(FILL_LIMIT, self._program.kill)
        ending.start()
        try:
            self.run("fill", 1, 0.0)
        except RuntimeError as error:
            return f"it was not filled ({error})"
        finally:
            ending.cancel()
        return None

    def run(self, operation: str, clients: int, seconds: float) -> Figures:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{operation};{clients};{seconds}\n")
        self._program.stdin.flush()
        answer = self._program.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"a client in Java failed: {answer or 'its process has ended'}")
        rate, p50, p99, failed = answer.split()
        return Figures(float(rate), float(p50), float(p99), int(failed), [])


@contextlib.contextmanager
def java_clients(
    cluster: JavaCluster, program: str, options: Sequence[str]
) -> Iterator[JavaClients]:
    command = [program, *map(str, cluster.ports)]
    with _program(cluster.class_path, options, command, subprocess.DEVNULL) as running:
        if not _says_ready(running):
            raise RuntimeError(f"{program} ended at its start")
        yield JavaClients(running)
