"""The doors of a simulated process: a clock that is off, chance from the seed, files in memory."""

from __future__ import annotations

import asyncio
import errno
import io
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import BinaryIO

from sim_loop import CURRENT, SimulatedLoop
from sim_network import SimulatedNetwork

from remuda.errors import ConnectionRefused, DiskFull, ResourceError
from remuda.execution.pool import Pool
from remuda.world import FileFacts, World

EPOCH_MICROS = 1_700_000_000_000_000


class SimulatedClock:
    """Looking at it takes up to ``work`` seconds, so that time passes while something computes."""

    def __init__(self, loop: SimulatedLoop, random: Random, *, skew: float, work: float) -> None:
        self.loop, self.random, self.skew, self.work = loop, random, skew, work

    def monotonic(self) -> float:
        self.loop.passes(self.random.random() * self.work)
        return self.loop.now

    def wall_micros(self) -> int:
        return EPOCH_MICROS + int((self.loop.now + self.skew) * 1e6)


class SimulatedChance:
    def __init__(self, random: Random) -> None:
        self.random = random

    def bits(self, count: int) -> int:
        return self.random.getrandbits(count)

    def fraction(self) -> float:
        return self.random.random()


class SimulatedDoor:
    """``world.Network`` of one node."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network = network

    def listen(self, host: str, port: int):
        return self.network.bind(host, port)

    def adopt(self, descriptor: int):
        raise ConnectionRefused("nobody hands sockets over in a simulation")

    def connect(self, host: str, port: int, timeout: float):
        raise ConnectionRefused("there are no blocking sockets in a simulation")


class ScratchFile(io.BytesIO):
    """A spill file; the disk is full now and then, for a write of any size."""

    def __init__(self, disk: SimulatedDisk) -> None:
        super().__init__()
        self.disk = disk

    def write(self, data) -> int:
        if self.disk.is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


class SimulatedDisk:
    """Files in memory; ``open_files`` are those that were made and not closed. ``full`` is how
    likely a write finds no space."""

    sector = 512

    def __init__(self, random: Random, files: Mapping[Path, bytes]) -> None:
        self.random = random
        self.full = 0.0
        self.files = dict(files)
        self.scratches: list[BinaryIO] = []

    def is_full(self) -> bool:
        return self.full > 0 and self.random.random() < self.full

    def space(self, _path: Path) -> tuple[int, int]:
        return 2**40, 2**40

    def facts(self, path: Path) -> FileFacts:
        return FileFacts(0o600, (len(self.read(path)),))

    def read(self, path: Path) -> bytes:
        if path not in self.files:
            raise ResourceError(f"cannot read {path}: No such file")
        return self.files[path]

    def write(self, path: Path, content: bytes) -> None:
        self.files[path] = content

    def scratch(self, directory: str) -> BinaryIO:
        if self.is_full():
            raise DiskFull("cannot make a temporary file: No space left on device")
        file = ScratchFile(self)
        self.scratches.append(file)
        return file

    @property
    def open_files(self) -> int:
        return sum(not file.closed for file in self.scratches)


class NoWorkers:
    """One thread does everything."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def available(self, wanted: int) -> int:
        return 0

    def start_thread(self, target, name: str):
        raise AssertionError(f"a simulation has no threads, and {name} was to be one")


class SimulatedPool(Pool):
    """Instead of threads: a slice that was given out runs a moment later, in any order with what
    else happens."""

    def __init__(self, threads: int, workers: NoWorkers, name: str = "fragments", later=None):
        loop = asyncio.get_running_loop()

        def soon(work) -> None:
            loop.call_later(workers.random.uniform(0, 0.001), work)

        super().__init__(0, workers, name, soon if threads else later)


class NoMemory:
    def give_back(self) -> None:
        """There is no operating system to give it to."""

    def total(self) -> int:
        return 2**32


def simulated_world(
    network: SimulatedNetwork,
    seed: object,
    *,
    skew: float = 0.0,
    work: float = 0.0,
    files: Mapping[Path, bytes] | None = None,
) -> World:
    name = f"{seed}/{CURRENT.get().name}"
    random = Random(name)
    return World(
        SimulatedClock(network.loop, Random(f"{name}/clock"), skew=skew, work=work),
        SimulatedChance(random),
        SimulatedDoor(network),  # type: ignore[arg-type]
        SimulatedDisk(Random(f"{name}/disk"), files or {}),
        NoWorkers(Random(f"{name}/workers")),
        NoMemory(),
    )  # fmt: skip
