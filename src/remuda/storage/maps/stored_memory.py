"""How many bytes of rows a member holds, how many it may hold, and which writes still fit. Pure.

The memory that is held is measured from time to time. In between, every admitted write counts with
its estimated size, so the account is never below what the writes since then can have added.
Measuring again takes all errors of the estimates away: nothing has to be given back, and nothing
leaks.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from remuda.limits import MIB

RESERVE_SHARE: Final = 0.05
"""Of the limit: kept for removals and for the maps that members need themselves."""
PROCESS_SIZE: Final = 250 * MIB
"""A member that holds no rows: interpreter, libraries, buffers."""
RESIDENT_FACTOR: Final = 1.5
"""Resident bytes for each stored byte, at most (``benchmarks/stored_memory.py``): holes in the
heaps, copies that commits, merges and rewrites make for a moment."""
STATEMENTS_SHARE: Final = 4
"""Statements may hold one part of so many of the memory, unless ``member_memory`` says otherwise.
"""
STORED_SHARE_MIN: Final = 8
"""However large the other parts are, rows get one part of so many."""


class Use(Enum):
    """The use of bytes."""

    ROWS = "rows"
    INTERNAL = "internal"
    """Entries of a map that members need themselves."""
    REMOVAL = "removal"

    __hash__ = object.__hash__


def statement_memory_of(available: int, wanted: int) -> int:
    """Bytes that all statements together may hold, of the ``available`` ones of a member.
    ``wanted``: the value of the setting; 0: nothing."""
    return wanted or available // STATEMENTS_SHARE


def stored_memory_of(available: int, statements: int, wanted: int) -> int:
    """Bytes that a member may store so that it stays within its ``available`` bytes, of which
    statements may hold ``statements``. ``wanted``: the value of the setting; 0: nothing."""
    left = int((available - PROCESS_SIZE - statements) / RESIDENT_FACTOR)
    return wanted or max(left, available // STORED_SHARE_MIN)


class StoredMemory:
    """The account of one member; all numbers are bytes."""

    __slots__ = (
        "_admitted",
        "_in_flight",
        "_measured",
        "_ordinary",
        "_removals",
        "limit",
        "refusals",
    )

    def __init__(self, limit: int) -> None:
        self.resize(limit)
        self.refusals = 0
        """Writes that did not fit."""
        self._measured = 0
        self._admitted = 0
        """Since what is stored was measured."""
        self._in_flight = 0
        """Admitted, and on its way to other copies before it is stored here."""
        self._removals = 0
        """Of staged removals, in ``held`` as well."""

    def resize(self, limit: int) -> None:
        """Other members share the memory from now on."""
        self.limit = limit
        self._ordinary = limit - self.reserve
        """The bytes that rows of ordinary maps may fill."""

    @property
    def held(self) -> int:
        return self._measured + self._admitted + self._in_flight

    @property
    def reserve(self) -> int:
        return int(self.limit * RESERVE_SHARE)

    def measured(self, stored: int, removals: int = 0) -> None:
        """So much is stored now; ``removals`` of it are keys of rows that jobs will remove."""
        self._measured, self._removals, self._admitted = stored, removals, 0

    def fits(self, size: int, use: Use = Use.ROWS) -> bool:
        """Whether a write of ``size`` bytes may begin. A member that holds too much, because it was
        promoted, still takes removals that keep within the reserve: they are the way out."""
        wanted = self.held + size
        if use is Use.ROWS:
            return wanted <= self._ordinary
        return wanted <= self.limit or (use is Use.REMOVAL and self._removals + size < self.reserve)

    def take(self, size: int) -> bool:
        """``fits`` and ``admit`` of ordinary rows in one step: every put comes here, at each copy.
        False: they do not fit, and nothing is admitted."""
        admitted = self._admitted + size
        if self._measured + admitted + self._in_flight > self._ordinary:
            return False
        self._admitted = admitted
        return True

    def admit(self, size: int, use: Use = Use.ROWS) -> None:
        """The write begins."""
        self._admitted += size
        if use is Use.REMOVAL:
            self._removals += size

    def depart(self, size: int) -> None:
        """A write that is stored elsewhere first counts until ``arrive``, however long it takes."""
        self._in_flight += size

    def arrive(self, size: int) -> None:
        """It is stored here (and admitted), or given up."""
        self._in_flight -= size

    def refuse(self) -> None:
        """A write did not fit."""
        self.refusals += 1
