"""Runs the input of the shell: statements and backslash commands in turn."""

from __future__ import annotations

import re

from remuda.cli.shell.commands import index
from remuda.cli.shell.commands.catalogue import Call, Include, Leave, Outcome, Sent
from remuda.cli.shell.conditions import Conditions
from remuda.cli.shell.prompts import prompt
from remuda.cli.shell.scanner import Scanner, Stop
from remuda.cli.shell.session import Session
from remuda.cli.shell.sources import Source, TerminalSource
from remuda.cli.shell.words import Words
from remuda.errors import InputError, NotSupported, RemudaError

_NAME = re.compile(r"[^\s\\;]*")
_WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""Words that are commands at the beginning of a statement, for a user."""


def word_command(line: str) -> str:
    """The command that a word at the beginning of a statement stands for; "" if none."""
    return _WORDS.get(line.strip().rstrip(";").lower(), "")


def run_source(session: Session, source: Source, scanner: Scanner | None = None) -> bool:
    """Run all of it, or until ``\\q``; False if an error ended it."""
    return _Run(session, source, scanner or Scanner(session.variables.lookup)).run()


class _Run:
    """The input of one source. ``_ended``: the answer of ``run``, once it is known."""

    def __init__(self, session: Session, source: Source, scanner: Scanner) -> None:
        self._session = session
        self._source = source
        self._scanner = scanner
        self._conditions = Conditions()
        self._statement_line = 1
        self._ended: bool | None = None

    def run(self) -> bool:
        with self._session.reading(self._source):
            while self._ended is None:
                try:
                    self._take_line()
                except RemudaError as error:
                    self._session.report(error)
                    self._ended = False
                except KeyboardInterrupt:
                    if not self._source.interactive:
                        raise
                    self._interrupt()
            return self._ended

    def _interrupt(self) -> None:
        self._scanner.clear()
        if isinstance(self._source, TerminalSource):
            self._source.interrupt()

    def _take_line(self) -> None:
        line = self._source.read(self._prompt)
        if line is None:
            self._end()
            return
        session = self._session
        if session.variables.text("ECHO") == "all" and not self._source.interactive:
            session.stdout.write(line if line.endswith("\n") else f"{line}\n")
        if self._source.interactive and self._scanner.is_empty:
            line = (word_command(line) or line.rstrip("\n")) + "\n"
        self._scanner.feed(line)
        self._scan()

    def _scan(self) -> None:
        while self._ended is None:
            stop = self._scanner.scan()
            if stop is Stop.INPUT:
                self._between_lines()
                return
            ok = self._statement() if stop is Stop.STATEMENT else self._command()
            if not ok and self._session.variables.is_on("ON_ERROR_STOP"):
                self._ended = False

    def _between_lines(self) -> None:
        if self._scanner.is_empty:
            self._scanner.clear()
        elif self._session.variables.is_on("SINGLELINE") and self._scanner.status == "-":
            self._statement()

    def _statement(self) -> bool:
        text, empty = self._scanner.statement, self._scanner.is_empty
        if not self._conditions.active:
            return True
        self._scanner.clear()
        return empty or self._session.statement(text, data=self._source.data)

    def _end(self) -> None:
        """The end of the input also ends its last statement."""
        ok = True
        if not self._scanner.is_empty and not self._source.interactive:
            ok = self._statement()
        if self._conditions.depth:
            raise InputError("reached EOF without finding closing \\endif(s)")
        self._ended = ok or not self._session.variables.is_on("ON_ERROR_STOP")

    def _prompt(self) -> str:
        if self._scanner.is_empty:
            status = "=" if self._conditions.active else "@"
            return prompt(self._session, 1, status)
        return prompt(self._session, 2, self._scanner.status)

    # --- backslash commands ---

    def _command(self) -> bool:
        """Run one command; False if it failed."""
        session = self._session
        line = self._scanner.rest_of_line()
        found = _NAME.match(line)
        name = "" if found is None else found.group()
        rest = line[len(name) :]
        try:
            if name == "" and rest.startswith(";"):
                raise NotSupported("\\; is not supported", hint="Statements are sent one by one.")
            if name == "":
                raise InputError("a backslash without a command", hint="\\? lists the commands.")
            if session.restricted and name != "unrestrict":
                raise InputError("backslash commands are restricted; only \\unrestrict is allowed")
            return self._call(name.rstrip(";"), rest)
        except RemudaError as error:
            session.report(error)
            return False
        finally:
            session.stdout.flush()

    def _call(self, name: str, rest: str) -> bool:
        if not self._conditions.active and name not in ("if", "elif", "else", "endif"):
            words = Words(rest, lambda _name, _quote: None)
            words.skip()
            self._scanner.put_back(words.left_over())
            return True
        command, flags = index.find(name)
        if not command.raw:
            rest = rest.rstrip().removesuffix(";")
        words = Words(rest, self._session.variables.lookup)
        base = name.removesuffix(flags) if flags else name
        session = self._session
        call = Call(base, flags, words, session, self._scanner, self._conditions, self._source)
        outcome = command.run(call)
        extra = words.all()
        if extra:
            session.warn(f'\\{name}: extra argument "{extra[0]}" ignored')
        left = words.left_over()
        if left:
            self._scanner.put_back(left)
        return self._after(outcome)

    def _after(self, outcome: Outcome) -> bool:
        match outcome:
            case Leave():
                self._ended = True
            case Sent(ok):
                self._scanner.clear()
                return ok
            case Include(source):
                try:
                    return run_source(self._session, source)
                finally:
                    source.close()
        return True
