"""Groups of the MEMO, one method per operator: columns, estimate, natural partitionings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from remuda.datatypes.sql import BIGINT
from remuda.plan.expression import ColumnId, ColumnRef, Expression, SortKey
from remuda.plan.functions.aggregates import state_type
from remuda.plan.logical import (
    Aggregate,
    Expand,
    JoinKind,
    OutputColumn,
    Scan,
    Supplied,
    Unfold,
    Values,
    Window,
)
from remuda.plan.physical import Distribution, Placement
from remuda.planner.algebra import expand_results, unfold_results, window_results
from remuda.planner.estimates.cardinality import (
    Dependencies,
    Estimate,
    UniqueKeys,
    column_of,
    default_width,
    estimate_filter,
    estimate_groups,
    estimate_join,
    estimate_project,
    estimate_scan,
)
from remuda.planner.estimates.distribution import ColumnEstimate
from remuda.planner.estimates.set_rows import expected_rows
from remuda.planner.memo.candidate import Group
from remuda.planner.memo.group_operators import (
    AccessOperator,
    AggregateOperator,
    ExpandOperator,
    FilterOperator,
    GroupLimitOperator,
    JoinOperator,
    Keys,
    Operator,
    ProjectOperator,
    SharedOperator,
    SortOperator,
    SuppliedOperator,
    UnfoldOperator,
    UnionOperator,
    ValuesOperator,
    WindowOperator,
)
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.properties import mapped_keys
from remuda.planner.rules.rule import Rewriting
from remuda.planner.sharing import SharedRead

NATURAL_MAX = 4
"""Partitionings remembered per group."""


def partition_keys(scan: Scan) -> Keys | None:
    """The columns of ``scan`` that place its rows; None if it does not put them all out."""
    by_position = {p: c.id for c, p in zip(scan.output, scan.positions, strict=True)}
    keys = tuple(by_position.get(p) for p in scan.schema.partition_positions)
    known = tuple(key for key in keys if key is not None)
    return known if len(known) == len(keys) else None


@dataclass(frozen=True, slots=True)
class Definition:
    """A shared sub-plan as it was planned: ``output`` are its columns in order."""

    group: Group
    output: tuple[OutputColumn, ...]
    distribution: Distribution

    def places(self, read: SharedRead) -> tuple[int, ...]:
        """The places of the columns that ``read`` uses."""
        places = {column.id: place for place, column in enumerate(self.output)}
        return tuple(places[column] for column in read.columns)


_NUMBERINGS = frozenset({"row_number", "rank", "dense_rank"})
"""Window functions that count the rows of a partition from 1."""


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

    def supplied(self, node: Supplied) -> Group:
        """Rows of the initiator: nothing is known of them but a guess at their number."""
        columns = {c.id: ColumnEstimate(max(node.rows / 4, 1.0)) for c in node.output}
        operator = SuppliedOperator(node.output, node.relation, node.alias, node.positions)
        group = self._group(operator, (), node.output, Estimate(node.rows, node.rows, columns))
        group.central = True
        return group

    def shared(self, node: SharedRead, definition: Definition) -> Group:
        """``definition`` is how the shared sub-plan is computed: there are its rows."""
        source = definition.group
        names = {old: new.id for old, new in zip(node.columns, node.output, strict=True)}
        standing = {source.same.get(old, old): new for old, new in names.items()}
        found = [mapped_keys(source.canonical(k), standing) for k in definition.distribution.keys]
        keys = tuple(key for key in found if key is not None)
        distribution = Distribution(definition.distribution.placement, keys)
        known = source.estimate.columns
        columns = {new: known[old] for old, new in names.items() if old in known}
        group = self._group(
            SharedOperator(node.output, node.number, definition.places(node), distribution),
            (),
            node.output,
            estimate_project(source.estimate, columns, names),
            keys,
        )
        group.central = distribution.placement is Placement.SINGLETON
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
        kept = {
            e.column: c.id
            for c, e in zip(output, expressions, strict=True)
            if isinstance(e, ColumnRef)
        }
        estimate = estimate_project(known, columns, kept)
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
        made = self._group(
            operator,
            (below.id,),
            (*group_columns, *results),
            Estimate(rows, bound, columns, *_keys_of_groups(below.estimate, node, rows)),
            natural,
        )
        made.central |= not node.group
        return made

    def expand(self, below: Group, node: Expand) -> Group:
        """Copies look like their sources; rows stay where they are."""
        known = below.estimate
        results = expand_results(node)
        columns = dict(known.columns)
        for column, source in zip(results, node.sources, strict=False):
            if source in known.columns:
                columns[column.id] = known.columns[source]
        columns[results[-1].id] = ColumnEstimate(1.0, width=2.0)
        many = len(node.sets)
        made = self._group(
            ExpandOperator(node.sources, node.sets, results),
            (below.id,),
            (*below.output, *results),
            Estimate(known.rows * many, known.bound * many, columns),
            below.natural,
        )
        made.same = below.same
        return made

    def unfold(self, below: Group, node: Unfold) -> Group:
        """As many rows as the longest call gives, for each row of the input."""
        known = below.estimate
        results = unfold_results(node)
        each = max(expected_rows(call) for call in node.calls)
        columns = dict(known.columns)
        for column in results:
            rows = max(known.rows * each, 1.0)
            columns[column.id] = ColumnEstimate(rows, width=default_width(column.type))
        made = self._group(
            UnfoldOperator(node.calls, node.ordinality, node.outer, results),
            (below.id,),
            (*below.output, *results),
            Estimate(known.rows * each, known.bound * each, columns),
            below.natural,
        )
        made.same = below.same
        return made

    def group_limit(self, below: Group, window: Window, limit: Expression) -> Group:
        """The input of ``window``, less rows of a rank above ``limit``."""
        known = below.estimate
        groups = 1.0
        if window.partition:
            groups, _ = estimate_groups(known, window.partition)
        members = max(1, self.rewriting.context.members)
        rows = min(known.rows, groups * members * max(literal_rows(limit) or 1.0, 1.0))
        made = self._group(
            GroupLimitOperator(window.partition, window.order, limit),
            (below.id,),
            below.output,
            Estimate(rows, rows, known.columns),
            below.natural,
        )
        made.same = below.same
        return made

    def window(self, below: Group, node: Window) -> Group:
        """All rows of the input stay, where the partitions are whole."""
        known = below.estimate
        results = window_results(node)
        columns = dict(known.columns)
        groups = estimate_groups(known, node.partition)[0] if node.partition else 1.0
        each = max(known.rows / groups, 1.0)
        for column, call in zip(results, node.calls, strict=True):
            width = default_width(column.type)
            columns[column.id] = ColumnEstimate(max(known.rows, 1.0), width=width)
            if call.function in _NUMBERINGS:
                columns[column.id] = ColumnEstimate(each, minimum=1, maximum=round(each))
        whole = set(below.canonical(node.partition))
        natural = tuple(keys for keys in below.natural if set(keys) <= whole)
        made = self._group(
            WindowOperator(node.partition, node.order, results, node.calls),
            (below.id,),
            (*below.output, *results),
            replace(known, columns=columns),
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
            replace(known, rows=rows, bound=bound),
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
