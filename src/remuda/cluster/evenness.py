"""Evens out what members have, one path of steps at a time. Pure.

As long as a member has at least two more than another one, a shortest path of steps leads from the
one to the other: ``a`` gives to ``b`` in one row, ``b`` to ``c`` in another one, and so on. All
members on the way keep as many as they have, the first has one less, the last one more. Where no
such path is left, no other arrangement is more even (N. Harvey, R. Ladner, L. Lovasz, T. Tamir:
"Semi-matchings for bipartite graphs and load balancing", 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Step:
    """In row ``index``, ``giver`` gives its copy, or its role as the primary, to ``taker``."""

    index: int
    giver: int
    taker: int


Pick: TypeAlias = Callable[[int, int], int | None]
"""``pick(giver, taker)``: the best row for such a step, if there is one."""


def shortest_path(
    counts: Mapping[int, int], taker: int, pick: Pick, settled: set[int]
) -> list[Step] | None:
    """The shortest path that ends at ``taker`` and makes the table more even. Where there is none,
    all from which a path leads to ``taker`` are ``settled``: they have hardly more than it has."""
    givers = sorted(counts.keys() - settled, key=lambda member: (-counts[member], member))
    steps: dict[int, Step | None] = {taker: None}
    queue = [taker]
    for reached in queue:
        for giver in givers:
            if giver in steps:
                continue
            index = pick(giver, reached)
            if index is None:
                continue
            steps[giver] = Step(index, giver, reached)
            queue.append(giver)
            if counts[giver] >= counts[taker] + 2:
                return _steps_from(giver, steps)
    settled |= steps.keys()
    return None


def _steps_from(giver: int, steps: Mapping[int, Step | None]) -> list[Step]:
    path = []
    while (step := steps[giver]) is not None:
        path.append(step)
        giver = step.taker
    return path
