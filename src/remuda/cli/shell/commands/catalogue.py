"""The form of a backslash command, of its call, and of its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from remuda.cli.shell.conditions import Conditions
from remuda.cli.shell.scanner import Scanner
from remuda.cli.shell.session import Session
from remuda.cli.shell.sources import Source
from remuda.cli.shell.words import Words
from remuda.errors import InputError


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a command. ``flags``: the letters behind its name, as ``+`` and ``S`` of
    ``\\dS+``."""

    name: str
    flags: str
    words: Words
    session: Session
    scanner: Scanner
    conditions: Conditions
    source: Source

    def word(self, what: str) -> str:
        """The next word. Raises InputError if there is none."""
        found = self.words.next()
        if found is None:
            raise InputError(f"\\{self.name}: missing required argument", hint=f"It is {what}.")
        return found


@dataclass(frozen=True, slots=True)
class Leave:
    """The input ends here."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A statement was run: ``ok`` or not. The next one begins."""

    ok: bool


@dataclass(frozen=True, slots=True)
class Include:
    """Run this source, and then go on."""

    source: Source


Outcome: TypeAlias = Leave | Sent | Include | None
"""None: nothing more is to be done."""


@dataclass(frozen=True, slots=True)
class Command:
    """``names``: the first is the one of the list. ``form``: its arguments. ``flags``: letters that
    may follow its name. ``raw``: a semicolon at the end belongs to the arguments."""

    names: tuple[str, ...]
    run: Callable[[Call], Outcome]
    form: str
    about: str
    flags: str = ""
    raw: bool = False

    @property
    def usage(self) -> str:
        marks = "".join(f"[{letter}]" for letter in "S+" if letter in self.flags)
        return f"\\{self.names[0]}{marks} {self.form}".rstrip()


@dataclass(frozen=True, slots=True)
class Section:
    """Commands of one kind, in the order of ``\\?``."""

    title: str
    commands: tuple[Command, ...]
