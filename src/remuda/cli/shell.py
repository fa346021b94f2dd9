"""The interactive shell: lines with history and completion, until ``\\q`` or Ctrl-D."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import remuda
from remuda.cli.completion import complete
from remuda.cli.session import Session
from remuda.cli.statements import is_empty, split
from remuda.datatypes.schema import MapSchema
from remuda.errors import NotSupported, RemudaError
from remuda.transaction.states import State

PROMPT = "remuda> "
MORE_PROMPT = "   ...> "
DATA_PROMPT = "     >> "
PROMPTS = {
    None: PROMPT,
    State.ACTIVE: "remuda*> ",
    State.MARKED_ROLLBACK: "remuda!> ",
}
"""By the state of the transaction that is open: none, open, failed."""
_CHANGES_CATALOG = ("create", "drop", "alter")


class LineReader(Protocol):
    """Reads one line; EOFError at the end of input, KeyboardInterrupt on Ctrl-C."""

    def read(self, prompt: str) -> str: ...


class Catalog:
    """The maps to complete from: read from the cluster when needed and when they have changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._schemas: Sequence[MapSchema] | None = None

    def schemas(self) -> Sequence[MapSchema]:
        if self._schemas is None:
            try:
                self._schemas = self._session.client.cluster_info().maps
            except RemudaError:  # completing must not disturb typing
                return ()
        return self._schemas

    def after(self, statement: str) -> None:
        if statement.lstrip().lower().startswith(_CHANGES_CATALOG):
            self._schemas = None


def run_shell(session: Session, reader: LineReader | None = None) -> None:
    """Read and run until the user leaves."""
    catalog = Catalog(session)
    reader = reader or PromptReader(catalog)
    session.out.write(
        f"Remuda {remuda.__version__}, connected to {', '.join(session.client.addresses)}. "
        "\\? for help.\n"
    )
    session.lines = session.stdin = _data_lines(reader)
    pending = ""
    while not session.done:
        try:
            line = reader.read(
                MORE_PROMPT if pending else PROMPTS[session.client.transaction_state]
            )
        except KeyboardInterrupt:
            pending = ""
            continue
        except EOFError:
            return
        if not pending and line.lstrip().startswith("\\"):
            session.command(line)
            continue
        found = split(pending + line + "\n")
        pending = "" if is_empty(found.rest) else found.rest
        for statement in found.statements:
            session.statement(statement)
            catalog.after(statement)


def _data_lines(reader: LineReader) -> Callable[[], str]:
    """The data of a COPY as the user types it."""

    def line() -> str:
        try:
            return reader.read(DATA_PROMPT) + "\n"
        except EOFError:
            return ""

    return line


class PromptReader:
    """Lines by prompt_toolkit: history in a file, completion while typing."""

    def __init__(self, catalog: Catalog) -> None:
        try:
            toolkit = import_module("prompt_toolkit")
            completion = import_module("prompt_toolkit.completion")
            history = import_module("prompt_toolkit.history")
        except ImportError:
            raise NotSupported(
                "the interactive shell needs the package prompt_toolkit",
                hint='Install remuda[cli], or use -c "SELECT ..." or -f FILE.',
            ) from None

        class Completer(completion.Completer):  # type: ignore[name-defined,misc]
            def get_completions(self, document: Any, _event: Any) -> Iterator[Any]:
                before = document.text_before_cursor
                for found in complete(before, catalog.schemas()):
                    yield completion.Completion(
                        found.text, start_position=-found.replaces, display_meta=found.kind
                    )

        self._session = toolkit.PromptSession(
            history=history.FileHistory(str(history_file())),
            completer=Completer(),
            complete_while_typing=False,
            enable_history_search=True,
        )

    def read(self, prompt: str) -> str:
        line: str = self._session.prompt(prompt)
        return line


def history_file() -> Path:
    """``remuda/sql_history`` below the user's state directory; made if needed."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "remuda" / "sql_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:  # a home that cannot be written: work without remembering
        return Path(os.devnull)
    return path
