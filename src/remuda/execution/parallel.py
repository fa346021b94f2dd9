"""How many instances of a fragment a member runs, and how they share its rows.

Several instances pay only where there are many rows: each thread hop, each further stream and each
further operator state costs something, and the interpreter runs one thread at a time outside of
kernels (decision 0014 has the figures).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from remuda.limits import PARALLEL_ROWS
from remuda.plan.physical import (
    AggregatePhase,
    ExchangeKind,
    Fragment,
    HashAggregate,
    HashJoin,
    IndexScan,
    LookupJoin,
    NestedLoopJoin,
    Physical,
    PhysicalPlan,
    Placement,
    Receive,
    Send,
    Site,
    TableScan,
    UnionRows,
    ValuesScan,
    WindowRows,
    inputs_of,
)


class Cover(Enum):
    """Which rows of a node the instances of a fragment have, when they share scans by chunks."""

    WHOLE = auto()
    """All of them each."""
    DEALT = auto()
    """Each row is at one of them, no matter at which."""
    OWNED = auto()
    """Each row must be with its partition's owner, so scans must be shared by partitions."""
    ALONE = auto()
    """There may be one instance only."""


class Split(Enum):
    """How the instances of a fragment on one member share what it scans."""

    CHUNKS = auto()
    """An instance that is free takes the next chunk."""
    PARTITIONS = auto()
    """Each keeps the rows of its own partitions: every one looks at all rows."""


def cover_of(node: Physical, kinds: dict[int, ExchangeKind]) -> Cover:
    """``kinds``: of the edges. An operator that is not known here runs alone."""
    match node:
        case TableScan() | ValuesScan() | Receive():
            return _leaf_cover(node, kinds)
        case HashAggregate(input=child, phase=phase):
            below = cover_of(child, kinds)
            return below if phase is AggregatePhase.PARTIAL else _together(below)
        case WindowRows(input=child):
            return _together(cover_of(child, kinds))
        case LookupJoin(input=child, limited=limited, index_id=index):
            below = cover_of(child, kinds)
            if not limited or below is Cover.ALONE:
                return below
            # Everyone has all rows and keeps the matches of its own partitions; a lookup by key
            # does not tell partitions apart.
            return Cover.OWNED if index else Cover.ALONE
        case HashJoin(left=left, right=right) | NestedLoopJoin(left=left, right=right):
            return _joined(cover_of(left, kinds), cover_of(right, kinds))
        case UnionRows(inputs=inputs):
            found = {cover_of(child, kinds) for child in inputs}
            return found.pop() if len(found) == 1 else _strictest(found)
        case Send(input=child):
            return cover_of(child, kinds)
        case _ if node.share_of_input:
            return cover_of(inputs_of(node)[0], kinds)
        case _:
            return Cover.ALONE


def _leaf_cover(node: Physical, kinds: dict[int, ExchangeKind]) -> Cover:
    match node:
        case Receive(edge=edge):
            return Cover.WHOLE if kinds[edge] is ExchangeKind.BROADCAST else Cover.OWNED
        case TableScan(partitioned_replica=True):
            return Cover.OWNED
        case TableScan() if node.traits.distribution.placement is Placement.REPLICATED:
            return Cover.WHOLE
        case IndexScan():
            return Cover.OWNED
        case TableScan():
            return Cover.DEALT
        case _:
            return Cover.WHOLE


def _together(below: Cover) -> Cover:
    """Rows of a group or a window must be at one instance."""
    return Cover.OWNED if below is Cover.DEALT else below


def _joined(left: Cover, right: Cover) -> Cover:
    if left is Cover.DEALT and right is Cover.DEALT:
        return Cover.OWNED  # both sides by the same keys
    return _strictest({left, right})


def _strictest(covers: set[Cover]) -> Cover:
    return max(covers, key=lambda cover: cover.value)


def exchange_kinds(plan: PhysicalPlan) -> dict[int, ExchangeKind]:
    return {f.root.edge: f.root.kind for f in plan.fragments if isinstance(f.root, Send)}


def split_of(fragment: Fragment, kinds: dict[int, ExchangeKind]) -> Split | None:
    """None: one instance only."""
    if fragment.site is Site.INITIATOR:
        return None
    match cover_of(fragment.root, kinds):
        case Cover.DEALT:
            return Split.CHUNKS
        case Cover.OWNED:
            return Split.PARTITIONS
        case _:
            return None


def instance_counts(
    plan: PhysicalPlan,
    stored: Callable[[int], float],
    *,
    workers: int,
    members: int,
    rows_each: float = PARALLEL_ROWS,
    by_partition: bool = False,
) -> dict[int, int]:
    """How many instances of its fragments each member runs, where it is more than one.

    ``workers`` are the threads of a member; ``members`` share the rows that the optimizer expects;
    ``stored`` tells how many rows a member has of a map. An instance has ``rows_each`` rows to read
    at least. ``by_partition``: also where each instance looks at all rows of a map for those of its
    own partitions.
    """
    if workers < 2:
        return {}
    kinds = exchange_kinds(plan)
    counts: dict[int, int] = {}
    for fragment in plan.fragments:
        rows = _rows_in(fragment.root, members, stored)
        count = min(workers, int(rows // rows_each))
        if count < 2:
            continue
        split = split_of(fragment, kinds)
        if split is Split.PARTITIONS and not by_partition and _scans(fragment.root):
            continue
        if split is not None:
            counts[fragment.id] = count
    return counts


def rows_read(plan: PhysicalPlan, members: int, stored: Callable[[int], float]) -> float:
    """The most that a fragment reads on one member."""
    return max(_rows_in(fragment.root, members, stored) for fragment in plan.fragments)


def _scans(node: Physical) -> bool:
    return isinstance(node, TableScan) or any(_scans(child) for child in inputs_of(node))


def _rows_in(node: Physical, members: int, stored: Callable[[int], float]) -> float:
    """Rows that a fragment reads on one member: the most that one of its leaves gives."""
    match node:
        case IndexScan():
            return node.traits.rows / members
        case TableScan(map_id=map_id):
            return stored(map_id)
        case Receive():
            return node.traits.rows / members
        case _:
            return max((_rows_in(n, members, stored) for n in inputs_of(node)), default=0.0)
