"""How many rows a join of some relations of a region gives, without making groups for it.

Independent of the order of joins: the rows of the relations, times the selectivity of every
predicate that the set covers; for a class of n equal columns the n - 1 largest domains count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.plan.logical import JoinKind
from remuda.planner.estimates.cardinality import ROWS_MAX
from remuda.planner.exploration.joinorder import bits


@dataclass(frozen=True, slots=True)
class SizedRelation:
    """``chance``: for the right side of a LEFT, SEMI or ANTI join, the share of pairs that match
    its ON condition."""

    rows: float
    kind: JoinKind = JoinKind.INNER
    chance: float = 1.0


class JoinSizes:
    """``predicates`` are (set, selectivity); ``classes`` are relation -> distinct values of its
    column, for columns that are equal."""

    def __init__(
        self,
        relations: Sequence[SizedRelation],
        predicates: Sequence[tuple[int, float]],
        classes: Sequence[dict[int, float]],
    ) -> None:
        self.relations = relations
        self.predicates = predicates
        self._classes_of: dict[int, list[tuple[int, float]]] = {}
        for number, members in enumerate(classes):
            for relation, distinct in members.items():
                self._classes_of.setdefault(relation, []).append((number, distinct))
        self._known: dict[int, tuple[float, dict[int, float]]] = {}

    def rows(self, mask: int) -> float:
        return self._set(mask)[0]

    def joined(self, a: int, b: int) -> float:
        """Rows of the join of two sets whose rows are known; remembers the result."""
        both = a | b
        known = self._known.get(both)
        if known is not None:
            return known[0]
        (first, domains), (second, others) = self._set(a), self._set(b)
        if len(domains) < len(others):
            domains, others = others, domains
        merged = dict(domains)
        rows = first * second
        for number, distinct in others.items():
            mine = merged.get(number)
            if mine is not None:
                rows /= max(mine, distinct, 1.0)
            merged[number] = distinct if mine is None else min(mine, distinct)
        for mask, share in self.predicates:
            if not mask & ~both and mask & ~a and mask & ~b:
                rows *= share
        rows = min(max(rows, 1.0), ROWS_MAX)
        self._known[both] = rows, merged
        return rows

    def _set(self, mask: int) -> tuple[float, dict[int, float]]:
        known = self._known.get(mask)
        if known is None:
            known = self._known[mask] = self._relation(mask)
        return known

    def _relation(self, mask: int) -> tuple[float, dict[int, float]]:
        (index,) = bits(mask)
        return self.relations[index].rows, dict(self._classes_of.get(index, ()))

    def outer(self, left: int, right: int) -> float:
        """Rows of ``left`` joined with the one relation ``right``, by that relation's kind."""
        (index,) = bits(right)
        relation = self.relations[index]
        rows, domains = self._set(left)
        matches = relation.rows * relation.chance
        match relation.kind:
            case JoinKind.SEMI:
                rows *= min(1.0, matches)
            case JoinKind.ANTI:
                rows *= max(0.1, 1.0 - matches)
            case _:
                rows *= max(1.0, matches)
        rows = min(max(rows, 1.0), ROWS_MAX)
        self._known[left | right] = rows, domains
        return rows
