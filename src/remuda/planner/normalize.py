"""Phase 1: rewriting to a fixed point, by rules that are always worth while."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from remuda.plan.logical import Logical, inputs_of
from remuda.planner.algebra import nodes_of, with_inputs
from remuda.planner.rules.aggregates import DROP_USELESS_DISTINCT, REWRITE_AVG, SPLIT_DISTINCT
from remuda.planner.rules.columns import (
    INLINE_RENAMES,
    MERGE_PROJECTS,
    PRUNE_COLUMNS,
    REMOVE_IDENTITY_PROJECT,
)
from remuda.planner.rules.empty import PRUNE_EMPTY, REMOVE_TRUE_FILTER
from remuda.planner.rules.expressions import FACTOR_OR, FOLD_CONSTANTS, SIMPLIFY_BOOLEANS
from remuda.planner.rules.few_rows import JOIN_ONE_ROW, LIST_VALUES
from remuda.planner.rules.filters import (
    DERIVE_FILTERS_FROM_OR,
    MERGE_FILTERS,
    ORDER_CONJUNCTS,
    PUSH_FILTER_INTO_JOIN,
    PUSH_FILTER_THROUGH_AGGREGATE,
    PUSH_FILTER_THROUGH_EXPAND,
    PUSH_FILTER_THROUGH_PROJECT,
    PUSH_FILTER_THROUGH_SORT,
    PUSH_FILTER_THROUGH_UNION,
    PUSH_JOIN_CONDITION,
)
from remuda.planner.rules.joins import (
    COMPUTE_JOIN_KEYS,
    INFER_PREDICATES,
    RIGHT_TO_LEFT,
    SIMPLIFY_OUTER_JOIN,
)
from remuda.planner.rules.limits import (
    MERGE_SORTS,
    PUSH_LIMIT_INTO_LEFT_JOIN,
    PUSH_LIMIT_INTO_UNION,
    PUSH_LIMIT_THROUGH_PROJECT,
    REMOVE_USELESS_SORT,
)
from remuda.planner.rules.mark_joins import (
    COMPUTE_MARK_JOIN_KEYS,
    MARK_JOIN_TO_SEMI_JOIN,
    PRUNE_EMPTY_MARK_JOIN,
    PUSH_FILTER_INTO_MARK_JOIN,
)
from remuda.planner.rules.null_safe import NULL_SAFE_KEYS
from remuda.planner.rules.rule import Rewriting, Rule
from remuda.planner.rules.set_operations import (
    PRUNE_SET_OPERATION,
    SET_OPERATION_TO_AGGREGATE,
    SET_OPERATION_TO_JOIN,
)
from remuda.planner.rules.windows import PUSH_FILTER_THROUGH_WINDOW, REWRITE_WINDOW_AVG
from remuda.planner.unnest.unnest import unnest

SIMPLIFY: tuple[Rule, ...] = (
    FOLD_CONSTANTS,
    SIMPLIFY_BOOLEANS,
    FACTOR_OR,
    REMOVE_TRUE_FILTER,
    PRUNE_EMPTY,
    PRUNE_SET_OPERATION,
    SET_OPERATION_TO_JOIN,
    SET_OPERATION_TO_AGGREGATE,
    RIGHT_TO_LEFT,
    SIMPLIFY_OUTER_JOIN,
    JOIN_ONE_ROW,
    MERGE_FILTERS,
    PRUNE_EMPTY_MARK_JOIN,
    MARK_JOIN_TO_SEMI_JOIN,
    PUSH_FILTER_INTO_MARK_JOIN,
    PUSH_FILTER_THROUGH_PROJECT,
    PUSH_FILTER_INTO_JOIN,
    PUSH_JOIN_CONDITION,
    PUSH_FILTER_THROUGH_AGGREGATE,
    PUSH_FILTER_THROUGH_EXPAND,
    PUSH_FILTER_THROUGH_UNION,
    PUSH_FILTER_THROUGH_SORT,
    PUSH_FILTER_THROUGH_WINDOW,
    INFER_PREDICATES,
    MERGE_SORTS,
    REMOVE_USELESS_SORT,
    PUSH_LIMIT_THROUGH_PROJECT,
    PUSH_LIMIT_INTO_UNION,
    PUSH_LIMIT_INTO_LEFT_JOIN,
    DROP_USELESS_DISTINCT,
    SPLIT_DISTINCT,
    REWRITE_AVG,
    REWRITE_WINDOW_AVG,
    MERGE_PROJECTS,
    REMOVE_IDENTITY_PROJECT,
    INLINE_RENAMES,
)
"""To the fixed point, in this order at each node, inputs first."""

DERIVE: tuple[Rule, ...] = (DERIVE_FILTERS_FROM_OR, LIST_VALUES)
"""Once over the tree: the derived conditions follow from those that stay, so they could be derived
for ever."""

FINISH: tuple[Rule, ...] = (
    *SIMPLIFY,
    NULL_SAFE_KEYS,
    COMPUTE_JOIN_KEYS,
    COMPUTE_MARK_JOIN_KEYS,
    ORDER_CONJUNCTS,
    PRUNE_COLUMNS,
)

Stages = tuple[tuple[tuple[Rule, ...], bool], ...]
"""(rules, whether they run to a fixed point)."""
FIRST: Stages = ((SIMPLIFY, True), (DERIVE, False))
LAST: Stages = ((FINISH, True),)

PASSES_MAX = 50
FIRINGS_MIN = 200
FIRINGS_PER_NODE = 20
"""One rule may fire so often in a stage. In TPC-DS, no rule fires once per node of a statement: a
rule that fires this often undoes the work of another one, or fires on its own output."""


class Allowance:
    """How often each rule may fire while ``root`` is rewritten to a fixed point. A rule that used
    its share up is left out: the tree stays as good as it is, and the others come to an end."""

    def __init__(self, root: Logical, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._root = root
        self._fired: Counter[str] = Counter()

    @cached_property
    def _limit(self) -> int:
        return FIRINGS_MIN + FIRINGS_PER_NODE * sum(1 for _ in nodes_of(self._root))

    def take(self, rule: Rule) -> bool:
        """Whether ``rule`` may fire once more, which is counted."""
        fired = self._fired[rule.name]
        if fired >= FIRINGS_MIN and fired == self._limit:
            assert not self._rewriting.strict, f"the rule {rule.name!r} does not come to an end"
            self._rewriting.note(f"rule '{rule.name}' stopped after {self._limit} rewritings")
            return False
        self._fired[rule.name] += 1
        self._rewriting.count(rule.name)
        return True


def normalize(root: Logical, rewriting: Rewriting) -> Logical:
    """``rewriting.fired`` counts the rules that fired."""
    return finished(simplified(root, rewriting), rewriting)


def simplified(root: Logical, rewriting: Rewriting) -> Logical:
    """Everything but what depends on the columns that are asked for: equal sub-plans are still
    equal in the result."""
    return _staged(unnest(root, rewriting), rewriting, FIRST)


def finished(root: Logical, rewriting: Rewriting) -> Logical:
    return _staged(root, rewriting, LAST)


def _staged(root: Logical, rewriting: Rewriting, stages: Stages) -> Logical:
    for rules, repeat in stages:
        stage = _Stage(rules, rewriting, repeat, root)
        for _ in range(PASSES_MAX if repeat else 1):
            new = stage.rewrite_once(root)
            if new is root:
                break
            root = new
        else:
            assert not repeat or not rewriting.strict, "the rules do not come to an end"
    return root


class _Stage:
    """``clean`` remembers, by identity, trees in which no rule fires; later passes skip them."""

    def __init__(
        self, rules: tuple[Rule, ...], rewriting: Rewriting, repeat: bool, root: Logical
    ) -> None:
        self.local = tuple(rule for rule in rules if not rule.whole)
        self.whole = tuple(rule for rule in rules if rule.whole)
        self.rewriting = rewriting
        self.repeat = repeat
        self.allowance = Allowance(root, rewriting)
        self.clean: dict[int, Logical] = {}
        self.by_type: dict[type, tuple[Rule, ...]] = {}

    def rewrite_once(self, root: Logical) -> Logical:
        """One pass over the tree; the same object when no rule fired."""
        root = self.rewrite(root)
        for rule in self.whole:
            new = rule.apply(root, self.rewriting)
            if new is not None and self.allowance.take(rule):
                root = new
        return root

    def rewrite(self, node: Logical) -> Logical:
        if id(node) in self.clean:
            return node
        while True:
            node = self._with_rewritten_inputs(node)
            new = self._apply_first(node)
            if new is None:
                if all(id(child) in self.clean for child in inputs_of(node)):
                    self.clean[id(node)] = node
                break
            # What the rule put below is rewritten next, so one pass takes a filter all the way.
            node = new
            if not self.repeat:
                break
        return node

    def _with_rewritten_inputs(self, node: Logical) -> Logical:
        inputs = inputs_of(node)
        new_inputs = tuple([self.rewrite(child) for child in inputs])
        if any(new is not old for new, old in zip(new_inputs, inputs, strict=True)):
            return with_inputs(node, new_inputs)
        return node

    def _apply_first(self, node: Logical) -> Logical | None:
        kind = type(node)
        applicable = self.by_type.get(kind)
        if applicable is None:
            applicable = tuple(rule for rule in self.local if issubclass(kind, rule.nodes))
            self.by_type[kind] = applicable
        for rule in applicable:
            new = rule.apply(node, self.rewriting)
            if new is not None and self.allowance.take(rule):
                return new
        return None
