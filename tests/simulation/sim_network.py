"""Sockets in memory: bytes in order per connection, any order across them, and faults.

Between members whole frames can be lost, repeated or overtaken: TCP does none of that, but the
query protocol relies on no order and no delivery (design rules 5 and 11). ``rules`` say what
becomes of a frame; the first that has an opinion decides.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from sim_loop import CURRENT, Node, SimulatedLoop

from remuda.rpc.frame import REQUEST, _header, varint
from remuda.rpc.messages import control_pb2, data_pb2

MODES = ("request", "response", "failure", "ping", "pong")
CONTROL = {number: name for name, number in control_pb2.RpcType.items()}
DATA = {number: name for name, number in data_pb2.RpcType.items()}
QUERY_MESSAGES = frozenset({
    "QUERY_START", "QUERY_CANCEL", "QUERY_CHECK", "QUERY_CHECK_RESPONSE", "FRAGMENT_DONE",
    "REQ_RECORD_BATCH", "DATA_ACK_WITH_CREDIT",
})  # fmt: skip
"""Messages whose loss the query protocol bears, and which may come twice."""


@dataclass(frozen=True)
class Sent:
    """One frame between two members."""

    sender: str
    receiver: str
    name: str
    mode: int
    identifier: int
    size: int
    frame: bytes

    @property
    def one_way(self) -> bool:
        return self.mode == 0 and self.identifier == 0

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver} {self.name} {MODES[self.mode]} {self.size}"


@dataclass(frozen=True)
class Fate:
    """What becomes of a frame: so many copies, each after so many seconds more. Without ``delays``
    it is lost; ``overtaken``: frames behind it do not wait for it. The first copy of a request is
    answered, as a connection takes one answer to a request; the others come as one-way frames."""

    delays: tuple[float, ...] = (0.0,)
    overtaken: bool = True


def _unanswered(frame: bytes) -> bytes:
    """The same request as a one-way frame."""
    start = next(i for i, digit in enumerate(frame) if digit < 128) + 1
    mode, _, rpc_type, body = _header(bytearray(frame), start, len(frame))
    assert mode == REQUEST, "no answer may come twice: a connection breaks at the second"
    header = b"\x08\x00\x10\x00\x18" + varint(rpc_type)
    content = b"\x0a" + varint(len(header)) + header + frame[body:]
    return varint(len(content)) + content


LOST = Fate(())
Rule = Callable[[Sent], Fate | None]


class SimulatedSocket:
    """What ``Network.listen`` gives: an address."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def setsockopt(self, *_: object) -> None:
        """Nothing to set."""


class Listener:
    def __init__(self, network: SimulatedNetwork, sock: SimulatedSocket, node: Node, make) -> None:
        self.network, self.node, self.make = network, node, make
        self.sockets = [sock]

    def close(self) -> None:
        self.network.listeners.pop(self.sockets[0].address, None)

    async def wait_closed(self) -> None:
        """Nothing lingers."""

    def is_serving(self) -> bool:
        return self.sockets[0].address in self.network.listeners


class Pipe:
    """One direction of a connection."""

    def __init__(self, network: SimulatedNetwork, source: Transport, target: Transport) -> None:
        self.network, self.source, self.target = network, source, target
        self.free_at = 0.0
        self.outstanding = 0
        self.cut = False
        self.partial = b""

    def send(self, data: bytes) -> None:
        for tap in self.network.taps:
            tap(self.source, data)
        self.outstanding += len(data)
        if not self.source.between_members:
            self._arrange(data, 0.0, ordered=True)
            return
        for frame in self._frames(data):
            sent = self._described(frame)
            fate = self.network.fate(sent)
            self.outstanding -= len(frame)
            for copy, delay in enumerate(fate.delays):
                piece = frame if copy == 0 or sent.one_way else _unanswered(frame)
                self.outstanding += len(piece)
                self._arrange(piece, delay, ordered=not (fate.overtaken and delay > 0))

    def _frames(self, data: bytes) -> list[bytes]:
        """The frames that are complete now."""
        rest = self.partial + data
        frames = []
        while rest:
            digits = next((i for i, digit in enumerate(rest[:5], 1) if digit < 128), 0)
            length = sum((rest[i] & 127) << 7 * i for i in range(digits))
            if not digits or digits + length > len(rest):
                break
            frames.append(rest[: digits + length])
            rest = rest[digits + length :]
        self.partial = rest
        return frames

    def _described(self, frame: bytes) -> Sent:
        start = next(i for i, digit in enumerate(frame) if digit < 128) + 1
        mode, identifier, rpc_type, _ = _header(bytearray(frame), start, len(frame))
        names = CONTROL if self.source.channel == "control" else DATA
        name = names.get(rpc_type, str(rpc_type))
        nodes = self.source.node.name, self.target.node.name
        return Sent(*nodes, name, mode, identifier, len(frame), frame)

    def _arrange(self, data: bytes, delay: float, *, ordered: bool) -> None:
        network = self.network
        when = network.arrival(self.source.node, self.target.node) + delay
        if ordered:
            when = self.free_at = max(when, self.free_at)
        network.loop.call_at(when, self._arrive, data, context=self.target.node.context)

    def _arrive(self, data: bytes) -> None:
        if self.cut:
            return
        if self.target.paused:
            self.target.held.append((self, data))
            return
        self.deliver(data)

    def deliver(self, data: bytes) -> None:
        self.outstanding -= len(data)
        self.source.drained()
        target = self.target
        if target.gone:
            return
        protocol = target.protocol
        random = self.network.random
        view = memoryview(data)
        while view and not target.gone:
            piece = view
            if self.network.splits and random.random() < 0.3:
                piece = view[: random.randint(1, min(len(view), 64))]
            room = protocol.get_buffer(-1)
            count = min(len(room), len(piece))
            room[:count] = piece[:count]
            view = view[count:]
            protocol.buffer_updated(count)

    def end(self, error: Exception | None) -> None:
        """The other side closes (None) or resets the connection, behind what is under way."""
        when = self.network.arrival(self.source.node, self.target.node)
        if error is None:
            when = max(when, self.free_at)
        self.network.loop.call_at(when, self._ended, error, context=self.target.node.context)

    def _ended(self, error: Exception | None) -> None:
        if self.target.paused and error is None:
            self.target.held.append((self, None))
            return
        self.target.peer_ended(error)


