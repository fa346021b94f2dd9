"""``remuda sql``: statements from the command line, a file, standard input, or a shell."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from remuda.cli.connecting import add_connect, client_at, client_of, is_address
from remuda.cli.results.options import FORMATS, SAME_FORMATS, PrintOptions
from remuda.cli.shell.commands.formatting import changed
from remuda.cli.shell.output import open_output
from remuda.cli.shell.run import run_source
from remuda.cli.shell.session import Options, Session
from remuda.cli.shell.sources import Source, TextSource, file_source, line_of_stdin, text_source
from remuda.datatypes.values import require_unicode
from remuda.errors import InputError

EXIT_ERROR, EXIT_CONNECTION, EXIT_SCRIPT = 1, 2, 3


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "sql",
        help="run SQL, or an interactive shell",
        usage="%(prog)s [options] [ADDRESS] [SQL ...]",
        description="Run SQL; without SQL, -c and -f, from standard input or in a shell.",
        epilog="The exit status is 1 when a statement failed; the statements after it are not run. "
        "It is 2 when the connection was lost, and 3 when a script ended by an error and "
        "-v ON_ERROR_STOP=1 was given.",
    )
    parser.add_words(
        "words",
        metavar="[ADDRESS] [SQL ...]",
        help="where to connect (as --connect), and statements, each as one quoted word",
    )
    add_connect(parser, None)
    parser.add_argument(
        "-c", "--command", action=_InTurn, metavar="SQL", help="run this (may be repeated)"
    )
    parser.add_argument(
        "-f", "--file", action=_InTurn, metavar="FILE",
        help="run this file; - is standard input (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "-1", "--single-transaction", action="store_true", help="run -c and -f as one transaction"
    )
    parser.add_argument(
        "-v", "--set", action="append", default=[], metavar="NAME=VALUE",
        help="set a variable of the shell",
    )  # fmt: skip
    parser.add_argument("-X", "--no-rc", action="store_true", help="do not read ~/.remudarc")
    parser.add_argument("-q", "--quiet", action="store_true", help="print results only")
    parser.add_argument("-a", "--echo-all", action="store_true", help="print the input")
    parser.add_argument("-b", "--echo-errors", action="store_true", help="print failed statements")
    parser.add_argument("-e", "--echo-queries", action="store_true", help="print statements")
    parser.add_argument(
        "-E", "--echo-hidden", action="store_true", help="print the queries of \\d and others"
    )
    parser.add_argument(
        "-l", "--list", dest="actions", action="append_const", const=("command", "\\l"),
        help="list databases",
    )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", help="results go to a file or |command")
    parser.add_argument("--timing", action="store_true", help="print how long statements take")
    shape = parser.add_argument_group("format of results")
    shape.add_argument(
        "--format", choices=(*SAME_FORMATS, *FORMATS), default="table", help="(table)"
    )
    for letters, name, about in (
        (("-A", "--no-align"), "unaligned", "values with separators between them"),
        (("--csv",), "csv", "CSV with a header"),
        (("-H", "--html"), "html", "tables of HTML"),
    ):
        shape.add_argument(*letters, dest="format", action="store_const", const=name, help=about)
    shape.add_argument("-x", "--expanded", action="store_true", help="one column per line")
    shape.add_argument("-t", "--tuples-only", action="store_true", help="rows only")
    shape.add_argument("-F", "--field-separator", metavar="TEXT", help="of unaligned fields (|)")
    shape.add_argument("-R", "--record-separator", metavar="TEXT", help="of unaligned rows")
    shape.add_argument("-z", "--field-separator-zero", action="store_true", help="a zero byte")
    shape.add_argument("-0", "--record-separator-zero", action="store_true", help="a zero byte")
    shape.add_argument(
        "-P", "--pset", action="append", default=[], metavar="NAME[=VALUE]",
        help="an option of the format, as \\pset",
    )  # fmt: skip
    parser.set_defaults(run=run, actions=[])


class _InTurn(argparse.Action):
    """-c and -f are run in the order in which they are given."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: str | Sequence[Any] | None,
        _option: str | None = None,
    ) -> None:
        namespace.actions = [*namespace.actions, (self.dest, value)]
        setattr(namespace, self.dest, value)


