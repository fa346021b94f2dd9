"""A file with one JSON object per line for each login, change of definitions, and refusal.

It is apart from the member's log, because others read it and keep it for longer, and because its
lines quote statements. The file may be moved away at any time (logrotate): the next line begins a
new one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from logging.handlers import WatchedFileHandler
from typing import Final

from remuda.errors import InputError, InsufficientPrivilege, RemudaError
from remuda.member.state.log import JsonFormatter, fields
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.sasl import Credentials
from remuda.rpc.strangers import Verifier
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)

DEFINING_REQUESTS: Final = frozenset({RpcType.CREATE_MAP, RpcType.DROP_MAP})
"""Definitions that come as requests of their own; all others are statements."""
OK: Final = "ok"

OnAnswer = Callable[[RemudaError | None], None]


class Audit:
    """``member`` gives the member's number. Without a file nothing is noted."""

    def __init__(self, file: str, member: Callable[[], int]) -> None:
        """Raises InputError when the file cannot be opened."""
        self._member = member
        self._lines = logging.Logger("remuda.audit")
        self.active = bool(file)
        if not file:
            return
        try:
            handler = _Handler(file, encoding="utf-8")
        except OSError as problem:
            raise InputError(
                f"audit_file {file} cannot be opened: {problem.strerror}",
                hint="Give the path of a file that the member may write.",
            ) from None
        handler.setFormatter(JsonFormatter(member))
        self._lines.addHandler(handler)

    def close(self) -> None:
        for handler in self._lines.handlers:
            handler.close()

    def logins(self, verifier: Verifier) -> Verifier:
        """``verifier``, with a line for each answer of it."""
        if not self.active:
            return verifier

        def verify(
            credentials: Credentials, host: str, told: Callable[[str | RemudaError], None]
        ) -> None:
            def noted(outcome: str | RemudaError) -> None:
                error = outcome if isinstance(outcome, RemudaError) else None
                self._note("login", error, user=credentials.user, host=host)
                told(outcome)

            verifier(credentials, host, noted)

        return verify

    def login(self, user: str, host: str, error: RemudaError | None) -> None:
        """An attempt that was not made by way of a verifier."""
        if self.active:
            self._note("login", error, user=user, host=host)

    def request(self, request: Request, answered: OnAnswer) -> OnAnswer:
        """``answered``, with a line for a request that defines something, or is refused."""

        def noted(error: RemudaError | None) -> None:
            answered(error)
            defines = request.rpc_type in DEFINING_REQUESTS
            if defines or isinstance(error, InsufficientPrivilege):
                self._note(
                    "definition" if defines else "refusal",
                    error,
                    user=request.user,
                    peer=request.channel.peer,
                    request=RpcType.Name(request.rpc_type),
                )

        return noted

    def statement(
        self, user: str, peer: str, text: str, error: RemudaError | None, *, defines: bool
    ) -> None:
        """One that has ended; ``defines``: it was about to change definitions."""
        if self.active and (defines or isinstance(error, InsufficientPrivilege)):
            event = "definition" if defines else "refusal"
            self._note(event, error, user=user, peer=peer, text=text)

    def _note(self, event: str, error: RemudaError | None, **values: object) -> None:
        outcome = {"outcome": OK} if error is None else {
            "outcome": error.sqlstate, "message": error.message
        }  # fmt: skip
        self._lines.info(event, extra=fields(**values, **outcome))


class _Handler(WatchedFileHandler):
    """A full disk must not stop those whose deeds are noted; the member's log says it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (its name is given)
        event = fields(file=self.baseFilename, lost=record.getMessage())
        log.error("the audit file cannot be written", extra=event)
