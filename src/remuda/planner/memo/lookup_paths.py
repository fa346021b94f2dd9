"""How the rows of a map can be found for the rows of another input: by its key, or by an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remuda.datatypes.index import IndexDefinition, IndexKind
from remuda.plan.expression import ColumnId
from remuda.plan.logical import JoinKind, Scan
from remuda.planner.memo.candidate import Group
from remuda.planner.memo.group_operators import AccessOperator, JoinOperator

KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class LookupPath:
    """``pairs`` are (outer column, inner column), in the order of the key or of the first columns
    of ``index``; None: by the whole primary key. ``exact``: the rows that are found have equal
    values."""

    index: IndexDefinition | None
    pairs: tuple[tuple[ColumnId, ColumnId], ...]

    @property
    def exact(self) -> bool:
        return self.index is None or self.index.kind is IndexKind.SORTED


def inner_access(right: Group) -> AccessOperator | None:
    """The scan that a group is, if it is one."""
    for expression in right.expressions:
        if isinstance(expression.operator, AccessOperator):
            return expression.operator
    return None


def lookup_paths(operator: JoinOperator, right: Group) -> Iterator[LookupPath]:
    if operator.kind not in KINDS or operator.mark is not None or operator.null_aware:
        return
    inner = inner_access(right) if operator.equalities else None
    if inner is None:
        return
    scan = inner.scan
    outer = equal_columns(operator, scan)
    ids = {p: c.id for c, p in zip(scan.output, scan.positions, strict=True)}
    key = scan.schema.key_positions
    if all(position in outer for position in key):
        yield LookupPath(None, tuple((outer[position], ids[position]) for position in key))
    for index in scan.schema.indexes:
        if not index.ready or index.kind is IndexKind.BITMAP:
            continue
        pairs: list[tuple[ColumnId, ColumnId]] = []
        for name in index.names:
            position = scan.schema.position[name]
            if position not in outer:
                break
            pairs.append((outer[position], ids[position]))
        whole = len(pairs) == len(index.columns)
        if pairs and (whole or index.kind is IndexKind.SORTED):
            yield LookupPath(index, tuple(pairs))


def equal_columns(operator: JoinOperator, scan: Scan) -> dict[int, ColumnId]:
    """Schema position of an inner column -> an outer column that equals it."""
    positions = {c.id: p for c, p in zip(scan.output, scan.positions, strict=True)}
    return {positions[b]: a for a, b in operator.equalities if b in positions}
