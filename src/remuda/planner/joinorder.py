"""Which pairs of relation sets to join: dynamic programming over connected sub-graphs.

``connected_pairs`` is DPccp (Moerkotte and Neumann, VLDB 2006): every pair of disjoint connected
sets with an edge between them, once, smaller sets first. Sets are bit masks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

RELATIONS_MAX = 10
PAIRS_MAX = 1_200
"""Beyond either, ``greedy_pairs`` takes over."""


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


def connected_pairs(count: int, edges: Sequence[int]) -> list[tuple[int, int]] | None:
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
                if len(pairs) > PAIRS_MAX:
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


def greedy_pairs(
    count: int,
    edges: Sequence[int],
    join: Callable[[int, int], float | None],
) -> None:
    """Greedy operator ordering: join the two sets with the fewest rows, until one is left.

    ``join(a, b)`` makes the join and gives its rows, or None where it is not valid.
    """
    parts = [1 << i for i in range(count)]
    sizes: dict[tuple[int, int], float | None] = {}
    while len(parts) > 1:
        best: tuple[float, int, int] | None = None
        for i, a in enumerate(parts):
            around = neighbours(a, edges)
            for b in parts[i + 1 :]:
                if not around & b:
                    continue
                if (a, b) not in sizes:
                    sizes[a, b] = join(a, b)
                rows = sizes[a, b]
                if rows is not None and (best is None or rows < best[0]):
                    best = (rows, a, b)
        if best is None:
            return
        _, a, b = best
        parts = [part for part in parts if part not in (a, b)] + [a | b]
