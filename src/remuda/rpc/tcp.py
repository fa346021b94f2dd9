"""Options of TCP connections, whichever side has opened them."""

from __future__ import annotations

import socket
from typing import Final, Protocol

SILENCE_BEFORE_PROBES: Final = 15
PROBE_INTERVAL: Final = 5
PROBES: Final = 3
"""So a peer whose machine or network is gone is found out after 30 seconds without traffic."""


class Options(Protocol):
    """A socket, as far as this module needs one."""

    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...


def prepare(sock: Options) -> None:
    """Small messages leave at once, and the kernel asks a silent peer whether it is there.

    Blocking clients send no heartbeats while nobody waits (Drill's do not have to either), and one
    whose machine loses its power or its network says no goodbye. Without probes a member would
    keep its connection for ever, and the locks of its transaction until that times out. The
    kernel of the peer answers them, so a client may be idle, or frozen, for as long as it likes.
    A message to a peer that is gone already ends the connection later, when the kernel has
    repeated it often enough (Linux: 15 minutes): TCP_USER_TIMEOUT would be quicker, but also ends
    connections whose reader is slow, but alive.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_BEFORE_PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_INTERVAL)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
