"""Rules of operators that have one way to run. The module of each operator registers its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from remuda.plan.physical import Physical
from remuda.planner.memo.candidate import Candidate, Group
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Build, Columns
from remuda.planner.memo.properties import Required
from remuda.planner.memo.search import Search

Candidates: TypeAlias = Callable[
    [Search, Group, Any, tuple[Group, ...], Required], Iterator[Candidate]
]
"""As ``search.Implementation``, of one class of operators."""
NodeOf: TypeAlias = Callable[[Candidate, Any, Columns, Build], Physical]
"""(candidate, its operator, columns that are needed, how to build its inputs) -> its node."""


@dataclass(frozen=True, slots=True)
class PlainRule:
    """``candidates`` finds the candidates of an operator, ``node`` builds the chosen one."""

    name: str
    candidates: Candidates
    node: NodeOf


PLAIN_RULES: dict[type[PlainOperator], PlainRule] = {}


def register(operator: type[PlainOperator], rule: PlainRule) -> None:
    """Make ``rule`` the rule of ``operator``; for the module of the operator."""
    PLAIN_RULES[operator] = rule
