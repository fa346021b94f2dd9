r"""Commands of the statement that is being entered: run it in other ways, show, edit, save it."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from remuda.cli.results.aligned import Table
from remuda.cli.results.options import PrintOptions
from remuda.cli.results.table import Alignment, harmless
from remuda.cli.results.values import show
from remuda.cli.results.writers import make_writer
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome, Sent
from remuda.cli.shell.commands.formatting import changed
from remuda.cli.shell.output import open_output
from remuda.client.blocking.cursor import Cursor
from remuda.errors import InputError, NotSupported, RemudaError

_QUERY = re.compile(r"\s*\(*\s*(?:select|with|values|table)\b", re.IGNORECASE)


def _statement(call: Call) -> str:
    """The statement that was entered, or the last one."""
    text = call.session.last_statement if call.scanner.is_empty else call.scanner.statement
    if not text:
        raise InputError("the query buffer is empty")
    return text


def _go(call: Call) -> Outcome:
    """``\\g`` and ``\\gx``, with options and a place for this result only."""
    session = call.session
    options = session.printing
    given = call.words.parenthesized()
    for part in (given or "").split():
        name, sign, value = part.partition("=")
        options = changed(options, name, value if sign else None)
    if call.name == "gx":
        options = replace(options, expanded="on")
    place = call.words.place()
    text = _statement(call)
    if place is None:
        if options == session.printing:
            return Sent(session.statement(text, data=call.source.data))
        return Sent(session.statement(text, _paged(call, options), call.source.data))
    out, close = open_output(place)
    try:
        ok = session.statement(text, session.show_with(out, options), call.source.data)
    except KeyboardInterrupt:
        close()
        raise
    try:
        close()
    except InputError as error:
        session.report(error)
        ok = False
    return Sent(ok)


def _paged(call: Call, options: PrintOptions) -> Callable[[Cursor], int]:
    def printed(cursor: Cursor) -> int:
        with call.session.paged(options) as out:
            return make_writer(out, options).write(cursor)
        return 0  # the user has left the pager

    return printed


def _set(call: Call) -> Outcome:
    prefix = call.words.next() or ""
    variables = call.session.variables

    def kept(cursor: Cursor) -> int:
        rows = cursor.fetchmany(2)
        if len(rows) != 1:
            kind = "no rows" if not rows else "more than one row"
            raise InputError(f"{kind} returned for \\gset")
        for column, value in zip(cursor.columns, rows[0], strict=True):
            name = prefix + column.name
            if value is None:
                variables.unset(name)
            else:
                variables.set(name, show(value, column.type))
        return 1

    return Sent(call.session.statement(_statement(call), kept))


def _execute(call: Call) -> Outcome:
    """Run each value of the result as a statement. An error ends it if ON_ERROR_STOP is set."""
    session = call.session
    found: list[str] = []

    def kept(cursor: Cursor) -> int:
        rows = cursor.fetchall()
        found.extend(str(value) for row in rows for value in row if value is not None)
        return len(rows)

    ok = session.statement(_statement(call), kept)
    for text in found:
        if session.variables.text("ECHO") == "all":
            session.stdout.write(f"{text}\n")
        ok = session.statement(text, remember=False) and ok
        if not ok and session.variables.is_on("ON_ERROR_STOP"):
            break
    return Sent(ok)


def _describe(call: Call) -> Outcome:
    """Names and types of the columns, without running the statement."""
    session = call.session
    text = _statement(call)
    if not _QUERY.match(text):
        session.report(
            NotSupported("\\gdesc describes queries only", hint="Use \\g to run it."), text
        )
        return Sent(False)
    try:
        with session.client.sql(f"SELECT * FROM ({text}\n) AS described LIMIT 0") as cursor:
            rows = [(column.name, str(column.type)) for column in cursor.columns]
    except RemudaError as error:
        session.report(error, text)
        return Sent(False)
    sides = (Alignment.LEFT, Alignment.LEFT)
    session.print_table(Table(("Column", "Type"), sides, rows))
    return Sent(True)


def _watch(call: Call) -> Outcome:
    """Run the statement again and again: until Ctrl-C, an error, or ``c`` times."""
    session = call.session
    seconds, count = 2.0, 0
    for word in call.words.all():
        name, sign, value = word.partition("=") if "=" in word else ("i", "=", word)
        try:
            if name in ("i", "interval"):
                seconds = float(value)
            elif name in ("c", "count"):
                count = int(value)
        except ValueError:
            sign = ""
        if not sign or name not in ("i", "interval", "c", "count") or seconds < 0 or count < 0:
            raise InputError(
                f'\\watch: incorrect value "{word}"', hint="\\watch [SECONDS] [c=COUNT]"
            )
    text = _statement(call)
    title = session.printing.title
    pause = threading.Event()
    rounds = itertools.count() if not count else range(count)
    ok = True
    try:
        for number in rounds:
            if number and pause.wait(seconds):
                break
            stamp = datetime.now().astimezone().strftime("%a %b %e %H:%M:%S %Y")
            heading = f"{title}\t" if title else ""
            options = replace(
                session.printing, title=f"{heading}{stamp} (every {seconds:g}s)\n", pager="off"
            )
            ok = session.statement(text, _paged(call, options))
            if not ok:
                break
    except KeyboardInterrupt:
        session.stdout.write("\n")
    return Sent(ok)


def _bind(call: Call) -> Outcome:
    call.session.bind(call.words.all())
    return None


def _print(call: Call) -> Outcome:
    text = call.session.last_statement if call.scanner.is_empty else call.scanner.statement
    call.session.stdout.write(f"{harmless(text)}\n" if text else "Query buffer is empty.\n")
    return None


def _reset(call: Call) -> Outcome:
    call.scanner.clear()
    call.session.bind(None)
    call.session.say("Query buffer reset (cleared).")
    return None


def _write(call: Call) -> Outcome:
    place = call.words.place()
    if place is None:
        raise InputError("\\w: missing required argument", hint="It is a file, or |command.")
    out, close = open_output(place)
    try:
        out.write(_statement(call) + "\n")
    finally:
        close()
    return None


def _edit(call: Call) -> Outcome:
    """Edit the statement, or a file, and go on with what the editor leaves."""
    name = call.words.next()
    if name is not None:
        path = Path(name).expanduser()
        _run_editor(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    else:
        text = edited(
            call.session.last_statement if call.scanner.is_empty else call.scanner.statement
        )
    call.scanner.clear()
    call.scanner.put_back(text.rstrip("\n"))
    return None


def edited(text: str) -> str:
    """The text as an editor leaves it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statement.sql"
        path.write_text(text + "\n" if text else "", encoding="utf-8")
        _run_editor(path)
        return path.read_text(encoding="utf-8")


