"""QUERY_ANSWER of a statement that needs no task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.point_encoding import encode_answer, encode_end
from remuda.rpc.transport import Request
from remuda.session.answer_form import AnswerForm

QUERY_ANSWER = RpcType.QUERY_ANSWER
QUERY_HANDLE = RpcType.QUERY_HANDLE


@dataclass(slots=True)
class WholeAnswer:
    """A ``ShortAnswer`` to a RUN_QUERY. ``known_form``: the form of answers that the client knows
    already."""

    core: Core
    request: Request
    query: QueryId
    known_form: int

    def rows(self, form: AnswerForm, packed: Sequence[bytes]) -> None:
        self._answer(form, packed, b"")

    def changed(self, form: AnswerForm, tag: str, rows: int, returned: bytes | None) -> None:
        self._answer(form, () if returned is None else (returned,), encode_end(tag, rows))

    def _answer(self, form: AnswerForm, packed: Sequence[bytes], end: bytes) -> None:
        if self.request.channel.closed:
            return
        about = None if self.known_form == form.number else form.about
        query = (self.query.part1, self.query.part2)
        body = encode_answer(query, self.core.encoded_context(), form.number, about, packed, end)
        try:
            self.request.reply(QUERY_ANSWER, body)
        except RemudaError as error:  # a row does not fit a frame
            self.request.fail(error)

    def failed(self, error: RemudaError) -> None:
        if not self.request.channel.closed:
            self.request.fail(error)

    def waits(self) -> None:
        if not self.request.channel.closed:
            self.request.reply(QUERY_HANDLE, encode_query_id(self.query))
