"""``remuda sql``: statements from the command line, a file, standard input, or a shell."""

from __future__ import annotations

import argparse
import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remuda.cli.connecting import add_connect, client_of, is_address
from remuda.cli.session import Session
from remuda.cli.shell import run_shell
from remuda.cli.statements import is_empty, split
from remuda.datatypes.values import require_unicode
from remuda.errors import InputError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "sql",
        help="run SQL, or an interactive shell",
        usage="%(prog)s [options] [ADDRESS] [SQL ...]",
        description="Run SQL; without SQL, -c and -f, from standard input or in a shell.",
        epilog="The exit status is 1 when a statement failed; the statements after it are not run.",
    )
    parser.add_words(
        "words",
        metavar="[ADDRESS] [SQL ...]",
        help="where to connect (as --connect), and statements, each as one quoted word",
    )
    add_connect(parser, None)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "-c", "--command", action="append", metavar="SQL", help="run this (may be repeated)"
    )
    source.add_argument("-f", "--file", metavar="FILE", help="run this file; - is standard input")
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "arrow"), default="table", help="(table)"
    )
    parser.add_argument("-x", "--expanded", action="store_true", help="one column per line")
    parser.add_argument("--timing", action="store_true", help="print how long statements take")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    address, *statements = _words(options)
    text = _text(options, statements)
    with client_of(options, "remuda sql", address or None) as client:
        session = Session(
            client, format=options.format, timing=options.timing, expanded=options.expanded
        )
        if text is None:
            run_shell(session)
            return 0
        run_text(session, text, with_data=not (options.command or statements))
        return 1 if session.failed else 0


def run_text(session: Session, text: str, *, with_data: bool = True) -> None:
    """Run statements and backslash commands until one fails. ``with_data``: the data of a COPY
    stands behind it; otherwise it is in the standard input."""
    pending: list[str] = []
    lines = io.StringIO(text)
    if with_data:
        session.lines = lines.readline
    for line in iter(lines.readline, ""):
        if line.lstrip().startswith("\\") and is_empty("".join(pending)):
            pending = []
            if not session.command(line) or session.done:
                return
            continue
        pending.append(line)
        if ";" not in line:  # do not look at a long statement again for each of its lines
            continue
        found = split("".join(pending))
        for statement in found.statements:
            if not session.statement(statement):
                return
        pending = [found.rest]
    rest = "".join(pending)
    if not is_empty(rest):
        session.statement(rest.strip())


def _words(options: argparse.Namespace) -> list[str]:
    """The address, '' if none is given, and the statements behind it. Raises InputError."""
    words: list[str] = list(options.words)
    address = words.pop(0) if words and is_address(words[0]) else ""
    single = [word for word in words if not word.strip(" ;").count(" ") and ";" not in word]
    if len(words) > 1 and single:
        misplaced = next(filter(is_address, words), None)
        if misplaced is not None:
            raise InputError(
                f"the address {misplaced} stands behind a statement", hint="It comes first."
            )
        raise InputError(
            f"a statement is one word of the command line: {single[0]!r} is none",
            hint=f"Put it into quotes: remuda sql {shlex.quote(' '.join(words))}.",
        )
    given = "-c" if options.command is not None else "-f" if options.file is not None else None
    if words and given is not None:
        raise InputError(
            f"statements are given twice: by {given}, and as {words[0]!r}",
            hint="Repeat -c for several statements.",
        )
    return [address, *words]


def _text(options: argparse.Namespace, statements: Sequence[str]) -> str | None:
    """The statements to run; None means: ask the user."""
    statements = options.command or statements
    if statements:
        text = "\n;\n".join(statements)
        require_unicode(text, "the statement")
        return text
    if options.file is not None and options.file != "-":
        try:
            return Path(options.file).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{options.file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{options.file} is not UTF-8 text") from error
    if options.file == "-" or not sys.stdin.isatty():
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise InputError("standard input is not UTF-8 text") from error
        require_unicode(text, "standard input")
        return text
    return None
