"""Room for parts on backups: the word of a backup to its primary, and the memory of the primary."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.state.transaction_sets import PartWork
from remuda.member.transactions.pending import PendingParts
from remuda.transaction import states as tx
from remuda.transaction.parts import Parts


class BackupRoom:
    def __init__(self, core: Core, pending: PendingParts) -> None:
        self._core = core
        self._pending = pending
        self.full: set[int] = set()
        """Backups that had no room for the last rows that they were sent."""

    def refusal(self, message: tx.BackupPrepare, known: Parts) -> RemudaError | None:
        """On a backup: why it does not keep a part. A part that it knows may be decided. A member
        that is being given a copy refuses the copy, not the writes."""
        if (message.transaction, message.partition) in known:
            return None
        if self._core.number not in self._core.view.replicas[message.partition]:
            return None
        try:
            work = message.work
            assert isinstance(work, PartWork)
            self._core.room.admit_part(work, primary=False)
        except RemudaError as error:
            return error.with_traceback(None)
        return None

    def note(self, sender: int, message: tx.BackupPrepared | tx.BackupRefused) -> None:
        """On a primary: the word of a backup."""
        if isinstance(message, tx.BackupRefused):
            self.full.add(sender)
        elif sender in self.full:
            part = self._pending.parts.get((message.transaction, message.partition))
            if part is not None and any(write.row is not None for write in part.work.writes):
                self.full.discard(sender)

    def may_refuse(self, backups: Sequence[int]) -> bool:
        """Whether one of them had no room a moment ago."""
        return bool(self.full) and not self.full.isdisjoint(backups)
