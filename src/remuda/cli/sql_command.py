"""``remuda sql``: statements from the command line, a file, standard input, or a shell."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from remuda.cli.connecting import add_connect, client_of
from remuda.cli.session import Session
from remuda.cli.shell import run_shell
from remuda.cli.statements import is_empty, split
from remuda.datatypes.values import require_unicode
from remuda.errors import InputError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "sql",
        help="run SQL, or an interactive shell",
        description="Run SQL; without -c and -f, from standard input or in a shell.",
        epilog="The exit status is 1 when a statement failed; the statements after it are not run.",
    )
    add_connect(parser)
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
    text = _text(options)
    with client_of(options, "remuda sql") as client:
        session = Session(
            client, format=options.format, timing=options.timing, expanded=options.expanded
        )
        if text is None:
            run_shell(session)
            return 0
        run_text(session, text)
        return 1 if session.failed else 0


def run_text(session: Session, text: str) -> None:
    """Run statements and backslash commands until one fails."""
    pending: list[str] = []
    for line in text.splitlines(keepends=True):
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


def _text(options: argparse.Namespace) -> str | None:
    """What to run; None means: ask the user."""
    if options.command is not None:
        text = "\n;\n".join(options.command)
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
