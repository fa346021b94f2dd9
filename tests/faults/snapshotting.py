"""Snapshots while members die, join and leave: each cut that was acknowledged can be restored, and
holds one moment of the bank, whose sum never changes."""

from __future__ import annotations

from typing import Any

from workload import KINDS, Bank, Work

from remuda.storage.snapshot.verifying import DAMAGE

NAME = "faults"
RESTORED_LAST = 5
"""Cuts that are restored at the end."""
TRIES = 20


class Snapshotting(Work):
    """Makes cuts, restores and verifies them. Needs a ``bank`` beside it."""

    name = "snapshot"

    def prepare(self) -> None:
        self.wrong: list[str] = []
        self.cuts: list[int] = []
        self.restored = 0

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.5 or not self.cuts:
            self.make("" if chance < 0.1 else " INCREMENT")
        elif chance < 0.85:
            self.restore(self.random.choice(self.cuts[-RESTORED_LAST:]))
        else:
            self.verify(1)

    def make(self, kind: str) -> None:
        row = self._one("create", f"CREATE SNAPSHOT {NAME}{kind}")
        if row is not None:
            self.cuts.append(row[1])

    def restore(self, cut: int) -> bool:
        """False: a member was lost meanwhile."""
        copy = f"restored_{self.journal.number()}"
        text = f"RESTORE SNAPSHOT {NAME} CUT {cut} MAPS accounts AS {copy}"
        done = self._one("restore", text) is not None
        total = self._one("total", f"SELECT sum(balance), count(*) FROM {copy}") if done else None
        wanted = (100 * Bank.accounts, Bank.accounts)
        if total is not None and tuple(total) != wanted:
            self.wrong.append(f"cut {cut} has {tuple(total)} instead of {wanted}")
        self.ask("drop", lambda: self.client.sql(f"DROP TABLE IF EXISTS {copy}"))
        self.restored += total is not None
        return total is not None

    def verify(self, level: int) -> bool:
        text = f"VERIFY SNAPSHOT {NAME} LEVEL {level}"
        _, found, *_ = self.ask("verify", lambda: self.client.sql(text).fetchall())
        if isinstance(found, Exception):
            return False
        self.wrong += [f"{place}: {problem}" for place, problem, kind in found if kind == DAMAGE]
        return True

    def _one(self, what: str, text: str) -> Any:
        """The first row; None when it failed."""
        _, answer, *_ = self.ask(what, lambda: self.client.sql(text).fetchone())
        return None if isinstance(answer, Exception) else answer

    def finish(self) -> None:
        """The members are at rest: everything must succeed now."""
        if not self.cuts:
            self.wrong.append("no cut was made")
            return
        for cut in dict.fromkeys(self.cuts[-RESTORED_LAST:]):
            if not any(self.restore(cut) for _ in range(TRIES)):
                self.wrong.append(f"cut {cut} was not restored")
        if not any(self.verify(3) for _ in range(TRIES)):
            self.wrong.append("the snapshot was not verified")

    def check(self) -> list[str]:
        return [f"snapshots: {text}" for text in self.wrong[:5]]


KINDS[Snapshotting.name] = Snapshotting
