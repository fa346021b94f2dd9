"""Long results go through a pager, as the variables REMUDA_PAGER and PAGER say."""

from __future__ import annotations

import io
import math
import os
import shutil
import subprocess
from typing import Final, TextIO

from remuda.cli.results.options import PrintOptions
from remuda.cli.results.table import display_width

_LESS: Final = "-RSX"
"""For ``less``: show colours, move sideways along long lines, and leave the screen as it is."""


class PagerLeft(Exception):
    """The user has left the pager: nobody reads the rest of the result."""


class Paged(io.TextIOBase):
    """Output that is kept until it exceeds the terminal, and then goes to a pager. ``write`` raises
    PagerLeft when the user has left it."""

    def __init__(self, out: TextIO, options: PrintOptions) -> None:
        self._out = out
        self._options = options
        self._kept: list[str] = []
        self._lines = 0
        self._pager: subprocess.Popen[str] | None = None
        self._straight = options.pager == "off" or not command()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._straight:
            return self._out.write(text)
        if self._pager is not None:
            self._feed(text)
            return len(text)
        self._kept.append(text)
        self._lines += sum(map(self._height, text.split("\n")[:-1]))
        limit = max(self._options.height - 1, self._options.pager_min_lines)
        if self._lines > limit or self._options.pager == "always":
            self._start()
        return len(text)

    def end(self) -> None:
        """Write what was kept, and wait until the user has left the pager."""
        if self._pager is None:
            self._out.write("".join(self._kept))
            return
        pager = self._pager
        try:
            if pager.stdin is not None:
                pager.stdin.close()
        except BrokenPipeError:
            pass  # its user has left it
        pager.wait()

    def _height(self, line: str) -> int:
        """Lines of the terminal that it takes."""
        return max(1, math.ceil(display_width(line) / max(1, self._options.width)))

    def _start(self) -> None:
        self._out.flush()
        environment = {"LESS": _LESS} | os.environ
        self._pager = subprocess.Popen(  # noqa: S602 (its user has named the command)
            command(), shell=True, stdin=subprocess.PIPE, text=True, env=environment
        )
        self._feed("".join(self._kept))
        self._kept = []

    def _feed(self, text: str) -> None:
        assert self._pager is not None
        assert self._pager.stdin is not None
        try:
            self._pager.stdin.write(text)
        except BrokenPipeError:
            raise PagerLeft from None


def command() -> str:
    """The pager's command; "" if there is none."""
    for name in ("REMUDA_PAGER", "PSQL_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name].strip()
    return next((name for name in ("less", "more") if shutil.which(name)), "")
