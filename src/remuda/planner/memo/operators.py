"""Groups of the MEMO: columns, estimate, natural partitionings. Operators that have one way to run
make theirs in ``planner.operators``."""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import ColumnId, Expression, SortKey
from remuda.plan.functions.aggregates import state_type
from remuda.plan.logical import Aggregate, JoinKind, OutputColumn, Scan
from remuda.planner.estimates.cardinality import (
    Dependencies,
    Estimate,
    UniqueKeys,
    default_width,
    estimate_filter,
    estimate_groups,
    estimate_join,
    estimate_scan,
)
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.memo.candidate import Group
from remuda.planner.memo.group_operators import (
    AccessOperator,
    AggregateOperator,
    JoinOperator,
    Keys,
    Operator,
    SortOperator,
)
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.properties import mapped_keys
from remuda.planner.rules.rule import Rewriting

NATURAL_MAX = 4
"""Partitionings remembered per group."""


def partition_keys(scan: Scan) -> Keys | None:
    """The columns of ``scan`` that place its rows; None if it does not put them all out."""
    by_position = {p: c.id for c, p in zip(scan.output, scan.positions, strict=True)}
    keys = tuple(by_position.get(p) for p in scan.schema.partition_positions)
    known = tuple(key for key in keys if key is not None)
    return known if len(known) == len(keys) else None


class OperatorGroups:
    def __init__(self, memo: Memo, rewriting: Rewriting) -> None:
        self.memo = memo
        self.rewriting = rewriting

    def group(
        self,
        operator: Operator,
        inputs: tuple[int, ...],
        columns: tuple[OutputColumn, ...],
        estimate: Estimate,
        natural: tuple[Keys, ...] = (),
    ) -> Group:
        """The group of ``operator`` over the groups ``inputs``, a new one if there is none yet."""
        group = self.memo.find(operator, inputs, columns)
        if group is None:
            unique = tuple(dict.fromkeys(natural))[:NATURAL_MAX]
            group = self.memo.new_group(columns, estimate, unique)
            self.memo.add(group, operator, inputs)
            below = [self.memo[i] for i in inputs]
            group.replicated = bool(below) and all(source.replicated for source in below)
            group.central = any(source.central for source in below)
        return group

    def access(
        self, scan: Scan, condition: Expression | None, needed: frozenset[ColumnId]
    ) -> Group:
        statistics = self.rewriting.context.statistics.statistics(scan.schema)
        estimate = estimate_filter(estimate_scan(scan, statistics), condition)
        keys = partition_keys(scan)
        columns = tuple(column for column in scan.output if column.id in needed)
        natural = () if keys is None else (keys,)
        group = self.group(AccessOperator(scan, condition), (), columns, estimate, natural)
        group.replicated = scan.schema.replicated
        return group

    def join(
        self,
        group: Group | None,
        operator: JoinOperator,
        left: Group,
        right: Group,
        output: tuple[OutputColumn, ...],
    ) -> Group:
        """A join, as one more expression of ``group`` or of a new group with columns ``output``."""
        kind, equalities = operator.kind, operator.equalities
        inputs = (left.id, right.id)
        if group is not None:
            self.memo.add(group, operator, inputs)
            return group
        estimate = estimate_join(kind, left.estimate, right.estimate, equalities, operator.residual)
        natural = left.natural
        same = left.same
        if kind is JoinKind.INNER:
            same = _merged(left.same, right.same, equalities, {c.id for c in output})
            natural = tuple(
                tuple(same.get(key, key) for key in keys)
                for keys in (*left.natural, *right.natural)
            )
        elif kind is JoinKind.FULL:
            natural, same = (), {}
        group = self.group(operator, inputs, output, estimate, natural)
        group.same = same
        return group

    def add_aggregate(self, group: Group, below: Group, node: Aggregate) -> None:
        """``node`` over ``below`` gives the rows of ``group``, too."""
        self.memo.add(group, self._aggregate_operator(node), (below.id,))
        group.central |= below.central

    def _aggregate_operator(self, node: Aggregate) -> AggregateOperator:
        results = node.output[len(node.group) :]
        return AggregateOperator(
            node.group,
            results,
            node.calls,
            tuple(
                (self.rewriting.fresh(column.name, state_type(call)),)
                for column, call in zip(results, node.calls, strict=True)
            ),
            node.always,
        )

    def aggregate(self, below: Group, node: Aggregate) -> Group:
        group_columns = node.output[: len(node.group)]
        results = node.output[len(node.group) :]
        operator = self._aggregate_operator(node)
        rows = 1.0
        if node.group:
            rows, _ = estimate_groups(below.estimate, node.group)
        columns = {c: e for c, e in below.estimate.columns.items() if c in node.group}
        for column, call in zip(results, node.calls, strict=True):
            width = 8.0 if call.type == BIGINT else default_width(call.type)
            columns[column.id] = ColumnEstimate(max(rows, 1.0), width=width)
        bound = 1.0
        if node.group:
            bound = max(rows, min(below.estimate.bound, _product(columns, node.group)))
        names = {below.same.get(column, column): column for column in node.group}
        natural = tuple(n for keys in below.natural if (n := mapped_keys(keys, names)))
        made = self.group(
            operator,
            (below.id,),
            (*group_columns, *results),
            Estimate(rows, bound, columns, *_keys_of_groups(below.estimate, node, rows)),
            natural,
        )
        made.central |= not node.group
        return made

    def sort(
        self,
        below: Group,
        keys: tuple[SortKey, ...],
        limit: Expression | None,
        offset: Expression | None,
    ) -> Group:
        known = below.estimate
        rows = known.rows
        top = literal_rows(limit)
        if limit is not None:
            rows = min(rows, top if top is not None else rows)
        bound = known.bound if limit is None else min(known.bound, rows)
        group = self.group(
            SortOperator(keys, limit, offset),
            (below.id,),
            below.output,
            replace(known, rows=rows, bound=bound),
        )
        group.central = True
        return group


def literal_rows(limit: Expression | None) -> float | None:
    """The number of rows of a literal LIMIT; for a parameter, a guess. A negative one gives none
    here: it is refused when it is run."""
    if limit is None:
        return None
    value = getattr(limit, "value", None)
    return max(float(value), 0.0) if isinstance(value, int) else 1000.0


def _keys_of_groups(
    below: Estimate, node: Aggregate, rows: float
) -> tuple[UniqueKeys, Dependencies]:
    """The group columns are a key, as far as the others do not decide them."""
    every = frozenset(column.id for column in node.output)
    group = frozenset(node.group)
    kept = tuple((a, b & every) for a, b in below.dependencies if a <= group and b & every)
    if not node.group:
        return (), ()
    return ((group, rows),), ((group, every), *kept)


def _product(columns: dict[ColumnId, ColumnEstimate], group: Keys) -> float:
    result = 1.0
    for column in group:
        result = min(1e15, result * (columns[column].distinct if column in columns else 10.0))
    return result


def _merged(
    left: dict[ColumnId, ColumnId],
    right: dict[ColumnId, ColumnId],
    equalities: tuple[tuple[ColumnId, ColumnId], ...],
    visible: set[ColumnId],
) -> dict[ColumnId, ColumnId]:
    """Column -> the column that stands for its class; one that is put out, if there is one."""
    classes: dict[ColumnId, set[ColumnId]] = {}
    for a, b in (*left.items(), *right.items(), *equalities):
        union = classes.get(a, {a}) | classes.get(b, {b})
        for column in union:
            classes[column] = union
    return {
        column: min(members, key=lambda c: (c not in visible, c))
        for column, members in classes.items()
    }
