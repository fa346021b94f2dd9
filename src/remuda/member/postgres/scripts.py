"""Texts of messages: their statements, and those that mean something to the session itself."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from remuda.errors import RemudaError
from remuda.sql.parsing.parser import parse, split_script

_IS_CHECK: Final = re.compile(
    r"(?:--[^\n]*(?:\n|\Z)|\s)*(?:select\s+1(?:\s+as\s+\w+)?\s*)?;?\s*", re.IGNORECASE
)
_NAMES_PREPARED: Final = re.compile(r"\s*(deallocate|execute|discard|prepare)\b", re.IGNORECASE)


def is_check(text: str) -> bool:
    """Whether a pool or a driver sends it to see whether a connection lives: nothing, a comment,
    SELECT 1."""
    return _IS_CHECK.fullmatch(text) is not None


def names_prepared(text: str) -> bool:
    """Whether the statement uses or removes prepared statements by their names."""
    return _NAMES_PREPARED.match(text) is not None


def script(text: str) -> list[tuple[int, str]]:
    """The statements with their places in the text. Raises SqlSyntaxError if one of several is
    wrong, so that none of them runs."""
    statements = split_script(text)
    if len(statements) > 1:
        for place, statement in statements:
            _check_grammar(statement, place)
    return statements


def _check_grammar(statement: str, place: int) -> None:
    """Raises what is wrong, with its place in the whole text."""
    try:
        parse(statement)
    except RemudaError as error:
        if error.position is None:
            raise
        position = replace(error.position, offset=error.position.offset + place)
        raise error.at(position, error.statement) from error.__cause__
