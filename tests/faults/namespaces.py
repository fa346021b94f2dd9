"""A network of its own for each member, on one bridge, so that pairs of members can be cut off.

Needs root and ``ip``. Who is cut off sends its packets to a hardware address that nobody has: they
vanish, as in a network that is split, and no side is told. What a process leaves behind that was
killed, the next one removes: names begin with the process id.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Self

NOBODY = "02:00:00:00:00:99"


class Namespaces:
    def __init__(self, members: int) -> None:
        self.tag = f"rm{os.getpid()}"
        self.net = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self.members = members
        self._made: list[str] = []

    @staticmethod
    def available() -> bool:
        """Whether this machine lets us make them."""
        if shutil.which("ip") is None or os.geteuid() != 0:
            return False
        name = f"rm{os.getpid()}n0"
        made = _ip("netns", "add", name, check=False)
        if made:
            _ip("netns", "delete", name, check=False)
        return made

    def host(self, place: int) -> str:
        return f"{self.net}.{place}"

    def prefix(self, place: int) -> list[str]:
        """What runs a command in the network of a member."""
        return ["ip", "netns", "exec", self._name(place)]

    # --- splits ---

    def split(self, one: Iterable[int], other: Iterable[int]) -> None:
        """No packet goes between members of ``one`` and of ``other``; clients reach both."""
        for a, b in itertools.product(one, other):
            for here, there in ((a, b), (b, a)):
                self._neighbour("replace", here, there, "lladdr", NOBODY, "nud", "permanent")

    def heal(self) -> None:
        for a, b in itertools.permutations(range(1, self.members + 1), 2):
            self._neighbour("delete", a, b)

    def _neighbour(self, what: str, here: int, there: int, *more: str) -> None:
        place = ("neigh", what, self.host(there), "dev", "eth0")
        _ip("-n", self._name(here), *place, *more, check=what == "replace")

    # --- making and removing ---

    def __enter__(self) -> Self:
        _remove_leftovers()
        bridge = self.tag + "br"
        _ip("link", "add", bridge, "type", "bridge")
        try:
            _ip("addr", "add", f"{self.net}.254/24", "dev", bridge)
            _ip("link", "set", bridge, "up")
            for place in range(1, self.members + 1):
                name, wire = self._name(place), self._wire(place)
                _ip("netns", "add", name)
                self._made.append(name)
                _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name)
                _ip("link", "set", wire, "master", bridge, "up")
                _ip("-n", name, "addr", "add", f"{self.host(place)}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    _ip("-n", name, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for place, name in enumerate(self._made, 1):
            # Sockets that wait for a peer keep a network for minutes, and its wire with it.
            _ip("link", "delete", self._wire(place), check=False)
            _ip("netns", "delete", name, check=False)
        _ip("link", "delete", self.tag + "br", check=False)

    def _name(self, place: int) -> str:
        return f"{self.tag}n{place}"

    def _wire(self, place: int) -> str:
        return f"{self.tag}w{place}"


def _remove_leftovers() -> None:
    """Networks, bridges and wires of processes that are gone."""
    for kind in ("netns", "link"):
        command = ["ip", "-o", kind, "show"]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for name, process in re.findall(r"\b(rm(\d+)(?:n\d+|br|w\d+))\b", listed):
            if not Path("/proc", process).exists():
                _ip(kind, "delete", name, check=False)


def _ip(*arguments: str, check: bool = True) -> bool:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.returncode == 0
