"""Statements that have ended, summed by fingerprint and user."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from remuda.errors import RemudaError, SqlSyntaxError
from remuda.execution.context import FragmentProfile
from remuda.member.metrics.families import Family, counter, gauge
from remuda.member.metrics.quantiles import bucket, quantile
from remuda.session.query_profiles import QueryFacts
from remuda.sql.text.fingerprint import READ_MAX, Fingerprint, fingerprint

FINGERPRINTS_MAX: Final = 5_000
"""Of one member, each user's counted apart. One takes some 2 kB."""
TEXTS_SIZE_MAX: Final = 4_000_000
"""Characters of the texts whose fingerprints are known."""
NOT_READ: Final = Fingerprint(0, "<syntax error>")
"""All statements that are refused by their grammar: such texts can differ without end."""
OTHERS: Final = Fingerprint(-1, "<others>")
"""Sums of the statements that were removed from the table."""
Key = tuple[int, str]


@dataclass(slots=True)
class StatementSums:
    """``first`` and ``last`` are microseconds since 1970, when a call ended; times are seconds.
    ``memory`` is the most that one call held on one member, ``buckets`` counts of calls by their
    time (``quantiles``)."""

    number: int
    user: str
    text: str
    timed: int = 0
    reads: int = 0
    """By key, answered at once: neither timed nor among ``rows``."""
    errors: int = 0
    rows: int = 0
    seconds: float = 0.0
    shortest: float = 0.0
    longest: float = 0.0
    planning: float = 0.0
    queued: float = 0.0
    waited: float = 0.0
    memory: int = 0
    spilled: int = 0
    first: int = 0
    last: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, seconds: float, rows: int, failed: bool, at: int) -> None:
        """One call that has ended at ``at``."""
        timed = self.timed > 0
        self.shortest = min(self.shortest, seconds) if timed else seconds
        self.first = min(self.first, at) if timed else at
        self.last = max(self.last, at)
        self.longest = max(self.longest, seconds)
        self.timed += 1
        self.errors += failed
        self.rows += rows
        self.seconds += seconds
        number = bucket(seconds)
        self.buckets[number] = self.buckets.get(number, 0) + 1

    def add_read(self) -> None:
        """One read by key that was answered at once."""
        self.reads += 1

    def add_waits(self, planning: float, queued: float, waited: float) -> None:
        """Parts of the time of a call: ``queued`` for memory, ``waited`` for locks and turns."""
        self.planning += planning
        self.queued += queued
        self.waited += waited

    def add_memory(self, memory: int, spilled: int) -> None:
        """Of a part of a call."""
        self.memory = max(self.memory, memory)
        self.spilled += spilled

    def merge(self, other: StatementSums) -> None:
        """Add the calls of another member, or of a statement that is removed."""
        if other.timed:
            timed = self.timed > 0
            self.shortest = min(self.shortest, other.shortest) if timed else other.shortest
            self.first = min(self.first, other.first) if timed else other.first
        self.longest = max(self.longest, other.longest)
        self.last = max(self.last, other.last)
        self.timed += other.timed
        self.reads += other.reads
        self.errors += other.errors
        self.rows += other.rows
        self.seconds += other.seconds
        self.add_waits(other.planning, other.queued, other.waited)
        self.add_memory(other.memory, other.spilled)
        for number, count in other.buckets.items():
            self.buckets[number] = self.buckets.get(number, 0) + count

    def quantile(self, fraction: float) -> float | None:
        """Never outside of the times that were measured."""
        found = quantile(self.buckets, fraction)
        return None if found is None else min(max(found, self.shortest), self.longest)


class StatementTable:
    """Bounded: the statement that was called least recently leaves for a new one, and is added to
    one row per member for all that have left."""

    def __init__(
        self,
        clock: Callable[[], int],
        fingerprints_max: int = FINGERPRINTS_MAX,
        texts_size_max: int = TEXTS_SIZE_MAX,
    ) -> None:
        """``clock`` gives microseconds since 1970."""
        self._clock = clock
        self._fingerprints_max = fingerprints_max
        self._texts_size_max = texts_size_max
        self._sums: OrderedDict[Key, StatementSums] = OrderedDict()
        """Called least recently first."""
        self._others = StatementSums(OTHERS.number, "", OTHERS.text)
        self._removed = 0
        self._known: OrderedDict[str, Fingerprint] = OrderedDict()
        """By the beginning of the text; the oldest first."""
        self._texts_size = 0

    def read(self, text: str, user: str) -> None:
        """A read by key was answered at once. On the path of each of them: no clock, one call
        besides this one."""
        found = self._known.get(text)
        if found is None:
            found = self._fingerprint(text)
        sums = self._sums.get((found.number, user))
        if sums is None:
            sums = self._new(found, user)
        self._sums.move_to_end((found.number, user))
        sums.add_read()

    def ended(
        self,
        text: str,
        facts: QueryFacts,
        seconds: float,
        error: RemudaError | None,
        parts: Iterable[FragmentProfile],
    ) -> Key:
        """A statement has ended after ``seconds``. ``text`` is all of it; the key is for
        ``used``."""
        known = not isinstance(error, SqlSyntaxError)
        found = (self._known.get(text) or self._fingerprint(text)) if known else NOT_READ
        key = found.number, facts.user
        sums = self._sums.get(key) or self._new(found, facts.user)
        self._sums.move_to_end(key)
        sums.add(seconds, facts.rows, error is not None, self._clock())
        if facts.planning or facts.queued or facts.waited:
            sums.add_waits(facts.planning, facts.queued, facts.waited)
        for part in parts:
            self.used(key, part)
        return key

    def used(self, key: Key, part: FragmentProfile) -> None:
        """The memory and disk of a fragment, for a call with the key that ``ended`` gave. It may
        be told after the end."""
        spilled = sum([operator.spilled for operator in part.operators])
        self._sums.get(key, self._others).add_memory(part.peak_memory, spilled)

    def _fingerprint(self, text: str) -> Fingerprint:
        begin = text[: READ_MAX + 1]
        found = self._known.get(begin)
        if found is None:
            found = fingerprint(begin) or NOT_READ
            self._known[begin] = found
            self._texts_size += len(begin)
            while self._texts_size > self._texts_size_max and len(self._known) > 1:
                self._texts_size -= len(self._known.popitem(last=False)[0])
        return found

    def _new(self, found: Fingerprint, user: str) -> StatementSums:
        while len(self._sums) >= self._fingerprints_max:
            self._others.merge(self._sums.popitem(last=False)[1])
            self._removed += 1
        sums = self._sums[found.number, user] = StatementSums(found.number, user, found.text)
        return sums

    def reset(self) -> None:
        """Begin again, without a call of any statement."""
        self._sums.clear()
        self._others = StatementSums(OTHERS.number, "", OTHERS.text)

    def all(self) -> Iterable[StatementSums]:
        """A list of its own; its elements change as statements end."""
        found = list(self._sums.values())
        return [*found, self._others] if self._others.timed or self._others.reads else found

    def families(self) -> Iterator[Family]:
        yield gauge(
            "remuda_statement_fingerprints",
            "Statements by fingerprint and user that sys.statement_statistics has of this member.",
            len(self._sums),
        )
        yield counter(
            "remuda_statement_fingerprints_removed_total",
            "Statements that left sys.statement_statistics for others: their figures are in "
            "the row <others>.",
            self._removed,
        )
