"""One statement or command of the shell and of ``remuda sql -c``: run it, print, report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from remuda.cli import catalog_text, copying
from remuda.cli.copying import Lines
from remuda.cli.output import make_writer
from remuda.cli.table import harmless
from remuda.client.blocking.client import Client
from remuda.errors import InputError, RemudaError

HELP = """\
Statements end with a semicolon. Commands:
  \\d         list maps              \\d MAP     columns of a map
  \\dt        list maps              \\timing    print how long statements take, on or off
  \\x         one column per line    \\q         leave
  \\copy TABLE|(QUERY) FROM|TO 'FILE'|STDIN|STDOUT|PROGRAM 'COMMAND' [OPTIONS]
  \\?         this help
"""


@dataclass
class Session:
    """One user's settings and streams. ``failed`` remembers whether anything went wrong."""

    client: Client
    format: str = "table"
    timing: bool = False
    expanded: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    errors: TextIO = field(default_factory=lambda: sys.stderr)
    failed: bool = False
    done: bool = False
    lines: Lines | None = None
    """The lines behind a statement, where these may be data of a COPY; None: it is in ``stdin``."""
    stdin: Lines = field(default_factory=lambda: _line_of_stdin)
    restricted: str = ""
    """The key of ``\\restrict``: until ``\\unrestrict`` with it, no other command is taken."""

    def statement(self, text: str) -> bool:
        """Run one statement and print its result; False when it failed (the error is printed)."""
        copy = copying.parse_statement(text)
        if copy is not None:
            return self._timed(lambda: self._copy(copy))
        return self._timed(lambda: self._run(text))

    def _run(self, text: str) -> None:
        with self.client.sql(text) as cursor:
            make_writer(self.format, self.out, self.expanded).write(cursor)

    def _copy(self, copy: copying.Copy) -> None:
        lines = self.stdin if self.lines is None else self.lines
        rows = copying.run_copy(self.client, copy, lines, self.stdin, self.out)
        if copy.kind != "stream" or copy.incoming:
            self.out.write(f"COPY {rows}\n")

    def _timed(self, work: Callable[[], None]) -> bool:
        begin = time.perf_counter()
        try:
            work()
        except RemudaError as error:
            return self._report(error)
        except KeyboardInterrupt:
            self.out.flush()
            self.errors.write("canceled\n")
            self.failed = True
            return False
        if self.timing:
            self.errors.write(f"time: {(time.perf_counter() - begin) * 1000:.1f} ms\n")
        self.out.flush()
        return True

    def command(self, line: str) -> bool:
        """Run a backslash command; False when it failed."""
        name, argument = (*line.strip().removesuffix(";").split(None, 1), "", "")[:2]
        try:
            if self.restricted and name != "\\unrestrict":
                raise InputError("backslash commands are restricted; only \\unrestrict is allowed")
            if name == "\\copy":
                copy = copying.parse_command(argument)
                return self._timed(lambda: self._copy(copy))
            self._command(name, argument)
        except RemudaError as error:
            return self._report(error)
        self.out.flush()
        return True

    def _command(self, name: str, argument: str) -> None:
        match name:
            case "\\q":
                self.done = True
            case "\\?" | "\\h":
                self.out.write(HELP)
            case "\\timing":
                self.timing = _switch(argument, self.timing)
                self.out.write(f"timing is {'on' if self.timing else 'off'}\n")
            case "\\restrict" if argument:
                self.restricted = argument
            case "\\unrestrict" if argument == self.restricted:
                self.restricted = ""
            case "\\unrestrict":
                raise InputError("\\unrestrict: wrong key")
            case "\\x":
                self.expanded = _switch(argument, self.expanded)
                self.out.write(f"expanded display is {'on' if self.expanded else 'off'}\n")
            case "\\d" if argument:
                found = self.client.describe_map(catalog_text.map_name(argument))
                self.out.write(catalog_text.describe(found))
            case "\\d" | "\\dt":
                self.out.write(catalog_text.maps(self.client.cluster_info().maps))
            case _:
                raise InputError(f"unknown command {name}", hint="\\? lists the commands.")

    def _report(self, error: RemudaError) -> bool:
        self.out.flush()
        self.errors.write(f"ERROR {error.sqlstate}: {harmless(str(error))}\n")
        self.errors.flush()
        self.failed = True
        return False


def _line_of_stdin() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError as error:
        raise InputError("standard input is not UTF-8 text") from error


def _switch(argument: str, now: bool) -> bool:
    if argument in ("on", "off"):
        return argument == "on"
    if argument:
        raise InputError(f'expected on or off, found "{argument}"')
    return not now
