"""A session of the shell: runs statements, prints results, reports errors, keeps settings."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TextIO, cast

from remuda.cli.results.aligned import Table, print_table
from remuda.cli.results.options import PrintOptions
from remuda.cli.results.table import harmless, harmless_name
from remuda.cli.results.writers import FOR_PROGRAMS, UnalignedWriter, make_writer
from remuda.cli.shell import copying
from remuda.cli.shell.copying import Lines
from remuda.cli.shell.pager import Paged, PagerLeft
from remuda.cli.shell.sources import Source, line_of_stdin
from remuda.cli.shell.variables import Variables
from remuda.client.blocking.client import Client
from remuda.client.blocking.cursor import Cursor
from remuda.datatypes.sql import NULL, Kind, SqlType
from remuda.errors import InputError, RemudaError
from remuda.release import __version__
from remuda.transaction.states import State

Connect = Callable[[str, str], Client]
"""A client at an address, as a user; empty texts stand for what the session has now."""
Show = Callable[[Cursor], int]
"""Takes the result of a statement, and returns the number of its rows."""

_SAVEPOINT: Final = "remuda_shell"
_FIRST_WORD: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w*)", re.DOTALL)
_OUTSIDE: Final = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort", "prepare", "set", "reset", "show"}
)
"""Statements before which the shell begins no transaction where AUTOCOMMIT is off."""
_COUNTED: Final = ("INSERT", "SINK", "UPDATE", "DELETE", "MERGE", "COPY", "FETCH", "MOVE")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    printing: PrintOptions = field(default_factory=PrintOptions)
    timing: bool = False
    quiet: bool = False
    interactive: bool = False


class Session:
    """One user's settings and streams. ``failed`` remembers whether anything went wrong, and
    ``lost`` whether the cluster could not be reached."""

    def __init__(
        self,
        client: Client,
        *,
        connect: Connect | None = None,
        user: str = "",
        out: TextIO | None = None,
        errors: TextIO | None = None,
        options: Options | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: Lines = line_of_stdin,
    ) -> None:
        options = options or Options()
        self.client = client
        self._user = user
        self.stdout = sys.stdout if out is None else out
        self.errors = sys.stderr if errors is None else errors
        self.out = self.stdout
        """Where results go: ``\\o`` changes it."""
        self.stdin = stdin
        self._printing = options.printing
        self.timing = options.timing
        self.interactive = options.interactive
        self.variables = Variables(variables)
        if options.quiet:
            self.variables.set("QUIET", "on")
        host, port = self.host_and_port
        for name, value in (("HOST", host), ("PORT", port), ("USER", self.user)):
            self.variables.set(name, value)
        self.variables.set("VERSION", f"Remuda {__version__}")
        if not self.interactive and self.variables.get("ON_ERROR_STOP") is None:
            self.variables.set("ON_ERROR_STOP", "on")
        self.failed = False
        self.lost = False
        self.restricted = ""
        """The key of ``\\restrict``: until ``\\unrestrict`` with it, no other command is taken."""
        self.last_statement = ""
        self.last_error: RemudaError | None = None
        self.parameters: tuple[Any, ...] | None = None
        """Of ``\\bind``, for the next statement."""
        self._connect = connect
        self._sources: list[Source] = []
        self._close_out: Callable[[], None] = lambda: None
        self.history: Callable[[], Sequence[str]] = list
        """The statements of the history, oldest first."""

    # --- settings ---

    @property
    def printing(self) -> PrintOptions:
        """The format of results, with the size that the terminal has now."""
        if not self.stdout.isatty():
            return self._printing
        size = shutil.get_terminal_size()
        return replace(self._printing, width=size.columns, height=size.lines)

    @property
    def quiet(self) -> bool:
        return self.variables.is_on("QUIET")

    @property
    def host_and_port(self) -> tuple[str, str]:
        """Of the member that the session is connected to first."""
        host, _, port = self.client.addresses[0].rpartition(":")
        return host, port

    @property
    def user(self) -> str:
        return self._user or "remuda"

    def print_with(self, **changes: Any) -> None:
        """Change options of printing."""
        self._printing = replace(self._printing, **changes)

    def switch_timing(self, on: bool) -> None:
        self.timing = on

    def restrict(self, key: str) -> None:
        """Take no command but ``\\unrestrict`` with this key; "" takes all again."""
        self.restricted = key

    def bind(self, parameters: Sequence[Any] | None) -> None:
        """Parameters of the next statement."""
        self.parameters = None if parameters is None else tuple(parameters)

    def send_results_to(self, out: TextIO | None, close: Callable[[], None]) -> None:
        """Results go to ``out`` (None: to standard output) from now on; ``close`` ends it."""
        self.end_output()
        self.out = self.stdout if out is None else out
        self._close_out = close

    def end_output(self) -> None:
        """Close what ``send_results_to`` was given."""
        close, self._close_out = self._close_out, lambda: None
        self.out = self.stdout
        close()

    def converse(self, stdin: Lines, history: Callable[[], Sequence[str]]) -> None:
        """A user types: the lines of standard input, and the statements of the history."""
        self.stdin = stdin
        self.history = history

    def reconnect(self, address: str, user: str) -> None:
        """Go on with another member or as another user. Raises the errors of ``connect``; the
        session then has its client as before."""
        if self._connect is None:
            raise InputError("this session cannot connect again")
        client = self._connect(address or ",".join(self.client.addresses), user or self._user)
        self.client.close()
        self.client = client
        self._user = user or self._user

    @contextmanager
    def reading(self, source: Source) -> Iterator[None]:
        """Errors name the lines of ``source`` meanwhile."""
        self._sources.append(source)
        try:
            yield
        finally:
            self._sources.pop()

    # --- statements ---

    def statement(
        self,
        text: str,
        show: Show | None = None,
        data: Lines | None = None,
        *,
        remember: bool = True,
    ) -> bool:
        """Run one statement and print its result; False when it failed (the error is printed).
        ``data``: the lines behind the statement, for COPY. ``remember``: it is the last statement,
        which commands repeat."""
        self.last_statement = text if remember else self.last_statement
        if self.variables.text("ECHO") == "queries":
            self.stdout.write(f"{text}\n")
        parameters, self.parameters = self.parameters, None
        copy = copying.parse_statement(text)
        if copy is not None:
            return self.copy(copy, data)
        return self._attempt(text, lambda: self._run(text, parameters or (), show))

    def copy(self, copy: copying.Copy, data: Lines | None = None) -> bool:
        """Run a COPY whose data this client sends or takes. ``data``: its lines, if not those of
        standard input."""

        def work() -> int:
            lines = self.stdin if data is None else data
            rows = copying.run_copy(self.client, copy, lines, self.stdin, self.out)
            if (copy.kind != "stream" or copy.incoming) and not self.quiet:
                self.stdout.write(f"COPY {rows}\n")
            return rows

        return self._attempt(copy.statement, work)

    def rows(self, text: str, *parameters: Any) -> list[Any]:
        """The rows of a query that the shell itself asks. Raises RemudaError."""
        hidden = self.variables.text("ECHO_HIDDEN")
        if hidden != "off":
            line = "*" * 26
            shown = text
            for value in parameters:
                shown = shown.replace("?", repr(value), 1)
            self.stdout.write(f"********* QUERY **********\n{shown.strip()}\n{line}\n\n")
            if hidden == "noexec":
                return []
        return self.client.sql(text, *parameters).fetchall()

    def print_table(self, table: Table) -> None:
        """A table that the shell itself makes. Control characters are shown as escapes."""
        table = Table(
            list(map(harmless_name, table.names)),
            table.sides,
            [[None if cell is None else harmless(cell) for cell in row] for row in table.rows],
            harmless_name(table.title),
            None if table.footers is None else list(map(harmless, table.footers)),
        )
        with self.paged() as out:
            if self.printing.format == "unaligned":
                UnalignedWriter(out, self.printing).table(table)
            else:
                options = replace(self.printing, title="")
                print_table(out, table, options)

    def show_with(self, out: TextIO, options: PrintOptions) -> Show:
        """Prints results on ``out``, a file or a program. A program that ends early, like head,
        has seen enough; the rest is not read."""

        def show(cursor: Cursor) -> int:
            try:
                return make_writer(out, options).write(cursor)
            except BrokenPipeError:
                return 0
            except OSError as error:
                raise InputError(f"the output cannot be written: {error.strerror}") from error

        return show

    @contextmanager
    def paged(self, options: PrintOptions | None = None) -> Iterator[TextIO]:
        """Where to print a result: through a pager, if it is for a terminal and long."""
        found = options or self.printing
        if self.out is not self.stdout or not found.height or found.format in ("arrow", "parquet"):
            yield self.out
            return
        paged = Paged(self.out, found)
        try:
            yield cast("TextIO", paged)
        except PagerLeft:
            pass  # the rest of the result is not wanted
        finally:
            paged.end()

    def _run(self, text: str, parameters: Sequence[Any], show: Show | None) -> int:
        with self.client.sql(text, *self._typed(text, parameters)) as cursor:
            if cursor.columns:
                count = self._printed(cursor) if show is None else show(cursor)
                if cursor.tag not in ("INSERT", "UPDATE", "DELETE", "MERGE"):
                    return count
                for _ in cursor:
                    count += 1
            for _ in cursor:
                pass
            programs = self.printing.format in FOR_PROGRAMS
            if not self.quiet and not programs:
                self.out.write(_done(cursor) + "\n")
            return max(cursor.rowcount, 0)

    def _typed(self, text: str, parameters: Sequence[str]) -> list[Any]:
        """Texts as values of the types that the statement wants, as far as it tells them."""
        if not parameters:
            return []
        types = self.client.prepare(text).parameter_types
        wanted = [*types, *[NULL] * (len(parameters) - len(types))]
        return [
            value if kind.kind in (Kind.NULL, Kind.VARCHAR) else self._cast(value, kind)
            for value, kind in zip(parameters, wanted, strict=False)
        ]

    def _cast(self, value: str, wanted: SqlType) -> Any:
        return self.client.sql(f"SELECT CAST(CAST(? AS VARCHAR) AS {wanted})", value).scalar()

    def _printed(self, cursor: Cursor) -> int:
        if self.out is not self.stdout:
            return self.show_with(self.out, self.printing)(cursor)
        with self.paged() as out:
            return make_writer(out, self.printing).write(cursor)
        return 0  # the user has left the pager

    # --- success and failure ---

    def _attempt(self, text: str, work: Callable[[], int]) -> bool:
        begin = time.perf_counter()
        try:
            guarded = self._before(text)
            try:
                count = work()
            except RemudaError:
                if guarded and self.client.transaction_state is not None:
                    self.client.sql(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}").close()
                raise
            if guarded and self.client.transaction_state is State.ACTIVE:
                self.client.sql(f"RELEASE SAVEPOINT {_SAVEPOINT}").close()
        except RemudaError as error:
            self.report(error, text)
        except KeyboardInterrupt:
            self._flush()
            self.errors.write("canceled\n")
            self.failed = True
            if self._sources and not self._sources[-1].interactive:
                raise  # Ctrl-C ends a script, whatever ON_ERROR_STOP says
            return False
        else:
            self._succeeded(count)
            if self.timing:
                self.errors.write(f"Time: {_milliseconds(time.perf_counter() - begin)}\n")
            self._flush()
            return True
        return False

    def _before(self, text: str) -> bool:
        """Begin a transaction or a savepoint, as AUTOCOMMIT and ON_ERROR_ROLLBACK want it. Whether
        there is a savepoint."""
        found = _FIRST_WORD.match(text)
        word = found.group(1).lower() if found is not None else ""
        if word in _OUTSIDE or word in ("savepoint", "release"):
            return False
        state = self.client.transaction_state
        if not self.variables.is_on("AUTOCOMMIT") and state is None:
            self.client.sql("BEGIN").close()
            state = self.client.transaction_state
        wanted = self.variables.text("ON_ERROR_ROLLBACK")
        guards = wanted == "on" or (wanted == "interactive" and self.interactive)
        if not guards or state is not State.ACTIVE:
            return False
        self.client.sql(f"SAVEPOINT {_SAVEPOINT}").close()
        return True

    def _flush(self) -> None:
        try:
            self.out.flush()
        except BrokenPipeError:
            if self.out is self.stdout:
                raise

    def _succeeded(self, count: int) -> None:
        for name, value in (("ERROR", "false"), ("SQLSTATE", "00000"), ("ROW_COUNT", str(count))):
            self.variables.set(name, value)

    def report(self, error: RemudaError, statement: str = "") -> None:
        """Print an error, and remember it."""
        self.failed = True
        self.lost = self.lost or error.sqlstate.startswith("08")
        if statement:
            self.last_error = error
            self.variables.set("ERROR", "true")
            self.variables.set("ROW_COUNT", "0")
            self.variables.set("SQLSTATE", error.sqlstate)
            self.variables.set("LAST_ERROR_SQLSTATE", error.sqlstate)
            self.variables.set("LAST_ERROR_MESSAGE", error.message)
        self._flush()
        source = self._sources[-1] if self._sources else None
        place = f"{source.name}:{source.line}: " if source is not None and source.name else ""
        self.errors.write(f"{place}{self._error_text(error)}\n")
        if statement and self.variables.text("ECHO") == "errors":
            self.errors.write(f"STATEMENT: {statement}\n")
        self.errors.flush()

    def _error_text(self, error: RemudaError) -> str:
        match self.variables.text("VERBOSITY"):
            case "sqlstate":
                return f"ERROR {error.sqlstate}"
            case "terse":
                return f"ERROR {error.sqlstate}: {harmless(error.message)}"
            case "verbose":
                return verbose(error)
        return f"ERROR {error.sqlstate}: {harmless(str(error))}"

    def warn(self, text: str) -> None:
        """A remark that is no error."""
        self._flush()
        self.errors.write(f"{text}\n")
        self.errors.flush()

    def say(self, text: str) -> None:
        """The answer of a command, unless the session is quiet."""
        if not self.quiet:
            self.stdout.write(f"{text}\n")


def verbose(error: RemudaError) -> str:
    """All that is known about an error."""
    lines = [f"ERROR {error.sqlstate}: {harmless(str(error))}"]
    subject = error.subject
    if subject is not None:
        lines += [
            f"{name.upper().replace('_', ' ')} NAME: {value}"
            for name in ("schema", "table", "column", "constraint")
            if (value := getattr(subject, name, ""))
        ]
    lines.append(f"KIND: {type(error).__name__}")
    if error.member:
        lines.append(f"MEMBER: {error.member}")
    lines.append(f"RETRYABLE: {'yes' if error.retryable else 'no'}")
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    """As psql shows it, with hours, minutes and seconds if there are some."""
    text = f"{seconds * 1000:.3f} ms"
    if seconds < 1:
        return text
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    clock = f"{minutes:02.0f}:{rest:06.3f}"
    return f"{text} ({hours:02.0f}:{clock})" if hours else f"{text} ({clock})"


def _done(cursor: Cursor) -> str:
    """``INSERT 7``, ``CREATE TABLE``."""
    tag = cursor.tag or "OK"
    return f"{tag} {cursor.rowcount}" if tag in _COUNTED and cursor.rowcount >= 0 else tag
