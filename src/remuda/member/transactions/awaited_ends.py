"""Messages about ended parts that may wait for company: no user waits for these ends."""

from __future__ import annotations

from remuda.member.base.core import Core
from remuda.member.state.view_layout import ViewLayout
from remuda.member.transactions.pending import PendingParts
from remuda.transaction import states as tx
from remuda.transaction.parts import Address

LINGERING = (tx.BackupFinish, tx.Finished)


class AwaitedEnds:
    def __init__(self, core: Core, pending: PendingParts) -> None:
        self._core = core
        self._pending = pending
        self._awaited: set[Address] = set()
        """Parts whose end the user may wait for (see ``Near``)."""

    def note(self, message: tx.Finish, layout: ViewLayout) -> None:
        """The near member waits for a primary that is behind, a single copy, and locks."""
        address = (message.transaction, message.partition)
        part = self._pending.parts.get(address)
        if part is None or message.timestamp is None:
            return
        elsewhere = message.transaction.near != self._core.number
        behind = elsewhere and part.timestamp < message.timestamp
        alone = not layout.backups(message.partition)
        if behind or alone or part.work.owner is not None:
            self._awaited.add(address)

    def may_linger(self, message: tx.BackupFinish | tx.Finished) -> bool:
        if self._pending.awaited:
            return False
        address = (message.transaction, message.partition)
        if address not in self._awaited:
            return True
        if isinstance(message, tx.Finished):
            self._awaited.discard(address)
        return False

    def clear(self) -> None:
        """Another view: everything is said again."""
        self._awaited.clear()