def _run_editor(path: Path) -> None:
    names = ("REMUDA_EDITOR", "PSQL_EDITOR", "EDITOR", "VISUAL")
    editor = next((os.environ[name] for name in names if os.environ.get(name)), "vi")
    command = f"{editor} {shlex.quote(str(path))}"
    code = subprocess.run(command, shell=True, check=False).returncode  # noqa: S602 (its user has named the editor)
    if code:
        raise InputError(f'could not start editor "{editor}"', detail=f"It ended with code {code}.")


COMMANDS = (
    Command(
        ("g",), _go, "[(OPTIONS)] [FILE]", "run the statement; the result goes to FILE or |command"
    ),
    Command(("gx",), _go, "[(OPTIONS)] [FILE]", "as \\g, one column per line"),
    Command(("gset",), _set, "[PREFIX]", "run it, and keep the row in variables"),
    Command(("gexec",), _execute, "", "run it, then each value of the result as a statement"),
    Command(("gdesc",), _describe, "", "names and types of the result, without running it"),
    Command(("watch",), _watch, "[SECONDS] [c=COUNT]", "run it again every 2 seconds, or as told"),
    Command(("bind",), _bind, "[VALUE ...]", "parameters of the next statement"),
    Command(("p", "print"), _print, "", "show the statement"),
    Command(("e", "edit"), _edit, "[FILE]", "edit the statement, or a file"),
    Command(("w", "write"), _write, "FILE", "write the statement to a file or |command"),
    Command(("r", "reset"), _reset, "", "forget the statement"),
)
