"""Phase 2, first half: the normalized tree goes into the MEMO, with every join order worth a look.

A tree of joins is taken apart into relations and predicates (a region) and put together again in
all valid ways by ``joinorder``. Only the left side of LEFT, SEMI and ANTI joins belongs to the
region; their right side is one relation that may join only when all relations that the ON
condition needs are on the left, and never the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from remuda.plan.expression import ColumnId, Expression, columns_of, conjuncts
from remuda.plan.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Union,
    Values,
    Window,
)
from remuda.plan.windows import expressions_of
from remuda.planner.algebra import LEFT_ONLY, column_equality, columns
from remuda.planner.memo import Group, JoinOperator, Memo
from remuda.planner.operators import OperatorGroups
from remuda.planner.region import RegionExplorer, Relation
from remuda.planner.rules.rule import Rewriting

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

    def explore(self, node: Logical, needed: frozenset[ColumnId]) -> Group:
        """The group of ``node``, putting out the columns ``needed`` and few others."""
        match node:
            case Scan():
                return self.groups.access(node, None, needed)
            case Filter(input=Scan() as scan, condition=condition):
                return self.groups.access(scan, condition, needed)
            case Values():
                return self.groups.values(node)
            case Filter(input=child, condition=condition):
                below = self.explore(child, needed | columns_of(condition))
                return self.groups.filter(below, condition, needed)
            case Project():
                return self._project(node, needed)
            case Join():
                return self._join(node, needed)
            case Aggregate():
                return self._aggregate(node)
            case Window():
                return self._window(node, needed)
            case Sort(input=child, keys=keys, limit=limit, offset=offset):
                below = self.explore(child, needed | {key.column for key in keys})
                return self.groups.sort(below, keys, limit, offset)
            case Union(inputs=inputs):
                return self._union(node, inputs)
            case _:
                raise AssertionError(f"no such operator: {type(node).__name__}")

    def _project(self, node: Project, needed: frozenset[ColumnId]) -> Group:
        kept = [
            (c, e) for c, e in zip(node.output, node.expressions, strict=True) if c.id in needed
        ]
        used = frozenset().union(*(columns_of(expression) for _, expression in kept))
        below = self.explore(node.input, used)
        return self.groups.project(below, tuple(c for c, _ in kept), tuple(e for _, e in kept))

    def _aggregate(self, node: Aggregate) -> Group:
        parts = [e for call in node.calls for e in (call.argument, call.filter) if e is not None]
        used = frozenset(node.group).union(*(columns_of(part) for part in parts))
        return self.groups.aggregate(self.explore(node.input, used), node)

    def _window(self, node: Window, needed: frozenset[ColumnId]) -> Group:
        used = (needed & columns(node.input)) | set(node.partition)
        used |= {key.column for key in node.order}
        used = used.union(*(columns_of(e) for call in node.calls for e in expressions_of(call)))
        return self.groups.window(self.explore(node.input, used), node)

    def _union(self, node: Union, inputs: tuple[Logical, ...]) -> Group:
        below = [self.explore(child, columns(child)) for child in inputs]
        orders = tuple(child.output for child in inputs)
        return self.groups.union(below, orders, node.output)

    # --- joins ---

    def _join(self, node: Join, needed: frozenset[ColumnId]) -> Group:
        if node.kind not in _REORDERED:
            return self._fixed_join(node, needed)
        region = _Region()
        self._take_apart(node, region, needed)
        explorer = RegionExplorer(
            self.memo, self.groups, region.relations, region.predicates, needed
        )
        return explorer.explore()

    def _fixed_join(self, node: Join, needed: frozenset[ColumnId]) -> Group:
        used = needed if node.condition is None else needed | columns_of(node.condition)
        left = self.explore(node.left, used & columns(node.left))
        right = self.explore(node.right, used & columns(node.right))
        equalities: list[tuple[ColumnId, ColumnId]] = []
        residual: list[Expression] = []
        for part in conjuncts(node.condition):
            pair = column_equality(part)
            ids = None if pair is None else (pair[0].column, pair[1].column)
            if ids is not None and ids[0] in left.columns and ids[1] in right.columns:
                equalities.append(ids)
            elif ids is not None and ids[1] in left.columns and ids[0] in right.columns:
                equalities.append((ids[1], ids[0]))
            else:
                residual.append(part)
        output = tuple(column for column in node.output if column.id in needed)
        operator = JoinOperator(node.kind, tuple(equalities), tuple(residual))
        return self.groups.join(None, operator, left, right, output)

    def _take_apart(self, node: Logical, region: _Region, above: frozenset[ColumnId]) -> None:
        """``above``: the columns that anything outside of ``node`` uses."""
        if not isinstance(node, Join) or node.kind not in _REORDERED:
            group = self.explore(node, above & columns(node))
            region.relations.append(Relation(group, node.output))
            return
        used = above if node.condition is None else above | columns_of(node.condition)
        self._take_apart(node.left, region, used)
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
            )
        )
