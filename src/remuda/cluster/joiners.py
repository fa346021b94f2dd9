"""Processes that have asked to join, and the members that have met them (design rule 13). Pure.

A request to join is bytes that anybody can send, with any address in them. A process that a view
names counts as a voter in every later view, so a view may name it only after a majority of the
present view has *met* it: each of them has opened a connection to its address, and the process
there has said in its handshake that it is this very one. The proposer looks first, then the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from remuda.cluster.decree import majority
from remuda.datatypes.view import MemberInfo

JOINERS_MAX = 32
"""Processes that may wait at a time; further ones are refused, and ask again."""


@dataclass(slots=True)
class _Joiner:
    asked: float
    """When it asked last."""
    met: dict[int, float] = field(default_factory=dict)
    """When each member has finished a handshake with it."""
    sought: dict[int, float] = field(default_factory=dict)
    """When members that have not answered yet were told to meet it."""
    failed: dict[int, str] = field(default_factory=dict)
    """Why members have not met it."""


class Joiners:
    """Of member ``me``, which proposes views; the number of a process that joins is 0.

    ``patience``: seconds after which a process that does not ask again is forgotten; ``lasting``:
    seconds for which a meeting counts; ``retry``: seconds after which a member that has not
    answered is told again."""

    def __init__(self, me: int, *, patience: float, lasting: float, retry: float) -> None:
        self._me = me
        self._patience = patience
        self._lasting = lasting
        self._retry = retry
        self._joiners: dict[MemberInfo, _Joiner] = {}
        """In the order of their first request. The whole of what a process says of itself is the
        key: another process at the same address has not been met."""

    def __len__(self) -> int:
        return len(self._joiners)

    def asked(self, now: float, info: MemberInfo) -> bool:
        """It asks, for the first time or again; False: too many others do."""
        for other, joiner in list(self._joiners.items()):
            if now - joiner.asked >= self._patience:
                del self._joiners[other]
        if info not in self._joiners and len(self._joiners) >= JOINERS_MAX:
            return False
        self._joiners.setdefault(info, _Joiner(now)).asked = now
        return True

    def to_meet(self, now: float, info: MemberInfo, members: Collection[int]) -> list[int]:
        """The ``members`` that are to meet it now. While this member has not met it, no other one
        tries: a process that does not exist costs one connection."""
        joiner = self._joiners.get(info)
        if joiner is None:
            return []
        # Again in good time: a meeting must not get old while the process waits for its view.
        fresh = {m for m, met in joiner.met.items() if now - met < self._lasting / 2}
        wanted = [m for m in members if m not in fresh] if self._me in joiner.met else [self._me]
        due = [
            member
            for member in wanted
            if now - joiner.sought.get(member, float("-inf")) >= self._retry
        ]
        joiner.sought.update(dict.fromkeys(due, now))
        return due

    def met(self, now: float, member: int, info: MemberInfo) -> None:
        joiner = self._joiners.get(info)
        if joiner is not None:
            joiner.met[member] = now
            joiner.sought.pop(member, None)
            joiner.failed.pop(member, None)

    def not_met(self, member: int, info: MemberInfo, why: str) -> None:
        """Nothing is kept of a process that this member itself does not find."""
        joiner = self._joiners.get(info)
        if joiner is None:
            return
        joiner.met.pop(member, None)
        joiner.sought.pop(member, None)
        joiner.failed[member] = why
        if member == self._me:
            del self._joiners[info]

    def why_not(self, info: MemberInfo, reached: Collection[int], voters: int) -> str:
        """Why no majority of the ``voters`` can meet it, of whom those are ``reached``, as far as
        they have said; empty: one may."""
        joiner = self._joiners.get(info)
        if joiner is None:
            return ""
        failed = {m: why for m, why in joiner.failed.items() if m in reached}
        if not failed or len(reached) - len(failed) >= majority(voters):
            return ""
        return "; ".join(f"member {member}: {why}" for member, why in sorted(failed.items()))

    def admitted(self, now: float, members: Collection[int], room: int) -> tuple[MemberInfo, ...]:
        """Those that the next view may name, ``room`` at most: still asking, and met by a majority
        of ``members``."""
        needed = majority(len(members))
        found: dict[str, MemberInfo] = {}
        for info, joiner in self._joiners.items():
            met = [m for m, when in joiner.met.items() if now - when < self._lasting]
            if now - joiner.asked < self._patience and len(set(met) & set(members)) >= needed:
                found.setdefault(info.uuid, info)
        return tuple(found.values())[:room]

    def forget(self, uuids: Collection[str]) -> None:
        """A view names them."""
        for info in [info for info in self._joiners if info.uuid in uuids]:
            del self._joiners[info]
