r"""``\if``, ``\elif``, ``\else`` and ``\endif``: which part of the input is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remuda.errors import InputError


class Branch(Enum):
    """Of one ``\\if``: the state of the branch that is being read."""

    RUN = "its condition holds"
    WAIT = "no condition held so far"
    SKIP = "one before was carried out, or all is skipped from outside"
    ELSE_RUN = "the else branch is carried out"
    ELSE_SKIP = "the else branch is skipped"


@dataclass(slots=True)
class _Level:
    branch: Branch
    mark: tuple[str, int]


class Conditions:
    """The open ``\\if`` commands of one input. ``mark`` is the statement so far: skipped text is no
    part of it."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    @property
    def active(self) -> bool:
        """Whether input is carried out."""
        return not self._levels or self._levels[-1].branch in (Branch.RUN, Branch.ELSE_RUN)

    @property
    def depth(self) -> int:
        return len(self._levels)

    @property
    def evaluates(self) -> bool:
        """Whether the condition of an ``\\elif`` here decides anything."""
        return bool(self._levels) and self._levels[-1].branch is Branch.WAIT

    def begin(self, holds: bool, mark: tuple[str, int]) -> None:
        reached = Branch.RUN if holds else Branch.WAIT
        branch = reached if self.active else Branch.SKIP
        self._levels.append(_Level(branch, mark))

    def other(self, holds: bool, mark: tuple[str, int]) -> tuple[str, int]:
        """An ``\\elif``. The statement to go on with. Raises InputError without an ``\\if``."""
        level = self._level("elif")
        kept = self._kept(mark)
        match level.branch:
            case Branch.RUN:
                level.branch = Branch.SKIP
            case Branch.WAIT:
                level.branch = Branch.RUN if holds else Branch.WAIT
            case Branch.ELSE_RUN | Branch.ELSE_SKIP:
                raise InputError("\\elif: cannot occur after \\else")
        level.mark = kept
        return kept

    def otherwise(self, mark: tuple[str, int]) -> tuple[str, int]:
        """An ``\\else``."""
        level = self._level("else")
        kept = self._kept(mark)
        match level.branch:
            case Branch.WAIT:
                level.branch = Branch.ELSE_RUN
            case Branch.RUN | Branch.SKIP:
                level.branch = Branch.ELSE_SKIP
            case Branch.ELSE_RUN | Branch.ELSE_SKIP:
                raise InputError("\\else: cannot occur after \\else")
        level.mark = kept
        return kept

    def end(self, mark: tuple[str, int]) -> tuple[str, int]:
        """An ``\\endif``."""
        self._level("endif")
        kept = self._kept(mark)
        self._levels.pop()
        return kept

    def _level(self, name: str) -> _Level:
        if not self._levels:
            raise InputError(f"\\{name}: no matching \\if")
        return self._levels[-1]

    def _kept(self, mark: tuple[str, int]) -> tuple[str, int]:
        return mark if self.active else self._levels[-1].mark