class Transport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: SimulatedNetwork, node: Node, channel: str, peer: tuple) -> None:
        super().__init__()
        self.network, self.node, self.channel = network, node, channel
        self.peer_address = peer
        self.between_members = False
        self.outgoing = False
        """This end has connected to the other."""
        self.pipe: Pipe
        self.other: Transport
        self.protocol: Any = None
        self.closing = self.gone = self.paused = False
        self.eof_sent = False
        self.writable = True
        self.high, self.low = 64 * 1024, 16 * 1024
        self.held: deque[tuple[Pipe, bytes | None]] = deque()

    # ---- writing ----

    def write(self, data) -> None:
        if not self.gone and not self.closing and len(data):
            self.pipe.send(bytes(data))
            if self.writable and self.pipe.outstanding > self.high:
                self.writable = False
                self.protocol.pause_writing()

    def drained(self) -> None:
        if not self.writable and self.pipe.outstanding <= self.low and not self.gone:
            self.writable = True
            self.network.loop.call_soon(self._resume, context=self.node.context)

    def _resume(self) -> None:
        if not self.gone:
            self.protocol.resume_writing()

    def set_write_buffer_limits(self, high=None, low=None) -> None:
        self.high = high if self.network.buffer_max is None else self.network.buffer_max
        self.low = low if self.network.buffer_max is None else self.network.buffer_max // 4

    def get_write_buffer_size(self) -> int:
        return self.pipe.outstanding

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self.eof_sent and not self.gone:
            self.eof_sent = True
            self.pipe.end(None)

    # ---- reading ----

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        held, self.held = self.held, deque()
        for pipe, data in held:
            if data is None:
                self.peer_ended(None)
            else:
                pipe.deliver(data)

    def is_reading(self) -> bool:
        return not self.paused

    # ---- ends ----

    def is_closing(self) -> bool:
        return self.closing or self.gone

    def close(self) -> None:
        if not self.closing and not self.gone:
            self.closing = True
            self.write_eof()
            self.network.loop.call_soon(self._lost, None, context=self.node.context)

    def abort(self) -> None:
        self.broken(None, ConnectionResetError(104, "Connection reset by peer"))

    def broken(self, here: Exception | None, there: Exception) -> None:
        """A reset: what is under way to this end is lost, and to the other end what comes later."""
        if not self.gone:
            self.closing = True
            self.other.pipe.cut = True
            self.pipe.end(there)
            self.network.loop.call_soon(self._lost, here, context=self.node.context)

    def peer_ended(self, error: Exception | None) -> None:
        if self.gone:
            return
        if error is not None:
            self.other.pipe.cut = True
            self._lost(error)
        elif self.protocol is None or not self.protocol.eof_received():
            self.close()

    def _lost(self, error: Exception | None) -> None:
        if not self.gone:
            self.gone = True
            self.network.transports.pop(self, None)
            if self.protocol is not None:  # else its connect() is about to see that it is gone
                self.protocol.connection_lost(error)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return SimulatedSocket("", 0)
        if name == "peername":
            return self.peer_address
        return default

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol


