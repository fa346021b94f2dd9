"""A member that counts while it notes commits counts what it would read from its log."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from remuda.member.snapshots.commit_counts import CommitCounts, PartCounts
from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry
from remuda.storage.log.replay import find_cut
from remuda.storage.log.tally import Stretch, Tally, tally

SEEDS = 40
PARTITIONS = (1, 2, 3)
OWN = frozenset({1, 3})
CUTS = 5


class Noted:
    """The log of a member: parts begin and end in it while cuts are made, finished or given up."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.entries: list[Entry] = []
        self.open: dict[log.PartId, int] = {}
        """With the sequences at which they were prepared."""
        self.counts = CommitCounts()
        self.watched = False
        self.clock = 100
        self.cuts: list[int] = []
        """The timestamps of those that were finished; their versions count from 1."""
        self.needs = [1]

    def append(self, record: log.Record) -> int:
        sequence = len(self.entries) + 1
        self.entries.append(Entry(sequence, 1, 0, record))
        if self.watched:
            self.counts.noted(sequence, record)
        return sequence

    def changes(self) -> tuple[log.Change, ...]:
        random = self.random
        return tuple(
            log.Change(random.choice((7, 8)), 1, b"k", random.choice((None, b"r")))
            for _ in range(random.randrange(4))
        )

    def step(self, commit: int) -> None:
        """A part begins, or ends at ``commit``."""
        random = self.random
        part = log.PartId(len(self.entries), 1, random.choice(PARTITIONS))
        match random.randrange(4):
            case 0 | 1:
                record = log.Prepared(part, commit, (part.partition,), b"", self.changes())
                self.open[part] = self.append(record)
            case 2:
                self.append(log.Committed(part, commit, (part.partition,), self.changes()))
            case _ if self.open:
                part = random.choice(list(self.open))
                del self.open[part]
                if random.random() < 0.2:
                    self.append(log.RolledBack(part))
                else:
                    self.append(log.Committed(part, commit, (part.partition,), None))
            case _:
                pass

    def below(self) -> None:
        """Something happens while no cut is made: its commit is below the member's clock."""
        self.clock += 1
        self.step(self.clock)

    def cut(self, *, finished: bool) -> None:
        self.watched = True
        self.counts.asked()
        at = self.clock + self.random.randrange(5)
        commits: dict[log.Unit, tuple[int, int]] = {}

        def steps() -> None:
            for _ in range(self.random.randrange(6)):
                commit = self.random.choice((at - 1, at, at + 1, at + 2))
                self.step(max(commit, self.clock + 1))
                if isinstance(record := self.entries[-1].record, log.Committed):
                    commits.setdefault(record.part, (len(self.entries), record.timestamp))

        steps()
        if finished:
            version = len(self.cuts) + 1
            start = self.append(log.CutStart(version, at))
            self.needs.append(min([start, *self.open.values()]))
            steps()
            before = {part for part, (n, commit) in commits.items() if n > start and commit <= at}
            after = {part for part, (n, commit) in commits.items() if n < start and commit > at}
            self.append(log.CutFinish(version, frozenset(before), frozenset(after)))
            self.counts.finished(at, self.open.keys())
            self.cuts.append(at)
        self.counts.given_up()
        self.clock = at + 2

    def read(self, above: int, to: int) -> dict[int, Tally]:
        """From the log, between cuts of these versions."""
        cut = find_cut(self.entries, to)
        assert cut is not None
        stretch = Stretch(1, self.cuts[above - 1], cut, OWN)
        return tally(stretch, self.entries, lambda _: 0)

    def counted(self, above: int, to: int) -> PartCounts | None:
        return self.counts.between(self.cuts[above - 1], self.cuts[to - 1], OWN)


def played(seed: int) -> Noted:
    noted = Noted(Random(seed))
    while len(noted.cuts) < CUTS:
        for _ in range(noted.random.randrange(20)):
            noted.below()
        noted.cut(finished=noted.random.random() < 0.7)
    return noted


def test_what_was_counted_is_what_the_log_says() -> None:
    known = 0
    for seed in range(SEEDS):
        noted = played(seed)
        for to in range(2, CUTS + 1):
            for above in range(1, to):
                found = noted.counted(above, to)
                if found is not None:  # None: a part was prepared before the counts began
                    assert found == PartCounts(noted.read(above, to), jobs=False), seed
                    known += 1
    assert known > CUTS * SEEDS


def kept_in_order(patch: pytest.MonkeyPatch) -> None:
    """The place in the log decides, and not the cut's timestamp."""
    patch.setattr(CommitCounts, "asked", lambda _self: None)


def given_up_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = CommitCounts.asked

    def asked(self: CommitCounts) -> None:
        self._cutting = None
        original(self)

    patch.setattr(CommitCounts, "asked", asked)
    patch.setattr(CommitCounts, "given_up", lambda _self: None)


@pytest.mark.parametrize("mutation", [kept_in_order, given_up_is_forgotten])
def test_counts_that_miss_a_commit_are_noticed(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        test_what_was_counted_is_what_the_log_says()


def test_nothing_is_told_of_what_was_noted_before_the_first_cut() -> None:
    noted = played(1)
    first, last = noted.cuts[0], noted.cuts[-1]
    assert noted.counts.between(first - 1, last, OWN) is None
    assert noted.counts.between(first, last + 1, OWN) is None
    assert CommitCounts().between(first, last, OWN) is None


def test_jobs_are_told_of_and_not_counted() -> None:
    counts = CommitCounts()
    counts.asked()
    counts.finished(10, ())
    counts.given_up()
    counts.noted(1, log.JobCommitted("j", 11))
    counts.asked()
    counts.finished(20, ())
    counts.given_up()
    assert counts.between(10, 20, OWN) == PartCounts({}, jobs=True)
    counts.asked()
    counts.noted(2, log.JobCommitted("k", 40))
    counts.finished(30, ())
    counts.given_up()
    assert counts.between(20, 30, OWN) == PartCounts({}, jobs=False)
    counts.asked()
    counts.finished(50, ())
    counts.given_up()
    assert counts.between(30, 50, OWN) == PartCounts({}, jobs=True)
    assert counts.between(10, 50, OWN) == PartCounts({}, jobs=True)
