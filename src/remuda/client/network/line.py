"""One connection that many tasks use at the same time, and the conversations on it."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.ports import SILENCE
from remuda.client.requests.requests import Buffers, cancel_query
from remuda.errors import (
    ConnectionBroken,
    InputError,
    NotServed,
    QueryTimeout,
    RemudaError,
    from_report,
)
from remuda.query.ids import QueryId
from remuda.rpc.connection import Reply
from remuda.rpc.handshake import ACK_TYPE
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.request import Body, Incoming, said_goodbye
from remuda.rpc.transport import Channel, Request

QUERY_DATA, QUERY_RESULT = user_pb2.QUERY_DATA, user_pb2.QUERY_RESULT
GOODBYE = user_pb2.GOODBYE
QUERY_HANDLE, RUN_QUERY = user_pb2.QUERY_HANDLE, user_pb2.RUN_QUERY
_ACK = b"\x08\x01"  # Ack{ok = true}
_Key: TypeAlias = tuple[int, int]


class Line:
    """A connection and who is using it. ``load`` counts requests and conversations under way."""

    def __init__(self, on_silence: Callable[[], None]) -> None:
        """``on_silence`` is called now and then while somebody waits and nothing comes."""
        self.channel: Channel
        self.load = 0
        self.retired = False
        """No new request takes it: somebody has waited for an answer in vain. It is closed when
        nothing is under way on it any more."""
        self.starting = 0
        """Statements that have been sent and have no id yet."""
        self._on_silence = on_silence
        self._watched = False
        self._running: dict[_Key, Talk] = {}
        self._talks: set[Talk] = set()
        self._early: dict[_Key, list[Request]] = {}
        self._writable: asyncio.Future[None] | None = None

    def opened(self, channel: Channel) -> None:
        self.channel = channel
        channel.on_closed.append(self._lost)
        channel.on_writable.append(self._go_on)

    def take(self) -> None:
        self.load += 1
        if not self._watched:
            self._watch()

    def _watch(self) -> None:
        self._watched = True
        asyncio.get_running_loop().call_later(SILENCE, self._look)

    def _look(self) -> None:
        self._watched = False
        if self.load and not self.channel.closed:
            if self.channel.silence >= SILENCE:
                self._on_silence()
            self._watch()

    def give(self) -> None:
        self.load -= 1
        if self.retired and not self.load and not self.channel.closed:
            self.channel.close()

    async def until_writable(self, deadline: Deadline) -> None:
        """Wait while the member takes nothing: messages that are sent meanwhile would pile up here.
        QueryTimeout at the deadline: then nothing was sent."""
        try:
            async with asyncio.timeout(deadline.remaining()):
                while not self.channel.writable and not self.channel.closed:
                    if self._writable is None or self._writable.done():
                        self._writable = asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._writable)
        except TimeoutError:
            peer = self.channel.peer
            raise QueryTimeout(
                f"{peer} did not take the request in time", may_have_run=False
            ) from None

    # --- conversations ---

    def talk(self) -> Talk:
        talk = Talk(self)
        self._talks.add(talk)
        self.take()
        return talk

    def ended(self, talk: Talk, query: QueryId | None) -> None:
        """Nothing will come for this conversation any more."""
        if talk in self._talks:
            self._talks.discard(talk)
            if query is not None:
                self._running.pop((query.part1, query.part2), None)
            self.give()

    def started(self, talk: Talk, query: QueryId) -> None:
        """A statement has its id: here is what came before."""
        key = (query.part1, query.part2)
        self._running[key] = talk
        for request in self._early.pop(key, ()):
            talk.arrived(request)

    def on_request(self, request: Request) -> None:
        """A message that the member sent on its own account: pages, ends of statements, and that
        it answers nothing any more here."""
        if request.rpc_type == GOODBYE:
            self.channel.close(said_goodbye(self.channel.peer))
            return
        key = _query_of(request)
        talk = self._running.get(key)
        if talk is not None:
            talk.arrived(request)
        elif self.starting:  # it overtook the answer that tells the id
            self._early.setdefault(key, []).append(request)
        else:
            request.reply(ACK_TYPE, _ACK)

    def settled(self) -> None:
        """One statement less is starting. A callback for an id that nobody has is of no use."""
        self.starting -= 1
        if not self.starting:
            early, self._early = self._early, {}
            for requests in early.values():
                for request in requests:
                    request.reply(ACK_TYPE, _ACK)

    def _lost(self, error: RemudaError) -> None:
        self._go_on()
        self._early.clear()
        for talk in list(self._talks):
            talk.lost(error)

    def _go_on(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)


def _query_of(request: Request) -> _Key:
    message: user_pb2.QueryData | user_pb2.QueryResult
    if request.rpc_type == QUERY_DATA:
        message = user_pb2.QueryData.FromString(request.pbody)
    else:
        message = user_pb2.QueryResult.FromString(request.pbody)
    return message.query_id.part1, message.query_id.part2


class Talk:
    """A conversation on a line: a statement's, or that of a bulk write."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._arrived: deque[Incoming] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._owed: list[int] = []
        self._pending = 0
        self._query: QueryId | None = None
        self._over = False  # the end of the statement has come
        self._abandoned = False
        self._error: RemudaError | None = None

    # --- for the reader ---

    async def send(
        self, rpc_type: int, body: Body, dbody: Buffers = (), deadline: Deadline = NEVER
    ) -> int:
        line = self._line
        if not line.channel.writable:
            await line.until_writable(deadline)
        number = next(self._numbers)
        starts = rpc_type == RUN_QUERY
        if starts:
            line.starting += 1
        self._pending += 1
        on_reply = partial(self._on_reply, number, starts)
        line.channel.request_nowait(rpc_type, body, dbody, on_reply)
        return number

    async def receive(self, timeout: float | None) -> Incoming:
        if self._owed:
            self._pay()
        if self._arrived:
            return self._arrived.popleft()
        timer = None if timeout is None else self._loop.call_later(timeout, self._out_of_time)
        try:
            while not self._arrived:
                if isinstance(self._error, NotServed):
                    raise from_report(self._error.to_report())
                if self._error is not None:
                    raise ConnectionBroken(
                        self._error.message, may_have_run=self._error.may_have_run
                    )
                if self._abandoned:
                    raise InputError("what is read here was closed meanwhile")
                self._waiter = self._loop.create_future()
                await self._waiter
        except TimeoutError:
            peer = self._line.channel.peer
            raise QueryTimeout(f"{peer} sent nothing for {timeout:g} s") from None
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
        return self._arrived.popleft()

    def acknowledge(self, incoming: Incoming) -> None:
        if incoming.coordination_id != 0:
            self._owed.append(incoming.coordination_id)

    def release(self) -> None:
        if self._owed:
            self._pay()
        self._line.ended(self, self._query)

    def abandon(self) -> None:
        """Also where no task runs, or in another thread: a cursor may be dropped anywhere."""
        if self._loop.is_closed():
            return
        if _running_here(self._loop):
            self._abandon()
        else:
            self._loop.call_soon_threadsafe(self._abandon)

    # --- for the line ---

    def arrived(self, request: Request) -> None:
        """A page, or the end, of the statement."""
        if request.rpc_type == QUERY_RESULT:
            self._over = True
        if self._abandoned:
            request.reply(ACK_TYPE, _ACK)
            self._end_abandoned()
            return
        self._put(
            Incoming(False, request.coordination_id, request.rpc_type, request.pbody, request.dbody)
        )

    def lost(self, error: RemudaError) -> None:
        self._error = error
        self._line.ended(self, self._query)
        self._wake()

    # --- inside ---

    def _on_reply(self, number: int, starts: bool, outcome: Reply | RemudaError) -> None:
        self._pending -= 1
        if isinstance(outcome, RemudaError):
            if self._line.channel.closed:
                self.lost(outcome)
            else:
                self._put(Incoming(True, number, 0, b"", b"", outcome))
        else:
            kind, body = outcome.rpc_type, outcome.pbody
            self._put(Incoming(True, number, kind, body, outcome.dbody))
            if starts and kind == QUERY_HANDLE:
                handle = common_pb2.QueryId.FromString(body)
                self._query = QueryId(handle.part1, handle.part2)
                self._line.started(self, self._query)
        if starts:
            self._line.settled()
        if self._abandoned:
            self._arrived.clear()
            if starts and self._query is not None and not self._over:
                self._cancel(self._query)
            self._end_abandoned()

    def _out_of_time(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _put(self, incoming: Incoming) -> None:
        self._arrived.append(incoming)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _pay(self) -> None:
        """Acknowledge what has been taken: the member may send more."""
        owed, self._owed = self._owed, []
        for identifier in owed:
            self._line.channel.respond(identifier, ACK_TYPE, _ACK, ())

    def _abandon(self) -> None:
        if self._abandoned:
            return
        self._abandoned = True
        for incoming in self._arrived:
            if not incoming.is_reply:
                self.acknowledge(incoming)
        self._arrived.clear()
        self._pay()
        if self._query is not None and not self._over:
            self._cancel(self._query)
        self._wake()
        self._end_abandoned()

    def _cancel(self, query: QueryId) -> None:
        """Tell the member; pages that it still sends are acknowledged and dropped."""
        call = cancel_query(query)
        self._line.channel.request_nowait(call.rpc_type, call.body, (), lambda _: None)

    def _end_abandoned(self) -> None:
        if self._pending == 0 and (self._query is None or self._over):
            self._line.ended(self, self._query)


def _running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
