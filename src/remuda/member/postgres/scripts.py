"""The text of a Query message as its statements."""

from __future__ import annotations

from dataclasses import replace

from remuda.errors import RemudaError
from remuda.sql.parsing.parser import parse, split_script


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
