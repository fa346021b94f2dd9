"""The MEMO: groups of equivalent expressions, each expression an operator over groups.

All expressions of a group give the same rows, so rows, columns and possible partitionings belong
to the group. Expressions are interned: the same operator over the same groups exists once. The
search (``planner.memo.search``) keeps in each group the best plan for every requirement made of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from remuda.plan.expression import ColumnId
from remuda.plan.logical import OutputColumn
from remuda.planner.estimates.cardinality import Estimate
from remuda.planner.memo.candidate import Group, GroupExpression
from remuda.planner.memo.group_operators import (
    Keys,
    Operator,
)

EXPRESSIONS_MAX = 6_000
"""The effort of one statement, about 100 µs each: beyond it, join orders are found by heuristic
and optional alternatives are left out. It counts steps and not time, so plans do not depend on how
busy the machine is."""


class Memo:
    """``notes`` says where the effort was cut short; EXPLAIN shows it."""

    def __init__(self, expressions_max: int = EXPRESSIONS_MAX) -> None:
        self.groups: list[Group] = []
        self.expressions_max = expressions_max
        self.notes: list[str] = []
        self.joined_max = 0
        """Relations of the largest region of joins."""
        self.joined: dict[Hashable, Group] = {}
        """The groups of sets of relations, by what identifies their rows and columns."""
        self._interned: dict[Hashable, list[Group]] = {}

    def left(self) -> int:
        """Expressions that the effort still allows."""
        return max(0, self.expressions_max - len(self._interned))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def __getitem__(self, group: int) -> Group:
        return self.groups[group]

    def new_group(
        self, columns: tuple[OutputColumn, ...], estimate: Estimate, natural: tuple[Keys, ...] = ()
    ) -> Group:
        group = Group(len(self.groups), {c.id: c for c in columns}, estimate, natural)
        self.groups.append(group)
        return group

    def find(
        self, operator: Operator, inputs: tuple[int, ...], columns: Iterable[OutputColumn] = ()
    ) -> Group | None:
        """The group that already has this expression, and the ``columns``: a sub-plan that occurs
        twice may be read for more columns the second time."""
        for group in self._interned.get((operator, inputs), ()):
            if all(column.id in group.columns for column in columns):
                return group
        return None

    def add(self, group: Group, operator: Operator, inputs: tuple[int, ...]) -> bool:
        """False when the expression is in the group already. In another one with the same columns
        it is an error."""
        owners = self._interned.setdefault((operator, inputs), [])
        if group in owners:
            return False
        for owner in owners:
            assert owner.columns.keys() != group.columns.keys(), (
                f"{operator} is in group {owner.id}, not in {group.id}"
            )
        owners.append(group)
        group.expressions.append(GroupExpression(operator, inputs))
        return True

    def check(self) -> None:
        """The invariants; for tests."""
        seen: set[tuple[Operator, tuple[int, ...], frozenset[ColumnId]]] = set()
        for group in self.groups:
            assert group.id == self.groups.index(group)
            assert group.expressions, f"group {group.id} is empty"
            for expression in group.expressions:
                key = (expression.operator, expression.inputs, frozenset(group.columns))
                assert key not in seen, f"{expression} is in two groups"
                seen.add(key)
                assert all(0 <= i < len(self.groups) for i in expression.inputs)
                assert group.id not in expression.inputs, "a group is its own input"
            assert group.estimate.rows >= 0
            for required, candidate in group.best.items():
                assert candidate is None or candidate.meets(required)
