"""Groups of the MEMO, one method per operator: columns, estimate, natural partitionings."""

from __future__ import annotations

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import ColumnId, ColumnRef, Expression, SortKey
from remuda.plan.logical import Aggregate, JoinKind, OutputColumn, Scan, Values, Window
from remuda.planner.algebra import window_results
from remuda.planner.cardinality import (
    Estimate,
    column_of,
    default_width,
    estimate_filter,
    estimate_groups,
    estimate_join,
    estimate_scan,
)
from remuda.planner.memo import (
    AccessOperator,
    AggregateOperator,
    FilterOperator,
    Group,
    JoinOperator,
    Keys,
    Memo,
    Operator,
    ProjectOperator,
    SortOperator,
    UnionOperator,
    ValuesOperator,
    WindowOperator,
)
from remuda.planner.properties import mapped_keys
from remuda.planner.rules.rule import Rewriting
from remuda.planner.selectivity import ColumnEstimate

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

    def _group(
        self,
        operator: Operator,
        inputs: tuple[int, ...],
        columns: tuple[OutputColumn, ...],
        estimate: Estimate,
        natural: tuple[Keys, ...] = (),
    ) -> Group:
        group = self.memo.find(operator, inputs)
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
        group = self._group(AccessOperator(scan, condition), (), columns, estimate, natural)
        group.replicated = scan.schema.replicated
        return group

    def values(self, node: Values) -> Group:
        rows = float(len(node.rows))
        columns = {c.id: ColumnEstimate(max(rows, 1.0)) for c in node.output}
        operator = ValuesOperator(node.output, node.rows)
        group = self._group(operator, (), node.output, Estimate(rows, rows, columns))
        group.replicated = True
        return group

    def filter(self, below: Group, condition: Expression, needed: frozenset[ColumnId]) -> Group:
        columns = tuple(column for column in below.output if column.id in needed)
        estimate = estimate_filter(below.estimate, condition)
        group = self._group(
            FilterOperator(condition), (below.id,), columns, estimate, below.natural
        )
        group.same = below.same
        return group

    def project(
        self, below: Group, output: tuple[OutputColumn, ...], expressions: tuple[Expression, ...]
    ) -> Group:
        known = below.estimate
        columns = {
            c.id: column_of(e, known.columns, known.rows)
            for c, e in zip(output, expressions, strict=True)
        }
        renamed = {
            below.same.get(e.column, e.column): c.id
            for c, e in zip(output, expressions, strict=True)
            if isinstance(e, ColumnRef)
        }
        natural = tuple(n for keys in below.natural if (n := mapped_keys(keys, renamed)))
        estimate = Estimate(known.rows, known.bound, columns)
        operator = ProjectOperator(output, expressions)
        return self._group(operator, (below.id,), output, estimate, natural)

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
        group = self._group(operator, inputs, output, estimate, natural)
        group.same = same
        return group

    def aggregate(self, below: Group, node: Aggregate) -> Group:
        group_columns = node.output[: len(node.group)]
        results = node.output[len(node.group) :]
        operator = AggregateOperator(
            node.group,
            results,
            node.calls,
            tuple((self.rewriting.fresh(column.name, column.type),) for column in results),
        )
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
        made = self._group(
            operator,
            (below.id,),
            (*group_columns, *results),
            Estimate(rows, bound, columns),
            natural,
        )
        made.central |= not node.group
        return made

    def window(self, below: Group, node: Window) -> Group:
        """All rows of the input stay, where the partitions are whole."""
        known = below.estimate
        results = window_results(node)
        columns = dict(known.columns)
        for column in results:
            width = default_width(column.type)
            columns[column.id] = ColumnEstimate(max(known.rows, 1.0), width=width)
        whole = set(below.canonical(node.partition))
        natural = tuple(keys for keys in below.natural if set(keys) <= whole)
        made = self._group(
            WindowOperator(node.partition, node.order, results, node.calls),
            (below.id,),
            (*below.output, *results),
            Estimate(known.rows, known.bound, columns),
            natural,
        )
        made.same = below.same
        made.central |= not node.partition
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
        group = self._group(
            SortOperator(keys, limit, offset),
            (below.id,),
            below.output,
            Estimate(rows, bound, known.columns),
        )
        group.central = True
        return group

    def union(
        self,
        below: list[Group],
        orders: tuple[tuple[OutputColumn, ...], ...],
        output: tuple[OutputColumn, ...],
    ) -> Group:
        rows = sum(group.estimate.rows for group in below)
        bound = sum(group.estimate.bound for group in below)
        first = below[0].estimate.columns
        columns = {
            column.id: first[source.id]
            for column, source in zip(output, orders[0], strict=True)
            if source.id in first
        }
        return self._group(
            UnionOperator(orders),
            tuple(group.id for group in below),
            output,
            Estimate(rows, bound, columns),
        )


def literal_rows(limit: Expression | None) -> float | None:
    """The number of rows of a literal LIMIT; for a parameter, a guess."""
    if limit is None:
        return None
    value = getattr(limit, "value", None)
    return float(value) if isinstance(value, int) else 1000.0


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
