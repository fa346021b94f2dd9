"""What a member remembers for a cut is what reading its whole log would tell."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.storage.log_index import IndexBuilder

from remuda.member.snapshots.cut_watch import CutWatch, first_open
from remuda.storage.format import records as log
from remuda.transaction.parts import Address
from remuda.transaction.states import TransactionId

SEEDS = 60


class Noted:
    """A log of parts and jobs, in memory: its records are told to a watch and to an index."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.prepared: dict[Address, int] = {}
        self.open_jobs: dict[str, int] = {}
        self.index = IndexBuilder(1)
        self.watch: CutWatch | None = None
        self.last = self.names = 0

    def append(self, record: log.Record) -> int:
        self.last += 1
        self.index.observe(self.last, record)
        if self.watch is not None:
            self.watch.noted(self.last, record)
        return self.last

    def step(self, commit: int) -> None:
        """Something begins, or ends at ``commit``."""
        self.names += 1
        address = TransactionId(self.names, 1), 7
        part = log.PartId(self.names, 1, 7)
        match self.random.randrange(6):
            case 0:
                self.prepared[address] = self.append(log.Prepared(part, commit, (7,), b"", ()))
            case 1:
                self.open_jobs[f"job{self.names}"] = self.append(
                    log.StagedRows(f"job{self.names}", "p:t", 1, 1, 1, b"")
                )
            case 2:
                self.append(log.Committed(part, commit, (7,), ()))
            case 3 | 4 if self.prepared:
                ended = self.random.choice(list(self.prepared))
                del self.prepared[ended]
                part = log.PartId(ended[0].began, 1, 7)
                rolled_back = self.random.random() < 0.2
                self.append(
                    log.RolledBack(part) if rolled_back else log.Committed(part, commit, (7,), None)
                )
            case 5 if self.open_jobs:
                job = self.random.choice(list(self.open_jobs))
                self.append(log.JobCommitted(job, commit))
                del self.open_jobs[job]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_cut_rests_on_what_the_log_says(seed: int) -> None:
    random = Random(seed)
    noted, timestamp = Noted(random), 1000
    wal: Any = noted
    for _ in range(random.randrange(30)):
        noted.step(random.randrange(1, timestamp))  # the clock was not asked for yet
    noted.watch = watch = CutWatch(wal)
    commits = [random.choice((timestamp - 1, timestamp, timestamp + 1)) for _ in range(40)]
    stop = random.randrange(40)
    for commit in commits[:stop]:
        noted.step(commit)
    start = noted.append(log.CutStart(3, timestamp))
    needs = first_open(wal, start)
    for commit in commits[stop:]:
        noted.step(commit)
    before, after = watch.sides(start, timestamp)
    needs = watch.lowest(after, needs)
    finish = noted.append(log.CutFinish(3, before, after))
    [cut] = noted.index.seal(1, 1, noted.last).cuts
    assert (cut.start, cut.finish, cut.needs) == (start, finish, needs)
    assert not before & after
