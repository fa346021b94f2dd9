"""Errors and warnings as PostgreSQL's clients read them."""

from __future__ import annotations

from typing import Final

from remuda.errors import (
    AuthenticationFailed,
    MemberLeaving,
    MemberNotReady,
    RemudaError,
    SessionTerminated,
    WrongPassword,
)
from remuda.postgres.messages import error_response, notice_response
from remuda.postgres.wording import worded

SCHEMA: Final = "public"
CANNOT_CONNECT: Final = "57P03"
SHUTDOWN: Final = "57P01"


def error_message(error: RemudaError, *, offset: int = 0, fatal: bool = False) -> bytes:
    """``offset``: characters in front of the statement in the text that the client has sent.
    ``fatal``: the connection ends with it."""
    severity = "FATAL" if fatal else "ERROR"
    message, detail = worded(error.message), error.detail
    if fatal and isinstance(error, SessionTerminated):  # PostgreSQL's words: programs look for them
        message, detail = "terminating connection due to administrator command", error.message
    subject = error.subject
    table = "" if subject is None else subject.table
    return error_response(
        {
            "S": severity,
            "V": severity,
            "C": sqlstate(error, fatal=fatal),
            "M": message,
            "D": detail,
            "H": error.hint,
            "P": "" if error.position is None else str(offset + error.position.offset + 1),
            "W": error.context,
            "s": "" if subject is None or not table else subject.namespace or SCHEMA,
            "t": table,
            "c": "" if subject is None else subject.column,
            "n": "" if subject is None else subject.constraint,
        }
    )


_LEVELS: Final = ("log", "notice", "warning", "error")


def notice_message(severity: str, code: str, text: str, least: str) -> bytes:
    """NoticeResponse; nothing if ``least``, the setting client_min_messages, is above it."""
    if least in _LEVELS and _LEVELS.index(least) > _LEVELS.index(severity.lower()):
        return b""
    return notice_response({"S": severity, "V": severity, "C": code, "M": text})


def sqlstate(error: RemudaError, *, fatal: bool) -> str:
    """The code that clients act on. Pools and drivers know 57P01 and 57P03: they take another
    connection."""
    if fatal and isinstance(error, MemberLeaving):
        return SHUTDOWN
    if fatal and isinstance(error, MemberNotReady):
        return CANNOT_CONNECT
    if isinstance(error, AuthenticationFailed) and not isinstance(error, WrongPassword):
        return "28000"
    return error.sqlstate


_COUNTED: Final = frozenset({"SELECT", "UPDATE", "DELETE", "MERGE", "COPY", "FETCH", "MOVE"})


def command_tag(tag: str, rows: int) -> str:
    """The tag of CommandComplete for a statement that ended with ``tag`` and gave or changed
    ``rows``."""
    if tag == "INSERT":
        return f"INSERT 0 {rows}"  # 0 stands for the oid of a row, which PostgreSQL gave up
    return f"{tag} {rows}" if tag in _COUNTED else tag
