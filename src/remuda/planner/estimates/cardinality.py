"""Estimates: how many rows an expression of the algebra gives, and how its columns look.

``distinct`` of a column is the size of its domain: it shrinks by predicates on the column itself,
not by predicates on other columns. Joins assume that the smaller domain is contained in the larger
one (System R). ``bound`` is the number of rows without any predicate; groups are counted twice,
once from the estimate and once from the bound, because estimates above several joins and filters
are mostly far too low (Leis et al., "How Good Are Query Optimizers, Really?", 2015).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import exp, sqrt
from typing import TypeAlias

from remuda.catalog.statistics import MapStatistics
from remuda.datatypes.sql import Kind, SqlType
from remuda.plan.expression import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    conjuncts,
    walk,
)
from remuda.plan.logical import JoinKind, Scan
from remuda.planner.estimates.distribution import ColumnEstimate, join_share
from remuda.planner.estimates.selectivity import restrict, selectivity

ROWS_MAX = 1e18
"""Products of cross joins stay finite."""
DEFAULT_ROWS = 1_000_000.0
DEFAULT_REPLICATED_ROWS = 10_000.0
DEFAULT_DISTINCT = 200.0
"""PostgreSQL's assumption for columns without statistics."""

KEYS_MAX = 4
DEPENDENCIES_MAX = 40
"""Of one estimate; more are forgotten."""

Columns: TypeAlias = frozenset[ColumnId]
UniqueKeys: TypeAlias = tuple[tuple[Columns, float], ...]
Dependencies: TypeAlias = tuple[tuple[Columns, Columns], ...]

