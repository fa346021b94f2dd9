"""Errors that should not be: they are logged, and end only the work that met them. And errors that
leave nothing open."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from remuda.errors import (
    InternalError,
    MemberUnavailable,
    NotServed,
    ProtocolError,
    RemudaError,
)
from remuda.member.metrics.unexpected_errors import UNEXPECTED_ERRORS

log = logging.getLogger(__name__)


def bug(error: Exception, what: str) -> RemudaError:
    """Log an exception that should not be, and make it an answer. A message that cannot be read is
    the fault of its sender."""
    if isinstance(error, DecodeError | UnicodeDecodeError):
        return ProtocolError(f"{what} cannot be read: {error}")
    UNEXPECTED_ERRORS.met()
    log.error("bug in %s", what, exc_info=error)
    return InternalError(f"{type(error).__name__}: {error}", detail=f"while a member served {what}")


def attempt(what: str, action: Callable[[], object]) -> None:
    """One item of work that goes on for ever: an error that it raises is logged, and ends only
    it."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 (the boundary, see bug)
        bug(error, what)


class _NothingDone:
    """See ``nothing_done``."""

    def __enter__(self) -> None:
        """It has no state."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MemberUnavailable) and error.may_have_run:
            raise NotServed(
                error.message, detail=error.detail, hint=error.hint, member=error.member
            ) from error


nothing_done: Final = _NothingDone()
"""Around a call that has no effect unless it returns: if a member is lost meanwhile, nothing is
left open, and the caller gets NotServed in place of MemberUnavailable."""
