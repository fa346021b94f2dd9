"""CREATE_PREPARED_STATEMENT: the handle is the text, so any member can run it."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import NULL
from remuda.errors import (
    AmbiguousFunction,
    RemudaError,
    TypeMismatch,
    UndefinedFunction,
    WrongParameters,
)
from remuda.member.base.core import Call, Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.queries.page_forms import is_stock
from remuda.member.sessions.statement import parameter_types, readable
from remuda.member.statements.plans import Plans
from remuda.rpc import codec, type_codec
from remuda.rpc.drill_errors import encode_drill_error
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.session.client_session import NO_SESSION
from remuda.session.dialect import STOCK_SESSION, postgres_text
from remuda.session.drill.columns import result_column
from remuda.session.explaining import PLAN_COLUMNS
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.session.routes import route_of_write

_BY_TYPES: Final = (AmbiguousFunction, TypeMismatch, UndefinedFunction, WrongParameters)
"""Errors of a statement that may be right once its parameters have the types of values."""


class Preparing(Wing):
    def __init__(self, core: Core, plans: Plans) -> None:
        self._core = core
        self._plans = plans

    def routes(self) -> Routes:
        def served(call: Call) -> None:
            self._core.serve(call, self.on_prepare(call))

        return Routes(calls={RpcType.CREATE_PREPARED_STATEMENT: served})

    async def on_prepare(self, call: Call) -> None:
        """Parameters are Remuda's own: Drill has none in prepared statements."""
        message = user_pb2.CreatePreparedStatementReq.FromString(call.pbody)
        response = user_pb2.CreatePreparedStatementResp(status=user_pb2.OK)
        stock = isinstance(call, Request) and is_stock(call.channel)
        try:
            self._core.require_serving()
            session = STOCK_SESSION if stock else NO_SESSION
            seen = self._core.access.catalog(call.user)
            text = postgres_text(readable(message.sql_query), session, seen)
            found = await self._plans.plan(text, None, local=False, user=call.user)
            self._core.access.check(call.user, found)
        except _BY_TYPES as error:
            if not (undecided := await self._plans.parameters(text)):
                self._refuse(call, response, error, stock)
                return
            # Values will decide the types, and whether the statement is right with them.
            prepared = response.prepared_statement
            prepared.server_handle.server_info = message.sql_query.encode()
            prepared.parameter_types.extend([type_codec.encode_type(NULL)] * undecided)
            call.reply(RpcType.PREPARED_STATEMENT, response)
            return
        except RemudaError as error:
            self._refuse(call, response, error, stock)
            return
        prepared = response.prepared_statement
        prepared.server_handle.server_info = message.sql_query.encode()
        prepared.parameter_types.extend(type_codec.encode_type(t) for t in parameter_types(found))
        columns = _columns(found)
        if stock:
            prepared.columns.extend(result_column(column) for column in columns)
        elif not isinstance(found, PlannedExplain):
            prepared.result_columns.extend(codec.encode_column(c) for c in columns)
        if isinstance(found, PlannedQuery):
            prepared.route_parameters.extend(found.route or ())
        elif isinstance(found, PlannedInsert | PlannedChange):
            prepared.route_parameters.extend(route_of_write(found.keyed, found.schema) or ())
        call.reply(RpcType.PREPARED_STATEMENT, response)

    @staticmethod
    def _refuse(
        call: Call,
        response: user_pb2.CreatePreparedStatementResp,
        error: RemudaError,
        stock: bool,
    ) -> None:
        response.status = user_pb2.FAILED_
        code = encode_drill_error(error, "prepare") if stock else codec.encode_error(error)
        response.error.CopyFrom(code)
        call.reply(RpcType.PREPARED_STATEMENT, response)


def _columns(found: Planned) -> tuple[Column, ...]:
    match found:
        case PlannedQuery(declares=None):
            return found.shown
        case PlannedChange(columns=columns):
            return columns
        case PlannedExplain():
            return PLAN_COLUMNS
        case _:
            return ()
