"""A little grid of members with real logs on simulated disks, with transactions over partitions and
consistent cuts, from a seed; bases and increments in an object store; and the truth beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from sim_disk import SimulatedDisk
from tests.storage.log_index import LogIndex, index_of
from tests.transaction.cut_model import LocalCut, LogFinish, LogStart

from remuda.datatypes.timestamp import FOREVER
from remuda.storage.format import records as log
from remuda.storage.format.manifest import Manifest, MapEntry, MemberLog
from remuda.storage.format.rows_object import OWN_COLUMNS, partitions_and_times, with_times
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import open_log
from remuda.storage.log.replay import JobCommit, PartCommit
from remuda.storage.log.writer import SyncMode
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.chain import Chain, load
from remuda.storage.snapshot.object_store import DirectoryStore
from remuda.storage.snapshot.restoring import plan

PARTITIONS = 6
KEYS = 4
CLUSTER = b"C" * 16
NAME = "nightly"
MAP = 1
SCHEMA = pa.schema([pa.field("key", pa.binary()), pa.field("row", pa.binary())])

State = dict[tuple[int, bytes], bytes]


@dataclass
class Member:
    number: int
    disk: SimulatedDisk
    partitions: tuple[int, ...]
    prepared: dict[log.Unit, int] = field(default_factory=dict)
    commits: list[tuple[log.Unit, int]] = field(default_factory=list)
    local: LocalCut[log.Unit] | None = None
    told: int = 0

    def __post_init__(self) -> None:
        self.identity = Identity(CLUSTER, bytes([self.number]) * 16)
        self.folder = Path(f"/member{self.number}")
        self.opened = open_log(
            self.disk, self.folder, self.identity, SyncMode.FSYNC, segment_size=900
        )

    def write(self, record: log.Record) -> None:
        self.opened.writer.append(record)
        flush = self.opened.writer.step()
        assert flush is not None
        self.opened.files.carry_out(flush)
        self.opened.writer.on_flushed()

    def index(self) -> LogIndex:
        return index_of(self.opened.reader)[0]

    def begin_cut(self, version: int, timestamp: int) -> None:
        recent = dict(self.commits[self.told :])
        self.local = LocalCut(version, timestamp, self.prepared, recent)
        self.effects(self.local.begin())

    def effects(self, effects: list[object]) -> None:
        for effect in effects:
            match effect:
                case LogStart(version, timestamp):
                    self.write(log.CutStart(version, timestamp))
                case LogFinish(version, before, after):
                    self.write(log.CutFinish(version, before, after))
                    self.opened.writer.roll()
                    self.write(log.Closed(0))  # the segment of the finish is complete


@dataclass
class Transaction:
    parts: dict[log.PartId, log.Prepared]
    timestamp: int
    left: list[log.PartId]
    outcome: int | None


@dataclass
class Job:
    """Rows of a bulk write on every member."""

    name: str
    rows: list[tuple[int, bytes, bytes]]
    left: list[Member]
    outcome: int | None


class Grid:
    def __init__(self, seed: int, members: int = 3, key: ObjectKey | None = None) -> None:
        self.random = Random(seed)
        self.members = [
            Member(
                n,
                SimulatedDisk(Random(n)),
                tuple(p for p in range(PARTITIONS) if p % members == n),
            )
            for n in range(members)
        ]
        self.disk = SimulatedDisk(Random(seed))
        self.disk.make_folder(Path("/store"))
        self.store = DirectoryStore(self.disk, Path("/store"))
        self.key = key
        self.clock = 0
        self.began = 0
        self.open: list[Transaction] = []
        self.jobs: list[Job] = []
        self.truth: list[tuple[int, int, bytes, bytes | None]] = []
        self.version = 0
        self.cuts: dict[int, int] = {}

    # --- transactions ---

    def tick(self) -> int:
        self.clock += self.random.randrange(1, 5)
        return self.clock

    def owner(self, partition: int) -> Member:
        return self.members[partition % len(self.members)]

    def begin(self) -> None:
        self.began += 1
        partitions = tuple(
            sorted(self.random.sample(range(PARTITIONS), self.random.randrange(1, 4)))
        )
        parts = {}
        for partition in partitions:
            part = log.PartId(self.began, 0, partition)
            number = self.random.randrange(KEYS)
            row = None if self.random.random() < 0.2 else self.random.randbytes(3)
            changes = (log.Change(MAP, 1, bytes([number]), row),)
            prepared = log.Prepared(part, self.tick(), partitions, b"", changes)
            if self.locked(partition, changes[0].key):
                return
            parts[part] = prepared
        for part, prepared in parts.items():
            self.owner(part.partition).prepared[part] = prepared.timestamp
            self.owner(part.partition).write(prepared)
        last = max(prepared.timestamp for prepared in parts.values())
        outcome = last if self.random.random() < 0.85 else None
        self.open.append(Transaction(parts, last, list(parts), outcome))

    def locked(self, partition: int, key: bytes) -> bool:
        return any(
            part.partition == partition and prepared.changes[0].key == key
            for transaction in self.open
            for part, prepared in transaction.parts.items()
        )

    def end_one(self) -> None:
        """One part of one transaction, so that cuts come between the parts."""
        transaction = self.random.choice(self.open)
        part = transaction.left.pop(self.random.randrange(len(transaction.left)))
        member, at = self.owner(part.partition), transaction.outcome
        prepared = transaction.parts[part]
        del member.prepared[part]
        if at is None:
            member.write(log.RolledBack(part))
        else:
            whole = prepared.changes if self.random.random() < 0.3 else None
            member.write(log.Committed(part, at, prepared.partitions, whole))
            member.commits.append((part, at))
            self.truth += [(at, part.partition, c.key, c.row) for c in prepared.changes]
        if member.local is not None:
            member.effects(member.local.on_end(part, at, recovered=False))
        if not transaction.left:
            self.open.remove(transaction)

    def begin_job(self) -> None:
        self.began += 1
        name = f"job {self.began}"
        rows = [(p, bytes([100 + self.began % 100]), self.random.randbytes(2)) for p in (0, 1, 2)]
        for member in self.members:
            own = [(p, k.hex(), r.hex()) for p, k, r in rows if p in member.partitions]
            member.write(log.StagedRows(name, "t", 0, MAP, 1, json.dumps(own).encode()))
            member.write(log.StagedRows(name, "lost", 0, MAP, 1, b"of a task that was run again"))
            prepared = self.tick()
            everybody = tuple(each.number for each in self.members)
            member.write(log.JobPrepared(name, prepared, MAP, ("t",), False, everybody))
            member.prepared[name] = prepared
        outcome = self.clock if self.random.random() < 0.85 else None
        self.jobs.append(Job(name, rows, list(self.members), outcome))

    def end_job(self) -> None:
        """On one member."""
        job = self.random.choice(self.jobs)
        member = job.left.pop(self.random.randrange(len(job.left)))
        del member.prepared[job.name]
        if job.outcome is None:
            member.write(log.JobRolledBack(job.name))
        else:
            member.write(log.JobCommitted(job.name, job.outcome))
            member.commits.append((job.name, job.outcome))
            self.truth += [(job.outcome, *row) for row in job.rows if row[0] in member.partitions]
        if member.local is not None:
            member.effects(member.local.on_end(job.name, job.outcome, recovered=False))
        if not job.left:
            self.jobs.remove(job)

    def work(self, steps: int) -> None:
        for _ in range(steps):
            if self.random.random() < 0.1:
                self.begin_job()
            elif self.jobs and self.random.random() < 0.2:
                self.end_job()
            elif self.open and self.random.random() < 0.6:
                self.end_one()
            else:
                self.begin()

    # --- snapshots ---

    def cut(self) -> tuple[int, int]:
        self.version += 1
        timestamp = self.tick()
        for member in self.members:
            member.told = len(member.commits)
        self.work(self.random.randrange(6))
        for member in self.random.sample(self.members, len(self.members)):
            member.begin_cut(self.version, timestamp)
            self.work(self.random.randrange(4))
        while any(member.local is not None and not member.local.ended for member in self.members):
            if self.open:
                self.end_one()
            else:
                self.end_job()
        self.cuts[self.version] = timestamp
        return self.version, timestamp

    def state(self, moment: int) -> State:
        found: State = {}
        for at, partition, key, row in sorted(self.truth, key=lambda change: change[0]):
            if at <= moment:
                found.pop((partition, key), None)
                if row is not None:
                    found[partition, key] = row
        return found

    def manifest(self, version: int, timestamp: int, **more: object) -> Manifest:
        return Manifest(
            NAME,
            version,
            timestamp,
            1_700_000_000_000_000,
            CLUSTER.hex(),
            1,
            "the catalog",
            key="" if self.key is None else self.key.id,
            **more,
        )

    def member_log(self, member: Member, version: int, segments=()) -> MemberLog:
        cut = member.index().cut(version)
        assert cut is not None
        moved = 0
        if segments:
            span = range(segments[0].first, cut.finish + 1)
            moves = [move for each in member.index().summaries for move in each.moves]
            moved = max((move.timestamp for move in moves if move.sequence in span), default=0)
        return MemberLog(
            member.number,
            member.identity.member.hex(),
            member.partitions,
            cut.start,
            cut.finish,
            cut.needs,
            moved,
            tuple(segments),
        )

    def base(self, *, after_parent: bool = False) -> int:
        """``after_parent``: an increment as well."""
        parent = self.version if after_parent else None
        version, timestamp = self.cut()
        writing.begin(self.store, NAME, version)
        state = self.state(timestamp)
        data = []
        for group, member in enumerate(self.members):
            rows = [(p, k, r) for (p, k), r in state.items() if p in member.partitions]
            data.append(
                writing.put_rows(
                    self.store,
                    NAME,
                    version,
                    map_id=MAP,
                    schema_version=1,
                    group=group,
                    partitions=member.partitions,
                    batches=[batch_of(rows, timestamp)],
                    schema=pa.schema([*OWN_COLUMNS, *SCHEMA]),
                    key=self.key,
                )
            )
        logs = tuple(self.member_log(member, version) for member in self.members)
        more: dict[str, object] = {}
        if parent is not None:
            logs, more = self.logs_since(parent, version)
        maps = (MapEntry(MAP, "numbers", len(state)),)
        manifest = self.manifest(
            version, timestamp, logs=logs, maps=maps, data=tuple(data), is_base=True, **more
        )
        writing.finish(self.store, manifest)
        return version

    def increment(self) -> int:
        parent = self.version
        version, timestamp = self.cut()
        writing.begin(self.store, NAME, version)
        logs, more = self.logs_since(parent, version)
        writing.finish(self.store, self.manifest(version, timestamp, logs=logs, **more))
        return version

    def logs_since(
        self, parent: int, version: int
    ) -> tuple[tuple[MemberLog, ...], dict[str, object]]:
        chain = load(self.store, NAME)
        before = chain.manifests[parent]
        logs = []
        for member in self.members:
            needs = before.log_of(member.identity.member.hex()).needs
            cut = member.index().cut(version)
            assert cut is not None
            found = writing.spans_of_increment(
                member.opened.files, needs, cut.finish, member=member.number
            )
            segments = [
                writing.put_segment(
                    self.store,
                    NAME,
                    member.identity.member.hex(),
                    span,
                    member.opened.files.read(span.number),
                    key=self.key,
                )
                for span in found
            ]
            logs.append(self.member_log(member, version, segments))
        return tuple(logs), {"parent": parent, "parent_sha256": chain.digests[parent]}

    def chain(self) -> Chain:
        return load(self.store, NAME)

    def restored(self, **target: int) -> State:
        """What a restore makes of the snapshot, by nothing but the snapshot."""
        found: dict[tuple[int, bytes], tuple[int, bytes | None]] = {}
        how = plan(self.chain(), **target)
        for _, table in how.rows(self.store, self.key):
            partitions, begins, _ = partitions_and_times(table)
            columns = table.column(3).to_pylist(), table.column(4).to_pylist()
            for partition, begin, key, row in zip(partitions, begins, *columns, strict=True):
                found[int(partition), key] = (int(begin), row)
        for part in how.cut.logs:
            for step in how.steps(self.store, part, self.key):
                for place, row in changes_of(step):
                    assert found.get(place, (0, None))[0] < step.timestamp, "twice"
                    found[place] = (step.timestamp, row)
        return {place: row for place, (_, row) in found.items() if row is not None}


def changes_of(step: PartCommit | JobCommit) -> list[tuple[tuple[int, bytes], bytes | None]]:
    if isinstance(step, PartCommit):
        return [((step.part.partition, change.key), change.row) for change in step.changes]
    return [
        ((partition, bytes.fromhex(key)), bytes.fromhex(row))
        for staged in step.rows
        for partition, key, row in json.loads(staged.rows)
    ]


def batch_of(rows: list[tuple[int, bytes, bytes]], timestamp: int) -> pa.RecordBatch:
    keys = pa.array([key for _, key, _ in rows], pa.binary())
    values = pa.array([row for _, _, row in rows], pa.binary())
    return with_times(
        pa.RecordBatch.from_arrays([keys, values], schema=SCHEMA),
        np.array([partition for partition, _, _ in rows], dtype=np.uint16),
        np.full(len(rows), max(timestamp - 1, 0), dtype=np.int64),
        np.full(len(rows), FOREVER, dtype=np.int64),
    )


def filled(
    seed: int, *, key: ObjectKey | None = None, steps: int = 25, joined: bool = False
) -> Grid:
    """A base, two increments, another base (``joined``: an increment, too), an increment."""
    grid = Grid(seed, key=key)

    def second_base() -> int:
        return grid.base(after_parent=joined)

    for make in (grid.base, grid.increment, grid.increment, second_base, grid.increment):
        grid.work(steps)
        make()
    return grid
