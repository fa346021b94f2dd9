"""RUN_QUERY: a statement as Remuda's own clients and Drill's send it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import ProtocolError, RemudaError
from remuda.limits import PAGE_ROWS
from remuda.member.base.core import Core, bug
from remuda.member.base.wing import Routes, Wing
from remuda.member.drill.copies import UserCopies, unwanted
from remuda.member.drill.short_answers import WholeAnswer
from remuda.member.maps.point_reads import PointAnswer
from remuda.member.queries.cursors import RpcWire
from remuda.member.queries.own_partitions import own_partitions
from remuda.member.queries.page_forms import is_stock
from remuda.member.queries.pauses import Pauses
from remuda.member.queries.queries import Queries
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Client, Statement, text_of
from remuda.member.statements.plans import Plans
from remuda.member.statements.statements import Statements
from remuda.query.wire import decode_query_id, encode_query_id
from remuda.rpc import type_codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Channel, Request
from remuda.session.client_session import NO_SESSION, ClientSession, decode_session
from remuda.session.dialect import STOCK_SESSION, postgres_text
from remuda.session.parameters import fitted
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery
from remuda.session.spark_engine import chooses_engine

HANDLE_LEAD = 0.005
"""Seconds between QUERY_HANDLE and what follows it, for Drill's clients: go-drill breaks off when
a result comes before it has filed the handle, and Drill itself takes longer than that to plan."""


class Asked(NamedTuple):
    """The parts of a RUN_QUERY. ``types`` are those that the client gives its values."""

    request: Request
    client: Client | None
    """None: it has gone."""
    user: str
    """The name by which the client has logged in."""
    message: user_pb2.RunQuery
    text: str
    types: tuple[SqlType, ...]
    values: tuple[PhysicalValue, ...]

    def values_in(self, wanted: tuple[SqlType, ...]) -> tuple[PhysicalValue, ...] | None:
        """The values in the types of a plan; None: it is not the plan for them."""
        types = self.types
        if types == wanted:
            return self.values
        return fitted(self.values, types, wanted) if len(types) == len(wanted) else None


class RunQueries(Wing):
    """The user channel's way into ``Statements``."""

    def __init__(self, core: Core, statements: Statements, plans: Plans, queries: Queries) -> None:
        self._core = core
        self._statements = statements
        self._clients = statements.clients
        self._plans = plans
        self._queries = queries

    def routes(self) -> Routes:
        return Routes(
            user={RpcType.RUN_QUERY: self.on_run_query, RpcType.COPY_DATA: self.on_copy_data}
        )

    def connected(self, channel: Channel) -> None:
        stock = is_stock(channel)
        session = STOCK_SESSION if stock else NO_SESSION
        self._statements.connected(channel, stock=stock, kept=stock, session=session)

    def on_run_query(self, request: Request) -> None:
        core = self._core
        if core.stopping or not core.view.number:
            core.require_serving()
        message = user_pb2.RunQuery.FromString(request.pbody)
        client = self._clients.get(request.channel)
        if client is not None and client.stock:
            self._run_stock(request, message, client)
            return
        core.observe_client(message.context)
        local = message.local_only or len(message.partitions) > 0
        # A client that names partitions reads those that are kept here.
        if not local and not message.transaction and core.departure.refusing:
            core.departure.require_staying()
        text = text_of(message)
        types, form = type_codec.parameter_form(message.parameter_types)
        values = form.unpack(message.parameters) if types else ()
        alone = not local and not message.transaction
        alone = alone and not chooses_engine(message.session, text)
        alone = alone and b'"timezone"' not in message.session
        alone = alone and b'"search_path"' not in message.session
        asked = Asked(request, client, request.user, message, text, types, values)
        if alone and self._run_shortly(asked):
            return
        self._run(asked, local=local)

    def on_copy_data(self, request: Request) -> None:
        """A piece of what the COPY of this connection reads."""
        message = user_pb2.CopyData.FromString(request.pbody)
        client = self._clients.get(request.channel)
        found = None
        if client is not None:
            found = client.statements.get(decode_query_id(message.query_id))
        if found is None:
            unwanted(request)
        elif isinstance(found.copies, UserCopies):
            found.copies.take(request, message)
        else:
            raise ProtocolError("COPY_DATA for a statement that was sent without carries_copy")

    def _run(
        self,
        asked: Asked,
        *,
        local: bool,
    ) -> None:
        """The general way."""
        statement = self._statement(asked, decode_session(asked.message.session))
        self._accept(asked.request, statement)
        self._core.spawn(self._statements.run(statement, local=local), "statement")

    def _run_stock(self, request: Request, message: user_pb2.RunQuery, client: Client) -> None:
        """Drill's clients hear of every error by QUERY_RESULT: some of them ignore that a request
        has failed."""
        problem: RemudaError | None = None
        try:
            text = text_of(message)
            asked = Asked(request, client, request.user, message, text, (), ())
            statement = self._statement(asked, client.session)
        except RemudaError as error:
            problem = error
            asked = Asked(request, client, request.user, message, "", (), ())
            statement = self._statement(asked, NO_SESSION)
        self._accept(request, statement)
        self._core.spawn(self._run_after_handle(statement, problem), "statement")

    async def _run_after_handle(self, statement: Statement, problem: RemudaError | None) -> None:
        await asyncio.sleep(HANDLE_LEAD)
        if problem is None:
            await self._statements.run(statement)
        else:
            self._statements.failed(statement, problem)

    def _run_shortly(self, asked: Asked) -> bool:
        """Run a statement whose plan is cached without any task; False: none of the short ways is
        for it."""
        message = asked.message
        found = self._plans.known(asked.text, user=asked.user)
        if found is None or message.HasField("read_timestamp"):
            return False
        if message.session and decode_session(message.session).drill:
            return False  # its text is not yet translated
        if isinstance(found, PlannedQuery):
            return self._read_shortly(asked, found)
        if isinstance(found, PlannedInsert | PlannedChange) and message.accept_tag:
            return self._change_shortly(asked, found)
        return False

    def _read_shortly(self, asked: Asked, found: PlannedQuery) -> bool:
        """A read by key, or by a secondary index, or one that reads no map."""
        request, message, text = asked.request, asked.message, asked.text
        read = found.point or found.indexed
        if read is None:
            return found.constant is not None and self._compute_shortly(asked, found)
        wanted = asked.values_in(found.parameter_types)
        if wanted is None:
            return False
        form = message.known_form if message.accept_answer else None
        answer = PointAnswer(self._core, found, read, wanted, request, self._queries.new_id(), form)
        statements, user, trace = self._statements, asked.user, message.traceparent
        if found.point is not None:
            return statements.read_point(
                found, wanted, answer.send, text=text, user=user, traceparent=trace
            )
        if message.autolimit_rowcount:
            return False
        if message.session and decode_session(message.session).values:
            return False

        def general() -> None:
            if request.channel.closed:
                return
            try:
                self._run(asked, local=False)
            except RemudaError as error:
                request.fail(error)
            except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
                request.fail(bug(error, "a read by secondary index"))

        return statements.read_by_index(
            found, wanted, answer.send, general, text=text, user=user, traceparent=trace
        )

    def _change_shortly(self, asked: Asked, found: PlannedInsert | PlannedChange) -> bool:
        """A statement that changes one entry by its key."""
        wanted = asked.values_in(found.source.parameter_types) if found.keyed else None
        if wanted is None:
            return False
        statement, answer = self._with_answer(asked)
        return self._statements.short.change(statement, found, wanted, answer)

    def _compute_shortly(self, asked: Asked, found: PlannedQuery) -> bool:
        """A query that reads no map."""
        wanted = asked.values_in(found.parameter_types) if asked.message.accept_answer else None
        if wanted is None:
            return False
        statement, answer = self._with_answer(asked)
        return self._statements.short.select(statement, found, wanted, answer)

    def _with_answer(self, asked: Asked) -> tuple[Statement, WholeAnswer]:
        sent = asked.message.session
        statement = self._statement(asked, decode_session(sent) if sent else NO_SESSION)
        known = asked.message.known_form
        return statement, WholeAnswer(self._core, asked.request, statement.query, known)

    def _statement(self, asked: Asked, session: ClientSession) -> Statement:
        """Raises what is wrong with a text in Drill's dialect."""
        request, message, text = asked.request, asked.message, asked.text
        client, logged_in = asked.client, asked.user
        stock = client is not None and client.stock
        name = client.transaction if client is not None and stock else message.transaction
        core, channel, query = self._core, request.channel, self._queries.new_id()
        transaction: OpenTransaction | None = None
        lost: RemudaError | None = None
        if name:
            transaction, lost = self._statements.transaction(name, channel, logged_in)
        sent, session = session, session if transaction is None else transaction.session(session)
        timeout, rows_max = core.config.query_timeout, None
        if session.values:
            timeout, rows_max = session.timeout or timeout, session.rows_max
            if session.drill:
                text = postgres_text(text, session, core.access.catalog(logged_in))
        if message.HasField("timeout"):
            timeout = message.timeout
        user, pid = logged_in or session.user, 0 if client is None else client.pid
        found = Statement(
            channel=channel,
            user=logged_in,
            wire=lambda shape: RpcWire(core, channel, query, shape),
            query=query,
            text=text,
            values=asked.values,
            types=asked.types,
            started=core.world.clock.wall_micros(),
            timeout=timeout or None,
            read_timestamp=message.read_timestamp if message.HasField("read_timestamp") else None,
            partitions=own_partitions(core, message.partitions) if message.partitions else None,
            local=message.local_only,
            page_rows=message.page_rows or PAGE_ROWS,
            row_limit=max(message.autolimit_rowcount, 0) or rows_max,
            session=session.of(user, pid),
            transaction=transaction,
            lost=lost,
            takes_transactions=stock or message.HasField("transaction"),
            traceparent=message.traceparent,
            sent=sent,
        )
        if message.carries_copy and not stock:
            copies = UserCopies(partial(RpcWire, core, channel, query))
            found.copies = copies
            found.progress.on_closed.append(copies.close)
        if session.values and session.pauses:
            found.progress.pauses = Pauses(session.pauses)
        return found

    def _accept(self, request: Request, statement: Statement) -> None:
        request.reply(RpcType.QUERY_HANDLE, encode_query_id(statement.query))
        self._statements.accept(statement)
