"""``RemudaError``, the root of the error tree that ``errors`` holds, and an error as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a statement: ``line`` and ``column`` count from 1, ``offset`` from 0."""

    line: int
    column: int
    offset: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class ErrorSubject:
    """The objects that an error names, for programs that must not read its words; "" for none."""

    table: str = ""
    column: str = ""
    constraint: str = ""
    namespace: str = ""
    """The schema of the table; "" for ``public``."""


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An error as plain data, as it crosses the wire."""

    kind: str
    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""
    member: str = ""
    position: Position | None = None
    subject: ErrorSubject | None = None
    may_have_run: bool | None = None
    """None: as the class says."""
    context: str = ""


def caret_lines(statement: str, position: Position) -> list[str]:
    """``LINE n: <text>`` and a caret below the place, as psql prints it."""
    lines = statement.split("\n")  # as positions count lines: no other character ends one
    index = min(max(position.line, 1), len(lines)) - 1
    text = lines[index].rstrip("\r").replace("\t", " ")  # a tab would move the caret away
    column = min(max(position.column, 1), len(text) + 1)
    start = max(0, column - 1 - 60)
    shown = text[start : start + 120]
    prefix = f"LINE {index + 1}: " + ("..." if start else "")
    width = max(1, min(position.length, len(shown) - (column - 1 - start)))
    return [prefix + shown, " " * (len(prefix) + column - 1 - start) + "^" * width]


class RemudaError(Exception):
    """The root of all errors raised on purpose.

    ``message`` says what is wrong, ``detail`` more about it, ``hint`` what to do; ``member`` is the
    member that is to blame, "" if none is; ``position`` is the place in ``statement``;
    ``subject`` names the map, the column and the constraint that the error is about, if it is about
    one. ``context`` says where in the data of a COPY it was met. ``sqlstate`` is PostgreSQL's code.
    ``str(error)`` has it all, with a caret below the place.

    ``may_have_run`` says whether the request may have changed something, or still may. False is a
    promise: nothing was changed. The class decides, unless the constructor is told: the client
    knows that a read changes nothing, and a member knows that a statement had not begun to commit.

    ``retryable`` is True if the same call may succeed when it is made again, and if nothing was
    changed. An error of a write that may have run is never retryable.
    """

    sqlstate: ClassVar[str] = "XX000"
    transient: ClassVar[bool] = False
    """Whether the cause may be gone when the same call is made again."""
    may_have_run: bool = True
    retryable: bool = False
    kinds: ClassVar[dict[str, type[RemudaError]]] = {}

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        position: Position | None = None,
        statement: str | None = None,
        member: str = "",
        subject: ErrorSubject | None = None,
        may_have_run: bool | None = None,
        context: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.statement = statement
        self.member = member
        self.subject = subject
        self.context = context
        if may_have_run is not None:
            self.may_have_run = may_have_run
            self.retryable = self.transient and not may_have_run

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.retryable = cls.transient and not cls.may_have_run
        RemudaError.kinds[cls.__name__] = cls

    def __str__(self) -> str:
        lines = [self.message]
        if self.position is not None and self.statement is not None:
            lines += caret_lines(self.statement, self.position)
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        if self.context:
            lines.append(f"CONTEXT: {self.context}")
        return "\n".join(lines)

    def to_report(self) -> ErrorReport:
        """The error as plain data, to be raised again in another process."""
        known = self.may_have_run
        return ErrorReport(
            kind=type(self).__name__,
            sqlstate=self.sqlstate,
            message=self.message,
            detail=self.detail,
            hint=self.hint,
            member=self.member,
            position=self.position,
            subject=self.subject,
            may_have_run=known if known != type(self).may_have_run else None,
            context=self.context,
        )

    def knowing(self, may_have_run: bool) -> Self:
        """This error, or a copy of it that knows whether the request may have changed something."""
        if self.may_have_run == may_have_run:
            return self
        return self._copy(may_have_run)

    def plain(self) -> Self:
        """A copy to be kept. An error that was raised holds the variables of all functions that it
        passed, and of the errors before it: the rows of a map that was dropped, for one."""
        return self._copy(self.may_have_run)

    def advising(self, hint: str) -> Self:
        """A copy with another hint."""
        return self._copy(self.may_have_run, hint=hint)

    def saying(self, message: str) -> Self:
        """A copy with another message."""
        return self._copy(self.may_have_run, message=message)

    def about(self, subject: ErrorSubject) -> Self:
        """A copy that names these objects."""
        return self._copy(self.may_have_run, subject=subject)

    def at(self, position: Position | None, statement: str | None) -> Self:
        """A copy at a place in ``statement``; None for no place, or an unknown statement."""
        return self._copy(self.may_have_run, place=(position, statement))

    def met_at(self, context: str) -> Self:
        """This error if it has a context, or a copy of it with this one."""
        return self if self.context else self._copy(self.may_have_run, context=context)

    def within(self, statement: str) -> Self:
        """This error, or a copy of it whose position counts in ``statement``."""
        return self if self.statement == statement else self.at(self.position, statement)

    def _copy(
        self,
        may_have_run: bool,
        *,
        message: str | None = None,
        hint: str | None = None,
        place: tuple[Position | None, str | None] | None = None,
        context: str | None = None,
        subject: ErrorSubject | None = None,
    ) -> Self:
        position, statement = (self.position, self.statement) if place is None else place
        return type(self)(
            self.message if message is None else message,
            detail=self.detail,
            hint=self.hint if hint is None else hint,
            position=position,
            statement=statement,
            member=self.member,
            subject=subject or self.subject,
            may_have_run=may_have_run,
            context=self.context if context is None else context,
        )
