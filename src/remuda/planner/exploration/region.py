"""A region: relations and predicates of a tree of joins, joined in every valid order.

Columns that predicates equate form classes. A join of two sets of relations needs one equality per
class that both sides have; which one, does not matter, because the members of a class are equal in
every set that was joined before. So ``a = b AND b = c`` also lets ``a`` and ``c`` meet first.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from remuda.plan.expression import ColumnId, Expression, columns_of
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.planner.algebra import LEFT_ONLY, column_equality
from remuda.planner.estimates.cardinality import equalities_selectivity
from remuda.planner.estimates.selectivity import selectivity
from remuda.planner.exploration.joinorder import (
    PAIRS_MAX,
    bits,
    block_pairs,
    blocks,
    components,
    connected_pairs,
    greedy_tree,
)
from remuda.planner.exploration.joinsize import JoinSizes, SizedRelation
from remuda.planner.memo.candidate import Group
from remuda.planner.memo.group_operators import JoinOperator
from remuda.planner.memo.memo import Memo
from remuda.planner.memo.operators import OperatorGroups

BLOCK_PAIRS_MAX = 250
"""Pairs enumerated in one piece of a join tree that was found greedily."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One operand. For a LEFT, SEMI or ANTI join's right side: ``condition`` is its ON condition,
    ``left_columns`` are all columns of the original left side, and ``left`` is the set of its
    relations, which may have no column that is needed."""

    group: Group
    output: tuple[OutputColumn, ...]
    kind: JoinKind = JoinKind.INNER
    condition: tuple[Expression, ...] = ()
    left_columns: frozenset[ColumnId] = frozenset()
    left: int = 0


@dataclass(frozen=True, slots=True)
class _Predicate:
    mask: int
    expression: Expression
    columns: frozenset[ColumnId]
    pair: tuple[ColumnId, ColumnId] | None


class RegionExplorer:
    def __init__(
        self,
        memo: Memo,
        groups: OperatorGroups,
        relations: list[Relation],
        predicates: list[Expression],
        needed: frozenset[ColumnId],
    ) -> None:
        self.memo = memo
        self.groups = groups
        self.relations = relations
        self.needed = needed
        self.home = {c: i for i, r in enumerate(relations) for c in r.group.columns}
        self.outer = sum(1 << i for i, r in enumerate(relations) if r.kind is not JoinKind.INNER)
        self.requires = [self._requirement(i) for i in range(len(relations))]
        self.predicates: list[_Predicate] = []
        self.classes: list[dict[int, ColumnId]] = []
        self._sort_predicates(predicates)
        self.outer_columns = [
            frozenset().union(*(columns_of(part) for part in r.condition)) for r in relations
        ]
        self.sets: dict[int, Group] = {1 << i: r.group for i, r in enumerate(relations)}
        self._output_column = {c.id: c for r in relations for c in r.output}

    # --- preparation ---

    def _mask(self, columns: frozenset[ColumnId]) -> int:
        mask = 0
        for column in columns:
            mask |= 1 << self.home[column]
        return mask

    def _requirement(self, index: int) -> int:
        """The relations that must be on the left before relation ``index`` may join."""
        relation = self.relations[index]
        if relation.kind is JoinKind.INNER:
            return 0
        used = frozenset().union(*(columns_of(part) for part in relation.condition))
        mask = self._mask(used) & ~(1 << index)
        if not mask:
            mask = self._mask(relation.left_columns & self.home.keys())
        return mask or relation.left

    def _closed(self, mask: int) -> bool:
        return all(self.requires[i] & ~mask == 0 for i in bits(mask & self.outer))

    def _sort_predicates(self, predicates: list[Expression]) -> None:
        equalities: list[tuple[ColumnId, ColumnId]] = []
        generic: list[Expression] = []
        equality_of: dict[tuple[ColumnId, ColumnId], Expression] = {}
        for part in dict.fromkeys(predicates):
            pair = column_equality(part)
            ids = None if pair is None else (pair[0].column, pair[1].column)
            if ids is not None and not self._mask(frozenset(ids)) & self.outer:
                equalities.append(ids)
            else:
                generic.append(part)
            if ids is not None:
                equality_of[ids] = part
        for members, pairs in _classes(equalities):
            homes = [self.home[column] for column in members]
            if len(set(homes)) == len(homes):
                self.classes.append(dict(zip(homes, members, strict=True)))
            else:
                # Two columns of one relation: the class does not say that they are compared.
                generic.extend(equality_of[pair] for pair in pairs)
        for part in generic:
            used = columns_of(part)
            mask = self._mask(used)
            for i in bits(mask & self.outer):
                mask |= self.requires[i]
            pair = column_equality(part)
            ids = None if pair is None else (pair[0].column, pair[1].column)
            self.predicates.append(_Predicate(mask, part, used, ids))

    def _edges(self) -> list[int]:
        edges = [0] * len(self.relations)

        def connect(a: int, b: int) -> None:
            if a != b:
                edges[a] |= 1 << b
                edges[b] |= 1 << a

        for members in self.classes:
            for a in members:
                for b in members:
                    connect(a, b)
        for predicate in self.predicates:
            if predicate.mask.bit_count() == 2:
                connect(*bits(predicate.mask))
        for i in bits(self.outer):
            for j in bits(self.requires[i]):
                connect(i, j)
        parts = components(len(self.relations), edges)
        # Cross joins only where nothing else connects: between the smallest of each component.
        smallest = [min(bits(part), key=lambda i: self._rows(1 << i)) for part in parts]
        for a, b in itertools.pairwise(smallest):
            connect(a, b)
        return edges

    def _rows(self, mask: int) -> float:
        return self.sets[mask].estimate.rows

    # --- enumeration ---

    def explore(self) -> Group | None:
        """None: no order of the enumerated ones is valid."""
        count = len(self.relations)
        self.memo.joined_max = max(self.memo.joined_max, count)
        whole = (1 << count) - 1
        edges = self._edges()
        # A pair makes two expressions.
        budget = min(PAIRS_MAX, self.memo.left() // 2)
        pairs = connected_pairs(count, edges, budget)
        if pairs is None:
            pairs = self._heuristic_pairs(count, edges)
            self.memo.note(f"join order of {count} relations found by heuristic")
        for a, b in pairs:
            self._join(a, b)
        return self.sets.get(whole)

    def _heuristic_pairs(self, count: int, edges: list[int]) -> list[tuple[int, int]]:
        """A greedy tree, and every other order within its pieces."""
        sizes = self._sizes()

        def join(a: int, b: int) -> float | None:
            match self._how(a, b):
                case None:
                    return None
                case (left, right, _):
                    return sizes.outer(left, right)
                case _:
                    return sizes.joined(a, b)

        tree = greedy_tree(count, edges, join)
        if tree is None:
            return []
        pairs: list[tuple[int, int]] = []
        for operands, joins in blocks(tree):
            left = self.memo.left() // 2 - len(pairs) - count
            pairs += block_pairs(operands, joins, edges, max(0, min(BLOCK_PAIRS_MAX, left)))
        return pairs

    def _sizes(self) -> JoinSizes:
        relations = []
        every = {c: e for r in self.relations for c, e in r.group.estimate.columns.items()}
        for relation in self.relations:
            chance = 1.0
            for part in relation.condition:
                pair = column_equality(part)
                if pair is None:
                    chance *= selectivity(part, every)
                else:
                    ids = ((pair[0].column, pair[1].column),)
                    both = relation.group.estimate.with_columns(every)
                    chance *= equalities_selectivity(both, both, ids)
            rows = relation.group.estimate.rows
            relations.append(SizedRelation(rows, relation.kind, chance))
        predicates = [(p.mask, selectivity(p.expression, every)) for p in self.predicates]
        classes = [
            {i: every[c].distinct if c in every else 10.0 for i, c in members.items()}
            for members in self.classes
        ]
        return JoinSizes(relations, predicates, classes)

    def _join(self, a: int, b: int) -> None:
        """Put the joins of the sets ``a`` and ``b`` into the MEMO, where they are valid."""
        if a not in self.sets or b not in self.sets:
            return
        match self._how(a, b):
            case None:
                return
            case (left, right, index):
                self._join_outer(left, right, index)
            case _:
                self._join_inner(a, b)

    def _how(self, a: int, b: int) -> tuple[int, int, int] | bool | None:
        """(left, right, index of the right relation) of an outer, semi or anti join; True for an
        inner join; None when the sets cannot be joined yet."""
        for left, right in ((a, b), (b, a)):
            if right & self.outer and right & (right - 1) == 0:
                index = right.bit_length() - 1
                if not self._closed(left) or self.requires[index] & ~left:
                    return None
                if any(not p.mask & ~(left | right) and p.mask & right for p in self.predicates):
                    return None
                return left, right, index
        return True if self._closed(a) and self._closed(b) else None

    def _join_outer(self, left: int, right: int, index: int) -> None:
        relation = self.relations[index]
        equalities, residual = self._split(relation.condition, left, right)
        self._add(left, right, relation.kind, equalities, residual)

    def _join_inner(self, a: int, b: int) -> None:
        both = a | b
        equalities: list[tuple[ColumnId, ColumnId]] = []
        for members in self.classes:
            first = next((c for i, c in members.items() if a >> i & 1), None)
            second = next((c for i, c in members.items() if b >> i & 1), None)
            if first is not None and second is not None:
                equalities.append((first, second))
        parts = tuple(
            p.expression
            for p in self.predicates
            if not p.mask & ~both and p.mask & ~a and p.mask & ~b
        )
        more, residual = self._split(parts, a, b)
        self._add(a, b, JoinKind.INNER, (*equalities, *more), residual)

    def _split(
        self, parts: tuple[Expression, ...], a: int, b: int
    ) -> tuple[tuple[tuple[ColumnId, ColumnId], ...], tuple[Expression, ...]]:
        """(equalities of a column of ``a`` with one of ``b``, everything else)."""
        equalities: list[tuple[ColumnId, ColumnId]] = []
        residual: list[Expression] = []
        for part in parts:
            pair = column_equality(part)
            if pair is not None:
                first, second = pair[0].column, pair[1].column
                if a >> self.home[first] & 1 and b >> self.home[second] & 1:
                    equalities.append((first, second))
                    continue
                if b >> self.home[first] & 1 and a >> self.home[second] & 1:
                    equalities.append((second, first))
                    continue
            residual.append(part)
        return tuple(equalities), tuple(residual)

    def _add(
        self,
        a: int,
        b: int,
        kind: JoinKind,
        equalities: tuple[tuple[ColumnId, ColumnId], ...],
        residual: tuple[Expression, ...],
    ) -> None:
        both = a | b
        group = self.sets.get(both)
        left, right = self.sets[a], self.sets[b]
        operator = JoinOperator(kind, equalities, residual)
        if group is None:
            output = self._output(both)
            known = (*self._identity(both), frozenset(column.id for column in output))
            group = self.groups.join(self.memo.joined.get(known), operator, left, right, output)
            self.sets[both] = self.memo.joined[known] = group
        else:
            self.groups.join(group, operator, left, right, ())
        if kind is JoinKind.INNER:
            flipped = tuple((second, first) for first, second in equalities)
            self.groups.join(group, JoinOperator(kind, flipped, residual), right, left, ())

    def _identity(self, mask: int) -> tuple[Hashable, ...]:
        """Of the rows of a set. Two regions of one statement may hold the same relations under the
        same predicates, and reach their joins by different pairs; it is one group all the same."""
        relations = Counter(
            (r.group.id, r.kind, r.condition) for r in (self.relations[i] for i in bits(mask))
        )
        predicates = (p.expression for p in self.predicates if not p.mask & ~mask)
        classes = (
            frozenset(column for i, column in members.items() if mask >> i & 1)
            for members in self.classes
        )
        return frozenset(relations.items()), frozenset(predicates), frozenset(classes)

    # --- columns ---

    def _output(self, mask: int) -> tuple[OutputColumn, ...]:
        """The output of a set: columns for the result and for predicates still to come."""
        wanted = set(self.needed)
        for predicate in self.predicates:
            if predicate.mask & ~mask:
                wanted |= predicate.columns
        for i, columns in enumerate(self.outer_columns):
            if not mask >> i & 1:
                wanted |= columns
        for members in self.classes:
            inside = [column for i, column in members.items() if mask >> i & 1]
            if inside and len(inside) < len(members):
                wanted.add(inside[0])
        return tuple(
            self._output_column.get(column.id, column)
            for i in bits(mask)
            if self.relations[i].kind not in LEFT_ONLY
            for column in self.relations[i].group.output
            if column.id in wanted
        )


def _classes(
    equalities: list[tuple[ColumnId, ColumnId]],
) -> list[tuple[list[ColumnId], list[tuple[ColumnId, ColumnId]]]]:
    """(columns, equalities) of each class of columns that are equal by transitivity."""
    parent: dict[ColumnId, ColumnId] = {}

    def root(column: ColumnId) -> ColumnId:
        while parent.setdefault(column, column) != column:
            column = parent[column]
        return column

    for a, b in equalities:
        parent[root(b)] = root(a)
    members: dict[ColumnId, list[ColumnId]] = {}
    for column in parent:
        members.setdefault(root(column), []).append(column)
    pairs: dict[ColumnId, list[tuple[ColumnId, ColumnId]]] = {}
    for pair in equalities:
        pairs.setdefault(root(pair[0]), []).append(pair)
    return [(members[r], pairs[r]) for r in members]
