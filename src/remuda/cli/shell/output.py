"""Files and programs that take output."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from remuda.errors import InputError


def open_output(place: str) -> tuple[TextIO, Callable[[], None]]:
    """A file, or the program behind ``|``, and a function that ends it. Raises InputError."""
    if not place.startswith("|"):
        path = Path(place).expanduser()
        try:
            out = path.open("w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error
        return out, out.close
    program = subprocess.Popen(place[1:], shell=True, stdin=subprocess.PIPE, text=True)  # noqa: S602 (its user has typed the command)
    assert program.stdin is not None
    stdin = program.stdin

    def close() -> None:
        with suppress(BrokenPipeError):  # the program, like head, has seen enough
            stdin.close()
        program.wait()

    return cast("TextIO", stdin), close
