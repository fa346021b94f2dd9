"""One running statement in one conversation with a member."""

from __future__ import annotations

from remuda.client.core.tries import told
from remuda.client.network.deadline import GRACE, Deadline
from remuda.client.network.ports import Conversation, MemberPort
from remuda.client.requests.pages import Page
from remuda.client.requests.requests import cancel_query
from remuda.client.requests.result_stream import Outcome, ResultStream
from remuda.errors import ConnectionBroken, InputError, NotServed, QueryTimeout, RemudaError
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.request import Incoming

# Read once: an enumeration's attribute is a slow lookup.
RUN_QUERY, QUERY_ANSWER = user_pb2.RUN_QUERY, user_pb2.QUERY_ANSWER
COPY_DATA = user_pb2.COPY_DATA
_GLANCE = 0.001
"""Seconds to look whether the end has arrived already."""
PIECES_IN_FLIGHT = 4
"""Pieces of the data of a COPY that the member has not answered; the next one waits."""
DRAIN_TIMEOUT = 5.0
"""Seconds to wait for the end of a statement that was closed early; then it is abandoned."""


class Execution:
    """Runs one statement; holds its conversation until the result has been read or given up.

    One reader at a time, except ``cancel``, which anybody may call at any time.
    """

    def __init__(
        self,
        member: MemberPort,
        talk: Conversation,
        stream: ResultStream,
        deadline: Deadline,
        *,
        reads: bool,
    ) -> None:
        self.stream = stream
        self._member = member
        self._deadline = deadline
        self._answered_by = deadline if deadline.seconds is None else deadline.later(GRACE)
        self._reads = reads
        self.talk: Conversation | None = talk
        """None when nothing of the statement will come any more."""
        self._handle = 0
        self._reading = False
        self._sent = 0
        self._unanswered: set[int] = set()
        """Numbers of the pieces of a COPY that the member has not answered."""

    @classmethod
    async def begin(
        cls,
        member: MemberPort,
        stream: ResultStream,
        body: bytes,
        deadline: Deadline,
        *,
        reads: bool,
    ) -> Execution:
        """Ask ``member`` to run the statement of the RUN_QUERY ``body``; ``reads``: it changes
        nothing, and its errors say so."""
        talk = await member.converse(deadline)
        execution = cls(member, talk, stream, deadline, reads=reads)
        try:
            execution._handle = await talk.send(RUN_QUERY, body, (), deadline)
        except BaseException as error:
            execution.lose()
            if isinstance(error, ConnectionBroken | QueryTimeout):
                raise member.broken(error) from error
            raise
        return execution

    async def next_page(self) -> Page | None:
        """The next page; None at the end. Raises the statement's error.

        A page is acknowledged when the next one is waited for. A caller that is interrupted here
        (or whose task is cancelled) has given up the statement. InputError while another one waits
        here: of two, one would never hear of its page.
        """
        if self._reading:
            raise InputError(
                "another task or thread reads this result at the moment",
                hint="One at a time reads a cursor; give each a cursor of its own.",
            )
        self._reading = True
        try:
            answered_by = self._answered_by
            while self.talk is not None:
                left = None if answered_by.seconds is None else answered_by.remaining()
                event = await self._step(self.talk, left)
                if event is not None and not isinstance(event, Outcome):
                    return event
        except RemudaError as error:
            self.lose()
            heard = told(error, reads=self._reads)
            if heard is error:
                raise
            raise heard from error
        except BaseException:
            self.lose()
            raise
        finally:
            self._reading = False
        outcome = self.stream.outcome
        if outcome is not None and outcome.error is not None:
            raise told(outcome.error, reads=self._reads)
        return None

    async def send_piece(self, data: bytes, *, last: bool) -> bool:
        """Send a piece of the data of a COPY FROM; waits while the member has no room. False: the
        statement has ended, ``next_page`` tells how. Until the ``last`` piece is sent, a COPY has
        changed nothing, whatever breaks."""
        if self.talk is None:
            return False
        query = self.stream.query_id
        assert query is not None, "the member has asked for the data"
        message = user_pb2.CopyData(
            query_id=common_pb2.QueryId(part1=query.part1, part2=query.part2),
            ordinal=self._sent,
            last=last,
        )
        self._sent += 1
        try:
            self._reads = not last
            self._unanswered.add(await self._sent_over(self.talk, message, data))
            while self.talk is not None and len(self._unanswered) >= PIECES_IN_FLIGHT:
                await self._step(self.talk, self._answered_by.remaining())
        except RemudaError as error:
            self.lose()
            heard = told(error, reads=self._reads)
            if heard is error:
                raise
            raise heard from error
        except BaseException:
            self.lose()
            raise
        return self.talk is not None and self.stream.outcome is None

    async def _sent_over(self, talk: Conversation, message: user_pb2.CopyData, data: bytes) -> int:
        try:
            return await talk.send(COPY_DATA, message, (data,) if data else (), self._answered_by)
        except (ConnectionBroken, QueryTimeout) as error:
            raise self._member.broken(error) from error

    async def cancel(self) -> None:
        """Ask the member to cancel, beside the conversation. The reader then gets QueryCanceled."""
        query = self.stream.query_id
        if query is not None and self.stream.outcome is None:
            patience = Deadline(self._answered_by.left(self._member.request_timeout))
            await self._member.call(cancel_query(query), patience)

    async def close(self) -> None:
        """Give up the rest: cancel, and read what is under way. Another reader meanwhile gets
        an InputError."""
        if self._reading:  # only one may
            self.lose()
        if self.talk is None or await self._finished_already():
            return
        try:
            deadline = Deadline(self._answered_by.left(DRAIN_TIMEOUT))
            while self.stream.query_id is None and self.talk is not None:
                await self._step(self.talk, deadline.remaining())
            if self.talk is not None:
                await self._drain(self.talk, deadline)
        except RemudaError:
            self.lose()
        except BaseException:
            self.lose()
            raise

    async def abandon(self) -> None:
        """Like ``close`` without waiting for the end."""
        if self.talk is not None and not await self._finished_already():
            self.lose()

    def lose(self) -> None:
        """Give up the rest at once."""
        if self.talk is not None:
            talk, self.talk = self.talk, None
            talk.abandon()

    # --- steps ---

    async def _step(self, talk: Conversation, timeout: float | None) -> Page | Outcome | None:
        """Take in one message; acknowledges pages and the outcome."""
        try:
            incoming = await talk.receive(timeout)
        except ConnectionBroken as error:
            raise self._member.broken(error) from error
        except NotServed as error:  # it has said goodbye
            if self._reads or self.stream.query_id is None:
                raise
            # The member has taken the write: it may have committed it, or still do so.
            lost = ConnectionBroken("it left before it told the end of the statement")
            raise self._member.broken(lost) from error
        except QueryTimeout as error:
            raise QueryTimeout(
                f"{self._member.name} did not end the statement in time",
                detail=f"timeout: {self._deadline.seconds:g} s" if self._deadline.seconds else "",
                member=self._member.member,
            ) from error
        if incoming.is_reply:
            return self._on_reply(incoming)
        event = self.stream.on_request(incoming.rpc_type, incoming.pbody, incoming.dbody)
        talk.acknowledge(incoming)
        if isinstance(event, Outcome) and self.stream.query_id is not None:
            self._release()
        return event

    def _on_reply(self, incoming: Incoming) -> Page | Outcome | None:
        if incoming.coordination_id in self._unanswered:
            self._unanswered.remove(incoming.coordination_id)
            if incoming.error is not None and self.stream.outcome is None:
                raise incoming.error
            if self.stream.outcome is not None:
                self._release()
            return None
        if incoming.coordination_id != self._handle:
            return None
        if incoming.error is not None:
            outcome = self.stream.on_refused(incoming.error)
            self._release()
            return outcome
        if incoming.rpc_type == QUERY_ANSWER:
            page = self.stream.on_answer(incoming.pbody)
            self._release()
            return page
        self.stream.on_handle(incoming.pbody)
        if self.stream.outcome is not None:  # the result overtook the handle
            self._release()
        return None

    async def _finished_already(self) -> bool:
        """Whether the end of the result has arrived; takes it in."""
        try:
            while self.talk is not None:
                event = await self._step(self.talk, _GLANCE)
                if event is not None and not isinstance(event, Outcome):
                    return False
        except QueryTimeout:
            return False
        except RemudaError:
            self.lose()
        return True

    async def _drain(self, talk: Conversation, deadline: Deadline) -> None:
        query = self.stream.query_id
        assert query is not None
        call = cancel_query(query)
        canceled = await talk.send(call.rpc_type, call.body, (), deadline)
        answered = False
        while self.stream.outcome is None or not answered or self._unanswered:
            incoming = await talk.receive(deadline.remaining())
            if incoming.is_reply:
                answered = answered or incoming.coordination_id == canceled
                self._unanswered.discard(incoming.coordination_id)
                continue
            if incoming.rpc_type == user_pb2.QUERY_RESULT:
                self.stream.on_request(incoming.rpc_type, incoming.pbody, incoming.dbody)
            talk.acknowledge(incoming)
        self._release()

    def _release(self) -> None:
        """Others may have the connection, once nothing is under way on it."""
        if self.talk is not None and not self._unanswered:
            talk, self.talk = self.talk, None
            talk.release()
