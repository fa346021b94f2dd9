"""``RemudaError``: the root of the error tree that ``errors`` holds."""

from __future__ import annotations

from typing import ClassVar

from remuda.error_report import ErrorReport, ErrorSubject, Position, caret_lines


class RemudaError(Exception):
    """The root of all errors raised on purpose.

    ``message`` says what is wrong, ``detail`` more about it, ``hint`` what to do; ``member`` is the
    member that is to blame, "" if none is; ``position`` is the place in ``statement``;
    ``subject`` names the map, the column and the constraint that the error is about, if it is about
    one. ``sqlstate``
    is PostgreSQL's code, ``retryable`` whether the same call may succeed when it is made again.
    ``str(error)`` has it all, with a caret below the place.
    """

    sqlstate: ClassVar[str] = "XX000"
    retryable: ClassVar[bool] = False
    may_have_run: ClassVar[bool] = True
    """Whether a write that ended with this error may have taken effect, or still may. False is a
    promise: nothing was done, so the same request may be sent again without a second thought."""
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
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.statement = statement
        self.member = member
        self.subject = subject

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        RemudaError.kinds[cls.__name__] = cls

    def __str__(self) -> str:
        lines = [self.message]
        if self.position is not None and self.statement is not None:
            lines += caret_lines(self.statement, self.position)
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)

    def to_report(self) -> ErrorReport:
        """The error as plain data, to be raised again in another process."""
        return ErrorReport(
            kind=type(self).__name__,
            sqlstate=self.sqlstate,
            message=self.message,
            detail=self.detail,
            hint=self.hint,
            member=self.member,
            position=self.position,
            subject=self.subject,
        )