class SimulatedNetwork:
    """All machines and wires of one run."""

    def __init__(self, loop: SimulatedLoop, random: Random, log: Callable[[str], None]) -> None:
        self.loop, self.random, self.log = loop, random, log
        loop.network = self
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.transports: dict[Transport, None] = {}
        self.rules: list[Rule] = []
        self.counts: dict[str, int] = {}
        """Frames between members, by name of the message."""
        self.watchers: list[Callable[[Sent], None]] = []
        self.taps: list[Callable[[Transport, bytes], None]] = []
        """Hear every piece that is written, by its writer."""
        self.silences: dict[tuple[Node, Node], float] = {}
        self.slow = 0.0
        """The share of pieces that take up to a second."""
        self.refusals: dict[Node, float] = {}
        """Until when connections to a node are refused, though its process lives."""
        self.splits = False
        """Bytes arrive in pieces of any size."""
        self.buffer_max: int | None = None
        self._ports = 40000

    # ---- addresses ----

    def bind(self, host: str, port: int) -> SimulatedSocket:
        if port == 0:
            self._ports += 1
            port = self._ports
        return SimulatedSocket(host, port)

    def serve(self, sock: SimulatedSocket, make: Callable[[], Any]) -> Listener:
        listener = Listener(self, sock, CURRENT.get(), make)
        self.listeners[sock.address] = listener
        return listener

    async def connect(self, make: Callable[[], Any], host: str, port: int) -> tuple[Any, Any]:
        node = CURRENT.get()
        listener = self.listeners.get((host, port))
        there = node if listener is None else listener.node
        await asyncio.sleep(self.arrival(node, there) - self.loop.now)
        if not there.alive and listener in self.listeners.values():
            await self.loop.create_future()  # a machine without power does not even refuse
        shut = self.refusals.get(there, 0.0) > self.loop.now and there is not node
        if shut or self.listeners.get((host, port)) is not listener or listener is None:
            await asyncio.sleep(self.arrival(there, node) - self.loop.now)
            raise ConnectionRefusedError(111, "Connection refused")
        here = self._join(node, listener)
        try:
            await asyncio.sleep(self.arrival(there, node) - self.loop.now)
        except asyncio.CancelledError:
            here.abort()
            raise
        if here.gone:
            raise ConnectionResetError(104, "Connection reset by peer")
        protocol = make()
        here.protocol = protocol
        protocol.connection_made(here)
        return here, protocol

    def _join(self, node: Node, listener: Listener) -> Transport:
        """Both ends; the accepting one is connected at once."""
        served = listener.make()
        channel = getattr(getattr(served, "kind", None), "value", "?")
        self._ports += 1
        here = Transport(self, node, channel, listener.sockets[0].address)
        there = Transport(self, listener.node, channel, ("10.0.0.1", self._ports))
        here.other, there.other = there, here
        here.pipe, there.pipe = Pipe(self, here, there), Pipe(self, there, here)
        here.between_members = there.between_members = node.member and channel != "user"
        here.outgoing = True
        there.protocol = served
        self.transports[here] = self.transports[there] = None
        self.loop.call_soon(served.connection_made, there, context=listener.node.context)
        self.log(f"connect {node} -> {listener.node} {channel}")
        return here

    # ---- delays and faults ----

    def arrival(self, source: Node, target: Node) -> float:
        delay = self.random.uniform(0.0001, 0.002)
        if self.slow and self.random.random() < self.slow:
            delay = self.random.uniform(0.01, 1.0)
        return max(self.loop.now + delay, self.silences.get((source, target), 0.0))

    def fate(self, sent: Sent) -> Fate:
        fate = Fate()
        for rule in self.rules:
            found = rule(sent)
            if found is not None:
                fate = found
                break
        self.counts[sent.name] = self.counts.get(sent.name, 0) + 1
        mark = "" if fate == Fate() else " LOST" if fate == LOST else f" {len(fate.delays)} x late"
        self.log(f"{sent}{mark}")
        for watch in self.watchers:
            watch(sent)
        return fate

    def silence(self, source: Node, target: Node, seconds: float) -> None:
        """Nothing that ``source`` sends arrives at ``target`` for a while; nothing is lost."""
        self.silences[source, target] = self.loop.now + seconds

    def break_connections(self, one: Node, other: Node, channel: str) -> int:
        """Reset the open connections of a kind between two nodes, at both ends."""
        found = [
            end
            for end in self.transports
            if end.node is one and end.other.node is other and end.channel == channel
        ]
        reset = ConnectionResetError(104, "Connection reset by peer")
        for end in found:
            if end.protocol is not None:
                end.pipe.cut = True
                end.broken(reset, reset)
        return len(found)

    def reset(self, node: Node, others: Iterable[Node], seconds: float) -> None:
        """Every connection between a node and others breaks, and for a while its host and theirs
        refuse new ones, as a firewall or a balancer does that is set up anew."""
        for one, other in [(node, other) for other in others if other is not node]:
            for end, far in ((one, other), (other, one)):
                self.refusals[end] = self.loop.now + seconds
                for kind in ("control", "data"):
                    self.break_connections(end, far, kind)

    def kill(self, node: Node, *, silently: bool) -> None:
        """The process ends at once; its peers see a reset, or (power failure) nothing at all."""
        node.alive = False
        node.ready.clear()
        if not silently:
            for address, listener in list(self.listeners.items()):
                if listener.node is node:
                    del self.listeners[address]
        for end in list(self.transports):
            if end.node is node:
                del self.transports[end]
                end.gone = True
                if not silently:
                    end.pipe.end(ConnectionResetError(104, "Connection reset by peer"))

    def open_at(self, node: Node) -> list[Transport]:
        return [end for end in self.transports if end.node is node]
