"""Memory of one statement on one member, counted by the operators that hold rows."""

from __future__ import annotations

import sys
import threading
from typing import Final

from remuda.errors import OutOfMemory
from remuda.execution.spill import SpillSpace

_SHARES: Final = 4
"""An operator that can spill does so above limit / _SHARES: sorting or hashing what it holds takes
about as much again, and it is seldom the only one."""


class MemoryAccount:
    """Thread-safe: the fragments of one query share it.

    ``limit`` is the member's ``statement_memory`` in bytes; None counts without limiting. ``spill``
    is where operators put rows beyond it; None: the statement fails.
    """

    def __init__(self, limit: int | None = None, spill: SpillSpace | None = None) -> None:
        self.limit = limit
        self.spill = spill
        self.held = 0
        self.peak = 0
        self._lock = threading.Lock()

    def reserve(self, size: int, what: str) -> None:
        """Raises OutOfMemory, leaving the account as it was, when the limit would be passed."""
        with self._lock:
            wanted = self.held + size
            if self.limit is not None and wanted > self.limit:
                raise OutOfMemory(
                    f"statement needs more than its memory limit of {self.limit} bytes",
                    detail=f"{what} asked for {size} bytes more while {self.held} were held.",
                    hint="Raise statement_memory, or select fewer rows or columns.",
                )
            self.held = wanted
            self.peak = max(self.peak, wanted)

    def release(self, size: int) -> None:
        with self._lock:
            self.held -= size

    @property
    def share(self) -> int:
        """Bytes that one operator holds before it spills."""
        return sys.maxsize if self.limit is None else self.limit // _SHARES


class Reservation:
    """What one operator holds of an account; ``clear`` gives everything back."""

    __slots__ = ("_account", "_what", "size")

    def __init__(self, account: MemoryAccount, what: str) -> None:
        self._account = account
        self._what = what
        self.size = 0

    def grow(self, size: int) -> None:
        self._account.reserve(size, self._what)
        self.size += size

    def try_grow(self, size: int) -> bool:
        """False when the operator is to spill what it holds instead. Raises OutOfMemory when there
        is nothing left and it cannot spill."""
        account = self._account
        if account.spill is None:
            self.grow(size)
            return True
        if self.size + size > account.share:
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
        return self._account.share

    def beside(self) -> Reservation:
        """Another one of the same account."""
        return Reservation(self._account, self._what)

    def resize(self, size: int) -> None:
        """Hold exactly ``size`` bytes from now on."""
        if size > self.size:
            self.grow(size - self.size)
        else:
            self._account.release(self.size - size)
            self.size = size

    def clear(self) -> None:
        self._account.release(self.size)
        self.size = 0
