"""A member's life as its log tells it, from a seed: transactions in one and two phases, jobs, cuts
(by ``cut_model``), closed timestamps; with the truth beside it."""

from __future__ import annotations

from random import Random

from tests.transaction.cut_model import LocalCut, LogFinish, LogStart

from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry


class History:
    def __init__(self, seed: int, steps: int = 120) -> None:
        self.random = Random(seed)
        self.clock = 0
        self.entries: list[Entry] = []
        self.prepared: dict[log.Unit, log.Prepared | log.JobPrepared] = {}
        self.jobs = 0
        self.staged: dict[str, int] = {}
        self.commits: dict[log.Unit, tuple[int, object]] = {}
        """Unit -> commit timestamp, and its changes or the numbers of its batches."""
        self.local: LocalCut[log.Unit] | None = None
        self.told: tuple[int, int] | None = None
        self.finished: dict[int, int] = {}
        """Cut version -> timestamp."""
        self.began = 0
        for _ in range(steps):
            self.step()

    def tick(self) -> int:
        self.clock += self.random.randrange(1, 4)
        return self.clock

    def write(self, record: log.Record) -> None:
        self.entries.append(Entry(len(self.entries) + 1, 1, 0, record))

    def changes(self) -> tuple[log.Change, ...]:
        key, row = self.random.randbytes(2), self.random.randbytes(4)
        return (log.Change(1, 1, key, None if self.random.random() < 0.2 else row),)

    def step(self) -> None:
        match self.random.randrange(12):
            case 0 | 1 | 2:
                self.prepare()
            case 3 | 4 | 5 if self.prepared:
                self.end(self.random.choice(list(self.prepared)))
            case 6:
                self.commit_at_once()
            case 7 | 8:
                self.stage()
            case 9 if self.told is None:
                self.told = (self.tick(), len(self.entries))
            case 9:
                self.cut()
            case 10:
                below = [each.timestamp for each in self.prepared.values()]
                self.write(log.Closed(min([self.clock, *(at - 1 for at in below)])))
            case _:
                pass

    def part(self) -> log.PartId:
        self.began += 1
        return log.PartId(self.began, 1, self.random.randrange(5))

    def prepare(self) -> None:
        part = self.part()
        prepared = log.Prepared(part, self.tick(), (part.partition,), b"", self.changes())
        self.prepared[part] = prepared
        self.write(prepared)

    def commit_at_once(self) -> None:
        part, at, changes = self.part(), self.tick(), self.changes()
        self.write(log.Committed(part, at, (part.partition,), changes))
        self.commits[part] = (at, changes)

    def stage(self) -> None:
        job = f"job {self.jobs}"
        number = self.staged.get(job, 0)
        self.staged[job] = number + 1
        self.write(log.StagedRows(job, f"t{number % 2}", number, 1, 1, bytes([number % 256])))
        if self.random.random() < 0.3:
            self.jobs += 1
            prepared = log.JobPrepared(job, self.tick(), 1, ("t0",), False, (1,))
            self.prepared[job] = prepared
            self.write(prepared)

    def end(self, unit: log.Unit) -> None:
        prepared = self.prepared.pop(unit)
        timestamp = None
        if self.random.random() < 0.8:
            ahead = self.random.choice([0, 0, 5, 20])
            timestamp = prepared.timestamp + ahead
            self.clock = max(self.clock, timestamp)
        match prepared, timestamp:
            case log.Prepared(part, changes=changes, partitions=parts), None:
                self.write(log.RolledBack(part))
            case log.Prepared(part, changes=changes, partitions=parts), at:
                self.write(log.Committed(part, at, parts, None))
                self.commits[part] = (at, changes)
            case log.JobPrepared(job), None:
                self.write(log.JobRolledBack(job))
            case log.JobPrepared(job), at:
                self.write(log.JobCommitted(job, at))
                numbers = [
                    e.record.number
                    for e in self.entries
                    if isinstance(e.record, log.StagedRows)
                    and e.record.job == job
                    and e.record.task == "t0"
                ]
                self.commits[job] = (at, numbers)
        if self.local is not None:
            self.effects(self.local.on_end(unit, timestamp, recovered=False))

    def cut(self) -> None:
        assert self.told is not None
        (timestamp, place), self.told = self.told, None
        timestamp += self.random.choice([0, 0, 10])
        self.clock = max(self.clock, timestamp)
        recent = {
            unit: self.commits[unit][0]
            for entry in self.entries[place:]
            if (unit := _committed(entry.record)) is not None
        }
        prepared = {unit: each.timestamp for unit, each in self.prepared.items()}
        version = self.local.version + 1 if self.local is not None else 1
        self.local = LocalCut(version, timestamp, prepared, recent)
        self.effects(self.local.begin())

    def effects(self, effects: list[object]) -> None:
        for effect in effects:
            match effect:
                case LogStart(version, timestamp):
                    self.write(log.CutStart(version, timestamp))
                case LogFinish(version, before, after):
                    self.write(log.CutFinish(version, before, after))
                    self.finished[version] = self.local.timestamp


def _committed(record: log.Record) -> log.Unit | None:
    match record:
        case log.Committed(part=unit) | log.JobCommitted(job=unit):
            return unit
    return None