def run(options: argparse.Namespace) -> int:
    address, *statements = _words(options)
    sources = _sources(options, statements)
    interactive = not sources
    variables = _variables(options)
    with client_of(options, "remuda sql", address or None) as client:
        session = Session(
            client,
            connect=lambda where, user: client_at(options, "remuda sql", where, user),
            user=options.user or os.environ.get("REMUDA_USER", ""),
            options=Options(_printing(options), options.timing, options.quiet, interactive),
            variables=variables,
        )
        if options.output is not None:
            session.send_results_to(*open_output(options.output))
        try:
            if not options.no_rc and not _start(session):
                return EXIT_SCRIPT
            if interactive:
                from remuda.cli.shell.editing import run_shell  # noqa: PLC0415 (takes time)

                run_shell(session)
                return 0
            return _run_all(session, sources, options)
        finally:
            session.end_output()
            session.client.close()


def _run_all(
    session: Session, sources: Sequence[Callable[[], Source]], options: argparse.Namespace
) -> int:
    """Run the sources in turn, until one fails. The exit status."""
    alone = options.single_transaction
    ok = not alone or session.statement("BEGIN")
    script = False
    for make in sources:
        if not ok:
            break
        source = make()
        script = bool(source.name)
        try:
            ok = run_source(session, source)
        finally:
            source.close()
    if alone and session.client.transaction_state is not None:
        session.statement("COMMIT" if ok else "ROLLBACK")
    if ok:
        return EXIT_ERROR if session.failed and "ON_ERROR_STOP" not in _variables(options) else 0
    if session.lost:
        return EXIT_CONNECTION
    return EXIT_SCRIPT if script and "ON_ERROR_STOP" in _variables(options) else EXIT_ERROR


def _start(session: Session) -> bool:
    """Run the file of the user's settings, if there is one."""
    path = Path(os.environ.get("REMUDARC") or "~/.remudarc").expanduser()
    if not path.is_file():
        return True
    source = file_source(path)
    try:
        return run_source(session, source)
    finally:
        source.close()


def run_text(session: Session, text: str, *, with_data: bool = True) -> bool:
    """Run statements and backslash commands until one fails. ``with_data``: the data of a COPY
    stands behind it; otherwise it is in the standard input."""
    return run_source(session, text_source(text, None if with_data else session.stdin))


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


def _sources(options: argparse.Namespace, statements: Sequence[str]) -> list[Callable[[], Source]]:
    """The sources to run, each to be opened in its turn; none means: ask the user."""
    given = [*options.actions, *(("command", statement) for statement in statements)]
    if not given and not sys.stdin.isatty():
        given = [("file", "-")]
    for kind, text in given:
        if kind == "command":
            require_unicode(text, "the statement")
    return [_opener(kind, text) for kind, text in given]


def _opener(kind: str, text: str) -> Callable[[], Source]:
    def make() -> Source:
        if kind == "command":
            return text_source(text, line_of_stdin)
        return TextSource(sys.stdin) if text == "-" else file_source(Path(text))

    return make


def _variables(options: argparse.Namespace) -> dict[str, str]:
    """The variables that -v and its kind set. One without a value is on."""
    found: dict[str, str] = {}
    for text in options.set:
        name, sign, value = text.partition("=")
        found[name] = value if sign else ""
    echoes = (("echo_all", "all"), ("echo_errors", "errors"), ("echo_queries", "queries"))
    for name, value in echoes:
        found |= {"ECHO": value} if getattr(options, name) else {}
    return found | ({"ECHO_HIDDEN": "on"} if options.echo_hidden else {})


def _printing(options: argparse.Namespace) -> PrintOptions:
    terminal = sys.stdout.isatty()
    given: list[tuple[str, str | None]] = [("format", options.format)]
    if options.expanded:
        given.append(("expanded", "on"))
    elif terminal:
        given.append(("expanded", "auto"))
    if options.tuples_only:
        given.append(("tuples_only", "on"))
    for option, name in (("field_separator", "fieldsep"), ("record_separator", "recordsep")):
        if getattr(options, option) is not None:
            given.append((name, getattr(options, option)))
        elif getattr(options, f"{option}_zero"):
            given.append((name, "\0"))
    for text in options.pset:
        name, sign, value = text.partition("=")
        given.append((name, value if sign else None))
    found = PrintOptions(colors=terminal and "NO_COLOR" not in os.environ)
    for name, value in given:
        found = changed(found, name, value)
    return found
