"""PEP 249's exceptions, and which of them an error of Remuda is, by its SQLSTATE."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from remuda.errors import ErrorSubject, RemudaError

P = ParamSpec("P")
T = TypeVar("T")


class Warning(Exception):  # noqa: A001  (PEP 249's name)
    """Important warnings. Remuda raises none."""


class Error(Exception):
    """The root of all errors. ``sqlstate``, ``detail`` and ``hint`` say more, and ``table_name``,
    ``column_name``, ``constraint_name`` and ``schema_name`` tell which constraint is broken (""
    when there is nothing); ``__cause__`` is the RemudaError, if the error came from the cluster or
    the client."""

    def __init__(
        self,
        *args: object,
        sqlstate: str = "",
        detail: str = "",
        hint: str = "",
        subject: ErrorSubject | None = None,
    ) -> None:
        super().__init__(*args)
        named = subject or ErrorSubject()
        self.table_name = named.table
        self.column_name = named.column
        self.constraint_name = named.constraint
        self.schema_name = named.namespace or ("public" if named.table else "")
        self.sqlstate = sqlstate
        self.detail = detail
        self.hint = hint


class InterfaceError(Error):
    """This module was used in a wrong way: a closed cursor, a wrong option."""


class DatabaseError(Error):
    """The root of errors of the cluster."""


class DataError(DatabaseError):
    """A value is wrong: overflow, division by zero, bad text."""


class OperationalError(DatabaseError):
    """The cluster could not do it now: a lost member, a timeout, too little memory, no login."""


class IntegrityError(DatabaseError):
    """A constraint of a map is broken."""


class InternalError(DatabaseError):
    """A bug in Remuda."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters are wrong."""


class NotSupportedError(DatabaseError):
    """Remuda cannot do it."""


_CLASSES: dict[str, type[DatabaseError]] = {
    "07": ProgrammingError,
    "08": OperationalError,
    "0A000": NotSupportedError,
    "0A": OperationalError,  # 0A001: a definition has changed meanwhile
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "25": ProgrammingError,
    "25P04": OperationalError,  # a transaction took too long
    "26": ProgrammingError,
    "28": OperationalError,
    "2B": ProgrammingError,
    "3B": ProgrammingError,
    "3F": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
    "42501": OperationalError,  # a missing privilege is not in the program
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "72": OperationalError,
    "08P01": InternalError,
    "XX": InternalError,
}
"""By SQLSTATE, or by its class."""


def translated(error: RemudaError) -> DatabaseError:
    """The PEP 249 exception that says the same."""
    state = error.sqlstate
    kind = _CLASSES.get(state) or _CLASSES.get(state[:2], DatabaseError)
    return kind(
        str(error), sqlstate=state, detail=error.detail, hint=error.hint, subject=error.subject
    )


def translating(function: Callable[P, T]) -> Callable[P, T]:
    """``function``, raising PEP 249's exceptions in place of Remuda's."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RemudaError as error:
            raise translated(error) from error

    return call
