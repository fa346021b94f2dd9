"""Memory of one statement on one member, counted by the operators that hold rows."""

from __future__ import annotations

import threading

from remuda.errors import OutOfMemory


class MemoryAccount:
    """Thread-safe: the fragments of one query share it.

    ``limit`` is the member's ``statement_memory`` in bytes; None counts without limiting.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
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
