"""The form of a rewriting rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from remuda.datatypes.sql import SqlType
from remuda.plan.expression import ColumnId
from remuda.plan.logical import Logical, OutputColumn
from remuda.planner.context import PlanningContext


@dataclass(slots=True)
class Rewriting:
    """One run of the rewriter over one statement."""

    context: PlanningContext
    next_column: ColumnId
    fired: dict[str, int] = field(default_factory=dict)
    strict: bool = False
    """For tests: not to come to a fixed point is an error."""
    notes: list[str] = field(default_factory=list)
    """Where the effort was cut short; EXPLAIN shows it."""

    def fresh(self, name: str, type_: SqlType, nullable: bool = True) -> OutputColumn:
        """A column that nothing else in the statement has."""
        column = OutputColumn(self.next_column, name, type_, nullable)
        self.next_column += 1
        return column

    def count(self, rule: str) -> None:
        self.fired[rule] = self.fired.get(rule, 0) + 1

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True, slots=True)
class Rule:
    """``apply`` gives the better equivalent of a node, or None when the rule does not apply.

    A rule never changes the set of output columns of the node it rewrites, except that it may add
    to it (column pruning comes later); order is kept only by Project, Aggregate and Union.
    ``nodes`` are the types it looks at; with ``whole`` it is given the root of the tree only.
    """

    name: str
    nodes: tuple[type[Logical], ...]
    apply: Callable[[Logical, Rewriting], Logical | None]
    whole: bool = False
