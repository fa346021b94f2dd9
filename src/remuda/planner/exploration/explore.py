"""Phase 2, first half: the normalized tree goes into the MEMO, with every join order worth a look.

A tree of joins is taken apart into relations and predicates (a region) and put together again in
all valid ways by ``joinorder``. Only the left side of LEFT, SEMI and ANTI joins belongs to the
region; their right side is one relation that may join only when all relations that the ON
condition needs are on the left, and never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import Call, ColumnId, Expression, columns_of, conjuncts
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
)
from remuda.plan.windows import expressions_of
from remuda.planner.algebra import LEFT_ONLY, column_equality, columns
from remuda.planner.estimates.cardinality import estimate_groups
from remuda.planner.exploration.eager import eager, worth_a_look
from remuda.planner.exploration.region import RegionExplorer, Relation
from remuda.planner.exploration.rollup import core_first
from remuda.planner.memo.candidate import Group
from remuda.planner.memo.group_operators import JoinOperator
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.operators import OperatorGroups
from remuda.planner.operators.expand import expand_group
from remuda.planner.operators.filter import FilterOperator, filter_group
from remuda.planner.operators.group_limit import largest_rank, limited_group
from remuda.planner.operators.project import ProjectOperator, project_group
from remuda.planner.operators.shared import Definition, shared_group
from remuda.planner.operators.supplied import supplied_group
from remuda.planner.operators.unfold import unfold_group
from remuda.planner.operators.union import union_group
from remuda.planner.operators.values import values_group
from remuda.planner.operators.window import window_group
from remuda.planner.rules.rule import Rewriting
from remuda.planner.sharing import SharedRead

_REORDERED = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


@dataclass(slots=True)
class _Region:
    """The parts of a tree of joins, before relations are numbered."""

    relations: list[Relation] = field(default_factory=list)
    predicates: list[Expression] = field(default_factory=list)


class Explorer:
    def __init__(self, memo: Memo, rewriting: Rewriting) -> None:
        self.memo = memo
        self.rewriting = rewriting
        self.groups = OperatorGroups(memo, rewriting)
        self.definitions: list[Definition] = []
        """Of the shared sub-plans that may be read."""

    def explore(self, node: Logical, needed: frozenset[ColumnId]) -> Group:
        """The group of ``node``, putting out the columns ``needed`` and few others."""
        match node:
            case Scan():
                return self.groups.access(node, None, needed)
            case Filter(input=Scan() as scan, condition=condition):
                return self.groups.access(scan, condition, needed)
            case Values() | Supplied() | SharedRead():
                return self._given(node)
            case Filter(input=child, condition=condition):
                below = self.explore(child, needed | columns_of(condition))
                group = filter_group(self.groups, below, condition, needed)
                if isinstance(child, Window):
                    self._limit_ranks(group, below, child, condition)
                return group
            case Project():
                return self._project(node, needed)
            case Join() | MarkJoin():
                return self._join(node, needed)
            case Aggregate():
                return self._aggregate(node)
            case Expand() | Unfold():
                return self._repeated(node, needed)
            case Window():
                return self._window(node, needed)
            case Sort(input=child, keys=keys, limit=limit, offset=offset):
                below = self.explore(child, needed | {key.column for key in keys})
                return self.groups.sort(below, keys, limit, offset)
            case Union(inputs=inputs):
                return self._union(node, inputs)
            case _:
                raise AssertionError(f"no such operator: {type(node).__name__}")

    def _given(self, node: Values | Supplied | SharedRead) -> Group:
        match node:
            case Values():
                return values_group(self.groups, node)
            case Supplied():
                return supplied_group(self.groups, node)
            case _:
                return shared_group(self.groups, node, self.definitions[node.number])

    def _project(self, node: Project, needed: frozenset[ColumnId]) -> Group:
        kept = [
            (c, e) for c, e in zip(node.output, node.expressions, strict=True) if c.id in needed
        ]
        used = frozenset().union(*(columns_of(expression) for _, expression in kept))
        below = self.explore(node.input, used)
        return project_group(
            self.groups, below, tuple(c for c, _ in kept), tuple(e for _, e in kept)
        )

    def _aggregate(self, node: Aggregate) -> Group:
        parts = [e for call in node.calls for e in call.expressions]
        used = frozenset(node.group).union(*(columns_of(part) for part in parts))
        group = self.groups.aggregate(self.explore(node.input, used), node)
        if isinstance(node.input, Join):
            self._aggregate_below_joins(node, used, group)
        if isinstance(node.input, Expand):
            self._aggregate_before_expand(node, group)
        return group

    def _aggregate_before_expand(self, node: Aggregate, group: Group) -> None:
        """One more way to compute ``group``, which groups by grouping sets."""
        found = core_first(node, self.rewriting)
        if found is None:
            return
        (expanded,) = group.expressions[0].inputs
        (source,) = self.memo[expanded].expressions[0].inputs
        core = self.groups.aggregate(self.memo[source], found.core)
        repeated = expand_group(self.groups, core, found.expand)
        whole = self.groups.aggregate(repeated, found.aggregate)
        result = found.result
        self.memo.add(group, ProjectOperator(result.output, result.expressions), (whole.id,))

    def _aggregate_below_joins(
        self, node: Aggregate, used: frozenset[ColumnId], group: Group
    ) -> None:
        """One more way to compute ``group``, if it looks promising and the effort allows."""
        found = eager(node, self.rewriting)
        if found is None or self.memo.left() < self.memo.expressions_max // 2:
            return
        wanted = (used | frozenset(found.keys)) & columns(found.relation)
        known = self.explore(found.relation, wanted).estimate
        if worth_a_look(known.rows, estimate_groups(known, found.keys)[1]):
            parts = [e for call in found.aggregate.calls for e in call.expressions]
            needed = frozenset(node.group).union(*(columns_of(part) for part in parts))
            below = self.explore(found.aggregate.input, needed)
            self.groups.add_aggregate(group, below, found.aggregate)
            self.rewriting.count("aggregate below join")

    def _limit_ranks(
        self, group: Group, below: Group, window: Window, condition: Expression
    ) -> None:
        """One more way to compute ``group``, a filter of the ranks that ``window`` gives."""
        limit = largest_rank(window, condition)
        if limit is None:
            return
        (source,) = below.expressions[0].inputs
        limited = limited_group(self.groups, self.memo[source], window, limit)
        again = window_group(self.groups, limited, window)
        self.memo.add(group, FilterOperator(condition), (again.id,))

    def _window(self, node: Window, needed: frozenset[ColumnId]) -> Group:
        used = (needed & columns(node.input)) | set(node.partition)
        used |= {key.column for key in node.order}
        used = used.union(*(columns_of(e) for call in node.calls for e in expressions_of(call)))
        return window_group(self.groups, self.explore(node.input, used), node)

    def _repeated(self, node: Expand | Unfold, needed: frozenset[ColumnId]) -> Group:
        own = needed & columns(node.input)
        if isinstance(node, Expand):
            return expand_group(
                self.groups, self.explore(node.input, own | set(node.sources)), node
            )
        parts = [part for call in node.calls for part in call.arguments]
        used = frozenset().union(*(columns_of(part) for part in parts))
        return unfold_group(self.groups, self.explore(node.input, own | used), node)

    def _union(self, node: Union, inputs: tuple[Logical, ...]) -> Group:
        below = [self.explore(child, columns(child)) for child in inputs]
        orders = tuple(child.output for child in inputs)
        return union_group(self.groups, below, orders, node.output)

    # --- joins ---

    def _join(self, node: Join | MarkJoin, needed: frozenset[ColumnId]) -> Group:
        if isinstance(node, MarkJoin):
            return self._mark_join(node, needed)
        if node.kind not in _REORDERED:
            return self._fixed_join(node, needed)
        region = _Region()
        self._take_apart(node, region, needed)
        explorer = RegionExplorer(
            self.memo, self.groups, region.relations, region.predicates, needed
        )
        # The join itself stays as it is written, where its region has no valid order.
        return explorer.explore() or self._fixed_join(node, needed)

    def _fixed_join(self, node: Join, needed: frozenset[ColumnId]) -> Group:
        used = needed if node.condition is None else needed | columns_of(node.condition)
        left = self.explore(node.left, used & columns(node.left))
        right = self.explore(node.right, used & columns(node.right))
        equalities, residual = _keys(conjuncts(node.condition), left, right)
        output = tuple(column for column in node.output if column.id in needed)
        operator = JoinOperator(node.kind, equalities, residual)
        return self.groups.join(None, operator, left, right, output)

    def _mark_join(self, node: MarkJoin, needed: frozenset[ColumnId]) -> Group:
        """Equalities that are never NULL are keys; one that may be is a key if it is alone."""
        used = needed.union(*(columns_of(e) for e in (node.guard, node.condition) if e is not None))
        left = self.explore(node.left, used & columns(node.left))
        right = self.explore(node.right, used & columns(node.right))
        equalities, rest = _keys(conjuncts(node.guard), left, right)
        residual: tuple[Expression, ...] = tuple(Call(BOOLEAN, "is_true", (p,)) for p in rest)
        value = conjuncts(node.condition)
        alone = node.guard is None and len(value) == 1
        null_aware = False
        if alone and (found := _keys(value, left, right)[0]):
            equalities, null_aware = found, True
        else:
            residual += value
        output = (*(column for column in left.output if column.id in needed), node.mark)
        operator = JoinOperator(JoinKind.MARK, equalities, residual, node.mark, null_aware)
        return self.groups.join(None, operator, left, right, output)

    def _take_apart(self, node: Logical, region: _Region, above: frozenset[ColumnId]) -> None:
        """``above``: the columns that anything outside of ``node`` uses."""
        if not isinstance(node, Join) or node.kind not in _REORDERED:
            group = self.explore(node, above & columns(node))
            region.relations.append(Relation(group, node.output))
            return
        used = above if node.condition is None else above | columns_of(node.condition)
        first = len(region.relations)
        self._take_apart(node.left, region, used)
        behind = len(region.relations)
        if node.kind is JoinKind.INNER:
            self._take_apart(node.right, region, used)
            region.predicates.extend(conjuncts(node.condition))
            return
        group = self.explore(node.right, used & columns(node.right))
        output: tuple[OutputColumn, ...] = ()
        if node.kind not in LEFT_ONLY:
            output = node.output[len(node.left.output) :]
        region.relations.append(
            Relation(
                group,
                output,
                node.kind,
                conjuncts(node.condition),
                columns(node.left),
                (1 << behind) - (1 << first),
            )
        )


def _keys(
    parts: Iterable[Expression], left: Group, right: Group
) -> tuple[tuple[tuple[ColumnId, ColumnId], ...], tuple[Expression, ...]]:
    """(equalities of a left and a right column, everything else)."""
    equalities: list[tuple[ColumnId, ColumnId]] = []
    residual: list[Expression] = []
    for part in parts:
        pair = column_equality(part)
        ids = None if pair is None else (pair[0].column, pair[1].column)
        if ids is not None and ids[0] in left.columns and ids[1] in right.columns:
            equalities.append(ids)
        elif ids is not None and ids[1] in left.columns and ids[0] in right.columns:
            equalities.append((ids[1], ids[0]))
        else:
            residual.append(part)
    return tuple(equalities), tuple(residual)
