"""Errors as Drill's clients show them: a type, one text that says everything, a place."""

from __future__ import annotations

from typing import Final

from remuda.errors import (
    AuthenticationFailed,
    ConnectionBroken,
    DataError,
    InputError,
    InsufficientPrivilege,
    InternalError,
    LimitExceeded,
    NotSupported,
    RemudaError,
    SqlSyntaxError,
    TransientError,
    UnsupportedValue,
)
from remuda.rpc.codec import encode_error
from remuda.rpc.messages.user_pb2 import ParsingError, PBError

_TYPES: Final[tuple[tuple[type[RemudaError], PBError.ErrorType], ...]] = (
    (SqlSyntaxError, PBError.PARSE),
    (AuthenticationFailed, PBError.PERMISSION),
    (InsufficientPrivilege, PBError.PERMISSION),
    (NotSupported, PBError.UNSUPPORTED_OPERATION),
    (UnsupportedValue, PBError.UNSUPPORTED_OPERATION),
    (DataError, PBError.FUNCTION),
    (LimitExceeded, PBError.RESOURCE),
    (InputError, PBError.VALIDATION),
    (ConnectionBroken, PBError.CONNECTION),
    (TransientError, PBError.RESOURCE),
    (InternalError, PBError.INTERNAL_ERROR),
)
"""The first one that fits."""


def error_type(error: RemudaError) -> PBError.ErrorType:
    return next((t for kind, t in _TYPES if isinstance(error, kind)), PBError.SYSTEM)


def error_text(error: RemudaError, error_id: str) -> str:
    """Drill's form: ``VALIDATION ERROR: ...``, more lines, ``[Error Id: ...]`` if it has one."""
    lines = [f"{PBError.ErrorType.Name(error_type(error))} ERROR: {error.message}"]
    if error.position is not None:
        lines.append(f"line {error.position.line}, column {error.position.column}")
    lines += [error.detail] * bool(error.detail)
    lines += [f"Hint: {error.hint}"] * bool(error.hint)
    lines.append(f"SQLSTATE: {error.sqlstate}")
    lines += [f"[Error Id: {error_id}]"] * bool(error_id)
    return "\n\n".join(lines)


def encode_drill_error(error: RemudaError, error_id: str) -> PBError:
    """``error_id`` is what a user can look for in the log."""
    message = encode_error(error)
    message.error_id = error_id
    message.error_type = error_type(error)
    message.message = error_text(error, error_id)
    message.exception.exception_class = type(error).__name__
    message.exception.message = error.message
    place = error.position
    if place is not None:
        message.parsing_error.append(
            ParsingError(
                start_column=place.column,
                start_row=place.line,
                end_column=place.column + max(place.length - 1, 0),
                end_row=place.line,
            )
        )
    return message
