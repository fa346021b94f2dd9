"""Versions that open transactions read, kept by all members.

Every member keeps the versions of the last ten seconds anyway (``member.VERSIONS_KEPT``), so that
short transactions cost no message. The near member of a longer one tells the others, again and
again, the lowest timestamp that its transactions read at; they keep what is visible there. A member
that says nothing for a while is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.datatypes.timestamp import from_micros
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.sessions.session import TransactionSessions
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

PIN_AFTER: Final = from_micros(2_000_000)
"""Age of a snapshot from which on the others are told."""
PIN_INTERVAL: Final = 1.0
PIN_TTL: Final = 30.0
"""Seconds after which a pin that was not repeated is forgotten."""


class TransactionPins:
    def __init__(self, core: Core, peers: Peers, sessions: TransactionSessions) -> None:
        self._core = core
        self._peers = peers
        self._sessions = sessions
        self._told: dict[int, tuple[int, float]] = {}
        """By member: the lowest timestamp that its transactions read at, and when it said so."""
        self._others: list[Callable[[], int | None]] = []
        self._tell_at = 0.0
        self._pinned = False

    def keep_for(self, *oldest_reads: Callable[[], int | None]) -> None:
        """Others that read on all members for long: each says its lowest timestamp."""
        self._others += oldest_reads

    def start(self) -> None:
        self._core.pulse.on_beat(self._tell)

    def _tell(self) -> None:
        core = self._core
        if (time := core.world.clock.monotonic()) < self._tell_at:
            return
        self._tell_at = time + PIN_INTERVAL
        oldest = self._own()
        # By the wall clock, as versions are collected: the hybrid one stands still without work.
        now = from_micros(core.world.clock.wall_micros())
        due = oldest is not None and oldest < now - PIN_AFTER
        if not due and not self._pinned:
            return
        self._pinned = due
        message = control_pb2.TransactionPin(context=core.context())
        if due:
            message.oldest = oldest or 0
        for number in core.live_members():
            if number != core.number:
                self._peers.send_control(number, RpcType.TRANSACTION_PIN, message)

    def _own(self) -> int | None:
        reads = (self._sessions.oldest_read(), *(other() for other in self._others))
        return min((read for read in reads if read is not None), default=None)

    def on_pin(self, request: Request) -> None:
        message = control_pb2.TransactionPin.FromString(request.pbody)
        self._core.observe(message.context)
        sender = message.context.sender
        if message.HasField("oldest"):
            self._told[sender] = message.oldest, self._core.world.clock.monotonic()
        else:
            self._told.pop(sender, None)

    def oldest_read(self) -> int | None:
        """The lowest timestamp that an open transaction of the cluster reads at, as far as this
        member must keep versions for it."""
        own = self._own()
        if not self._told:
            return own
        since = self._core.world.clock.monotonic() - PIN_TTL
        for member, (_, heard) in list(self._told.items()):
            if heard < since or member in self._core.lost:
                del self._told[member]
        others = [oldest for oldest, _ in self._told.values()]
        return min(others if own is None else [own, *others], default=None)
