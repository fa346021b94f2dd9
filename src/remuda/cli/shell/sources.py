"""Where the shell's input comes from: a text, a file, standard input, or a terminal."""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TextIO

from remuda.datatypes.values import require_unicode
from remuda.errors import InputError

Prompt = Callable[[], str]
"""The prompt, for those who ask somebody."""


class LineReader(Protocol):
    """Reads a line, or several; EOFError at the end of input, KeyboardInterrupt on Ctrl-C.
    ``history``: texts that were read, oldest first."""

    def read(self, prompt: str) -> str: ...

    def history(self) -> list[str]: ...


class Source(Protocol):
    """Lines of input, and of the data of a COPY that stands among them."""

    name: str
    """A file, as errors name it; "" for others."""
    interactive: bool

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        ...

    def read(self, prompt: Prompt) -> str | None:
        """The next line with its end; None at the end of the input."""
        ...

    def data(self) -> str:
        """The next line of data; "" at the end of it."""
        ...

    def close(self) -> None: ...


class TextSource:
    """Lines of an open text. ``data``: the lines of COPY data, if they come from elsewhere."""

    interactive = False

    def __init__(self, text: TextIO, name: str = "", data: Callable[[], str] | None = None) -> None:
        self.name = name
        self._text = text
        self._line = 0
        self._data = data

    @property
    def line(self) -> int:
        return self._line

    def read(self, _prompt: Prompt) -> str | None:
        return self._next() or None

    def data(self) -> str:
        return self._next() if self._data is None else self._data()

    def close(self) -> None:
        if self._text is not sys.stdin:
            self._text.close()

    def _next(self) -> str:
        what = self.name or "standard input"
        try:
            line = self._text.readline()
        except UnicodeDecodeError as error:
            raise InputError(f"{what} is not UTF-8 text") from error
        require_unicode(line, what)
        self._line += 1
        return line


class TerminalSource:
    """Lines that a user types. ``data_prompt``: the prompt for data of a COPY."""

    interactive = True
    name = ""
    line = 0

    def __init__(self, reader: LineReader, data_prompt: Prompt) -> None:
        self._reader = reader
        self._data_prompt = data_prompt
        self._lines: deque[str] = deque()

    def read(self, prompt: Prompt) -> str | None:
        if not self._lines:
            try:
                text = self._reader.read(prompt())
            except EOFError:
                return None
            self._lines.extend(f"{line}\n" for line in text.split("\n"))
        return self._lines.popleft()

    def data(self) -> str:
        if self._lines:
            return self._lines.popleft()
        try:
            return self._reader.read(self._data_prompt()) + "\n"
        except EOFError:
            return ""

    def interrupt(self) -> None:
        """Forget lines that were read with the one before."""
        self._lines.clear()

    def close(self) -> None: ...


def text_source(text: str, data: Callable[[], str] | None = None) -> TextSource:
    return TextSource(io.StringIO(text), data=data)


def file_source(path: Path) -> TextSource:
    """Raises InputError for a file that cannot be read."""
    try:
        return TextSource(path.open(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def line_of_stdin() -> str:
    """The next line of the standard input. InputError if it is no text."""
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError as error:
        raise InputError("standard input is not UTF-8 text") from error
    require_unicode(line, "standard input")
    return line
