"""Which plans are so small that they neither need a thread of the pool nor wait for memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from remuda.plan.physical import (
    IndexScan,
    KeyLookup,
    NestedLoopJoin,
    PhysicalPlan,
    TableScan,
)
from remuda.storage.maps.expiring_rows import estimated_rows
from remuda.storage.maps.map_store import MapStore

INLINE_ROWS: Final = 20_000
"""A plan that scans, tests or gives out fewer rows than this here begins on the loop: a thread hop
would cost more. If it takes long all the same, it goes on in the pool."""


def is_short(plan: PhysicalPlan, stores: Mapping[int, MapStore]) -> bool:
    """``stores`` are those of this member: how much it would scan."""
    rows = 0.0
    for fragment in plan.fragments:
        for node in fragment.nodes:
            if isinstance(node, IndexScan):
                rows += node.traits.rows
            elif isinstance(node, TableScan):
                store = stores.get(node.map_id)
                rows += estimated_rows(store) if store is not None else 0
            elif isinstance(node, KeyLookup):
                rows += len(node.keys)
            elif isinstance(node, NestedLoopJoin):
                rows += node.left.traits.rows * node.right.traits.rows
            elif node.traits.rows > INLINE_ROWS:
                return False
    return rows <= INLINE_ROWS
