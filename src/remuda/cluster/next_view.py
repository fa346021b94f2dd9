"""The view that follows another one: who has gone, who comes, which copies are complete. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from remuda.cluster.replicas import without
from remuda.datatypes.view import MemberInfo, View


@dataclass(frozen=True, slots=True)
class Placement:
    """The members that keep ``partition`` are to be ``after``, if they still are ``before``; the
    primary first. Every member of ``after`` has a whole copy already; where ``before`` is empty,
    every copy is lost, and an empty one is a whole one from now on."""

    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    def fits(self, view: View) -> bool:
        """Whether it may follow ``view``. What another change has overtaken is dropped."""
        return (
            0 <= self.partition < len(view.replicas)
            and view.replicas[self.partition] == self.before != self.after
            and bool(self.after)
            and view.by_number.keys() >= set(self.after)
        )


def next_view(
    view: View,
    lost: Collection[int],
    joining: Sequence[MemberInfo],
    places: Sequence[Placement] = (),
) -> View:
    """The view after ``view``. Backups of what a lost member was the primary of move up; joining
    processes get numbers that nobody ever had, and no partition yet."""
    replicas, emptied = list(view.replicas), dict(view.emptied)
    for place in places:
        if place.fits(view):
            if not place.before:
                emptied[place.partition] = view.number + 1
            replicas[place.partition] = place.after
    members = [member for member in view.members if member.number not in lost]
    last = view.last_number
    for info in sorted(joining, key=lambda member: member.uuid):
        last += 1
        members.append(replace(info, number=last))
    return replace(
        view,
        number=view.number + 1,
        members=tuple(members),
        replicas=without(tuple(replicas), lost),
        last_number=last,
        emptied=tuple(sorted(emptied.items())),
    )
