"""The only door to the outside: clocks, chance, sockets, files and threads.

Everything above takes these as arguments, so that a simulator can replace them (design D13). The
protocols come first, the real world after them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa

from remuda.errors import ConnectionRefused, DiskFull, ResourceError

LISTEN_BACKLOG = 512


class Clock(Protocol):
    """Two clocks: one that never goes back, and the calendar."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; only differences mean something."""

    def wall_micros(self) -> int:
        """Microseconds since 1970-01-01 UTC; may jump."""


class Chance(Protocol):
    """Random numbers that need not be reproducible in the real world, and are in a simulation."""

    def bits(self, count: int) -> int:
        """``count`` random bits as a non-negative integer."""

    def fraction(self) -> float:
        """A number in [0, 1)."""


class Network(Protocol):
    """Sockets; ``rpc`` has the protocols that are spoken over them."""

    def listen(self, host: str, port: int) -> socket.socket:
        """A bound, listening socket; port 0 = any free. Raises ConnectionRefused."""

    def adopt(self, descriptor: int) -> socket.socket:
        """A listening socket that another process has bound for this one."""

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connected, blocking socket. Raises ConnectionRefused naming the address."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """``permissions``: the mode bits of read, write, execute; ``stamp``: another one after every
    change of the content; ``size`` in bytes; ``modified``: when the content changed, in
    microseconds since 1970 by the clock of the disk."""

    permissions: int
    stamp: tuple[int, ...]
    size: int = 0
    modified: int = 0


class Appender(Protocol):
    """A file that grows at its end. The end is where the last append ended, or the last cut; zeros
    may lie behind it."""

    def append(self, data: bytes) -> None:
        """Raises DiskFull, ResourceError; part of the data may then be there."""

    def extend(self, size: int) -> None:
        """Write zeros behind what is there until the file has ``size`` bytes, on the disk
        afterwards. Appends go over them, and their syncs write no size of the file and allocate
        nothing. Raises DiskFull, and leaves the file as it was; ResourceError, then nobody
        knows."""

    def cut(self, size: int) -> None:
        """End the file at ``size`` bytes, on the disk afterwards. Raises ResourceError."""

    def sync(self) -> None:
        """Put all appended bytes on the disk. Raises ResourceError; then nobody knows whether they
        are."""

    def close(self) -> None: ...


class Disk(Protocol):
    """Files and folders. Names are on the disk after ``sync_folder`` only. ``sector``: so many
    bytes are written as a whole, or not at all, when the power goes."""

    sector: int

    def read(self, path: Path) -> bytes: ...

    def facts(self, path: Path) -> FileFacts:
        """Raises ResourceError."""

    def write(self, path: Path, content: bytes) -> None:
        """Replace the file atomically. Raises DiskFull."""

    def scratch(self, directory: str) -> BinaryIO:
        """An empty file without a name that vanishes when it is closed, or with the process; ""
        stands for the system's folder of temporary files. Raises DiskFull."""

    def make_folder(self, path: Path) -> None:
        """With those above it, unless it is there; on the disk afterwards. Raises DiskFull."""

    def names(self, folder: Path) -> list[str]:
        """Of the files and folders in it, sorted; none if it does not exist."""

    def read_part(self, path: Path, offset: int, size: int) -> bytes:
        """Fewer bytes at the file's end. Raises ResourceError."""

    def create(self, path: Path) -> Appender:
        """A new file. Raises ResourceError when there is one of this name."""

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file, on the disk afterwards. Raises ResourceError."""

    def rename(self, old: Path, new: Path) -> None:
        """Within one disk, replacing what is there. Raises ResourceError."""

    def remove(self, path: Path) -> None:
        """A file. Raises ResourceError."""

    def remove_folder(self, path: Path) -> None:
        """If it is empty; nothing happens when it is not, or is not there."""

    def sync_folder(self, path: Path) -> None:
        """Names that were made, changed or removed in it are on the disk. Raises ResourceError."""

    def space(self, path: Path) -> tuple[int, int]:
        """Bytes that are free for files below a folder, and bytes of the whole disk. Raises
        ResourceError."""

    def lock(self, path: Path) -> Callable[[], None]:
        """Hold a file that is made if need be; the result lets it go, as the end of the process
        does. Raises ResourceError when another process holds it."""


class Thread(Protocol):
    def join(self, timeout: float | None = None) -> None: ...


class Workers(Protocol):
    """Threads, for the cooperative pool and nothing else."""

    def available(self, wanted: int) -> int:
        """How many of ``wanted`` threads there may be; 0: the work is done in turns of the loop."""

    def start_thread(self, target: Callable[[], None], name: str) -> Thread: ...


class Memory(Protocol):
    """The resources that this process has from the operating system."""

    def give_back(self) -> None:
        """Return what has been freed. Takes some milliseconds; any thread."""

    def total(self) -> int:
        """Bytes that this process may have: the machine's memory, or the bound of its group."""


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall_micros(self) -> int:
        return time.time_ns() // 1000


