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

from remuda.catalog.statistics import MapStatistics
from remuda.datatypes.sql import Kind, SqlType
from remuda.plan.expression import ColumnId, ColumnRef, Expression, conjuncts, walk
from remuda.plan.logical import JoinKind, Scan
from remuda.planner.selectivity import (
    ColumnEstimate,
    restrict,
    selectivity,
)

DEFAULT_ROWS = 1_000_000.0
DEFAULT_REPLICATED_ROWS = 10_000.0
DEFAULT_DISTINCT = 200.0
"""PostgreSQL's assumption for columns without statistics."""

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
    rows: float
    bound: float
    columns: Mapping[ColumnId, ColumnEstimate] = field(default_factory=dict)

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
        )
    return Estimate(rows, rows, columns)


def estimate_filter(estimate: Estimate, condition: Expression | None) -> Estimate:
    rows, columns = estimate.rows, dict(estimate.columns)
    for part in conjuncts(condition):
        rows *= selectivity(part, columns)
        restrict(part, columns)
    return Estimate(max(rows, 1.0), estimate.bound, columns)


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
    matched = left.rows * right.rows * chance
    bound = max(left.bound, right.bound)
    match kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            share = min(1.0, right.rows * chance)
            rows = left.rows * (share if kind is JoinKind.SEMI else max(1.0 - share, 0.1))
            return Estimate(max(rows, 1.0), left.bound, left.columns)
        case JoinKind.LEFT:
            rows = max(matched, left.rows)
        case JoinKind.FULL:
            rows = max(matched, left.rows + right.rows)
        case _:
            rows = matched
    for a, b in equalities:
        if a in both and b in both and kind is JoinKind.INNER:
            smaller = min(both[a].distinct, both[b].distinct)
            both[a] = replace(both[a], distinct=smaller)
            both[b] = replace(both[b], distinct=smaller)
    return Estimate(max(rows, 1.0), bound, both)


def equalities_selectivity(
    left: Estimate, right: Estimate, equalities: tuple[tuple[ColumnId, ColumnId], ...]
) -> float:
    """Several keys are rarely independent: the most selective counts fully, each further one by
    half its exponent (as SQL Server does)."""
    chances = []
    for a, b in equalities:
        first, second = left.columns.get(a), right.columns.get(b)
        domains = [c.distinct for c in (first, second) if c is not None]
        chances.append(1.0 / max(max(domains, default=10.0), 1.0))
    result, exponent = 1.0, 1.0
    for chance in sorted(chances):
        result *= chance**exponent
        exponent /= 2
    return result


def estimate_groups(estimate: Estimate, group: tuple[ColumnId, ...]) -> tuple[float, float]:
    """(groups by the estimate, groups to plan with: between the estimate and the bound)."""
    domain = 1.0
    for column in group:
        known = estimate.columns.get(column)
        distinct = known.distinct if known else DEFAULT_DISTINCT
        domain = min(domain * distinct, 1e15)
    # Balls into bins: how many of `domain` values show up among `rows` rows.
    ratio = estimate.rows / domain
    groups = domain * (1.0 - exp(-ratio)) if ratio < 50 else domain
    groups = max(1.0, min(groups, estimate.rows))
    possible = max(groups, min(domain, estimate.bound))
    return groups, sqrt(groups * possible)


def column_of(
    expression: Expression, columns: Mapping[ColumnId, ColumnEstimate], rows: float
) -> ColumnEstimate:
    """The look of a computed column."""
    if isinstance(expression, ColumnRef) and expression.column in columns:
        return columns[expression.column]
    sources = [
        columns[part.column].distinct for part in _refs(expression) if part.column in columns
    ]
    distinct = max(sources, default=1.0)
    return ColumnEstimate(max(1.0, min(distinct, rows)), width=default_width(expression.type))


def _refs(expression: Expression) -> Iterable[ColumnRef]:
    return (part for part in walk(expression) if isinstance(part, ColumnRef))
