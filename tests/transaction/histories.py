"""Judging histories of transactions: which isolation they had, found from what they read alone.

Transactions append unique values to lists and read whole lists. A list that was read tells the
order of the appends before it, so the dependencies between transactions follow: ww (appended after
the other's append), wr (read the other's append), rw (read a list that the other's append is not
in yet), and rt (began after the other had been answered). A circle among them is an anomaly, and
its edges say which one. Source: K. Kingsbury, P. Alvaro, "Elle: Inferring Isolation Anomalies from
Experimental Observations" (2020); A. Adya, "Weak Consistency" (1999) for the names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

Key = Hashable


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """No answer came: it may have committed, at any time since. What it read only counts if what it
    wrote was seen."""


@dataclass(frozen=True)
class Append:
    key: Key
    value: int


@dataclass(frozen=True)
class Read:
    key: Key
    values: tuple[int, ...]


@dataclass(frozen=True)
class Transaction:
    """``began`` and ``ended`` are real times around it; the latter infinite if it has no answer."""

    operations: tuple[Append | Read, ...]
    outcome: Outcome = Outcome.COMMITTED
    began: float = 0.0
    ended: float = float("inf")


@dataclass(frozen=True)
class Anomaly:
    """``name`` after Adya, or what is plainly wrong; ``transactions`` are places in the history."""

    name: str
    transactions: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.name} {list(self.transactions)}: {self.text}"


@dataclass
class _Facts:
    """What a history says of its keys."""

    history: Sequence[Transaction]
    committed: list[tuple[int, Transaction]] = field(default_factory=list)
    """Those that are known to have committed, with their places."""
    writer: dict[tuple[Key, int], int] = field(default_factory=dict)
    last: dict[tuple[int, Key], int] = field(default_factory=dict)
    order: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)

    def found(self, name: str, transactions: Iterable[int], text: str) -> None:
        self.anomalies.append(Anomaly(name, tuple(transactions), text))


def anomalies(
    history: Sequence[Transaction], *, real_time: bool = True, clocks_differ: bool = False
) -> list[Anomaly]:
    """Everything that a (with ``real_time``: strictly) serializable system must not show.

    ``clocks_differ``: members choose the timestamps of single writes by clocks of their own. A
    transaction that only reads may then see the later one of two writes on different keys and not
    the earlier one, if it ran beside both (docs/transactions.md). Nothing else is allowed by that:
    without this reader the history must have no anomaly, and the reader must see all that was
    answered before it began, in an order that agrees with what each transaction has read, and with
    real time for all transactions that use several keys, which ask all members for their clocks.
    """
    facts = _facts_of(history)
    _check_reads(facts)
    _order_versions(facts)
    edges = _dependencies(facts)
    if real_time:
        _add_real_time(facts, edges)
    for cycle in _cycles(edges):
        reader = _beside_single_writes(facts, edges, cycle) if clocks_differ else None
        if reader is None:
            facts.anomalies.append(_named(cycle, edges))
        else:
            facts.anomalies += _judged_alone(facts, reader)
    return facts.anomalies


def _beside_single_writes(facts: _Facts, edges: Edges, cycle: tuple[int, ...]) -> int | None:
    """The reader of a circle that ``clocks_differ`` may excuse."""
    arcs = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    misses = [before for before, after in arcs if edges[before][after] == "rw"]
    if len(misses) != 1 or not _only_reads(facts.history[misses[0]]):
        return None
    reader = misses[0]
    orders = [arc for arc in arcs if edges[arc[0]][arc[1]] == "rt"]
    single = all(reader not in arc and len(_keys(facts.history[arc[1]])) == 1 for arc in orders)
    return reader if orders and single else None


def _only_reads(transaction: Transaction) -> bool:
    return all(isinstance(operation, Read) for operation in transaction.operations)


def _keys(transaction: Transaction) -> set[Key]:
    return {operation.key for operation in transaction.operations}


def _judged_alone(facts: _Facts, reader: int) -> list[Anomaly]:
    """The other transactions without the reader; then the reader by all orders that it must see."""
    edges = _dependencies(facts)
    history = facts.history
    for number, transaction in facts.committed:
        for other, earlier in facts.committed:
            several = len(_keys(transaction)) > 1 or reader in {number, other}
            if several and earlier.ended < transaction.began:
                _add(edges, other, number, "rt")
    found = [_named(cycle, edges) for cycle in _cycles(edges)]
    # It keeps its place and its times, so that the numbers of all others stay.
    silent = Transaction((), history[reader].outcome, history[reader].began, history[reader].ended)
    left = [*history[:reader], silent, *history[reader + 1 :]]
    return found + anomalies(left, clocks_differ=True)


def _facts_of(history: Sequence[Transaction]) -> _Facts:
    facts = _Facts(history)
    for number, transaction in enumerate(history):
        for operation in transaction.operations:
            if isinstance(operation, Append):
                facts.writer[operation.key, operation.value] = number
                facts.last[number, operation.key] = operation.value
    facts.committed = _known_to_have_committed(facts)
    return facts


def _known_to_have_committed(facts: _Facts) -> list[tuple[int, Transaction]]:
    found = {n for n, t in enumerate(facts.history) if t.outcome is Outcome.COMMITTED}
    front = list(found)
    while front:
        for operation in facts.history[front.pop()].operations:
            values = operation.values if isinstance(operation, Read) else ()
            for value in values:
                writer = facts.writer.get((operation.key, value))
                unknown = writer is not None and facts.history[writer].outcome is Outcome.UNKNOWN
                if writer is not None and unknown and writer not in found:
                    found.add(writer)
                    front.append(writer)
    return [(number, facts.history[number]) for number in sorted(found)]


# --- single reads -------------------------------------------------------------------------------


def _check_reads(facts: _Facts) -> None:
    for number, transaction in facts.committed:
        own: dict[Key, list[int]] = defaultdict(list)
        known: dict[Key, tuple[int, ...]] = {}
        for operation in transaction.operations:
            key = operation.key
            if isinstance(operation, Append):
                own[key].append(operation.value)
                continue
            _check_read(facts, number, operation)
            expected = (*known[key], *own[key]) if key in known else None
            mine = tuple(own[key])
            if operation.values[len(operation.values) - len(mine) :] != mine:
                facts.found("own write lost", [number], f"{operation} after {mine}")
            elif expected is not None and operation.values != expected:
                facts.found("unrepeatable read", [number], f"{operation}, expected {expected}")
            else:
                known[key] = operation.values[: len(operation.values) - len(mine)]


def _check_read(facts: _Facts, number: int, read: Read) -> None:
    if len(set(read.values)) != len(read.values):
        facts.found("duplicate element", [number], str(read))
    for place, value in enumerate(read.values):
        writer = facts.writer.get((read.key, value))
        if writer is None:
            facts.found("garbage read", [number], f"{read}: nobody appended {value}")
        elif facts.history[writer].outcome is Outcome.ABORTED:
            facts.found("G1a", [writer, number], f"{read}: {value} was rolled back")
        elif writer != number and (
            place == len(read.values) - 1 and facts.last[writer, read.key] != value
        ):
            facts.found("G1b", [writer, number], f"{read}: {value} was not the last append")


def _order_versions(facts: _Facts) -> None:
    """The longest list of a key; all others must be its beginnings."""
    longest: dict[Key, tuple[int, ...]] = {}
    for _, transaction in facts.committed:
        for read in transaction.operations:
            if isinstance(read, Read) and len(read.values) > len(longest.get(read.key, ())):
                longest[read.key] = read.values
    for number, transaction in facts.committed:
        for operation in transaction.operations:
            if isinstance(operation, Read):
                values = operation.values
                if longest.get(operation.key, ())[: len(values)] != values:
                    facts.found(
                        "incompatible order",
                        [number],
                        f"{operation} and {longest[operation.key]}",
                    )
    facts.order = longest


# --- dependencies -------------------------------------------------------------------------------

Edges = dict[int, dict[int, str]]
"""``edges[a][b]``: b depends on a, and how; of several kinds the most telling one is kept."""

_STRENGTH = {"ww": 0, "wr": 1, "rt": 2, "rw": 3}


def _add(edges: Edges, before: int, after: int, kind: str) -> None:
    if before != after:
        old = edges[before].get(after)
        if old is None or _STRENGTH[kind] < _STRENGTH[old]:
            edges[before][after] = kind


def _dependencies(facts: _Facts) -> Edges:
    edges: Edges = defaultdict(dict)
    for key, values in facts.order.items():
        writers = [facts.writer[key, v] for v in values if (key, v) in facts.writer]
        for before, after in pairwise(writers):
            _add(edges, before, after, "ww")
    for number, transaction in facts.committed:
        for operation in transaction.operations:
            if isinstance(operation, Read):
                _read_edges(facts, edges, number, operation)
    return edges


def _read_edges(facts: _Facts, edges: Edges, number: int, read: Read) -> None:
    others = [v for v in read.values if facts.writer.get((read.key, v)) != number]
    if others and (read.key, others[-1]) in facts.writer:
        _add(edges, facts.writer[read.key, others[-1]], number, "wr")
    order = facts.order.get(read.key, ())
    following = [v for v in order[len(others) :] if facts.writer.get((read.key, v)) != number]
    if following and (read.key, following[0]) in facts.writer:
        _add(edges, number, facts.writer[read.key, following[0]], "rw")
    # What was acknowledged but never read by anyone comes after all that was read.
    if not following:
        for (key, value), writer in facts.writer.items():
            unread = key == read.key and value not in order and writer != number
            if unread and facts.history[writer].outcome is Outcome.COMMITTED:
                _add(edges, number, writer, "rw")


def _add_real_time(facts: _Facts, edges: Edges) -> None:
    """Every transaction after those that had been answered when it began. Those that ended before
    another one of them began are left to it."""
    done = sorted(
        (t.ended, n) for n, t in enumerate(facts.history) if t.outcome is Outcome.COMMITTED
    )
    for number, transaction in facts.committed:
        before = [n for ended, n in done if ended < transaction.began and n != number]
        latest = max((facts.history[n].began for n in before), default=0.0)
        for other in before:
            if facts.history[other].ended >= latest:
                _add(edges, other, number, "rt")


# --- circles ------------------------------------------------------------------------------------


def _cycles(edges: Edges) -> Iterator[tuple[int, ...]]:
    """A shortest circle of each strongly connected component; without rw edges if there is one."""
    for kinds in (("ww",), ("ww", "wr"), ("ww", "wr", "rt"), ("ww", "wr", "rt", "rw")):
        kept = {a: {b for b, kind in ends.items() if kind in kinds} for a, ends in edges.items()}
        found = [_shortest(kept, component) for component in _components(kept)]
        if found:
            yield from found
            return


def _components(edges: dict[int, set[int]]) -> Iterator[set[int]]:
    """Strongly connected, of more than one transaction (Kosaraju)."""
    backwards: dict[int, set[int]] = defaultdict(set)
    for before, ends in edges.items():
        for after in ends:
            backwards[after].add(before)
    finished: list[int] = []
    seen: set[int] = set()
    for start in list(edges):
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(sorted(edges.get(start, ()))))]
        while stack:
            node, ends = stack[-1]
            after = next((end for end in ends if end not in seen), None)
            if after is None:
                finished.append(node)
                stack.pop()
            else:
                seen.add(after)
                stack.append((after, iter(sorted(edges.get(after, ())))))
    assigned: set[int] = set()
    for root in reversed(finished):
        component, front = set[int](), [root]
        while front:
            node = front.pop()
            if node not in assigned:
                assigned.add(node)
                component.add(node)
                front.extend(backwards[node] - assigned)
        if len(component) > 1:
            yield component


def _shortest(edges: dict[int, set[int]], component: set[int]) -> tuple[int, ...]:
    best: tuple[int, ...] = ()
    for start in sorted(component):
        came: dict[int, int] = {}
        front = [start]
        while front and start not in came:
            following = []
            for node in front:
                for after in sorted(edges.get(node, set()) & component):
                    if after not in came:
                        came[after] = node
                        following.append(after)
            front = following
        path = [start]
        while came[path[-1]] != start:
            path.append(came[path[-1]])
        cycle = (start, *reversed(path[1:]))
        if not best or len(cycle) < len(best):
            best = cycle
    return best


def _named(cycle: tuple[int, ...], edges: Edges) -> Anomaly:
    kinds = [edges[a][b] for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
    plain = [kind for kind in kinds if kind != "rt"]
    if "rw" not in kinds:
        name = "G0" if set(plain) <= {"ww"} else "G1c"
    else:
        name = "G-single" if kinds.count("rw") == 1 else "G2"
    if "rt" in kinds:
        name += "-realtime"
    steps = " ".join(f"{a} -{kind}->" for a, kind in zip(cycle, kinds, strict=True))
    return Anomaly(name, cycle, f"{steps} {cycle[0]}")
