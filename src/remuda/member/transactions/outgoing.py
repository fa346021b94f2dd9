"""Messages of parts on their way to other members: those to one member are gathered over a step of
the event loop and go in one frame, when what they tell is in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from remuda.errors import RemudaError
from remuda.limits import MIB
from remuda.member.base.core import Core, bug
from remuda.member.base.peers import Peers
from remuda.member.transactions.slices import ROWS_PER_STEP, rows_of
from remuda.member.transactions.wire import fill_alone, fill_message
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.transaction import states as tx

log = logging.getLogger(__name__)
_PARTS = RpcType.PARTS

_WITH_ROWS = (tx.Prepare, tx.PrepareLast, tx.KeepAll, tx.BackupPrepare)

LINGER = 0.005
"""Seconds that a message which nobody waits for may wait for company."""
FRAME_SIZE = 8 * MIB  # of messages that travel together, about; one may be larger


class Outgoing:
    """``frame`` makes an empty frame, with what every frame says of its sender."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        frame: Callable[[], control_pb2.PartMessages],
    ) -> None:
        self._core = core
        self._peers = peers
        self._frame = frame
        self._view = 0
        """The number of the view in which this member speaks."""
        self._waiting: dict[int, list[tx.Message]] = {}
        """By receiver."""
        self._urgent: set[int] = set()
        """Members to whom something is said that is waited for."""
        self._lingering = False

    def post(self, to: int, message: tx.Message) -> None:
        """Send it at the end of this step."""
        self._waiting.setdefault(to, []).append(message)
        if not self._urgent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._urgent.add(to)

    def linger(self, to: int, message: tx.Message) -> None:
        """Send it with the next message to the same member, or in a moment."""
        self._waiting.setdefault(to, []).append(message)
        if not self._lingering:
            self._lingering = True
            asyncio.get_running_loop().call_later(LINGER, self.flush_all)

    def hurry(self) -> None:
        """Somebody waits for a key that is held until the backups have heard how a part ended."""
        if len(self._urgent) < len(self._waiting):
            if not self._urgent:
                asyncio.get_running_loop().call_soon(self._flush)
            self._urgent.update(self._waiting)

    def enter(self, view: int) -> None:
        """Another view, by its number. Messages of the one before are dropped: those that matter
        are sent again."""
        self._view = view
        self._waiting.clear()
        self._urgent.clear()

    def flush_all(self) -> None:
        self._lingering = False
        self._flush(everything=True)

    def _flush(self, *, everything: bool = False) -> None:
        """The messages to members that an urgent one goes to, or to all of them."""
        waiting = self._waiting
        if everything or len(self._urgent) == len(waiting):
            self._waiting = {}
        else:
            waiting = {to: waiting.pop(to) for to in list(waiting) if to in self._urgent}
        self._urgent.clear()
        if waiting:
            self._core.wal.after(partial(self._deliver, self._view, waiting))

    def _deliver(self, view: int, waiting: dict[int, list[tx.Message]]) -> None:
        if view != self._view:
            return  # said in the view before
        while waiting:
            to = next(iter(waiting))
            messages = waiting.pop(to)
            sent = len(messages)
            try:
                sent = self._send_some(to, messages)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                bug(error, f"messages of parts to member {to}")
            if sent < len(messages):
                waiting[to] = messages[sent:]  # after those for the others
                asyncio.get_running_loop().call_soon(self._deliver, view, waiting)
                return

    def _send_some(self, to: int, messages: list[tx.Message]) -> int:
        """One frame; how many of the messages went with it."""
        frame, size, rows = self._frame(), 0, 0
        sent = 0
        me = self._core.number
        for message in messages:
            sent += 1
            kind = type(message)
            filled = 0
            if kind is tx.BackupPrepare or kind is tx.BackupPrepared:
                filled = fill_alone(frame, message, me, to)
            if filled:
                size += filled
                rows += 1
            else:
                out = frame.messages.add()
                fill_message(out, message)
                if isinstance(message, _WITH_ROWS):
                    size += out.ByteSize()
                    rows += rows_of(message)
            if size > FRAME_SIZE or rows >= ROWS_PER_STEP:
                break
        self.send_frame(to, frame)
        return sent

    def send_frame(self, to: int, frame: control_pb2.PartMessages) -> None:
        try:
            self._peers.send_control(to, _PARTS, frame)
        except RemudaError as error:  # it is sent again, to whoever is there by then
            log.debug("messages of parts not sent: %s", error.message)
