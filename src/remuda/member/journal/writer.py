"""The write-ahead log of a member with ``data_dir``: the notes of ``member.state.wal`` become
records.

A part that commits in one phase is one record, written when it commits. One that commits in two is
prepared in the log before it votes. A job's rows are noted as they arrive, so that little is left
to be written when it is prepared; its coordinator notes the decision before it tells anybody.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pyarrow as pa

from remuda.datatypes.conformance import of_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import values_to_array
from remuda.datatypes.view import View
from remuda.errors import InputError
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.journal.group import GroupCommit
from remuda.member.journal.heard_logs import HeardLogs
from remuda.member.state.commit_work import Work
from remuda.member.state.transaction_sets import PartWork
from remuda.member.state.wal import NoWal
from remuda.snapshot.log_replay import Restored
from remuda.snapshot.log_rows import RECORD_SIZE, Packings, encode_batch, key_columns, pieces
from remuda.storage.format import records as log
from remuda.storage.format.segment import Identity
from remuda.storage.log.writer import SyncMode
from remuda.transaction.parts import Address

DECISIONS_KEPT = 10_000
PRIMARY, BACKUP = "p:", "b:"
"""In front of a task: a member may have rows of it as the primary and as a backup, and a job is
prepared for the two by themselves."""


MOVED = "moved"
"""The task of a job whose rows were noted as they arrived, and have come or gone since with their
partitions: the rest is noted once more."""

REMOVED = "removed"
"""The task of keys that a write of a replicated map names when it is prepared."""


def part_id(address: Address) -> log.PartId:
    transaction, partition = address
    return log.PartId(transaction.began, transaction.near, partition)


class MemberWal(NoWal):
    """``state`` is told of views; it opens the log when the first one is there."""

    active = True

    def __init__(
        self,
        core: Core,
        begin: Callable[[View, bytes], GroupCommit],
        view_changed: Callable[[View, View], None],
        voted: Callable[[View], None],
    ) -> None:
        self._core = core
        self._begin = begin
        self._on_view = view_changed
        self._on_vote = voted
        self.group: GroupCommit | None = None
        self.packings = Packings()
        self.prepared: dict[Address, int] = {}
        """Parts that are prepared in the log and not ended, with the sequences of their records."""
        self.open_jobs: dict[str, int] = {}
        """Jobs that the log has rows of: the sequence of the first record."""
        self._job_tasks: dict[str, tuple[str, ...]] = {}
        self.unresolved: set[str] = set()
        """Jobs whose commit is in the log, and whose rows are not in the stores yet."""
        self.job_ends: OrderedDict[str, int] = OrderedDict()
        """Commit timestamps of the last jobs."""
        self._numbers = 0
        self.checkpoint = 0
        """Where the last one of this process begins to be followed: a sequence."""
        self.catalog_state = b""
        self.watchers: list[Callable[[int, log.Record], None]] = []
        """Told of every record, in the step in which it is noted."""
        self.keep_from: int | None = None
        """The lowest record that an increment still to come rests on."""
        self.archived: int | None = None
        """The last record that is in the archive; None: there is none."""
        self.archive_bytes = self.archive_failures = 0
        self.catalog_noted: Callable[[int], None] | None = None
        """Told after each change of the catalog."""
        self.generation = 0
        self.place: tuple[Path, Identity] | None = None
        """Where the log lies, and whose it is."""
        self._catalog_sequence = 0
        self.replicated = False
        self.heard_logs = HeardLogs()
        self._last = 0
        """The last record that says what the member has. Others are not told of marks and notes
        behind it: their notes of these would never end."""

    def begin(self, view: View, cluster: bytes) -> None:
        if not cluster:
            raise InputError(
                "the members of this cluster keep no logs, and this one has data_dir",
                hint="Start all members with data_dir, or none.",
            )
        self.group = self._begin(view, cluster)
        self.after = self.group.after
        self._last = self.group.writer.last

    def open(self, group: GroupCommit) -> None:
        """Records go to ``group`` from now on."""
        self.group = group

    def lies_at(self, folder: Path, identity: Identity, generation: int) -> None:
        """The log of this generation is in ``folder``."""
        self.place = folder, identity
        self.generation = generation

    def restore(self, made: Restored) -> None:
        """Go on from the state that the log of an earlier process has given."""
        self.packings = made.packings
        self.catalog_state = made.catalog_state
        self.replicated = made.replicated
        self.job_ends.update(made.job_ends)
        self.heard_logs.restore(made.heard)

    # --- waiting ------------------------------------------------------------------------------

    async def safe(self) -> None:
        if self.group is not None:
            await self.group.safe()

    def require_room(self) -> None:
        if self.group is not None and self.group.room.refusal is not None:
            # Raised many times: it must not keep what all these writers had.
            raise self.group.room.refusal.with_traceback(None)

    def append(self, record: log.Record, *, sync: bool = False) -> int:
        assert self.group is not None, "the log begins with the first view"
        self._last = sequence = self.group.append(record, sync=sync)
        for watch in self.watchers:
            watch(sequence, record)
        return sequence

    # --- parts --------------------------------------------------------------------------------

    def _changes(self, work: PartWork) -> tuple[log.Change, ...]:
        found = map(self.packings.change, work.writes)
        return tuple(filter(None, found))

    def part_prepared(
        self, address: Address, work: PartWork, timestamp: int, partitions: tuple[int, ...]
    ) -> None:
        record = log.Prepared(part_id(address), timestamp, partitions, b"", self._changes(work))
        self.prepared[address] = self.append(record)

    def part_committed(
        self, address: Address, work: PartWork, timestamp: int, partitions: tuple[int, ...]
    ) -> None:
        known = self.prepared.pop(address, None) is not None
        changes = None if known else self._changes(work)
        self.append(log.Committed(part_id(address), timestamp, partitions, changes))

    def part_rolled_back(self, address: Address) -> None:
        if self.prepared.pop(address, None) is not None:
            self.append(log.RolledBack(part_id(address)))

    def part_let_go(self, address: Address) -> None:
        self.prepared.pop(address, None)

    # --- jobs ---------------------------------------------------------------------------------

    def staged(
        self,
        job: str,
        task: str,
        schema: MapSchema,
        batch: pa.RecordBatch,
        *,
        backup: bool,
        stream: pa.Buffer | None = None,
    ) -> None:
        if stream is not None and stream.size <= RECORD_SIZE:
            encoded = [stream]
        else:
            encoded = [encode_batch(piece) for piece in pieces(batch)]
        for rows in encoded:
            self._numbers += 1
            task_name = (BACKUP if backup else PRIMARY) + task
            record = log.StagedRows(
                job, task_name, self._numbers, schema.map_id, schema.version, rows
            )
            self.open_jobs.setdefault(job, self.append(record))

    def staged_keys(
        self, job: str, task: str, schema: MapSchema, keys: pa.RecordBatch, *, backup: bool
    ) -> None:
        for piece in pieces(key_columns(keys, schema)):
            self._numbers += 1
            task_name = (BACKUP if backup else PRIMARY) + task
            record = log.StagedKeys(
                job, task_name, self._numbers, schema.map_id, schema.version, encode_batch(piece)
            )
            self.open_jobs.setdefault(job, self.append(record))

    def job_prepared(
        self, work: Work, timestamp: int, participants: tuple[int, ...], *, backup: bool
    ) -> None:
        if work.removed_keys and not backup:
            keys = _key_batch(work)
            self.staged_keys(work.job, REMOVED, work.schema, keys, backup=False)
        role = BACKUP if backup else PRIMARY
        more = (REMOVED,) if work.removed_keys else ()
        written = (MOVED,) if self._noted_again(work, backup=backup) else work.tasks
        tasks = (
            *self._job_tasks.get(work.job, ()),
            *(role + task for task in (*written, *more)),
        )
        self._job_tasks[work.job] = tasks = tuple(dict.fromkeys(tasks))
        record = log.JobPrepared(
            work.job,
            timestamp,
            work.schema.map_id,
            tasks,
            work.overwrite,
            participants,
            work.ttl or 0,
        )
        self.open_jobs.setdefault(work.job, self.append(record))

    def _noted_again(self, work: Work, *, backup: bool) -> bool:
        """The rows of a job, if they are not those that were noted when they arrived."""
        stores = self._core.backup_stores if backup else self._core.stores
        frames = stores[work.schema.map_id].frames
        if not frames.moved(work.job):
            return False
        rows, keys = frames.arranged(work.job)
        for note, prepared in ((self.staged, rows), (self.staged_keys, keys)):
            for batch in () if prepared is None else prepared.batches:
                note(work.job, MOVED, work.schema, batch, backup=backup)
        return True

    def job_decided(self, work: Work, timestamp: int) -> None:
        if work.job in self.job_ends:
            return
        if work.job not in self._job_tasks:  # it only coordinates
            record = log.JobPrepared(work.job, timestamp, work.schema.map_id, (), False, ())
            self.append(record)
        else:
            self.unresolved.add(work.job)
        self._end_job(work.job, timestamp)

    def job_ended(self, job: str, timestamp: int | None) -> None:
        self.unresolved.discard(job)
        self._job_tasks.pop(job, None)
        begun = self.open_jobs.pop(job, None) is not None
        if timestamp is None:
            if begun:
                self.append(log.JobRolledBack(job))
        elif job not in self.job_ends and begun:
            self._end_job(job, timestamp)

    def _end_job(self, job: str, timestamp: int) -> None:
        self.append(log.JobCommitted(job, timestamp))
        self.job_ends[job] = timestamp
        if len(self.job_ends) > DECISIONS_KEPT:
            self.job_ends.popitem(last=False)

    def committed_job(self, job: str) -> bool:
        return job in self.job_ends

    # --- the catalog --------------------------------------------------------------------------

    def catalog_changed(self, version: int, state: bytes) -> None:
        self.packings.learn(self._core.former_schemas.lately(self._core.catalog.maps))
        self.packings.learn(self._core.catalog.maps)
        self.catalog_state = state
        if self.group is not None:
            text = f"{len(self._core.catalog.maps)} maps"
            timestamp = self._core.timestamp()  # above every moment before the change
            record = log.CatalogChanged(version, timestamp, state, text)
            self._catalog_sequence = self.append(record)
            if self.catalog_noted is not None:
                self.catalog_noted(timestamp)

    # --- copies -------------------------------------------------------------------------------

    def partitions_taken(self, partitions: Collection[int]) -> None:
        core = self._core
        for partition in sorted(partitions):
            self.append(log.PartitionTaken(core.view.number, partition, core.clock.last))

    def rows_copied(
        self, schema: MapSchema, rows: pa.RecordBatch, low: int, floor: int, *, replicated: bool
    ) -> None:
        place = PARTITIONS + schema.map_id if replicated else -1
        view = self._core.view.number
        for piece in pieces(rows):
            encoded = encode_batch(piece, (low, floor))
            self.append(log.CopiedRows(view, place, schema.map_id, schema.version, encoded))

    def replicated_taken(self, map_id: int) -> None:
        core = self._core
        record = log.PartitionTaken(core.view.number, PARTITIONS + map_id, core.clock.last)
        self.append(record)

    def replicated_whole(self) -> None:
        self.replicated = True
        self.append(log.PartitionReady(self._core.view.number, PARTITIONS, logged=True))

    # --- views --------------------------------------------------------------------------------

    def view_changed(self, before: View, view: View) -> None:
        self._on_view(before, view)
        me = self._core.number
        for partition, (old, new) in enumerate(zip(before.replicas, view.replicas, strict=True)):
            if me in new and me not in old:
                self.append(log.PartitionReady(view.number, partition, logged=True))
            elif me in old and me not in new:
                self.append(log.PartitionLeft(view.number, partition))

    def voted(self, view: View) -> None:
        self._on_vote(view)

    # --- logs of others -----------------------------------------------------------------------

    def on_disk(self) -> log.HeardLog | None:
        group, place = self.group, self.place
        if group is None or place is None or group.writer.mode is SyncMode.NONE:
            return None  # nothing is ever synced: any part of it may go with the power
        end = min(group.writer.durable, self._last)
        return log.HeardLog(self._core.number, place[1].member, end)

    def heard(self, theirs: log.HeardLog) -> None:
        self.heard_logs.heard(theirs)

    def note_heard(self) -> None:
        """Now and then. Nobody waits for it."""
        record = self.heard_logs.changed(
            self._core.world.clock.monotonic(), self._core.view.by_number
        )
        if record is not None and self.group is not None:
            self.group.append(record)

    # --- state --------------------------------------------------------------------------------

    def checkpointed(self, number: int) -> None:
        """A checkpoint has all records up to ``number``."""
        self.checkpoint = number

    @property
    def may_checkpoint(self) -> bool:
        """Not between a job's commit in the log and in the stores, and not while something is open
        from before the catalog changed: only the log knows how its rows were typed."""
        opened = [*self.prepared.values(), *self.open_jobs.values()]
        return not self.unresolved and self._catalog_sequence <= min(
            opened, default=self._catalog_sequence
        )

    def gauges(self) -> Mapping[str, int]:
        group = self.group
        if group is None:
            return {}
        writer = group.writer
        archived = {
            "log_archived": self.archived or 0,
            "log_archive_bytes": self.archive_bytes,
            "log_archive_failures": self.archive_failures,
        }
        return {
            **(archived if self.archived is not None else {}),
            "log_records": writer.last,
            "log_durable": writer.durable,
            "log_waiting": group.waiting,
            "log_full": int(group.room.refusal is not None),
            "log_bytes": group.bytes,
            "log_groups": group.groups,
            "log_checkpoint": self.checkpoint,
        }


def _key_batch(work: Work) -> pa.RecordBatch:
    schema = work.schema
    types = [schema.columns[position].type for position in schema.key_positions]
    columns = [list(values) for values in zip(*work.removed_keys, strict=True)]
    arrays = [values_to_array(column, each) for column, each in zip(columns, types, strict=True)]
    return of_keys(arrays, schema)
