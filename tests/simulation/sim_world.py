"""The doors of a simulated process: a clock that is off, chance from the seed, files in memory."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import BinaryIO

from sim_loop import CURRENT, SimulatedLoop
from sim_network import SimulatedNetwork

from remuda.errors import ConnectionRefused, ResourceError
from remuda.world import World

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


class SimulatedDisk:
    """Files in memory; ``open_files`` are those that were made and not closed."""

    def __init__(self) -> None:
        self.files: dict[Path, bytes] = {}
        self.scratches: list[BinaryIO] = []

    def read(self, path: Path) -> bytes:
        if path not in self.files:
            raise ResourceError(f"cannot read {path}: No such file")
        return self.files[path]

    def write(self, path: Path, content: bytes) -> None:
        self.files[path] = content

    def scratch(self, directory: str) -> BinaryIO:
        file = io.BytesIO()
        self.scratches.append(file)
        return file

    @property
    def open_files(self) -> int:
        return sum(not file.closed for file in self.scratches)


class NoWorkers:
    """One thread does everything."""

    def available(self, wanted: int) -> int:
        return 0

    def start_thread(self, target, name: str):
        raise AssertionError(f"a simulation has no threads, and {name} was to be one")


class NoMemory:
    def give_back(self) -> None:
        """There is no operating system to give it to."""

    def total(self) -> int:
        return 2**32


def simulated_world(
    network: SimulatedNetwork, seed: object, *, skew: float = 0.0, work: float = 0.0
) -> World:
    random = Random(f"{seed}/{CURRENT.get().name}")
    return World(
        SimulatedClock(network.loop, Random(f"{seed}/{CURRENT.get().name}/clock"), skew=skew,
                       work=work),
        SimulatedChance(random),
        SimulatedDoor(network),  # type: ignore[arg-type]
        SimulatedDisk(),
        NoWorkers(),
        NoMemory(),
    )  # fmt: skip
