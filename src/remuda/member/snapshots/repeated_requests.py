"""Long work that other members ask for again and again until it is answered: done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from google.protobuf.message import Message

from remuda.errors import RemudaError
from remuda.member.base.core import Core, attempt
from remuda.rpc.transport import Request

ANSWERS_KEPT: Final = 64
"""Last answers, for whoever has not got them."""


class RepeatedRequests:
    """A request is the same as another one if its bytes are: they hold the clock of its sender, and
    the ids of a cut or of maps that a restore has made."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._running: dict[bytes, list[Request]] = {}
        self._answers: dict[bytes, Message] = {}

    def serve(self, request: Request, work: Callable[[], Awaitable[Message]]) -> None:
        """Answer with what ``work`` gives, or gave; fail with what it raises."""
        body = bytes(request.pbody)
        if body in self._answers:
            request.reply(request.rpc_type, self._answers[body])
        elif body in self._running:
            self._running[body].append(request)
        else:
            self._running[body] = [request]
            name = f"request {request.rpc_type}"
            self._core.spawn(self._run(body, work), name, partial(self._failed, body))

    async def _run(self, body: bytes, work: Callable[[], Awaitable[Message]]) -> None:
        answer = await work()
        self._answers[body] = answer
        if len(self._answers) > ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]
        for request in self._running.pop(body):
            attempt("an answer", partial(request.reply, request.rpc_type, answer))

    def _failed(self, body: bytes, error: RemudaError) -> None:
        for request in self._running.pop(body, ()):
            attempt("a failure", partial(request.fail, error))
