"""Errors as Drill's REST interface answers them: JSON, with an HTTP status."""

from __future__ import annotations

import json
from typing import Any, Final

from remuda.errors import (
    AuthenticationFailed,
    DataError,
    InputError,
    InsufficientPrivilege,
    LimitExceeded,
    NotSupported,
    QueryCanceled,
    QueryTimeout,
    RemudaError,
    TransientError,
)
from remuda.rpc.drill_errors import error_text

_STATUS: Final[tuple[tuple[type[RemudaError], int], ...]] = (
    (AuthenticationFailed, 401),
    (InsufficientPrivilege, 403),
    (NotSupported, 400),
    (LimitExceeded, 413),
    (InputError, 400),
    (DataError, 400),
    (QueryCanceled, 409),
    (QueryTimeout, 408),
    (TransientError, 502),
)
"""The first that fits. Never 503 and 504: pydrill sends the statement again then, and it may have
been run."""


class Refused(Exception):
    """A request that is wrong as HTTP. ``status`` is its answer's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def status_of(error: RemudaError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def failure(error: RemudaError, query: str) -> dict[str, Any]:
    """The answer about a statement that failed; ``query`` is its id, "" if it got none."""
    return {
        "exception": f"remuda.errors.{type(error).__name__}",
        "errorMessage": error_text(error, query),
        "stackTrace": [],
        "queryState": "CANCELED" if isinstance(error, QueryCanceled) else "FAILED",
    }


def failure_text(error: RemudaError, query: str) -> str:
    return json.dumps({"queryId": query, **failure(error, query)}, ensure_ascii=False)


def refusal_text(message: str) -> str:
    return json.dumps({"errorMessage": message}, ensure_ascii=False)
