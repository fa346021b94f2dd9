"""The interactive shell: lines with history and completion, until ``\\q`` or Ctrl-D."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from remuda.catalog.system_relations import SYS, SYSTEM
from remuda.cli.shell import statement_help
from remuda.cli.shell.commands import formatting, index
from remuda.cli.shell.completion import Known, complete
from remuda.cli.shell.prompts import prompt
from remuda.cli.shell.run import run_source, word_command
from remuda.cli.shell.scanner import Scanner, Stop
from remuda.cli.shell.session import Session
from remuda.cli.shell.sources import LineReader, TerminalSource
from remuda.datatypes.schema import MapSchema
from remuda.errors import NotSupported, RemudaError
from remuda.release import __version__

_SYSTEM_COLUMNS = {
    name: [column.name for column in relation.columns] for name, relation in SYSTEM[SYS].items()
}


class Catalog:
    """Names to complete from: read from the cluster when they are needed, maps again after each
    statement."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._schemas: Sequence[MapSchema] | None = None
        self._seen = ""
        self._functions: Sequence[str] = ()
        self._settings: Sequence[str] = ()

    def known(self) -> Known:
        """All that can be completed now."""
        if not self._functions:
            self._functions = self._names("SELECT DISTINCT proname FROM pg_catalog.pg_proc")
            self._settings = self._names("SELECT name FROM pg_catalog.pg_settings")
        variables = [name for name, _ in self._session.variables]
        words = {
            "\\pset": formatting.OPTIONS,
            "\\set": variables,
            "\\unset": variables,
            "\\h": statement_help.NAMES,
            "\\help": statement_help.NAMES,
            "set": self._settings,
            "show": self._settings,
            "reset": self._settings,
        }
        functions, commands = self._functions, index.names()
        return Known(self.schemas(), functions, commands, variables, words, _SYSTEM_COLUMNS)

    def _names(self, query: str) -> Sequence[str]:
        try:
            return [name for (name,) in self._session.client.sql(query)]
        except RemudaError:  # completing must not disturb typing
            return ()

    def schemas(self) -> Sequence[MapSchema]:
        statement = self._session.last_statement
        if statement is not self._seen:
            self._schemas = None
        self._seen = statement
        if self._schemas is None:
            try:
                self._schemas = self._session.client.cluster_info().maps
            except RemudaError:  # completing must not disturb typing
                return ()
        return self._schemas


def run_shell(session: Session, reader: LineReader | None = None) -> None:
    """Read and run until the user leaves."""
    scanner = Scanner(session.variables.lookup)
    catalog = Catalog(session)
    history = session.variables.get("HISTFILE") or os.environ.get("REMUDA_HISTORY") or ""
    shorten(history_file(history), session.variables.get("HISTSIZE"))
    reader = reader or PromptReader(
        catalog, lambda text: continuation(session, scanner, text), history
    )
    session.say(
        f"Remuda {__version__}, connected to {', '.join(session.client.addresses)}. \\? for help."
    )
    session.stdout.flush()
    source = TerminalSource(reader, lambda: prompt(session, 3, "="))
    session.converse(source.data, reader.history)
    while not run_source(session, source, scanner):
        pass  # ON_ERROR_STOP ends scripts, not a conversation


def continuation(session: Session, scanner: Scanner, text: str) -> str | None:
    """The prompt of the next line if ``text`` is not enough to run something; else None."""
    if scanner.is_empty and word_command(text):
        return None
    ahead = scanner.fork()
    ahead.feed(text + "\n")
    while (stop := ahead.scan()) is not Stop.INPUT:
        if stop is Stop.COMMAND:
            return None
        ahead.clear()
    return None if ahead.is_empty else prompt(session, 2, ahead.status)


class PromptReader:
    """Statements by prompt_toolkit: edited as a whole, over several lines, with a history of
    statements and completion. ``more``: the prompt of the next line, if there must be one."""

    def __init__(
        self, catalog: Catalog, more: Callable[[str], str | None], history_name: str = ""
    ) -> None:
        try:
            toolkit = import_module("prompt_toolkit")
            completion = import_module("prompt_toolkit.completion")
            history = import_module("prompt_toolkit.history")
            bindings = import_module("prompt_toolkit.key_binding").KeyBindings()
        except ImportError:
            raise NotSupported(
                "the interactive shell needs the package prompt_toolkit",
                hint='Install remuda[cli], or use -c "SELECT ..." or -f FILE.',
            ) from None

        class Completer(completion.Completer):  # type: ignore[name-defined,misc]
            def get_completions(self, document: Any, _event: Any) -> Iterator[Any]:
                before = document.text_before_cursor
                for found in complete(before, catalog.known()):
                    yield completion.Completion(
                        found.text, start_position=-found.replaces, display_meta=found.kind
                    )

        @bindings.add("enter")  # type: ignore[untyped-decorator]
        def _enter(event: Any) -> None:
            buffer = event.current_buffer
            if more(buffer.text) is None:
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        self._more = more
        self._bindings = bindings
        self._session = toolkit.PromptSession(
            history=history.FileHistory(str(history_file(history_name))),
            completer=Completer(),
            complete_while_typing=False,
            enable_history_search=True,
        )

    def read(self, prompt: str) -> str:
        text: str = self._session.prompt(
            prompt,
            multiline=True,
            key_bindings=self._bindings,
            prompt_continuation=self._continued,
        )
        return text

    def history(self) -> list[str]:
        """Statements, oldest first."""
        return list(self._session.history.get_strings())

    def _continued(self, _width: int, line: int, _wrapped: int) -> str:
        lines = self._session.default_buffer.text.split("\n")[:line]
        return self._more("\n".join(lines)) or ""


def shorten(path: Path, size: str | None) -> None:
    """Keep the last ``size`` statements of the history (a text; None, no number or a negative one:
    all). Each begins with a comment and has its lines behind a plus."""
    if size is None or not size.isdecimal() or not path.is_file():
        return
    entries = re.findall(r"(?:^#.*\n)?(?:^\+.*\n)+", path.read_text(errors="replace"), re.MULTILINE)
    kept = entries[len(entries) - min(int(size), len(entries)) :]
    if len(kept) == len(entries):
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.touch(mode=0o600)
        beside.write_text("\n".join(["", *kept]))
        beside.replace(path)
    except OSError:  # a home that cannot be written: the history stays as it is
        beside.unlink(missing_ok=True)


def history_file(name: str = "") -> Path:
    """``name``, or ``remuda/sql_history`` below the user's state directory; made if needed."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(name or Path(state) / "remuda" / "sql_history").expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:  # a home that cannot be written: work without remembering
        return Path(os.devnull)
    return path
