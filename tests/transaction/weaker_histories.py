"""Judging histories of the levels below SERIALIZABLE, by what these promise (A. Adya, "Weak
Consistency", 1999): READ COMMITTED is PL-2, REPEATABLE READ is snapshot isolation that agrees with
real time, of which A. Cerone and A. Gotsman, "Analysing Snapshot Isolation" (2016), say which
circles it has: only those with two anti-dependencies in a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from histories import (
    Anomaly,
    Edges,
    Transaction,
    _add_real_time,
    _check_reads,
    _components,
    _dependencies,
    _facts_of,
    _named,
    _order_versions,
    _shortest,
    anomalies,
)

UNREPEATABLE = frozenset({"unrepeatable read"})
"""What each statement's own timestamp explains."""


def judged(history: Sequence[Transaction], level: str) -> list[Anomaly]:
    """What a history of transactions of this level must not show. ``level``: "serializable"
    (strictly), "repeatable read", "read committed"."""
    if level == "serializable":
        return anomalies(history)
    return _snapshots(history) if level == "repeatable read" else _committed(history)


def _committed(history: Sequence[Transaction]) -> list[Anomaly]:
    """G0, G1a, G1b and G1c."""
    facts = _facts_of(history)
    _check_reads(facts)
    _order_versions(facts)
    edges = _dependencies(facts)
    found = [a for a in facts.anomalies if a.name not in UNREPEATABLE]
    kept = {a: {b for b, kind in e.items() if kind in ("ww", "wr")} for a, e in edges.items()}
    circles = [_shortest(kept, component) for component in _components(kept)]
    return [*found, *(_named(circle, edges) for circle in circles)]


def _snapshots(history: Sequence[Transaction]) -> list[Anomaly]:
    """All circles without two rw edges in a row: they are circles of other edges, each of which
    may have a rw edge behind it."""
    facts = _facts_of(history)
    _check_reads(facts)
    _order_versions(facts)
    reads = _dependencies(facts)
    edges: Edges = defaultdict(dict)
    for before, ends in reads.items():
        edges[before].update(ends)
    _add_real_time(facts, edges)
    plain: dict[int, set[int]] = defaultdict(set)
    for before, ends in edges.items():
        for after, kind in ends.items():
            if kind != "rw":
                plain[before].add(after)
    joined = {before: set(ends) for before, ends in plain.items()}
    for before, ends in plain.items():
        for after in ends:
            joined[before] |= {b for b, kind in reads.get(after, {}).items() if kind == "rw"}
    found = list(facts.anomalies)
    for before, ends in joined.items():
        if before in ends:  # a -> b -rw-> a
            between = next(
                b for b in plain[before] if b == before or reads.get(b, {}).get(before) == "rw"
            )
            found.append(_named((before, between), edges))
    for component in _components({a: ends - {a} for a, ends in joined.items()}):
        circle = _shortest(joined, component)
        found.append(Anomaly("G-SI", circle, _shown(circle, edges)))
    return found


def _shown(circle: Sequence[int], edges: Edges) -> str:
    steps = []
    for a, b in zip(circle, (*circle[1:], circle[0]), strict=True):
        steps.append(f"{a} -{edges[a].get(b, '? rw')}->")
    return f"{' '.join(steps)} {circle[0]}"
