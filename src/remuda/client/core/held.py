"""The session of a client: the state that its statements leave for later ones. Statements of a
client that has a transaction open go to the member that has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from remuda.client.core.execution import Execution
from remuda.client.core.reader import Reader
from remuda.client.core.tries import LOST, of_write
from remuda.client.network.deadline import Deadline
from remuda.client.network.ports import MemberPort
from remuda.client.network.tracing import trace_part
from remuda.client.requests import requests
from remuda.client.requests.pages import Header
from remuda.client.requests.requests import Clock, RunOptions
from remuda.client.requests.result_stream import ResultStream
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.errors import (
    FailedTransaction,
    OutcomeUnknown,
    RemudaError,
    TransactionTimeout,
    UndefinedTransaction,
)
from remuda.rpc.messages import user_pb2
from remuda.transaction.states import State

GONE: Final = (UndefinedTransaction, TransactionTimeout)
"""The errors of a transaction that its member has rolled back: the user has yet to give it up."""
_BLANK: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_ENDS: Final = re.compile(
    _BLANK + r"(commit|end|rollback|abort)\b(?!.*\bto\b)", re.IGNORECASE | re.DOTALL
)


@dataclass
class Held:
    """An open transaction: its name ("": it has not begun, and no member has it), the member that
    has it, and the last state that it has told.

    ``broken``: the connection to the member is lost, and the transaction with it; until the user
    has heard of it by ROLLBACK or COMMIT, statements fail, so that none runs outside of it
    unnoticed. ``ended``: the statement that ended it, or the state it ended in."""

    name: str
    member: int
    state: int = user_pb2.ACTIVE
    catalog_version: int = 0
    """Of its member when it began; 0: not known."""
    snapshot: int = 0
    """The timestamp at which its client may read by itself; 0: at none."""
    broken: RemudaError | None = None
    ended: str = ""

    @property
    def failed(self) -> bool:
        """Whether only a rollback is possible."""
        return self.broken is not None or self.state == user_pb2.MARKED_ROLLBACK

    def lost_with(self, error: RemudaError) -> None:
        """No answer came over its connection. Only a suspended transaction survives that."""
        if self.state != user_pb2.SUSPENDED:
            self.broken = error

    def lost(self) -> UndefinedTransaction:
        """The error of a request for it once it is ``broken``."""
        return UndefinedTransaction(
            "the transaction is lost with its connection: nothing of it took effect",
            detail=self.broken.message if self.broken is not None else "",
            hint="Run it again from the start.",
        )

    def told(self, status: user_pb2.TransactionStatus, tag: str) -> None:
        if status.transaction == self.name:
            self.state = status.state
        else:
            self.state, self.ended = user_pb2.NO_TRANSACTION, tag or "ROLLBACK"


class Settings(Protocol):
    @property
    def settings(self) -> bytes: ...


class Holding(Protocol):
    """The client that has the transaction open."""

    clock: Clock

    @property
    def view(self) -> View: ...

    @property
    def shared(self) -> Settings: ...

    def keep_session(self, session: bytes) -> None: ...

    def pool(self, member: int | None) -> MemberPort: ...

    def told(self, stream: ResultStream) -> None: ...


async def run_held(  # noqa: PLR0917 (as Core.execute)
    core: Holding,
    held: Held,
    text: str,
    parameters: Sequence[PhysicalValue],
    types: tuple[SqlType, ...],
    options: RunOptions,
    *,
    handle: bytes | None,
    header: Header | None,
) -> Reader:
    """``Core.execute`` inside the transaction. Nothing is tried again: a request that the member
    does not serve now ends the transaction. FailedTransaction when it has been lost."""
    if held.broken is not None:
        raise FailedTransaction(
            "the transaction is lost with its connection: nothing of it took effect",
            detail=held.broken.message,
            hint="ROLLBACK, and begin it again.",
        )
    stream = ResultStream(text, core.clock, header, core.keep_session)
    start = requests.prologue(handle or text, types, 0)
    context = core.clock.context(core.view.number)
    body = requests.run_query(start, parameters, options, context)
    body += requests.session_part(core.shared.settings) + requests.transaction_part(held.name)
    body += trace_part()
    try:
        asked = core.pool(held.member)
        # What does not commit changes nothing that stays.
        reads = ends_transaction(text) != "COMMIT"
        deadline = Deadline(options.timeout)
        execution = await Execution.begin(asked, stream, body, deadline, reads=reads)
        reader = Reader(execution)
        await reader.begin()
    except GONE:
        held.state = user_pb2.MARKED_ROLLBACK
        raise
    except LOST as error:
        if stream.outcome is not None:  # the statement, not the connection
            raise
        if ends_transaction(text) == "COMMIT" and isinstance(
            unknown := of_write(error), OutcomeUnknown
        ):
            held.ended = State.UNKNOWN.value
            raise unknown from error
        held.lost_with(error)
        raise
    finally:
        core.told(stream)
    return reader


def ends_transaction(text: str) -> str:
    """COMMIT or ROLLBACK for a statement that ends a transaction; "" for all others."""
    match = _ENDS.match(text)
    if match is None:
        return ""
    return "COMMIT" if match[1].lower() in ("commit", "end") else "ROLLBACK"


class Closable(Protocol):
    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class SharedSession:
    """One for a client and all clients that its ``with_timeout`` gives."""

    settings: bytes = b""
    """Settings and prepared statements, as a member wrote them down."""
    held: Held | None = None
    """The transaction that a BEGIN among the statements has begun."""
    keeps_transactions: bool = True
    """Whether there may be one: not where several users share the client unknowingly."""
    background: Closable | None = None
    """Of a blocking client: the loop that its listeners run on (``client.blocking.background``)."""
