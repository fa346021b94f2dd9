"""Files and programs that take output."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from remuda.errors import InputError


def open_output(place: str) -> tuple[TextIO, Callable[[], None]]:
    """A file, or the program behind ``|``, and a function that ends it. Both raise InputError."""
    if not place.startswith("|"):
        path = Path(place).expanduser()
        try:
            out = path.open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error
        return out, lambda: _close(out, str(path))
    program = subprocess.Popen(place[1:], shell=True, stdin=subprocess.PIPE, text=True)  # noqa: S602 (its user has typed the command)
    assert program.stdin is not None
    stdin = cast("TextIO", program.stdin)

    def close() -> None:
        with suppress(BrokenPipeError):  # the program, like head, has seen enough
            stdin.close()
        program.wait()

    return stdin, close


def _close(out: TextIO, name: str) -> None:
    try:
        out.close()
    except OSError as error:  # the disk is full
        raise InputError(f"{name} cannot be written: {error.strerror}") from error