_WIDTHS = {
    Kind.BOOLEAN: 1.0,
    Kind.TINYINT: 1.0,
    Kind.SMALLINT: 2.0,
    Kind.INTEGER: 4.0,
    Kind.REAL: 4.0,
    Kind.DATE: 4.0,
    Kind.VARCHAR: 24.0,
    Kind.BYTEA: 24.0,
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """``keys`` are sets of columns of which no two rows have the same values, each with the number
    of values there are in all. ``dependencies``: the first columns decide the second ones."""

    rows: float
    bound: float
    columns: Mapping[ColumnId, ColumnEstimate] = field(default_factory=dict)
    keys: UniqueKeys = ()
    dependencies: Dependencies = ()

    def with_columns(self, columns: Mapping[ColumnId, ColumnEstimate]) -> Estimate:
        return replace(self, columns=columns)

    def width(self, columns: Iterable[ColumnId]) -> float:
        """Bytes of a row of these columns."""
        return sum(self.columns[c].width if c in self.columns else 8.0 for c in columns)


def default_width(type_: SqlType) -> float:
    if type_.kind is Kind.CHAR:
        return float(type_.length or 1)
    if type_.kind is Kind.DECIMAL and not type_.is_short_decimal:
        return 16.0
    return _WIDTHS.get(type_.kind, 8.0)


def estimate_scan(scan: Scan, statistics: MapStatistics | None) -> Estimate:
    if statistics is None:
        rows = DEFAULT_REPLICATED_ROWS if scan.schema.replicated else DEFAULT_ROWS
        statistics = MapStatistics(rows)
    rows = max(statistics.rows, 1.0)
    key = scan.schema.key
    columns = {}
    for column, position in zip(scan.output, scan.positions, strict=True):
        name = scan.schema.columns[position].name
        known = statistics.columns.get(name)
        distinct = None if known is None else known.distinct
        if distinct is None:
            distinct = rows if key == (name,) else DEFAULT_DISTINCT
        columns[column.id] = ColumnEstimate(
            distinct=max(1.0, min(distinct, rows)),
            null_fraction=known.null_fraction if known else 0.0,
            minimum=known.minimum if known else None,
            maximum=known.maximum if known else None,
            width=(known.width if known and known.width else default_width(column.type)),
            histogram=known.histogram if known else (),
            common=known.common if known else (),
        )
    by_name = {
        scan.schema.columns[p].name: c.id for c, p in zip(scan.output, scan.positions, strict=True)
    }
    if not key or any(name not in by_name for name in key):
        return Estimate(rows, rows, columns)
    ids = frozenset(by_name[name] for name in key)
    return Estimate(rows, rows, columns, ((ids, rows),), ((ids, frozenset(columns)),))


def estimate_filter(estimate: Estimate, condition: Expression | None) -> Estimate:
    rows, columns = estimate.rows, dict(estimate.columns)
    for part in conjuncts(condition):
        rows *= selectivity(part, columns)
        restrict(part, columns)
    return replace(estimate, rows=max(rows, 1.0), columns=columns)


def estimate_project(
    below: Estimate,
    columns: Mapping[ColumnId, ColumnEstimate],
    renamed: Mapping[ColumnId, ColumnId],
) -> Estimate:
    """``renamed``: columns that are put out as they are, old id -> new id."""

    def new(ids: Columns) -> Columns:
        return frozenset(renamed[i] for i in ids if i in renamed)

    keys = tuple((new(ids), values) for ids, values in below.keys if ids <= renamed.keys())
    dependencies = tuple(
        (new(a), new(b)) for a, b in below.dependencies if a <= renamed.keys() and new(b)
    )
    return Estimate(below.rows, below.bound, columns, keys, dependencies)


def estimate_join(
    kind: JoinKind,
    left: Estimate,
    right: Estimate,
    equalities: tuple[tuple[ColumnId, ColumnId], ...],
    residual: tuple[Expression, ...],
) -> Estimate:
    both = {**left.columns, **right.columns}
    chance = equalities_selectivity(left, right, equalities)
    for part in residual:
        chance *= selectivity(part, both)
    matched = min(left.rows * right.rows * chance, ROWS_MAX)
    bound = max(left.bound, right.bound)
    match kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            share = _matched_share(left, right, equalities, chance)
            rows = left.rows * (share if kind is JoinKind.SEMI else max(1.0 - share, 0.1))
            return replace(left, rows=max(rows, 1.0))
        case JoinKind.MARK:
            return left
        case JoinKind.LEFT:
            rows = max(matched, left.rows)
        case JoinKind.FULL:
            rows = max(matched, left.rows + right.rows)
        case _:
            rows = matched
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        alone = left.rows * (1.0 - _matched_share(left, right, equalities, chance))
        both.update(_padded(right.columns, alone / max(rows, 1.0)))
    if kind is JoinKind.FULL:
        turned = tuple((b, a) for a, b in equalities)
        alone = right.rows * (1.0 - _matched_share(right, left, turned, chance))
        both.update(_padded(left.columns, alone / max(rows, 1.0)))
    dependencies = left.dependencies + right.dependencies
    for a, b in equalities:
        if a in both and b in both and kind is JoinKind.INNER:
            smaller = min(both[a].distinct, both[b].distinct)
            both[a] = replace(both[a], distinct=smaller)
            both[b] = replace(both[b], distinct=smaller)
            first, second = frozenset((a,)), frozenset((b,))
            dependencies = (*dependencies, (first, second), (second, first))
    return Estimate(
        max(rows, 1.0),
        bound,
        both,
        _joined_keys(kind, left, right, equalities),
        dependencies[:DEPENDENCIES_MAX],
    )


def _padded(
    columns: Mapping[ColumnId, ColumnEstimate], alone: float
) -> dict[ColumnId, ColumnEstimate]:
    """The columns of a side when a share ``alone`` of the rows has none of it."""
    if alone <= 0.0:
        return {}
    return {
        column: replace(known, null_fraction=alone + (1.0 - alone) * known.null_fraction)
        for column, known in columns.items()
    }


def _matched_share(
    left: Estimate,
    right: Estimate,
    equalities: tuple[tuple[ColumnId, ColumnId], ...],
    chance: float,
) -> float:
    """The share of the rows of ``left`` with a partner: by the values that ``right`` still has."""
    if len(equalities) == 1:
        a, b = equalities[0]
        first, second = left.columns.get(a), right.columns.get(b)
        if first is not None and second is not None:
            seen = values_seen(second.distinct, right.rows)
            return min(1.0, (1.0 - first.null_fraction) * seen / max(first.distinct, seen))
    return min(1.0, right.rows * chance)


def _joined_keys(
    kind: JoinKind,
    left: Estimate,
    right: Estimate,
    equalities: tuple[tuple[ColumnId, ColumnId], ...],
) -> UniqueKeys:
    """A side's keys stay keys when each of its rows meets at most one row of the other side."""
    lefts = {a for a, _ in equalities}
    rights = {b for _, b in equalities}
    keys: UniqueKeys = ()
    if any(ids <= rights for ids, _ in right.keys) and kind is not JoinKind.FULL:
        keys += left.keys
    if any(ids <= lefts for ids, _ in left.keys) and kind is JoinKind.INNER:
        keys += right.keys
    return keys[:KEYS_MAX]


def equalities_selectivity(
    left: Estimate, right: Estimate, equalities: tuple[tuple[ColumnId, ColumnId], ...]
) -> float:
    """Several keys are rarely independent: the most selective counts fully, each further one by
    half its exponent (as SQL Server does). All columns of a key of one side meet one row of it."""
    for side, columns in ((left, {a for a, _ in equalities}), (right, {b for _, b in equalities})):
        whole = [values for ids, values in side.keys if len(ids) > 1 and ids <= columns]
        if whole:
            return 1.0 / max(*whole, 1.0)
    chances = []
    for a, b in equalities:
        first, second = left.columns.get(a), right.columns.get(b)
        if first is not None and second is not None:
            chances.append(join_share(first, second))
        else:
            known = first or second
            chances.append(1.0 / max(known.distinct if known else 10.0, 1.0))
    result, exponent = 1.0, 1.0
    for chance in sorted(chances):
        result *= chance**exponent
        exponent /= 2
    return result


def estimate_groups(estimate: Estimate, group: tuple[ColumnId, ...]) -> tuple[float, float]:
    """(groups by the estimate, groups to plan with: between the estimate and the bound)."""
    domain = 1.0
    for column in undecided(group, estimate.dependencies):
        known = estimate.columns.get(column)
        distinct = known.distinct if known else DEFAULT_DISTINCT
        if known is not None and known.null_fraction > 0:
            distinct += 1.0
        domain = min(domain * distinct, 1e15)
    groups = max(1.0, min(values_seen(domain, estimate.rows), estimate.rows))
    possible = max(groups, min(domain, estimate.bound))
    return groups, sqrt(groups * possible)


def values_seen(domain: float, rows: float) -> float:
    """Balls into bins: how many of ``domain`` values show up among ``rows`` rows."""
    ratio = rows / max(domain, 1.0)
    return domain * (1.0 - exp(-ratio)) if ratio < 50 else domain


def undecided(group: tuple[ColumnId, ...], dependencies: Dependencies) -> tuple[ColumnId, ...]:
    """``group`` without the columns that the others decide (a key decides all of its row)."""
    if len(group) < 2 or not dependencies:
        return group
    kept = list(group)
    for column in reversed(group):
        others = frozenset(c for c in kept if c != column)
        if column in _decided_by(others, dependencies):
            kept.remove(column)
    return tuple(kept)


def _decided_by(columns: Columns, dependencies: Dependencies) -> Columns:
    found = columns
    while True:
        more = found.union(*(b for a, b in dependencies if a <= found))
        if more == found:
            return found
        found = more


def column_of(
    expression: Expression, columns: Mapping[ColumnId, ColumnEstimate], rows: float
) -> ColumnEstimate:
    """The look of a computed column."""
    if isinstance(expression, ColumnRef) and expression.column in columns:
        return columns[expression.column]
    sources = [
        columns[part.column].distinct for part in _refs(expression) if part.column in columns
    ]
    distinct = _values_of(expression, max(sources, default=1.0))
    return ColumnEstimate(max(1.0, min(distinct, rows)), width=default_width(expression.type))


_DAYS_OF_FIELD = {"year": 365.0, "decade": 3652.0, "century": 36524.0, "millennium": 365242.0}
_VALUES_OF_FIELD = {
    "month": 12.0,
    "quarter": 4.0,
    "day": 31.0,
    "dow": 7.0,
    "isodow": 7.0,
    "hour": 24.0,
}


def _values_of(expression: Expression, distinct: float) -> float:
    """How many values a computed column has, over ``distinct`` values of what it is computed of."""
    match expression:
        case Call(function="extract" | "date_part", arguments=(Literal(value=str(part)), *_)):
            if part in _DAYS_OF_FIELD:
                # One more for the years at both ends that are not whole.
                return distinct / _DAYS_OF_FIELD[part] + 1.0
            return min(distinct, _VALUES_OF_FIELD.get(part, distinct))
        case Case(branches=branches, otherwise=otherwise):
            values = {value for _, value in branches} | {otherwise}
            if all(isinstance(value, Literal) for value in values):
                return float(len(values))
        case _ if expression.type.kind is Kind.BOOLEAN:
            return 2.0
    return distinct


def _refs(expression: Expression) -> Iterable[ColumnRef]:
    return (part for part in walk(expression) if isinstance(part, ColumnRef))
