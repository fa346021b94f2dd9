r"""The answers of ``\h``: how statements are written, and which there are."""

from __future__ import annotations

from remuda.cli.shell.statement_texts import STATEMENTS, StatementText
from remuda.errors import InputError

_COLUMNS = 4
_SAME = {"ABORT": "ROLLBACK", "EXPLAIN ANALYZE": "EXPLAIN", "WITH": "SELECT"}

NAMES = tuple(found.name for found in STATEMENTS)


def text(wanted: str) -> str:
    """The statements whose names begin with ``wanted``; ``*`` for all, "" for their names. Words
    that follow the name of a statement are left out. Raises InputError if there is none."""
    words = wanted.upper().split()
    if not words:
        return _names()
    if words == ["*"]:
        return "\n".join(map(_whole, STATEMENTS))
    for end in range(len(words), 0, -1):
        start = " ".join(words[:end])
        start = _SAME.get(start, start)
        exact = [found for found in STATEMENTS if found.name == start]
        found = exact or [found for found in STATEMENTS if found.name.startswith(start)]
        if found:
            return "\n".join(map(_whole, found))
    raise InputError(
        f'no help available for "{wanted}"', hint="\\h without a statement lists what there is."
    )


def _whole(found: StatementText) -> str:
    return (
        f"Command:     {found.name}\nDescription: {found.about}\nSyntax:\n{found.syntax}\n\n"
        f"Example:     {found.example};\n"
    )


def _names() -> str:
    """In columns, downwards."""
    height = -(-len(NAMES) // _COLUMNS)
    width = max(map(len, NAMES)) + 2
    lines = ("".join(name.ljust(width) for name in NAMES[at::height]) for at in range(height))
    return "Available help:\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines)
