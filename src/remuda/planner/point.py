"""Recognizes plans that are nothing but reads of single keys, for the fast path of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from remuda.plan.expression import (
    ColumnId,
    ColumnRef,
    EachOf,
    Expression,
    conjunction,
    conjuncts,
    transform,
)
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    ExchangeKind,
    FilterRows,
    IndexScan,
    KeyLookup,
    Physical,
    PhysicalPlan,
    ProjectRows,
    Receive,
    Root,
    Send,
    ValuesScan,
)


@dataclass(frozen=True, slots=True)
class PointRead:
    """``SELECT expressions FROM map WHERE key IN (keys) AND filter``, and nothing else.

    ``keys`` hold expressions without columns, of the key columns' types, in key order; a key with
    a NULL finds nothing, equal keys count once. ``columns`` maps the column ids used by
    ``expressions`` and ``filter`` to schema positions. ``positions`` is set when every output
    column is simply a column of the map: result row = row[p] for p in positions.
    """

    map_name: str
    map_id: int
    schema_version: int
    keys: tuple[tuple[Expression, ...], ...]
    expressions: tuple[Expression, ...]
    filter: Expression | None
    columns: tuple[tuple[ColumnId, int], ...]
    positions: tuple[int, ...] | None
    output: tuple[OutputColumn, ...]
    by_array: bool = False
    """Whether a key has an array for each of whose elements it stands (``EachOf``)."""

    @property
    def fetched(self) -> None:
        """Whole rows are."""


class RowsOfLeaf(NamedTuple):
    """``SELECT expressions FROM leaf WHERE filters``, over the columns that the leaf puts out."""

    leaf: Physical
    expressions: tuple[Expression, ...]
    filters: tuple[Expression, ...]
    gathered: bool
    """Whether the leaf is read where the rows are, and the initiator gathers them."""


def rows_of_leaf(plan: PhysicalPlan) -> RowsOfLeaf | None:
    """The rows that ``plan`` gives out of the only relation that it reads; None if it does anything
    but filter and project them: with LIMIT, sorting or aggregation it does."""
    root = plan.fragments[0].root
    assert isinstance(root, Root)
    senders = {fragment.id: fragment.root for fragment in plan.fragments[1:]}
    expressions: tuple[Expression, ...] = tuple(
        ColumnRef(column.type, column.id, column.name) for column in plan.output
    )
    filters: tuple[Expression, ...] = ()
    gathered = False
    node: Physical = root.input
    while True:
        match node:
            case ProjectRows(input=child):
                computed = _computed(node)
                expressions = tuple(_through(e, computed) for e in expressions)
                filters = tuple(_through(e, computed) for e in filters)
                node = child
            case FilterRows(input=child, condition=condition):
                filters = (*conjuncts(condition), *filters)
                node = child
            case Receive(sender_fragment=sender):
                sent = senders[sender]
                if not isinstance(sent, Send) or sent.kind is not ExchangeKind.GATHER:
                    return None
                gathered = True
                node = sent.input
            case KeyLookup() | IndexScan() | ValuesScan():
                return RowsOfLeaf(node, expressions, filters, gathered)
            case _:
                return None


def point_read(plan: PhysicalPlan) -> PointRead | None:
    """The point read that ``plan`` is, or None."""
    found = rows_of_leaf(plan)
    if found is None or not isinstance(found.leaf, KeyLookup):
        return None
    node, expressions = found.leaf, found.expressions
    columns = dict(node.filter_columns)
    columns.update(
        (column.id, position) for column, position in zip(node.output, node.positions, strict=True)
    )
    positions = [columns[e.column] for e in expressions if isinstance(e, ColumnRef)]
    return PointRead(
        node.map_name,
        node.map_id,
        node.schema_version,
        node.keys,
        expressions,
        conjunction((*conjuncts(node.filter), *found.filters)),
        tuple(columns.items()),
        tuple(positions) if len(positions) == len(expressions) else None,
        plan.output,
        any(isinstance(part, EachOf) for key in node.keys for part in key),
    )


def _computed(project: ProjectRows) -> dict[ColumnId, Expression]:
    pairs = zip(project.output, project.expressions, strict=True)
    return {column.id: source for column, source in pairs}


def _through(expression: Expression, computed: Mapping[ColumnId, Expression]) -> Expression:
    """``expression`` over the input of the projection that computes these columns."""

    def rewrite(part: Expression) -> Expression:
        return computed.get(part.column, part) if isinstance(part, ColumnRef) else part

    return transform(expression, rewrite)
