"""How the command line refuses what it does not understand."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An error is what is wrong and where to look, not a list of all options."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._words: str | None = None

    def add_words(self, name: str, **named: Any) -> None:
        """Any number of words, in front of the options, behind them and between them: ``argparse``
        by itself takes those in front only."""
        self._words = name
        self.add_argument(name, nargs="*", **named)

    def parse_known_args(  # type: ignore[override]  # its overloads are of no use here
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        if self._words is None:
            return found, rest
        words = [word for word in rest if not word.startswith("-") or " " in word]
        setattr(found, self._words, [*getattr(found, self._words), *words])
        return found, [word for word in rest if word not in words]

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nHINT: {self.prog} --help lists what there is.\n")
