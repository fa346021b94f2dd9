r"""COPY in the shell: ``\copy`` with files and programs of this machine, and COPY statements whose
data stands between the statements, as psql has them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TextIO

from remuda.client.blocking.client import Client
from remuda.errors import InputError, SqlSyntaxError

_TOKEN: Final = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/
      | [eE]?'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
      | \$(\w*)\$.*?\$\1\$ | [()] | [^\s()'"]+
    """,
    re.VERBOSE | re.DOTALL,
)
_DATA_ENDS: Final = "\\."
_STREAMS: Final = ("stdin", "stdout", "pstdin", "pstdout")
PIECE: Final = 512 * 1024

Lines = Callable[[], str]
"""The next line of the data, with its end; "" at the end of the input."""


@dataclass(frozen=True, slots=True)
class Copy:
    """``what``: the table and its columns, or the query. ``place``: a file, a command, or one of
    ``_STREAMS``, as ``kind`` says: "file", "program" or "stream"."""

    what: str
    incoming: bool
    kind: str
    place: str
    rest: str

    @property
    def statement(self) -> str:
        way = "FROM STDIN" if self.incoming else "TO STDOUT"
        return f"COPY {self.what} {way} {self.rest}".rstrip()


def parse_command(text: str) -> Copy:
    """The parts of a command without its name. Raises SqlSyntaxError."""
    found = _parsed(text.rstrip().removesuffix(";"))
    if isinstance(found, str):
        raise SqlSyntaxError(
            f"\\copy: parse error at {found}",
            hint="\\copy TABLE [(COLUMNS)] FROM 'FILE' [OPTIONS], \\copy (QUERY) TO 'FILE'; in "
            "place of 'FILE': STDIN, STDOUT, PROGRAM 'COMMAND'.",
        )
    return found


def parse_statement(text: str) -> Copy | None:
    """A COPY statement whose data the client sends or takes; None for any other."""
    tokens = [found for found in _tokens(text) if not found.group().isspace()]
    words = (t for t in tokens if not t.group().startswith(("--", "/*")))
    first = next(words, None)
    if first is None or first.group().lower() != "copy":
        return None
    found = _parsed(text[first.end() :])
    if isinstance(found, str) or found.kind != "stream" or found.place.startswith("p"):
        return None
    return found


def _tokens(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:  # an open quote: the statement is refused by the member
            return
        yield token
        at = token.end()


def _parsed(text: str) -> Copy | str:
    """The parts; or where they cannot be told apart, as a text."""
    depth = 0
    tokens = [token for token in _tokens(text) if not token.group().isspace()]
    for number, token in enumerate(tokens):
        word = token.group()
        depth += (word == "(") - (word == ")")
        if depth or number == 0 or word.lower() not in ("from", "to"):
            continue
        incoming = word.lower() == "from"
        what = text[: token.start()].strip()
        return _placed(text, what, tokens[number + 1 :], incoming=incoming)
    return f'"{tokens[-1].group()}"' if tokens and depth else "end of line"


def _placed(text: str, what: str, tokens: list[re.Match[str]], *, incoming: bool) -> Copy | str:
    if not tokens:
        return "end of line"
    place, word = tokens[0], tokens[0].group()
    kind = "file"
    if word.lower() == "program":
        if len(tokens) < 2:
            return "end of line"
        place, kind = tokens[1], "program"
        if not place.group().startswith("'"):
            return f'"{place.group()}"'
    elif word.lower() in _STREAMS:
        kind = "stream"
        if ("in" in word.lower()) != incoming:
            return f'"{word}"'
    end = place.end()
    if kind == "file" and not word.startswith("'"):
        # A name without quotes ends at the next space.
        end = len(text) if not (space := re.search(r"\s", text[end:])) else end + space.start()
        return Copy(what, incoming, kind, _home(text[place.start() : end]), text[end:].strip())
    name = _unquoted(place.group()) if kind != "stream" else place.group().lower()
    return Copy(what, incoming, kind, name, text[end:].strip())


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _home(name: str) -> str:
    return str(Path(name).expanduser()) if name.startswith("~") else name


# --- running -----------------------------------------------------------------------------------


def run_copy(client: Client, copy: Copy, lines: Lines, stdin: Lines, out: TextIO) -> int:
    """The number of rows. ``lines``: of the data that stands among the statements; ``stdin``: of
    the standard input. Raises InputError for a file or a program that fails, and the errors of
    ``Client.copy_from`` and ``copy_to``."""
    if copy.kind == "program":
        return _with_program(client, copy)
    if copy.kind == "file":
        if copy.incoming:
            return client.copy_from(copy.statement, copy.place)
        return client.copy_to(copy.statement, copy.place)
    if copy.incoming:
        given = Inline(lines if copy.place == "stdin" else stdin)
        try:
            return client.copy_from(copy.statement, iter(given))
        finally:
            given.skip()
    out.flush()
    return client.copy_to(copy.statement, getattr(out, "buffer", out))


class Inline:
    r"""Data between statements, until a line ``\.`` or the end of the input."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._over = False

    def __iter__(self) -> Iterator[str]:
        while (line := self._next()) is not None:
            yield line

    def skip(self) -> None:
        """Lines that the COPY has not taken are no statements."""
        while self._next() is not None:
            pass

    def _next(self) -> str | None:
        if self._over:
            return None
        line = self._lines()
        self._over = not line or line.rstrip("\r\n") == _DATA_ENDS
        return None if self._over else line


def _with_program(client: Client, copy: Copy) -> int:
    with subprocess.Popen(  # noqa: S602 (its user has typed the command)
        copy.place,
        shell=True,
        stdin=None if copy.incoming else subprocess.PIPE,
        stdout=subprocess.PIPE if copy.incoming else None,
    ) as program:
        if copy.incoming:
            assert program.stdout is not None
            return client.copy_from(copy.statement, _output(program, program.stdout, copy.place))
        assert program.stdin is not None
        try:
            rows = client.copy_to(copy.statement, program.stdin)
            program.stdin.close()
        except BrokenPipeError as error:
            raise _failed(copy.place, program.wait()) from error
    if program.returncode:
        raise _failed(copy.place, program.returncode)
    return rows


def _output(program: subprocess.Popen[bytes], output: IO[bytes], command: str) -> Iterator[bytes]:
    """The output of a program. It raises at the end if the program has failed: nothing of it is
    written then."""
    while data := output.read(PIECE):
        yield data
    if code := program.wait():
        raise _failed(command, code)


def _failed(command: str, code: int) -> InputError:
    how = f"was terminated by signal {-code}" if code < 0 else f"exited with exit code {code}"
    return InputError(f'program "{command}" failed', detail=f"The process {how}.")
