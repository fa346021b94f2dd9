"""From relational algebra to a finished plan: normalize, explore, cost, cut into fragments."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.errors import LimitExceeded
from remuda.plan.expression import ColumnId
from remuda.plan.logical import Logical, OutputColumn, Supplied
from remuda.plan.physical import PhysicalPlan, Placement
from remuda.plan.uses import operators_of
from remuda.planner.algebra import columns, highest_column
from remuda.planner.build import Builder
from remuda.planner.context import PlanningContext
from remuda.planner.exploration.explore import Explorer
from remuda.planner.fragments import cut_fragments
from remuda.planner.implementation.implement import IMPLEMENTATIONS, ORDERED_IMPLEMENTATIONS
from remuda.planner.memo.candidate import Candidate
from remuda.planner.memo.cost import SCAN
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.nodes import ordered
from remuda.planner.memo.plain_rules import PLAIN_RULES
from remuda.planner.memo.properties import ANYWHERE, AT_INITIATOR, Required
from remuda.planner.memo.search import Search
from remuda.planner.normalize import finished, normalize, simplified
from remuda.planner.operators.shared import Definition
from remuda.planner.rules.rule import Rewriting
from remuda.planner.sharing import SharedPlan, narrowed, share
from remuda.planner.unnest.unnest import unnest

__all__ = ["PlanningContext", "normalized", "plan_query", "without_correlated_recursion"]

_PLAIN = {operator: ((rule.name, rule.candidates),) for operator, rule in PLAIN_RULES.items()}
_IMPLEMENTATIONS = IMPLEMENTATIONS | _PLAIN


def plan_query(logical: Logical, context: PlanningContext) -> PhysicalPlan:
    """The cheapest plan found for ``logical``. It does not depend on the values of parameters, so
    it may be cached per statement, schema versions and number of members."""
    try:
        return _plan(logical, context, Memo())
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def normalized(logical: Logical, context: PlanningContext) -> Logical:
    """``logical`` without subqueries, filters pushed down, columns pruned: algebra still, for
    whoever runs it by an optimizer of its own. Raises LimitExceeded."""
    try:
        return normalize(logical, Rewriting(context, highest_column(logical) + 1))
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def without_correlated_recursion(logical: Logical, context: PlanningContext) -> Logical:
    """``logical`` with each recursive CTE that uses columns of the query around it made independent
    of them, so that it can be computed before the query. Raises LimitExceeded, NotSupported."""
    if not any(isinstance(node, Supplied) and node.parameters for node in operators_of(logical)):
        return logical
    try:
        return unnest(logical, Rewriting(context, highest_column(logical) + 1))
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def _plan(logical: Logical, context: PlanningContext, memo: Memo) -> PhysicalPlan:
    rewriting = Rewriting(context, highest_column(logical) + 1)
    simple = simplified(logical, rewriting)
    needed = columns(logical)
    explorer = Explorer(memo, rewriting)
    search = Search(memo, context, _IMPLEMENTATIONS, ORDERED_IMPLEMENTATIONS)
    shared = share(simple)
    once = None
    if shared is not None:
        once = _best_shared(_finished(shared, rewriting), needed, explorer, search)
    best: Candidate | None = None
    definitions: list[_Stored] = []
    if once is None or not memo.notes:
        best = _best(finished(simple, rewriting), needed, explorer, search, AT_INITIATOR)
    else:
        memo.note("common sub-plans are shared without a comparison")
    if once is not None and (best is None or search.weigh(_cost(*once)) < search.weigh(best.cost)):
        best, definitions = once
        rewriting.count("share common sub-plans")
    assert best is not None
    builder = Builder()
    root = builder.build(best, needed)
    stored = [
        ordered(builder.build(d.candidate, frozenset(c.id for c in d.output)), d.output)
        for d in definitions
    ]
    return PhysicalPlan(
        cut_fragments(root, logical.output, builder.pruning, stored),
        logical.output,
        tuple(str(type_) for type_ in context.parameter_types),
        tuple(builder.dependencies[name] for name in sorted(builder.dependencies)),
        tuple(rewriting.fired),
        (*rewriting.notes, *memo.notes),
    )


def _finished(shared: SharedPlan, rewriting: Rewriting) -> SharedPlan:
    """Later definitions read earlier ones, so the used columns are known from the last one on."""
    readers = [finished(shared.root, rewriting)]
    for number in reversed(range(len(shared.definitions))):
        definition = narrowed(shared.definitions[number], number, readers)
        readers.append(finished(definition, rewriting))
    return SharedPlan(readers[0], tuple(reversed(readers[1:])))


def _best(
    node: Logical,
    needed: frozenset[ColumnId],
    explorer: Explorer,
    search: Search,
    required: Required,
) -> Candidate:
    group = explorer.explore(node, needed)
    search.prepare()
    best = search.best(group, required)
    assert best is not None, "every group can be brought to the initiator"
    return best


@dataclass(frozen=True, slots=True)
class _Stored:
    candidate: Candidate
    output: tuple[OutputColumn, ...]


def _best_shared(
    shared: SharedPlan, needed: frozenset[ColumnId], explorer: Explorer, search: Search
) -> tuple[Candidate, list[_Stored]] | None:
    """The plan that computes shared sub-plans once; None when one of them is on every member
    anyway, where it is best computed by whoever needs it."""
    found: list[_Stored] = []
    for definition in shared.definitions:
        best = _best(definition, columns(definition), explorer, search, ANYWHERE)
        if best.distribution.placement is Placement.REPLICATED:
            return None
        found.append(_Stored(best, definition.output))
        made = Definition(best.group, definition.output, best.distribution)
        explorer.definitions.append(made)
    return _best(shared.root, needed, explorer, search, AT_INITIATOR), found


def _cost(best: Candidate, stored: list[_Stored]) -> float:
    """Storing a row costs about as much as scanning it."""
    return best.cost + sum(d.candidate.cost + SCAN * d.candidate.rows for d in stored)
