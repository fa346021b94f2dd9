"""The advisory locks that clients of this member hold, and how often. Pure.

An owner may lock a key again and again; the host knows one claim for each key and mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.transaction.advisory import Claim, LockKey


@dataclass(slots=True)
class _Held:
    claim: Claim
    of_session: int = 0
    of_transaction: int = 0


class Holdings:
    def __init__(self) -> None:
        self._held: dict[str, dict[tuple[LockKey, bool], _Held]] = {}
        """By owner, then by key and whether it is shared."""

    def has(self, owner: str, key: LockKey, *, shared: bool) -> bool:
        return (key, shared) in self._held.get(owner, {})

    def again(self, owner: str, key: LockKey, *, shared: bool, of_transaction: bool) -> bool:
        """Count a lock once more; False: the owner does not hold it."""
        found = self._held.get(owner, {}).get((key, shared))
        if found is None:
            return False
        self._count(found, of_transaction)
        return True

    def add(self, claim: Claim, *, of_transaction: bool) -> bool:
        """The host has granted a claim. False: the owner has got another one for the same lock
        meanwhile, which counts once more."""
        found = self._held.setdefault(claim.owner.name, {})
        held = found.setdefault((claim.key, claim.shared), _Held(claim))
        self._count(held, of_transaction)
        return held.claim is claim

    @staticmethod
    def _count(held: _Held, of_transaction: bool) -> None:
        if of_transaction:
            held.of_transaction += 1
        else:
            held.of_session += 1

    def unlock(self, owner: str, key: LockKey, *, shared: bool) -> tuple[bool, Claim | None]:
        """Whether the session held the lock; and the claim, if it is not held any more."""
        found = self._held.get(owner, {}).get((key, shared))
        if found is None or not found.of_session:
            return False, None
        found.of_session -= 1
        return True, self._freed(owner, found)

    def end_transaction(self, owner: str) -> list[Claim]:
        """Claims that nobody holds any more."""
        return self._end(owner, of_session=False)

    def unlock_all(self, owner: str) -> list[Claim]:
        """The same for all locks of the session."""
        return self._end(owner, of_session=True)

    def _end(self, owner: str, *, of_session: bool) -> list[Claim]:
        freed = []
        for held in list(self._held.get(owner, {}).values()):
            if of_session:
                held.of_session = 0
            else:
                held.of_transaction = 0
            claim = self._freed(owner, held)
            if claim is not None:
                freed.append(claim)
        return freed

    def _freed(self, owner: str, held: _Held) -> Claim | None:
        if held.of_session or held.of_transaction:
            return None
        claims = self._held[owner]
        del claims[held.claim.key, held.claim.shared]
        if not claims:
            del self._held[owner]
        return held.claim

    def __iter__(self) -> Iterator[Claim]:
        return iter([held.claim for claims in self._held.values() for held in claims.values()])

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))
