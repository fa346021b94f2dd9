"""Advisory locks as their host grants them: first come, first served, without deadlocks. Pure.

A *claim* is one owner's wish for one key in one mode; it waits, is held, or is gone. Claims of one
owner never stand in each other's way. The host of all claims is one member, so circles of owners
that wait for each other are found here when a claim begins to wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Owner(NamedTuple):
    """A session, or a transaction, of a client of ``member``."""

    member: int
    name: str


class LockKey(NamedTuple):
    """``pair``: it was given as two numbers of 32 bits; ``number`` has both. ``table``: the number
    is the OID of a map that LOCK TABLE names."""

    pair: bool
    number: int
    table: bool = False

    def __str__(self) -> str:
        if self.table:
            return f"relation {self.number}"
        return f"advisory lock [{self._digits}]"

    @property
    def _digits(self) -> str:
        if not self.pair:
            return str(self.number)
        low = self.number & 0xFFFFFFFF
        return f"{self.number >> 32}, {low - (1 << 32) if low >> 31 else low}"


@dataclass(frozen=True, slots=True)
class Claim:
    """``number`` is one that its member has given to no other claim."""

    number: int
    owner: Owner
    key: LockKey
    shared: bool

    @property
    def name(self) -> tuple[int, int]:
        return self.owner.member, self.number

    def excludes(self, other: Claim) -> bool:
        return self.owner != other.owner and not (self.shared and other.shared)


# --- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """``waits``: until it is granted; otherwise it is refused at once. One that is asked again
    keeps its place."""

    claim: Claim
    waits: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Its owner wants it no more."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The host begins again with the claims that members have told it. Members send claims that
    waited once more."""

    held: tuple[Claim, ...]


Event: TypeAlias = Ask | GiveUp | Rebuild

# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant:
    claim: Claim


@dataclass(frozen=True, slots=True)
class Taken:
    """Somebody else holds the key, or waits for it before this claim, which does not wait."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Deadlock:
    """The owners of ``circle`` would wait for each other: the claim does not wait. Each claim of
    the circle waits for the owner of the next one, the last for that of the first."""

    claim: Claim
    circle: tuple[Claim, ...]


Effect: TypeAlias = Grant | Taken | Deadlock


class AdvisoryLocks:
    def __init__(self) -> None:
        self._held: dict[LockKey, list[Claim]] = {}
        self._waiting: dict[LockKey, list[Claim]] = {}
        """The first one has waited longest."""

    def step(self, event: Event) -> list[Effect]:
        match event:
            case Ask(claim, waits):
                return self._ask(claim, waits)
            case GiveUp(claim):
                return self._give_up(claim)
            case Rebuild(held):
                self._held, self._waiting = {}, {}
                for claim in held:
                    self._held.setdefault(claim.key, []).append(claim)
                return []

    def _ask(self, claim: Claim, waits: bool) -> list[Effect]:
        if claim in self._held.get(claim.key, ()):
            return [Grant(claim)]
        waiting = self._waiting.get(claim.key, [])
        if claim in waiting:
            return []
        if not self._obstacles(claim):
            self._held.setdefault(claim.key, []).append(claim)
            return [Grant(claim)]
        if not waits:
            return [Taken(claim)]
        circle = self._circle(claim)
        if circle:
            return [Deadlock(claim, circle)]
        self._waiting.setdefault(claim.key, []).append(claim)
        return []

    def _obstacles(self, claim: Claim) -> list[Claim]:
        """Claims in the way: held ones, and those that wait in front of it. An owner that holds the
        key passes those who wait, because none of them is served before it lets go."""
        held = self._held.get(claim.key, [])
        found = [other for other in held if other.excludes(claim)]
        if any(other.owner == claim.owner for other in held):
            return found
        waiting = self._waiting.get(claim.key, [])
        ahead = waiting[: waiting.index(claim)] if claim in waiting else waiting
        return [*found, *(other for other in ahead if other.excludes(claim))]

    def _circle(self, claim: Claim) -> tuple[Claim, ...]:
        """Claims that wait, from ``claim`` on, whose owners come back to its own; () for none."""
        waits: dict[Owner, list[Claim]] = {}
        for claims in self._waiting.values():
            for each in claims:
                waits.setdefault(each.owner, []).append(each)
        seen: set[Owner] = set()
        paths: list[tuple[Claim, ...]] = [(claim,)]
        while paths:
            path = paths.pop()
            for obstacle in self._obstacles(path[-1]):
                if obstacle.owner == claim.owner:
                    return path
                if obstacle.owner not in seen:
                    seen.add(obstacle.owner)
                    paths += [(*path, each) for each in waits.get(obstacle.owner, ())]
        return ()

    def _give_up(self, claim: Claim) -> list[Effect]:
        for claims in (self._held, self._waiting):
            found = claims.get(claim.key, [])
            if claim in found:
                found.remove(claim)
                if not found:
                    del claims[claim.key]
        return self._serve(claim.key)

    def _serve(self, key: LockKey) -> list[Effect]:
        granted: list[Effect] = []
        for claim in list(self._waiting.get(key, ())):
            if not self._obstacles(claim):
                self._waiting[key].remove(claim)
                self._held.setdefault(key, []).append(claim)
                granted.append(Grant(claim))
        if not self._waiting.get(key, True):
            del self._waiting[key]
        return granted

    # --- what others ask ----------------------------------------------------------------------

    def obstacles(self, claim: Claim) -> tuple[Owner, ...]:
        """The owners that a claim waits for, each once."""
        return tuple(dict.fromkeys(other.owner for other in self._obstacles(claim)))

    @property
    def held(self) -> Iterable[Claim]:
        return [claim for claims in self._held.values() for claim in claims]

    @property
    def waiting(self) -> Iterable[Claim]:
        return [claim for claims in self._waiting.values() for claim in claims]

    def __len__(self) -> int:
        """Claims that are held or wait."""
        return sum(map(len, self._held.values())) + sum(map(len, self._waiting.values()))
