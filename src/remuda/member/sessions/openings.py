"""How transactions begin: by a request of their own, or with their first get."""

from __future__ import annotations

import math
from typing import Final

from remuda.errors import InputError, NotSupported
from remuda.member.base.core import Call, Core
from remuda.member.base.request_traces import parent_of
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.statements import status_of
from remuda.rpc.messages import user_pb2
from remuda.rpc.transport import Request
from remuda.transaction.isolation import NO_MODES, Isolation, Modes

_LEVELS: Final = {
    user_pb2.READ_COMMITTED: Isolation.READ_COMMITTED,
    user_pb2.REPEATABLE_READ: Isolation.REPEATABLE_READ,
    user_pb2.SERIALIZABLE: Isolation.SERIALIZABLE,
}
LABEL_MAX: Final = 1_000
TIMEOUT_MAX: Final = 7 * 24 * 3600.0


class Openings:
    def __init__(self, core: Core, sessions: TransactionSessions) -> None:
        self._core = core
        self._sessions = sessions

    def begin(self, call: Call, message: user_pb2.TransactionBegin) -> OpenTransaction:
        """Raises InputError, NotSupported, LimitExceeded."""
        if not isinstance(call, Request):
            raise NotSupported(
                "a transaction begins on the member that its client speaks to",
                hint="Begin it over the connection of the client.",
            )
        self._core.require_serving()
        self._core.departure.require_staying()
        modes = Modes(_LEVELS.get(message.isolation), message.read_only)
        if message.pessimistic:
            modes = modes.locking(NO_MODES)
        timeout = message.timeout if message.HasField("timeout") else None
        if timeout is not None and not (math.isfinite(timeout) and 0 < timeout <= TIMEOUT_MAX):
            raise InputError(
                f"the timeout of a transaction is a number of seconds above 0, at most "
                f"{TIMEOUT_MAX:g}, not {timeout:g}"
            )
        return self._sessions.begin(
            call.channel,
            call.user,
            modes=modes,
            pessimistic=message.pessimistic,
            timeout=timeout,
            label=message.label[:LABEL_MAX],
            traceparent="" if self._core.traces is None else parent_of(call),
        )

    def status(self, transaction: OpenTransaction) -> user_pb2.TransactionStatus:
        """For its client, which may have known maps as they were before."""
        status = status_of(transaction)
        status.catalog_version = self._core.catalog.version
        return status
