"""Phase 3: the plan is cut at its exchanges into fragments, and fragments are confined to members.

Edges are numbered from 0 in post-order; fragments from 0, the root fragment, in pre-order. The
root fragment runs at the initiator. A fragment runs on all data members when it reads partitioned
data: its own scans, or rows sent by hash. Otherwise the initiator has all it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    SINGLETON,
    Distribution,
    Exchange,
    Fragment,
    KeyLookup,
    LookupJoin,
    Physical,
    Placement,
    Pruning,
    Receive,
    Root,
    Send,
    Site,
    SpoolScan,
    Store,
    TableScan,
    inputs_of,
    with_inputs,
)
from remuda.planner.build import PruningKeys
from remuda.planner.memo.nodes import ordered

PRUNED_KEYS_MAX = 1_000


@dataclass(slots=True)
class _Cutter:
    pruning: dict[int, PruningKeys]
    edges: int = 0
    numbers: int = 0
    done: dict[int, Fragment] = field(default_factory=dict)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers - 1

    def cut(self, node: Physical, fragment: int) -> Physical:
        """``node`` with Receives for Exchanges; the fragments that send are done afterwards."""
        if not isinstance(node, Exchange):
            inputs = inputs_of(node)
            return with_inputs(node, tuple(self.cut(child, fragment) for child in inputs))
        sender = self.number()
        below = self.cut(node.input, sender)
        edge = self.edges
        self.edges += 1
        send = Send(below.output, below.traits, below, edge, node.kind, fragment, node.hash_keys)
        self.finish(sender, send, node.input.traits.distribution)
        return Receive(below.output, node.traits, edge, sender, node.collation)

    def finish(self, number: int, root: Physical, distribution: Distribution) -> None:
        site = Site.INITIATOR
        if distribution.placement is Placement.PARTITIONED:
            site = Site.DATA_MEMBERS
        pruning = self._pruning(root) if site is Site.DATA_MEMBERS else None
        self.done[number] = Fragment(number, root, site, pruning)

    def _pruning(self, root: Physical) -> Pruning | None:
        """The keys that every partitioned read of the fragment is confined to: all of them must
        be, and no row may arrive by hash, for it could be meant for a member left out."""
        keys: dict[tuple[object, ...], None] = {}
        confined = False
        if isinstance(root, Store):
            # Whoever reads it may not be confined.
            return None
        stack = [root]
        while stack:
            node = stack.pop()
            stack.extend(inputs_of(node))
            if isinstance(node, TableScan | KeyLookup):
                own = self.pruning.get(id(node))
                if own is not None:
                    keys.update(dict.fromkeys(own))
                    confined = True
                elif node.traits.distribution.placement is Placement.PARTITIONED:
                    return None
            elif isinstance(node, LookupJoin) and node.limited:
                return None
            elif isinstance(node, Receive | SpoolScan):
                placement = node.traits.distribution.placement
                if placement is Placement.PARTITIONED:
                    return None
        if not confined or len(keys) > PRUNED_KEYS_MAX:
            return None
        return Pruning(tuple(keys))  # type: ignore[arg-type]


def cut_fragments(
    root: Physical,
    output: tuple[OutputColumn, ...],
    pruning: dict[int, PruningKeys],
    stored: Sequence[Physical] = (),
) -> tuple[Fragment, ...]:
    """``root`` delivers to the initiator; ``output`` is what the user's cursor gets. ``stored`` are
    the shared sub-plans: their place is the number of their spool."""
    cutter = _Cutter(pruning)
    number = cutter.number()
    top = ordered(cutter.cut(root, number), output)
    traits = replace(top.traits, distribution=SINGLETON)
    cutter.finish(number, Root(output, traits, top), SINGLETON)
    for spool, definition in enumerate(stored):
        number = cutter.number()
        below = cutter.cut(definition, number)
        store = Store(below.output, below.traits, below, spool)
        cutter.finish(number, store, definition.traits.distribution)
    return tuple(cutter.done[i] for i in sorted(cutter.done))