class SystemChance:
    def bits(self, count: int) -> int:
        return int.from_bytes(os.urandom((count + 7) // 8)) >> (-count % 8)

    def fraction(self) -> float:
        return self.bits(53) / 2**53


class SystemNetwork:
    def listen(self, host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(LISTEN_BACKLOG)
        except OSError as problem:
            sock.close()
            raise ConnectionRefused(
                f"cannot listen on {host}:{port}: {problem.strerror or problem}",
                hint="Choose another port, or 0 for any free one.",
            ) from problem
        sock.setblocking(False)
        return sock

    def adopt(self, descriptor: int) -> socket.socket:
        try:
            sock = socket.socket(fileno=descriptor)
            sock.listen(LISTEN_BACKLOG)
        except OSError as problem:
            raise ConnectionRefused(
                f"file descriptor {descriptor} is not a socket to listen on: {problem}"
            ) from problem
        sock.setblocking(False)
        return sock

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        try:
            return socket.create_connection((host, port), timeout)
        except OSError as problem:
            raise ConnectionRefused(
                f"cannot connect to {host}:{port}: {problem.strerror or problem}"
            ) from problem


class SystemDisk:
    sector = 512

    def read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as problem:
            raise ResourceError(f"cannot read {path}: {problem.strerror}") from problem

    def facts(self, path: Path) -> FileFacts:
        try:
            found = path.stat()
        except OSError as problem:
            raise ResourceError(f"cannot read {path}: {problem.strerror}") from problem
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        return FileFacts(found.st_mode & 0o777, stamp, found.st_size, found.st_mtime_ns // 1000)

    def write(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(path.name + ".new")
        with _disk_errors("write", path):
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)

    def scratch(self, directory: str) -> BinaryIO:
        try:
            return cast("BinaryIO", tempfile.TemporaryFile(dir=directory or None))
        except OSError as problem:
            raise DiskFull(
                f"cannot make a file in {directory or tempfile.gettempdir()}: {problem.strerror}",
                hint="Name another folder by spill_directory.",
            ) from problem

    def make_folder(self, path: Path) -> None:
        with _disk_errors("make", path):
            missing = [each for each in (path, *path.parents) if not each.exists()]
            path.mkdir(parents=True, exist_ok=True)
        for made in reversed(missing):
            self.sync_folder(made.parent)

    def names(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise ResourceError(f"cannot read {folder}: {problem.strerror}") from problem

    def read_part(self, path: Path, offset: int, size: int) -> bytes:
        with _disk_errors("read", path), path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def create(self, path: Path) -> Appender:
        with _disk_errors("make", path):
            return SystemAppender(path)

    def truncate(self, path: Path, size: int) -> None:
        with _disk_errors("cut", path), path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())

    def rename(self, old: Path, new: Path) -> None:
        with _disk_errors("rename", old):
            old.replace(new)

    def remove(self, path: Path) -> None:
        with _disk_errors("remove", path):
            path.unlink()

    def remove_folder(self, path: Path) -> None:
        with _disk_errors("remove", path):
            try:
                path.rmdir()
            except OSError as problem:
                if problem.errno not in {errno.ENOTEMPTY, errno.ENOENT}:
                    raise

    def sync_folder(self, path: Path) -> None:
        with _disk_errors("sync", path):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def space(self, path: Path) -> tuple[int, int]:
        try:  # without a context manager: each write of a log asks
            found = os.statvfs(path)
        except OSError as problem:
            raise _disk_error("look at", path, problem) from problem
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def lock(self, path: Path) -> Callable[[], None]:
        with _disk_errors("lock", path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as problem:
                os.close(descriptor)
                raise ResourceError(f"{path} is held by another process") from problem
            except OSError:
                os.close(descriptor)
                raise
        return lambda: os.close(descriptor)


class SystemAppender:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._end = 0
        self._size = 0
        """Of the file: the bytes between the two are zeros."""

    def append(self, data: bytes) -> None:
        try:
            self._write(data, self._end)
        except OSError as problem:
            raise _disk_error("write", self._path, problem) from problem
        self._end += len(data)
        self._size = max(self._size, self._end)

    def extend(self, size: int) -> None:
        try:
            self._write(bytes(size - self._size), self._size)
            os.fdatasync(self._descriptor)
        except OSError as problem:
            with _disk_errors("cut", self._path):
                os.ftruncate(self._descriptor, self._size)
            raise _disk_error("extend", self._path, problem) from problem
        self._size = size

    def cut(self, size: int) -> None:
        with _disk_errors("cut", self._path):
            os.ftruncate(self._descriptor, size)
            os.fsync(self._descriptor)
        self._end = self._size = size

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as problem:
            raise _disk_error("sync", self._path, problem) from problem

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes, offset: int) -> None:
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            rest = memoryview(data)[written:]
            written += os.pwrite(self._descriptor, rest, offset + written)


@contextlib.contextmanager
def _disk_errors(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise _disk_error(what, path, problem) from problem


def _disk_error(what: str, path: Path, problem: OSError) -> ResourceError:
    full = problem.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    kind = DiskFull if full else ResourceError
    return kind(f"cannot {what} {path}: {problem.strerror}")


class SystemWorkers:
    """Daemon threads: a member that ends does not wait for a kernel in the middle of a batch."""

    def available(self, wanted: int) -> int:
        return wanted

    def start_thread(self, target: Callable[[], None], name: str) -> Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread


class SystemMemory:
    """The allocators keep freed memory for the next use: that of Arrow in its pool, that of NumPy
    and Python in the C library.
    """

    def __init__(self) -> None:
        self._trim: Callable[[int], object] | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._trim = ctypes.CDLL(None).malloc_trim  # glibc has it

    def give_back(self) -> None:
        pa.default_memory_pool().release_unused()
        if self._trim is not None:
            self._trim(0)

    def total(self) -> int:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return min([physical, *_group_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def _group_limits(groups: Path, root: Path) -> list[int]:
    """The memory limits of the control groups that a process is in, those above them included.
    Version 2 has one group and ``memory.max``, version 1 a hierarchy for memory alone."""
    limits: list[int] = []
    with contextlib.suppress(OSError):
        for line in groups.read_text(encoding="ascii").splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers == "":
                base, file = root, "memory.max"
            elif "memory" in controllers.split(","):
                base, file = root / "memory", "memory.limit_in_bytes"
            else:
                continue
            group = base / place.lstrip("/")
            for folder in (group, *group.parents):
                with contextlib.suppress(OSError, ValueError):
                    limits.append(int((folder / file).read_text(encoding="ascii")))
                if folder == base:
                    break
    return limits


@dataclass(frozen=True)
class World:
    """The doors of one process."""

    clock: Clock
    chance: Chance
    network: Network
    disk: Disk
    workers: Workers
    memory: Memory


def system_world() -> World:
    return World(
        SystemClock(),
        SystemChance(),
        SystemNetwork(),
        SystemDisk(),
        SystemWorkers(),
        SystemMemory(),
    )
