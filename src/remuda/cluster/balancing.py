"""The rows of a table while they are evened out: primaries, all copies, first backups. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from remuda.cluster.evenness import Pick, Step, shortest_path
from remuda.cluster.spread import Apart
from remuda.datatypes.view import Replicas

Perform: TypeAlias = Callable[[Step], bool]
"""Performs a step; False: earlier steps of the path have made it impossible, nothing is changed."""


class Rows:
    """The rows of a table while they are evened out. Each begins with what it may keep."""

    def __init__(self, table: Replicas, apart: Apart, levels: int) -> None:
        """``levels``: how many copies a row is to have."""
        self._apart, self._levels = apart, levels
        self._before = [frozenset(row) for row in table]
        self._led = [row[0] if row else None for row in table]
        """The primary of each row until now."""
        self._rows: list[list[int]] = []
        self._primaries: dict[int, set[int]] = {member: set() for member in apart.members}
        self._backups: dict[int, set[int]] = {member: set() for member in apart.members}
        self._heirs: dict[tuple[int, int], set[int]] = defaultdict(set)
        """The rows with this primary and this first backup, which follows after a loss."""
        self._pairs: Counter[tuple[int, int]] = Counter()
        """How many rows have this primary and this backup. Few for each pair is better: then what
        a lost member was the primary of goes to many others."""
        self._takers: dict[int, dict[int, frozenset[int]]] = {}
        """By row and giver: the members that may have the copy of that backup."""
        for index, row in enumerate(table):
            there = [member for member in row if member in self._primaries]
            self._rows.append([])
            self._set(index, apart.chain((), there, levels))

    def table(self) -> Replicas:
        return tuple(map(tuple, self._rows))

    def _set(self, index: int, row: list[int]) -> None:
        self._count(index, -1)
        self._rows[index] = row
        self._count(index, 1)
        self._takers[index] = {}

    def _count(self, index: int, change: int) -> None:
        row = self._rows[index]
        for member in row[:1]:
            self._primaries[member] ^= {index}
        for member in row[1:2]:
            self._heirs[row[0], member] ^= {index}
        for member in row[1:]:
            self._backups[member] ^= {index}
            self._pairs[row[0], member] += change

    def _copies(self, member: int) -> int:
        return len(self._primaries[member]) + len(self._backups[member])

    # --- primaries --------------------------------------------------------------------------------

    def even_primaries(self) -> None:
        """Every row has a primary, and members differ by at most one in theirs."""
        for index, row in enumerate(self._rows):
            if not row:
                self._set(index, [min(self._primaries, key=self._by_primaries)])
        self._even(self._primary_counts, self._pick_role, self._give_role)
        self._even(self._primary_counts, self._pick_primary, self._give_primary)

    def _by_primaries(self, member: int) -> tuple[int, int, int]:
        return len(self._primaries[member]), self._copies(member), member

    def _primary_counts(self) -> Mapping[int, int]:
        return {member: len(rows) for member, rows in self._primaries.items()}

    def _pick_role(self, giver: int, taker: int) -> int | None:
        """A row in which the taker is a backup already."""
        able = self._primaries[giver] & self._backups[taker]
        if self._apart.matters:
            able = {index for index in able if self._led_by(index, taker) is not None}
        return min(able, key=lambda index: (self._pairs[taker, giver], index), default=None)

    def _led_by(self, index: int, member: int) -> list[int] | None:
        """The same copies with another primary, if they are far enough apart then."""
        row = self._rows[index]
        led = self._apart.chain([member], row, len(row))
        return led if len(led) == len(row) else None

    def _give_role(self, step: Step) -> bool:
        led = self._led_by(step.index, step.taker)
        if led is None or self._rows[step.index][0] != step.giver:
            return False
        self._set(step.index, led)
        return True

    def _pick_primary(self, giver: int, _taker: int) -> int | None:
        """Any row of the giver: one that lacks a copy, rather than one that must give one up."""

        def cost(index: int) -> tuple[bool, int, int]:
            row = self._rows[index]
            return len(row) == self._levels, -max(copies[member] for member in row), index

        copies = self._copy_counts()
        return min(self._primaries[giver], key=cost, default=None)

    def _with_primary(self, index: int, member: int) -> list[int]:
        row = self._rows[index]
        rest = sorted(row, key=self._copies)  # who has many may lose this one
        return self._apart.chain([member], rest, self._levels)

    def _give_primary(self, step: Step) -> bool:
        if self._rows[step.index][0] != step.giver:
            return False
        self._set(step.index, self._with_primary(step.index, step.taker))
        return True

    # --- all copies -------------------------------------------------------------------------------

    def fill(self) -> None:
        """Every row has as many copies as it should: where they were before, then on members that
        have few."""
        for index, before in enumerate(self._before):
            while len(row := self._rows[index]) < self._levels:
                able = self._apart.able(row)
                member = min(able & before or able, key=lambda able: self._by_copies(row[0], able))
                self._set(index, [*row, member])

    def _by_copies(self, primary: int, member: int) -> tuple[int, int, int]:
        return self._copies(member), self._pairs[primary, member], member

    def even_copies(self) -> bool:
        """Members differ by at most one in their copies where ``apart`` allows it. Primaries stay
        where they are. Whether anything has changed."""
        return self._even(self._copy_counts, self._pick_backup, self._give_backup)

    def _copy_counts(self) -> Mapping[int, int]:
        return {member: self._copies(member) for member in self._apart.members}

    def _pick_backup(self, giver: int, taker: int) -> int | None:
        """A row where the step copies nothing, or not much. The primary that still leads the row
        would lose its copy at once, whoever is to be the primary later."""

        def cost(index: int) -> tuple[int, bool, int, int]:
            before, primary = self._before[index], self._rows[index][0]
            copied = (taker not in before) + (giver in before)
            leads = self._led[index] == giver
            paired = self._pairs[primary, taker] - self._pairs[primary, giver]
            return copied, leads, paired, index

        able = self._backups[giver] - self._backups[taker] - self._primaries[taker]
        if self._apart.matters:
            able = {index for index in able if self._replaced(index, giver, taker) is not None}
        return min(able, key=cost, default=None)

    def _replaced(self, index: int, giver: int, taker: int) -> list[int] | None:
        row, takers = self._rows[index], self._takers[index]
        if giver not in takers:
            takers[giver] = self._apart.able(member for member in row if member != giver)
        if taker in row or taker not in takers[giver]:
            return None
        changed = [taker if member == giver else member for member in row]
        chained = self._apart.chain(changed[:1], changed[1:], len(row))
        return chained if len(chained) == len(row) else None

    def _give_backup(self, step: Step) -> bool:
        changed = self._replaced(step.index, step.giver, step.taker)
        if changed is None or step.giver not in self._rows[step.index][1:]:
            return False
        self._set(step.index, changed)
        return True

    # --- first backups ----------------------------------------------------------------------------

    def even_first_backups(self) -> None:
        """Of what one member is the primary of, others inherit equally many, where that is
        possible. Only the order of backups changes."""
        for primary, rows in self._primaries.items():
            if len(rows) > 1 and self._levels > 2:
                inherited = partial(self._inherited_from, primary)
                self._even(inherited, partial(self._pick_heir, primary), self._give_heir)

    def _inherited_from(self, primary: int) -> Mapping[int, int]:
        others = (member for member in self._apart.members if member != primary)
        return {member: len(self._heirs.get((primary, member), ())) for member in others}

    def _pick_heir(self, primary: int, giver: int, taker: int) -> int | None:
        able = self._heirs[primary, giver] & self._backups[taker]
        if self._apart.matters:
            able = {index for index in able if self._inherited_by(index, taker) is not None}
        return min(able, default=None)

    def _inherited_by(self, index: int, member: int) -> list[int] | None:
        row = self._rows[index]
        if not self._apart.allows(row[:1], member):
            return None
        led = self._apart.chain([row[0], member], row[1:], len(row))
        return led if len(led) == len(row) else None

    def _give_heir(self, step: Step) -> bool:
        row = self._rows[step.index]
        changed = self._inherited_by(step.index, step.taker)
        if changed is None or row[1] != step.giver or step.taker not in row[2:]:
            return False
        self._set(step.index, changed)
        return True

    # --- paths ------------------------------------------------------------------------------------

    def _even(self, counts: Callable[[], Mapping[int, int]], pick: Pick, perform: Perform) -> bool:
        """Perform paths until there is none. Whether there was any."""
        found_any, again = False, True
        while again:
            again = False
            settled: set[int] = set()
            """Members to which no path leads."""
            now = counts()
            most = max(now.values())
            for taker in sorted(now, key=lambda member: (now[member], member)):
                while taker not in settled and now[taker] + 2 <= most:
                    found = shortest_path(now, taker, pick, settled)
                    if found is None or not self._along(found, perform):
                        break
                    now = counts()
                    most = max(now.values())
                    found_any = again = True
        return found_any

    def _along(self, path: Sequence[Step], perform: Perform) -> bool:
        """All steps or none."""
        rows = [(step.index, self._rows[step.index]) for step in path]
        if all(perform(step) for step in path):
            return True
        for index, row in rows:
            self._set(index, row)
        return False
