"""Which pairs of relation sets to join: dynamic programming over connected sub-graphs.

``connected_pairs`` is DPccp (Moerkotte and Neumann, VLDB 2006): every pair of disjoint connected
sets with an edge between them, once, smaller sets first. Sets are bit masks. Where there are too
many pairs, ``greedy_tree`` finds one good tree (greedy operator ordering, Fegaras 1998), and
``blocks`` cuts it into connected pieces that are small enough to be enumerated (iterative dynamic
programming, Kossmann and Stocker, ACM TODS 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

RELATIONS_MAX = 12
PAIRS_MAX = 2_500
"""Pairs of a star of ten relations: 2,304. Beyond either, ``greedy_tree`` takes over."""
BLOCK_MAX = 7
"""Operands of a block."""


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def neighbours(mask: int, edges: Sequence[int]) -> int:
    """Relations with an edge into ``mask``; ``edges[i]`` are the neighbours of relation i."""
    result = 0
    for relation in bits(mask):
        result |= edges[relation]
    return result & ~mask


def components(count: int, edges: Sequence[int]) -> list[int]:
    rest = (1 << count) - 1
    found = []
    while rest:
        grown = rest & -rest
        while more := neighbours(grown, edges):
            grown |= more
        found.append(grown)
        rest &= ~grown
    return found


def connected_pairs(
    count: int, edges: Sequence[int], pairs_max: int = PAIRS_MAX
) -> list[tuple[int, int]] | None:
    """None when there are too many."""
    if count > RELATIONS_MAX:
        return None
    pairs: list[tuple[int, int]] = []
    for start in range(count - 1, -1, -1):
        forbidden = (1 << (start + 1)) - 1
        for subset in _grow(1 << start, forbidden, edges):
            below = forbidden_below(subset)
            for complement in _complements(subset, below, edges):
                pairs.append((subset, complement))
                if len(pairs) > pairs_max:
                    return None
    pairs.sort(key=lambda pair: (pair[0] | pair[1]).bit_count())
    return pairs


def forbidden_below(subset: int) -> int:
    """All relations up to the lowest of ``subset``: they were starting points already."""
    low = subset & -subset
    return (low << 1) - 1


def _grow(subset: int, forbidden: int, edges: Sequence[int]) -> Iterator[int]:
    """``subset`` and every connected superset that avoids ``forbidden``."""
    yield subset
    around = neighbours(subset, edges) & ~forbidden
    for extra in _subsets(around):
        yield from _grow(subset | extra, forbidden | around, edges)


def _complements(subset: int, below: int, edges: Sequence[int]) -> Iterator[int]:
    excluded = below | subset
    around = neighbours(subset, edges) & ~excluded
    for start in sorted(bits(around), reverse=True):
        smaller = around & ((1 << (start + 1)) - 1)
        yield from _grow(1 << start, excluded | smaller, edges)


def _subsets(mask: int) -> Iterator[int]:
    """Every subset but the empty one."""
    subset = mask & -mask
    while subset:
        yield subset
        subset = (subset - mask) & mask


@dataclass(frozen=True, slots=True)
class Tree:
    """A join tree over relation sets; a leaf has no sides."""

    mask: int
    left: Tree | None = None
    right: Tree | None = None
    leaves: int = 1


def greedy_tree(
    count: int, edges: Sequence[int], join: Callable[[int, int], float | None]
) -> Tree | None:
    """Join the two sets with the fewest rows, until one is left; None when no valid join is.

    ``join(a, b)`` gives the rows of the join of two sets, or None where it is not valid.
    """
    parts = {1 << i: Tree(1 << i) for i in range(count)}
    queue: list[tuple[float, int, int]] = []

    def consider(a: int, b: int) -> None:
        rows = join(a, b)
        if rows is not None:
            heappush(queue, (rows, a, b))

    for i in range(count):
        for j in bits(edges[i] >> (i + 1) << (i + 1)):
            consider(1 << i, 1 << j)
    heapify(queue)
    while queue and len(parts) > 1:
        _, a, b = heappop(queue)
        if a not in parts or b not in parts:
            continue
        left, right = parts.pop(a), parts.pop(b)
        both = a | b
        around = neighbours(both, edges)
        for other in parts:
            if around & other:
                consider(both, other)
        parts[both] = Tree(both, left, right, left.leaves + right.leaves)
    return next(iter(parts.values())) if len(parts) == 1 else None


def blocks(tree: Tree, size: int = BLOCK_MAX) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """``tree`` cut into pieces of at most ``size`` operands, inner pieces first: (operands, joins
    of the tree between them). An operand is a relation or all of an earlier piece."""
    found: list[tuple[list[int], list[tuple[int, int]]]] = []

    def grow(node: Tree) -> tuple[list[int], list[tuple[int, int]]]:
        if node.left is None or node.right is None:
            return [node.mask], []
        left, right = grow(node.left), grow(node.right)
        while len(left[0]) + len(right[0]) > size:
            # The larger side is a piece of its own, and one operand from here on.
            if len(left[0]) >= len(right[0]):
                found.append(left)
                left = [node.left.mask], []
            else:
                found.append(right)
                right = [node.right.mask], []
        pair = (node.left.mask, node.right.mask)
        return left[0] + right[0], [*left[1], *right[1], pair]

    found.append(grow(tree))
    return found


def block_pairs(
    operands: Sequence[int],
    joins: Sequence[tuple[int, int]],
    edges: Sequence[int],
    pairs_max: int,
) -> list[tuple[int, int]]:
    """All pairs of connected sets of ``operands``; only ``joins`` when there are too many."""
    around = [
        sum(1 << j for j, other in enumerate(operands) if neighbours(operand, edges) & other)
        for operand in operands
    ]
    pairs = connected_pairs(len(operands), around, pairs_max)
    if pairs is None:
        return list(joins)

    def whole(mask: int) -> int:
        result = 0
        for i in bits(mask):
            result |= operands[i]
        return result

    return [(whole(a), whole(b)) for a, b in pairs]
