"""Prompts, with psql's escapes."""

from __future__ import annotations

import os
import re

from remuda.cli.shell.session import Session
from remuda.cli.shell.words import output_of
from remuda.errors import InputError
from remuda.transaction.states import State

_ESCAPE = re.compile(r"%(\d+|:\w+:|`[^`]*`|\[|\]|.)", re.DOTALL)
_IN_TRANSACTION = {None: "", State.MARKED_ROLLBACK: "!"}


def prompt(session: Session, number: int, status: str, line: int = 1) -> str:
    """PROMPT1, PROMPT2 (with a statement begun) or PROMPT3 (data of a COPY)."""
    text = session.variables.text(f"PROMPT{number}")
    first = _written(session, session.variables.text("PROMPT1"), "=", line, "")
    return _written(session, text, status, line, " " * len(first.rsplit("\n", 1)[-1].rstrip("> ")))


def _written(session: Session, text: str, status: str, line: int, space: str) -> str:
    def value(found: re.Match[str]) -> str:
        code = found.group(1)
        if code.isdecimal():
            return chr(int(code, 8))
        if code[0] == ":":
            return session.variables.text(code.strip(":"))
        if code[0] == "`":
            return _output(code.strip("`"))
        host, port = session.host_and_port
        known = {
            "M": host,
            "m": host.partition(".")[0],
            ">": port,
            "n": session.user,
            "/": "remuda",
            "~": "remuda",
            "#": ">",
            "R": status,
            "x": _IN_TRANSACTION.get(session.client.transaction_state, "*"),
            "l": str(line),
            "p": str(os.getpid()),
            "w": space,
            "%": "%",
        }
        return known.get(code, "")

    return _ESCAPE.sub(value, text)


def _output(command: str) -> str:
    try:
        return output_of(command)
    except InputError:
        return ""
