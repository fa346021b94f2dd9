"""A network of its own for each member, on one bridge, so that pairs of members can be cut off.

Needs root and ``ip``. A member that is cut off sends its packets to a hardware address that nobody
has: they vanish, as in a network that is split, and no side is told. Connections are refused by two
more networks without a process: one has the addresses of one side, the other those of the other
side, and each side's packets go to the one that has the other side's addresses. The kernel there
resets them. The next process removes what a killed one has left: names begin with the process id.
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
WALLS = ("02:00:00:00:00:a1", "02:00:00:00:00:a2")
"""Hardware addresses of the networks that refuse connections."""


class Namespaces:
    def __init__(self, members: int) -> None:
        self.tag = f"rm{os.getpid()}"
        self.net = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self.members = members
        self._made: list[str] = []
        self._diverted: set[tuple[int, int]] = set()
        """Pairs whose packets do not go where they should."""

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
            self._send_to(NOBODY, a, b)
            self._send_to(NOBODY, b, a)

    def silence(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        """No packet of ``senders`` reaches ``receivers``; theirs arrive."""
        for here, there in itertools.product(senders, receivers):
            self._send_to(NOBODY, here, there)

    def refuse(self, one: int, others: Iterable[int]) -> None:
        """Connections between the member and the others are reset, and new ones refused."""
        far = list(others)
        for wall, (hidden, seen) in enumerate((([one], far), (far, [one]))):
            for place in seen:
                self._wall_knows(wall, place)
            for place in hidden:
                _ip("-n", self._wall(wall), "addr", "add", f"{self.host(place)}/24", "dev", "eth0")
        for place in far:
            self._send_to(WALLS[0], place, one)
            self._send_to(WALLS[1], one, place)

    def heal(self) -> None:
        for wall in range(len(WALLS)):
            _ip("-n", self._wall(wall), "addr", "flush", "dev", "eth0")
        for here, there in sorted(self._diverted):
            self._neighbour("delete", here, there)
        self._diverted.clear()

    def _send_to(self, hardware: str, here: int, there: int) -> None:
        self._diverted.add((here, there))
        self._neighbour("replace", here, there, "lladdr", hardware, "nud", "permanent")

    def _wall_knows(self, wall: int, place: int) -> None:
        """It never asks for a hardware address: all that hear the question would learn a wrong one
        from it."""
        where = ("neigh", "replace", self.host(place), "dev", "eth0")
        hardware = ("lladdr", _hardware(place), "nud", "permanent")
        _ip("-n", self._wall(wall), *where, *hardware)

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
                name = self._network(bridge, place)
                _ip("-n", name, "link", "set", "eth0", "address", _hardware(place))
                _ip("-n", name, "addr", "add", f"{self.host(place)}/24", "dev", "eth0")
            for wall, hardware in enumerate(WALLS):
                name = self._network(bridge, self.members + 1 + wall)
                _ip("-n", name, "link", "set", "eth0", "address", hardware)
                # It tells nobody that it has their addresses.
                quiet = "echo 8 > /proc/sys/net/ipv4/conf/all/arp_ignore"
                subprocess.run(["ip", "netns", "exec", name, "sh", "-c", quiet], check=True)
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

    def _network(self, bridge: str, place: int) -> str:
        name, wire = self._name(place), self._wire(place)
        _ip("netns", "add", name)
        self._made.append(name)
        _ip("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", wire, "master", bridge, "up")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        return name

    def _wall(self, number: int) -> str:
        return self._name(self.members + 1 + number)

    def _name(self, place: int) -> str:
        return f"{self.tag}n{place}"

    def _wire(self, place: int) -> str:
        return f"{self.tag}w{place}"


def _hardware(place: int) -> str:
    return f"02:00:00:00:01:{place:02x}"


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
