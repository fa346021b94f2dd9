"""The view that follows another one: members that go or come, copies that are complete. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from remuda.cluster.replicas import without
from remuda.datatypes.view import Away, MemberInfo, Missing, Replicas, View

DEPARTED_KEPT: Final = 16
"""Members that were dropped and have not heard it yet are told why, the last ones."""
AWAY_KEPT: Final = 16
"""Members that are expected back, the last ones."""
NO_CAUSES: Final[Mapping[int, str]] = {}
NOBODY_LEAVES: Final[Mapping[int, int]] = {}


@dataclass(frozen=True, slots=True)
class Placement:
    """The members that keep ``partition`` are to be ``after``, if they still are ``before``; the
    primary first. Every member of ``after`` has a whole copy already.

    Where ``before`` is empty, no member has a copy, and the partition still is of ``generation``:
    without a ``donor``, its loss is accepted, and an empty copy is a whole one from now on. With
    one, it is the copy of this former member that ``after`` names the receivers of; an empty
    ``after`` chooses this donor."""

    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    generation: int = 0
    donor: int = 0

    def fits(self, view: View) -> bool:
        """Whether it may follow ``view``. A change that another one has overtaken is dropped."""
        if not 0 <= self.partition < len(view.replicas):
            return False
        if view.replicas[self.partition] != self.before:
            return False
        if not view.by_number.keys() >= set(self.after):
            return False
        if self.before:
            return bool(self.after) and self.before != self.after
        if self.generation != view.generation(self.partition):
            return False
        if not self.donor:
            return bool(self.after)
        missing = view.unreachable.get(self.partition)
        if missing is None:
            return False
        if not self.after:
            return missing.donor != self.donor and self.donor in missing.holders
        return missing.donor == self.donor


def next_view(  # noqa: PLR0917 (one for each reason of a change)
    view: View,
    lost: Collection[int],
    joining: Sequence[MemberInfo],
    places: Sequence[Placement] = (),
    left: Mapping[int, int] = NOBODY_LEAVES,
    causes: Mapping[int, str] = NO_CAUSES,
) -> View:
    """The view after ``view``. Backups of what a lost member was the primary of move up; joining
    processes get numbers that nobody ever had, and no partition yet. ``left``: those of ``lost``
    that end by their own wish, so that what only they have is lost, each with the timestamp until
    which it is expected back (0: it is not). ``causes``: why members are lost."""
    replicas, emptied = list(view.replicas), dict(view.emptied)
    missing = {each.partition: each for each in view.missing}
    generations = dict(view.generations)
    for place in places:
        if not place.fits(view) or (not place.before and set(place.after) & set(lost)):
            continue  # a copy that comes back is to be there
        partition = place.partition
        if place.donor and not place.after:
            missing[partition] = replace(missing[partition], donor=place.donor)
            continue
        if not place.before:
            missing.pop(partition, None)
            generations[partition] = place.generation + 1
            if not place.donor:
                emptied[partition] = view.number + 1
        replicas[partition] = place.after
    members = [member for member in view.members if member.number not in lost]
    gone = [(number, causes.get(number, "")) for number in view.by_number if number in lost]
    last = view.last_number
    for info in sorted(joining, key=lambda member: member.uuid):
        last += 1
        members.append(replace(info, number=last))
    rows = without(tuple(replicas), lost)
    away = _away(view, members, replicas, rows, {n: left[n] for n in left if n in lost}, lost)
    missing |= _gone(view.number, replicas, rows, left)
    return replace(
        view,
        number=view.number + 1,
        members=tuple(members),
        replicas=rows,
        last_number=last,
        emptied=tuple(sorted(emptied.items())),
        missing=tuple(missing[partition] for partition in sorted(missing)),
        former=_former(view, missing),
        generations=tuple(sorted(generations.items())),
        departed=(*view.departed, *gone)[-DEPARTED_KEPT:],
        away=away,
    )


def _away(  # noqa: PLR0917 (the view before, the one after, and who makes the difference)
    view: View,
    members: Sequence[MemberInfo],
    before: Sequence[tuple[int, ...]],
    after: Replicas,
    left: Mapping[int, int],
    lost: Collection[int],
) -> tuple[Away, ...]:
    """The members that are expected back, with their copies. A member that has left is known again
    by its former number. Nobody waits for copies that it keeps again, or of which none is left."""
    found = {each.member.number: each for each in view.away}
    returned = {member.former: member for member in members if member.former in found}
    kept: dict[int, Away] = {}
    for number, each in found.items():
        member = returned.get(number, each.member)
        if member.number not in lost:
            kept[member.number] = replace(each, member=member)
    for number, until in left.items():
        owed = found[number].partitions if number in found else ()
        own = {p for p, row in enumerate(before) if number in row}
        if until:
            every = tuple(sorted(own.union(owed)))
            kept[number] = Away(view.by_number[number], until, every)
    for number, each in kept.items():
        owed = tuple(p for p in each.partitions if after[p] and number not in after[p])
        kept[number] = replace(each, partitions=owed)
    return tuple(each for each in kept.values() if each.partitions)[-AWAY_KEPT:]


def _gone(
    number: int, before: Sequence[tuple[int, ...]], after: Replicas, left: Collection[int]
) -> Mapping[int, Missing]:
    """Partitions whose last holder was dropped. A row that a placement of this very change has made
    was never the row of a view: its members have whole copies all the same."""
    return {
        partition: Missing(partition, number, tuple(m for m in row if m not in left))
        for partition, row in enumerate(before)
        if row and not after[partition]
    }


def _former(view: View, missing: Mapping[int, Missing]) -> tuple[MemberInfo, ...]:
    known = {member.number: member for member in (*view.former, *view.members)}
    holders = {holder for each in missing.values() for holder in each.holders}
    return tuple(known[number] for number in sorted(holders & known.keys()))
