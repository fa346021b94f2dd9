r"""The words behind a backslash command, by psql's rules of quoting.

``'...'`` is a text with C's escapes and ``''`` for a quote, ``"..."`` a name, ``\`...\``` the
output of a command of the system; ``:name``, ``:'name'``, ``:"name"`` and ``:{?name}`` are
replaced. A backslash outside of quotes ends the words: another command follows.
"""

from __future__ import annotations

import re
import subprocess

from remuda.cli.shell.scanner import Lookup
from remuda.errors import InputError

_PART = re.compile(
    r"""
      (?P<single>'(?:[^'\\]|\\.|'')*+')
    | (?P<double>"(?:[^"]|"")*+")
    | (?P<system>`[^`]*`)
    | (?P<cast>::|:=)
    | (?P<variable>:(?:\{\?\w+\}|'\w+'|"\w+"|\w+))
    | (?P<plain>[^\s\\'"`:]+|:)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"''|\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f"}
_VARIABLE = re.compile(r":('\w+'|\"\w+\"|\w+)")


class Words:
    """Reads one word after the other. Raises InputError for a quote without an end."""

    def __init__(self, text: str, lookup: Lookup) -> None:
        self._text = text
        self._at = 0
        self._lookup = lookup

    def next(self) -> str | None:
        """The next word; None behind the last one."""
        found = self._read()
        return None if found is None else found[0]

    def all(self) -> list[str]:
        """All words that are left."""
        found = []
        while (word := self.next()) is not None:
            found.append(word)
        return found

    def name(self) -> str | None:
        """The next word as SQL reads a name: lower case unless quoted."""
        word = self.next()
        return None if word is None else folded(word)

    def place(self) -> str | None:
        """The name of a file, or ``|command`` with all that is left."""
        self._space()
        if self._text.startswith("|", self._at):
            return self.whole()
        return self.next()

    def pattern(self) -> str | None:
        """The next word with its quotes: a name or a pattern."""
        return self.next()

    def whole(self) -> str:
        """The rest of the line as it is, without space around it."""
        text = self._text[self._at :].strip()
        self._at = len(self._text)
        return text

    def parenthesized(self) -> str | None:
        """The text between the parentheses that begin here; None if none do."""
        self._space()
        if not self._text.startswith("(", self._at):
            return None
        end = self._text.find(")", self._at)
        if end < 0:
            raise InputError("missing right parenthesis")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def left_over(self) -> str:
        """The command that a backslash begins behind the last word, or an empty text."""
        self._space()
        rest = self._text[self._at :]
        return rest.removeprefix("\\\\") if rest.startswith("\\\\") else rest

    def skip(self) -> None:
        """Pass over all words without running what stands in backquotes."""
        self._lookup = lambda _name, _quote: None
        while self._read(run=False) is not None:
            pass

    def _space(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _read(self, run: bool = True) -> tuple[str, bool] | None:
        self._space()
        parts: list[str] = []
        quoted = False
        while self._at < len(self._text):
            part = _PART.match(self._text, self._at)
            if part is None:
                if self._text[self._at] in "'\"`":
                    raise InputError("unterminated quoted string")
                break
            self._at = part.end()
            quoted = quoted or part.lastgroup in ("single", "system", "variable")
            parts.append(self._value(part, run))
        return ("".join(parts), quoted) if parts or quoted else None

    def _value(self, part: re.Match[str], run: bool) -> str:
        text = part.group()
        match part.lastgroup:
            case "single":
                return _ESCAPE.sub(_unescaped, text[1:-1])
            case "variable":
                return self._variable(text)
            case "system" if run:
                return output_of(_VARIABLE.sub(lambda m: self._variable(m.group()), text[1:-1]))
        return text

    def _variable(self, text: str) -> str:
        name = text[1:]
        quote = name[0] if name[0] in "'\"" else "?" if name[0] == "{" else ""
        value = self._lookup(name.strip("'\"{?}"), quote)
        return text if value is None else value


def folded(word: str) -> str:
    """A name as SQL reads it: lower case outside of double quotes, which go."""
    parts = re.split(r'"((?:[^"]|"")*)"', word)
    return "".join(
        part.replace('""', '"') if place % 2 else part.lower() for place, part in enumerate(parts)
    )


def output_of(command: str) -> str:
    """The standard output of a command of the system, without the end of its last line."""
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=False)  # noqa: S602 (its user has typed the command)
    if done.returncode:
        raise InputError(f"command `{command}` failed with exit code {done.returncode}")
    return done.stdout.decode(errors="replace").removesuffix("\n")


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, letter = found.groups()
    if octal:
        return chr(int(octal, 8) & 255)
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if letter:
        return _LETTERS.get(letter, letter)
    return "'"
