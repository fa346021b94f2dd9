"""One question for all who ask it at the same time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.ports import Ports
from remuda.errors import NotServed, RemudaError, from_report

T = TypeVar("T")


class Latest(Generic[T]):
    """Asks on behalf of everybody who waits. An answer counts only for those who were there before
    its question was sent: nobody gets what may have been out of date when he asked."""

    def __init__(self, ports: Ports, ask: Callable[[Deadline], Coroutine[Any, Any, T]]) -> None:
        """``ask`` is told how long whoever asks first will wait."""
        self._ask = ask
        self._lock = ports.lock()
        self._asked = 0
        self._answered = 0
        self._answer: T | RemudaError

    async def get(self, deadline: Deadline = NEVER) -> T:
        """The answer, or the error, of a question that was sent after this call. NotServed when
        there is none at the deadline."""
        enough = self._asked + 1
        if not await self._lock.take(deadline):
            raise NotServed("no member has answered in time what the request depends on")
        try:
            if self._answered < enough:
                self._asked += 1
                try:
                    self._answer = await self._ask(deadline)
                except RemudaError as error:
                    self._answer = _copy(error)
                    self._answered = self._asked
                    raise
                self._answered = self._asked  # not reached by who was cancelled meanwhile
            if isinstance(self._answer, RemudaError):
                raise _copy(self._answer)
            return self._answer
        finally:
            self._lock.release()


def _copy(error: RemudaError) -> RemudaError:
    """One for each who gets it: raising an object again and again grows its traceback."""
    return from_report(error.to_report(), error.statement)
