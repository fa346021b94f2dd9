"""The members that want to leave, as far as they have said so, and those of them that have open
work."""

from __future__ import annotations

from remuda.member.base.core import Core


class Leavers:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._at_work: frozenset[int] = frozenset()
        self.members: frozenset[int] = frozenset()
        self._returning: frozenset[int] = frozenset()

    def note(self, number: int, *, leaves: bool, at_work: bool, returning: bool) -> None:
        """``number`` says whether it wants to leave, whether it has open work, and whether it is
        expected back."""
        self._at_work = self._at_work | {number} if at_work else self._at_work - {number}
        self._returning = self._returning | {number} if returning else self._returning - {number}
        leavers = self.members | {number} if leaves else self.members - {number}
        leavers &= self._core.view.by_number.keys()
        if leavers != self.members:
            self.members = leavers
            self._core.listeners.leaving.tell(leavers)

    @property
    def returning(self) -> frozenset[int]:
        """Those of them that are expected back."""
        return self.members & self._returning & self._core.view.by_number.keys()

    @property
    def nobody_stays(self) -> bool:
        """Whether nobody is there to take the copies of a member that leaves: all want to leave, or
        no majority is left."""
        core = self._core
        return self.members >= set(core.live_members()) or core.readiness.hopeless

    @property
    def at_work(self) -> bool:
        """Whether another member that wants to leave has open work."""
        return bool((self.members & self._at_work) - {self._core.number, *self._core.lost})
