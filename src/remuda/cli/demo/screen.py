"""The output of the demo: panels and tables in a terminal, plain lines when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table

PLAIN_WIDTH: Final = 120
ROWS_SHOWN: Final = 12


class Screen:
    """All output of the demo goes through here, to standard output."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.terminal = terminal
        self.console = Console(width=None if terminal else PLAIN_WIDTH, highlight=False)

    def chapter(self, text: str) -> None:
        self.console.print()
        if self.terminal:
            self.console.print(Rule(f"[bold cyan]{escape(text)}"))
        else:
            self.console.print(f"=== {text} ===", markup=False)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def sql(self, title: str, text: str, parameters: Sequence[object] = ()) -> None:
        self.console.print()
        if parameters:
            text += "\n-- parameters: " + ", ".join(repr(value) for value in parameters)
        if self.terminal:
            code = Syntax(text, "sql", background_color="default", word_wrap=True)
            self.console.print(Panel(code, title=escape(title), title_align="left"))
        else:
            self.console.print(f"--- {title}", markup=False)
            self._indented(text)

    def plan(self, lines: Sequence[str]) -> None:
        text = "\n".join(lines)
        if self.terminal:
            self.console.print(
                Panel(escape(text), title="plan", title_align="left", border_style="dim")
            )
        else:
            self.console.print("plan:")
            self._indented(text)

    def table(self, names: Sequence[str], rows: Sequence[Sequence[object]], total: int) -> None:
        table = Table(box=box.ROUNDED if self.terminal else box.ASCII2, show_lines=False)
        for index, name in enumerate(names):
            number = any(
                isinstance(row[index], int | float) or _decimal(row[index]) for row in rows
            )
            table.add_column(escape(name), justify="right" if number else "left")
        for row in rows[:ROWS_SHOWN]:
            table.add_row(*(escape(shown(value)) for value in row))
        self.console.print(table)
        if total > ROWS_SHOWN:
            self.console.print(f"... and {total - ROWS_SHOWN} more rows")

    def took(self, what: str, seconds: float) -> None:
        text = f"{what} in {duration(seconds)}"
        self.console.print(f"[green]{escape(text)}[/]" if self.terminal else text)

    def error(self, text: str) -> None:
        if self.terminal:
            self.console.print(
                Panel(escape(text), title="error", title_align="left", border_style="red")
            )
        else:
            self._indented(text)

    @contextmanager
    def loading(self) -> Iterator[Progress | None]:
        """A bar per load in a terminal; nothing when piped, where one line per load follows."""
        if not self.terminal:
            yield None
            return
        with Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            TextColumn("{task.fields[rows]:>24}"),
            TimeElapsedColumn(),
            transient=True,
            console=self.console,
        ) as progress:
            yield progress

    def _indented(self, text: str) -> None:
        for line in text.splitlines():
            self.console.print("    " + line, markup=False, soft_wrap=True)


def shown(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _decimal(value: object) -> bool:
    return type(value).__name__ == "Decimal"


def duration(seconds: float) -> str:
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started
