"""The cursors that a transaction has declared, and those that a session holds beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.errors import DuplicateCursor, LimitExceeded
from remuda.member.cursors.named_cursor import NamedCursor

CURSORS_MAX: Final = 1_000


class OpenCursors:
    def __init__(self) -> None:
        self._cursors: dict[str, NamedCursor] = {}

    def add(self, cursor: NamedCursor, savepoints: int = 0) -> None:
        """``savepoints``: how many its transaction has now. Raises LimitExceeded,
        DuplicateCursor."""
        self.check(cursor.about.name)
        cursor.depth = savepoints
        self._cursors[cursor.about.name] = cursor

    def check(self, name: str, others: int = 0) -> None:
        """Whether another one may be opened; ``others`` count, too. Raises as ``add``."""
        if name in self._cursors:
            raise DuplicateCursor(f'cursor "{name}" already exists')
        if len(self._cursors) + others >= CURSORS_MAX:
            raise LimitExceeded(f"{CURSORS_MAX} cursors are open", hint="CLOSE some of them.")

    def get(self, name: str) -> NamedCursor | None:
        return self._cursors.get(name)

    def close(self, name: str) -> bool:
        """False: there is none of this name."""
        found = self._cursors.pop(name, None)
        if found is None:
            return False
        found.close()
        return True

    def close_all(self) -> None:
        while self._cursors:
            self._cursors.popitem()[1].close()

    def __len__(self) -> int:
        return len(self._cursors)

    def __iter__(self) -> Iterator[NamedCursor]:
        return iter(list(self._cursors.values()))

    # --- transactions -------------------------------------------------------------------------

    def rolled_back_to(self, savepoints: int) -> None:
        """``savepoints`` are left: cursors that are younger than the last of them are closed."""
        for name, cursor in list(self._cursors.items()):
            if cursor.depth >= savepoints:
                self.close(name)

    def released(self, savepoints: int) -> None:
        """``savepoints`` are left: cursors that are younger belong to what is around."""
        for cursor in self._cursors.values():
            cursor.depth = min(cursor.depth, savepoints)

    def take_held(self) -> list[NamedCursor]:
        """Those WITH HOLD: the caller has them from now on."""
        held = [cursor for cursor in self._cursors.values() if cursor.about.hold]
        for cursor in held:
            del self._cursors[cursor.about.name]
        return held
