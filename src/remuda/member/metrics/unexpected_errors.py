"""How many defects this process has met: exceptions that nobody expected."""

from __future__ import annotations


class UnexpectedErrors:
    """Of the process and not of one member: a defect in a callback has no member to tell."""

    def __init__(self) -> None:
        self.count = 0

    def met(self) -> None:
        self.count += 1


UNEXPECTED_ERRORS = UnexpectedErrors()
