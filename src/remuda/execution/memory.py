"""Memory of one statement on one member, counted by the operators that hold rows, and of all
statements together.

Nobody ever waits for memory here: rows that do not fit are spilled, or the statement fails. Waiting
is for queries that have not begun and hold nothing (``query.admission``).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

from remuda.datatypes.sql import SqlType
from remuda.errors import OutOfMemory
from remuda.execution.spill import SpilledBlocks, SpillFile, SpillSpace, Usage
from remuda.limits import KIB

_SHARES: Final = 4
"""An operator that can spill does so above limit / _SHARES: sorting or hashing what it holds takes
about as much again, and it is seldom the only one."""


_PIECES: Final = 4
_PIECE_MIN: Final = 16 * KIB
"""Of an operator's share, and at least: smaller pieces would be all overhead."""

_PRESSED: Final = 0.75
"""Above this part of a limit operators hold less before they spill."""


class MemberMemory:
    """The memory that all statements hold on one member. Thread-safe.

    ``limit`` is ``member_memory`` in bytes; None counts without limiting.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.held = 0
        self.peak = 0
        self.besides: list[Callable[[], int]] = []
        """Bytes that the member holds for statements now without counting them here."""
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """All that is held for statements."""
        return self.held + sum(size() for size in self.besides)

    def reserve(self, size: int) -> bool:
        """False, with nothing taken, when the limit would be passed."""
        with self._lock:
            wanted = self.held + size
            if self.limit is not None and wanted > self.limit:
                return False
            self.held = wanted
            self.peak = max(self.peak, wanted)
            return True

    def release(self, size: int) -> None:
        with self._lock:
            self.held -= size

    def resize(self, limit: int) -> None:
        """More or fewer members share the machine's memory from now on."""
        with self._lock:
            self.limit = limit

    @property
    def pressed(self) -> bool:
        """It is nearly used up."""
        return self.limit is not None and self.held > _PRESSED * self.limit


class MemoryAccount:
    """Thread-safe: the fragments of one query share it.

    ``limit`` is the member's ``statement_memory`` in bytes; None counts without limiting. ``spill``
    is where operators put rows beyond it; None: the statement fails. Its bytes count in ``member``,
    too.
    """

    def __init__(
        self,
        limit: int | None = None,
        spill: SpillSpace | None = None,
        member: MemberMemory | None = None,
    ) -> None:
        self.limit = limit
        self.spill = spill
        self.held = 0
        self.peak = 0
        self._member = member or MemberMemory()
        self._lock = threading.Lock()
        limits = [bound for bound in (limit, self._member.limit) if bound is not None]
        self._share = min(limits) // _SHARES if limits else sys.maxsize

    def reserve(self, size: int, what: str) -> None:
        """Raises OutOfMemory, leaving the account as it was, when a limit would be passed."""
        with self._lock:
            wanted = self.held + size
            if self.limit is not None and wanted > self.limit:
                raise self._beyond_statement(size, what, self.limit)
            if not self._member.reserve(size):
                raise self._beyond_member(size, what)
            self.held = wanted
            self.peak = max(self.peak, wanted)

    def _beyond_statement(self, size: int, what: str, limit: int) -> OutOfMemory:
        return OutOfMemory(
            f"statement needs more than its memory limit of {limit} bytes",
            detail=f"{what} asked for {size} bytes more while {self.held} were held."
            + self._cannot_spill(),
            hint="Raise statement_memory, or select fewer rows or columns.",
        )

    def _beyond_member(self, size: int, what: str) -> OutOfMemory:
        member = self._member
        return OutOfMemory(
            f"the statements of a member need more than its {member.limit} bytes for queries",
            detail=f"{what} asked for {size} bytes more while {member.held} were held, "
            f"{self.held} of them by this statement." + self._cannot_spill(),
            hint="Raise member_memory, run fewer queries at a time, or select fewer rows.",
        )

    def _cannot_spill(self) -> str:
        return "" if self.spill is not None else " Nothing spills: spill_limit is 0."

    def release(self, size: int) -> None:
        with self._lock:
            self.held -= size
        self._member.release(size)

    @property
    def share(self) -> int:
        """Bytes that one operator holds before it spills."""
        own = self.limit is not None and self.held > _PRESSED * self.limit
        return self._share // _SHARES if own or self._member.pressed else self._share


def piece_of(share: int) -> int:
    return max(share // _PIECES, _PIECE_MIN)


class Reservation:
    """The part of an account that one operator holds; ``clear`` gives everything back. ``usage`` is
    what the operator's reservations come to together. ``instances`` of the operator share its part
    of the account, or together they would hold more than there is before one of them spills."""

    __slots__ = ("_account", "_instances", "_what", "size", "usage")

    def __init__(
        self, account: MemoryAccount, what: str, usage: Usage | None = None, instances: int = 1
    ) -> None:
        self._account = account
        self._what = what
        self._instances = instances
        self.size = 0
        self.usage = usage or Usage()

    def grow(self, size: int) -> None:
        self._account.reserve(size, self._what)
        self.size += size
        self.usage.hold(size)

    def try_grow(self, size: int) -> bool:
        """False when the operator is to spill what it holds instead. Raises OutOfMemory when there
        is nothing left and it cannot spill."""
        account = self._account
        if account.spill is None:
            self.grow(size)
            return True
        if self.size + size > self.share:
            return False
        try:
            self.grow(size)
        except OutOfMemory:
            return False
        return True

    @property
    def spill(self) -> SpillSpace | None:
        return self._account.spill

    @property
    def share(self) -> int:
        """Bytes that it holds before it spills."""
        return self._account.share // self._instances

    @property
    def piece(self) -> int:
        """Bytes of the batches that it takes at a time: its spilled rows leave room for one,
        and others of the statement for theirs."""
        return piece_of(self.share)

    def file(self, types: Sequence[SqlType]) -> SpillFile:
        """An empty file on disk; only where ``spill`` is not None. Raises DiskFull."""
        space = self._account.spill
        assert space is not None, "the caller found that it may spill"
        return space.file(types, self.usage)

    def blocks(self, types: Sequence[SqlType]) -> SpilledBlocks:
        """As ``file``, for rows that are read in any order, and more than once."""
        space = self._account.spill
        assert space is not None, "the caller found that it may spill"
        return space.blocks(types, self.usage)

    def beside(self) -> Reservation:
        """Another one of the same operator."""
        return Reservation(self._account, self._what, self.usage, self._instances)

    def resize(self, size: int) -> None:
        """Hold exactly ``size`` bytes from now on."""
        if size > self.size:
            self.grow(size - self.size)
        else:
            self._account.release(self.size - size)
            self.usage.hold(size - self.size)
            self.size = size

    def clear(self) -> None:
        if self.size:
            self.resize(0)
