"""From relational algebra to a finished plan: normalize, explore, cost, cut into fragments."""

from __future__ import annotations

from remuda.errors import LimitExceeded
from remuda.plan.logical import Logical
from remuda.plan.physical import PhysicalPlan
from remuda.planner.algebra import columns, highest_column
from remuda.planner.build import Builder
from remuda.planner.context import PlanningContext
from remuda.planner.explore import Explorer
from remuda.planner.fragments import cut_fragments
from remuda.planner.implement import IMPLEMENTATIONS
from remuda.planner.memo import Memo
from remuda.planner.normalize import normalize
from remuda.planner.properties import AT_INITIATOR
from remuda.planner.rules.rule import Rewriting
from remuda.planner.search import Search

__all__ = ["PlanningContext", "plan_query"]


def plan_query(logical: Logical, context: PlanningContext) -> PhysicalPlan:
    """The cheapest plan found for ``logical``. It does not depend on the values of parameters, so
    it may be cached per statement, schema versions and number of members."""
    try:
        return _plan(logical, context, Memo())
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def _plan(logical: Logical, context: PlanningContext, memo: Memo) -> PhysicalPlan:
    rewriting = Rewriting(context, highest_column(logical) + 1)
    normal = normalize(logical, rewriting)
    needed = columns(logical)
    group = Explorer(memo, rewriting).explore(normal, needed)
    best = Search(memo, context, IMPLEMENTATIONS).best(group, AT_INITIATOR)
    assert best is not None, "every group can be brought to the initiator"
    builder = Builder()
    root = builder.build(best, needed)
    return PhysicalPlan(
        cut_fragments(root, logical.output, builder.pruning),
        logical.output,
        tuple(str(type_) for type_ in context.parameter_types),
        tuple(builder.dependencies[name] for name in sorted(builder.dependencies)),
        tuple(rewriting.fired),
    )
