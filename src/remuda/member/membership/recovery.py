"""A member with ``data_dir``: it opens its folder, makes its stores of what the log says, and, when
the members that came back have agreed on how everything ended, goes on with the log.

Three ways lead to the first view. A new folder begins a log. Members that form their cluster again
go on with theirs (``forming_again``). A member that the others went on without begins anew, with a
log of the next generation: its rows are theirs now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from remuda.datatypes.view import View
from remuda.errors import DataCorrupted, InputError, RemudaError
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.offload import Offload
from remuda.member.journal.checkpoint import Checkpoints
from remuda.member.journal.folder import Folder, FolderState
from remuda.member.journal.group import GroupCommit
from remuda.member.journal.replay import restored
from remuda.member.journal.writer import MemberWal
from remuda.member.membership.former_copies import FormerCopies
from remuda.member.membership.membership_messages import encode_log_end
from remuda.member.state.log import fields
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.snapshot.log_replay import (
    Restored,
    commit_job,
    commit_part,
    drop_job,
    former_schemas,
    take_catalog,
)
from remuda.storage.format import records
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import OpenedLog, open_log
from remuda.storage.log.reader import Entry
from remuda.storage.log.writer import SyncMode
from remuda.storage.snapshot.witness import Witness
from remuda.transaction.parts import Address

log = logging.getLogger(__name__)

WITNESS_TIMEOUT: Final = 10.0
"""Seconds for the store of snapshots to tell what it knows of a log."""
PREPARED = control_pb2.PartMessage.PREPARED
COMMITTED = control_pb2.PartMessage.COMMITTED
ROLLED_BACK = control_pb2.PartMessage.ROLLED_BACK


class _CountedLog:
    """A log that notes how much of each segment is read."""

    def __init__(self, opened: OpenedLog, read: dict[int, int]) -> None:
        self._opened = opened
        self._read = read

    def entries(self, start: int) -> Iterator[Entry]:
        for entry in self._opened.reader.entries(start, self._opened.tail):
            self._read[entry.segment] = entry.offset
            yield entry

    def entries_of(self, start: int, kinds: tuple[type[records.Record], ...]) -> Iterator[Entry]:
        return self._opened.reader.entries_of(start, kinds, self._opened.tail)


def _nobody(_log: Identity) -> None:
    """There is neither a store of snapshots nor an archive."""


class Recovery:
    """``end`` is told why the member must end, when the disk fails. ``ends``: see Checkpoints.
    ``witness`` tells, on a thread, which record of a log others know last; it raises ResourceError
    and others where they cannot be asked."""

    def __init__(
        self,
        core: Core,
        former: FormerCopies,
        end: Callable[[str], None],
        ends: Callable[[], dict[Address, int | None]],
        witness: Callable[[Identity], Witness | None] = _nobody,
    ) -> None:
        self._core = core
        self._former = former
        self._witness = witness
        self._end = end
        self._ends = ends
        self._flushing = Offload(core.world.workers, "log")
        self._imaging = Offload(core.world.workers, "checkpoint")
        self.wal = MemberWal(core, self._begin, self._view_changed, self._voted)
        core.note_in(self.wal)
        self.checkpoints: Checkpoints | None = None
        self._folder: Folder | None = None
        self._opened: OpenedLog | None = None
        self._group: GroupCommit | None = None
        self.restored: Restored | None = None
        self.reading = False
        """The log is being read, which may take longer than others would wait for an answer."""
        self._settled = False
        """The members that came back have agreed; the stores are as their logs say."""
        self._replayed: dict[int, int] = {}
        """Bytes of segments that this start has read."""

    def _failed(self, error: RemudaError) -> None:
        """A record that is not on the disk must not be told: nothing can be told any more."""
        log.error("the log has failed", extra=fields(cause=error.message))
        self._end(f"its log cannot be written: {error.message}")

    # --- opening ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Lock the folder and read what is in it. Raises ResourceError, DataCorrupted, DiskFull."""
        hop = Hop(asyncio.get_running_loop())
        self._flushing.start(hop)
        self._imaging.start(hop)
        core = self._core
        folder = self._folder = Folder(core.world.disk, Path(core.config.data_dir))
        state = folder.state
        if state is None:
            return
        self.reading = True
        self.restored = await self._flushing.result(partial(self._restore, folder, state))
        await self._require_newest(state)
        self.reading = False
        core.clock.observe(self.restored.clock)
        log.info(
            "data found",
            extra=fields(
                member=state.number,
                view=state.view.number,
                rows=self.restored.rows,
                in_doubt=len(self.restored.parts) + len(self.restored.jobs),
            ),
        )

    async def _require_newest(self, state: FolderState) -> None:
        """Raises DataCorrupted when the store of snapshots or the archive names a later record of
        this log than its last one: all folders may have been put back together. Where nobody can
        be asked in time, the member starts without that."""
        opened = self._opened
        assert opened is not None
        if self._core.config.log_sync != SyncMode.FSYNC.value:
            return  # what others name may have gone with the power
        asked = Offload(self._core.world.workers, "witness")
        asked.start(Hop(asyncio.get_running_loop()))
        try:
            async with asyncio.timeout(WITNESS_TIMEOUT):
                known = await asked.result(partial(self._witness, state.identity))
        except TimeoutError:  # its thread is left alone: it may never end
            log.warning("the store of snapshots does not tell how new the log is")
            return
        except RemudaError as problem:
            asked.close()
            log.warning(
                "the store of snapshots does not tell how new the log is",
                extra=fields(cause=problem.message),
            )
            return
        asked.close()
        end = opened.tail.end.sequence
        if known is not None and known.sequence > end:
            raise _older_than_told(state.number, self._core.config.data_dir, end, known)

    def _restore(self, folder: Folder, state: FolderState) -> Restored:
        """On the thread."""
        opened = self._opened = self._open_log(folder, state)
        if opened.tail.lost:
            log.warning("end of the log cut off", extra=fields(what=str(opened.tail)))

        log_read = _CountedLog(opened, self._replayed)
        return restored(folder.disk, folder.image(state.generation), log_read)

    def _open_log(self, folder: Folder, state: FolderState) -> OpenedLog:
        mode = SyncMode(self._core.config.log_sync)
        return open_log(folder.disk, folder.log(state.generation), state.identity, mode)

    @property
    def state(self) -> FolderState | None:
        return None if self._folder is None else self._folder.state

    @property
    def cluster(self) -> bytes:
        """The identity of the cluster; b"" before it is known."""
        state = self.state
        return b"" if state is None else state.identity.cluster

    def new_cluster(self) -> bytes:
        return self._core.world.chance.bits(128).to_bytes(16)

    # --- what the folder says -----------------------------------------------------------------

    def log_state(self) -> control_pb2.LogState | None:
        """None: the folder is new."""
        state, made = self.state, self.restored
        if state is None or made is None:
            return None
        message = control_pb2.LogState(
            cluster_identity=state.identity.cluster,
            member=state.number,
            view=codec.encode_view(state.view),
            clock=made.clock,
            jobs=sorted(made.jobs),
            replicated=made.replicated,
            left=sorted(made.left),
            settled=state.settled,
            folder=self._core.config.data_dir,
        )
        if self._opened is not None:
            end = self._opened.tail.end.sequence
            mine = records.HeardLog(state.number, state.identity.member, end)
            message.log.CopyFrom(encode_log_end(mine))
        message.heard.extend(encode_log_end(each) for each in made.heard)
        if state.accepted is not None:
            message.accepted.CopyFrom(codec.encode_view(state.accepted))
        for partition, holders in state.lost.items():
            message.lost.add(partition=partition, view=holders.view, members=holders.members)
        for prepared in made.parts:
            message.parts.add(
                began=prepared.part.began,
                near=prepared.part.near,
                partition=prepared.part.partition,
                state=PREPARED,
                timestamp=prepared.timestamp,
                partitions=prepared.partitions,
            )
        return message

    def ends_of(self, asked: control_pb2.Recover) -> control_pb2.Recover:
        """How parts of these transactions, and these jobs, ended in this log, where it knows."""
        made = self._require_data()
        answer = control_pb2.Recover(context=self._core.context())
        if made.catalog_state:
            answer.catalog.ParseFromString(made.catalog_state)
        transactions = {(part.began, part.near) for part in asked.parts}
        for part, end in made.ends.items():
            if part.transaction in transactions:
                found = answer.parts.add(
                    began=part.began,
                    near=part.near,
                    partition=part.partition,
                    state=ROLLED_BACK if end is None else COMMITTED,
                )
                if end is not None:
                    found.timestamp = end
        for each in asked.jobs:
            if each.job in made.job_ends:
                answer.jobs.add(job=each.job, timestamp=made.job_ends[each.job])
        return answer

    def _require_data(self) -> Restored:
        if self.restored is None:
            raise InputError("this member has no log to start again from")
        return self.restored

    # --- forming again ------------------------------------------------------------------------

    async def settle(self, decided: control_pb2.Recover) -> None:
        """Transactions that were in doubt end as was decided, and the view is the next one. On the
        disk when this returns; done again, it changes nothing."""
        made, folder, opened = self._require_data(), self._folder, self._opened
        assert folder is not None
        assert folder.state is not None
        assert opened is not None
        if self._group is None:
            self._group = self._group_commit(opened)
        group, state, view = self._group, folder.state, codec.decode_view(decided.view)
        before = state.view
        if decided.catalog.version > made.catalog.version:
            catalog = decided.catalog.SerializeToString()
            group.append(
                records.CatalogChanged(decided.catalog.version, made.clock, catalog, "recovered")
            )
            take_catalog(made, catalog)
        mine = {p for p, row in enumerate(view.replicas) if state.number in row}
        mine.add(PARTITIONS + state.number)
        for part in decided.parts:
            _settle_part(made, group, part, mine)
        for job in decided.jobs:
            _settle_job(made, group, job)
        for job_id in list(made.staged):  # nobody was promised these
            drop_job(made, job_id)
            group.append(records.JobRolledBack(job_id))
        made.parts.clear()
        _leave(made, group, view, mine)
        await group.safe()
        folder.state = replace(state, accepted=view, settled=True)
        await self._flushing.result(partial(folder.write, folder.state))
        self._settled = True
        log.info("recovered", extra=fields(view=view.number, before=before.number))

    # --- the first view -----------------------------------------------------------------------

    def _begin(self, view: View, cluster: bytes) -> GroupCommit:
        """``wal.begin``: this process is in ``view``."""
        core, folder = self._core, self._folder
        assert folder is not None
        group = self._adopt() if self._settled else self._begin_anew(folder, view, cluster)
        self.wal.open(group)
        if self._settled:
            self._keep(self._state_now().in_view(view), accepted=None)
        if folder.state is not None:
            generation = folder.state.generation
            self.wal.lies_at(folder.log(generation), folder.state.identity, generation)
        if not self._settled:
            if core.catalog.version:
                self.wal.catalog_changed(core.catalog.version, self.wal.catalog_state)
            if view.number == 1 or len(view.members) == 1:
                self.wal.replicated_whole()
        state = folder.state
        assert state is not None
        opened = self._opened
        assert opened is not None
        image = folder.image(state.generation)
        self.checkpoints = Checkpoints(
            core, self.wal, opened.files, image, self._imaging, self._ends
        )
        if self._settled:
            self.checkpoints.behind(sum(self._replayed.values()))
        core.spawn(self.checkpoints.run(), "checkpoints")
        return group

    def _begin_anew(self, folder: Folder, view: View, cluster: bytes) -> GroupCommit:
        core, old = self._core, folder.state
        if old is not None and old.identity.cluster != cluster:
            raise self.another_cluster(cluster)
        generation = 1
        member = core.world.chance.bits(128).to_bytes(16)
        if old is not None:
            generation = old.generation + 1  # with an identity of its own: it begins with segment 1
            log.warning(
                "the cluster went on without this member: its data comes from the others",
                extra=fields(kept=str(folder.log(old.generation))),
            )
        self._keep_former(old)
        state = FolderState(Identity(cluster, member), core.number, view, generation=generation)
        opened = self._opened = self._open_log(folder, state)
        folder.save(state)
        return self._group_commit(opened)

    def _group_commit(self, opened: OpenedLog) -> GroupCommit:
        core = self._core
        return GroupCommit(
            opened.files,
            opened.writer,
            self._flushing,
            self._failed,
            clock=core.world.clock,
            durations=core.measures.log_writes,
        )

    def _keep_former(self, old: FolderState | None) -> None:
        """The copies in the folder may be most of those that this member is given now."""
        made, self.restored = self.restored, None
        if old is None or made is None:
            return
        rows, left = enumerate(old.view.replicas), made.left
        whole = [p for p, row in rows if old.number in row and p not in left]
        generations = {p: old.view.generation(p) for p in whole}
        self._former.find(made.stores, generations, replicated=made.replicated)

    def _adopt(self) -> GroupCommit:
        """The stores of the log become those of the member."""
        core, made, group = self._core, self._require_data(), self._group
        assert group is not None
        core.catalog = made.catalog
        core.former_schemas.learn(former_schemas(made.catalog_state))
        core.stores.update(made.stores)
        for map_id, store in core.stores.items():
            store.raise_floor(made.floors.get(map_id, made.clock))
        core.clock.observe(made.clock)
        core.recovered = made.replicated
        self.wal.restore(made)
        self.restored = None
        return group

    def another_cluster(self, cluster: bytes) -> InputError:
        return InputError(
            f"data_dir {self._core.config.data_dir} belongs to another cluster",
            detail=f"it is of cluster {self.cluster.hex()}, this one is"
            f" {cluster.hex() if cluster else 'new'}",
            hint="Start the member with its own folder, or with an empty one. A cluster starts"
            " again when its first member is started with the folder of one of its members.",
        )

    # --- views --------------------------------------------------------------------------------

    def _view_changed(self, _before: View, view: View) -> None:
        """A majority has accepted it on its disks; here, all that is told from now on waits until
        it is in the folder."""
        self._keep(self._state_now().in_view(view), accepted=None)

    def _voted(self, view: View) -> None:
        state = self._state_now()
        if state.accepted != view:  # a later ballot may carry the same view
            self._keep(state, accepted=view)

    def _state_now(self) -> FolderState:
        folder = self._folder
        assert folder is not None
        assert folder.state is not None
        return folder.state

    def _keep(self, state: FolderState, *, accepted: View | None) -> None:
        """In the order of these calls, on the thread: heartbeats do not wait for the disk."""
        folder, group = self._folder, self.wal.group
        assert folder is not None
        assert group is not None
        folder.state = state = replace(state, accepted=accepted, settled=False)
        group.save(partial(folder.write, state))

    # --- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Write what waits, and a mark that the member ended by itself."""
        group = self.wal.group
        if group is not None:
            heard = self.wal.heard_logs.whole()
            if heard is not None:
                group.append(heard)
            await group.close(records.Stopped(self._core.clock.last))
        self._flushing.close()
        self._imaging.close()
        if self._opened is not None:
            self._opened.files.close()
        if self._folder is not None:
            self._folder.close()


def _older_than_told(number: int, folder: str, end: int, known: Witness) -> DataCorrupted:
    return DataCorrupted(
        f"the log of member {number} in {folder} is older than {known.where} says: it ends with"
        f" record {end}, and record {known.sequence} was on its disk",
        detail="The folder is an older copy, or its log was cut off: writes behind record"
        f" {end} that were acknowledged would be lost.",
        hint="Put the newer folder back, or restore a snapshot into a new cluster. To go on with"
        " the older folders all the same, start the members without snapshot_store and log_archive,"
        " and give them other places for both afterwards.",
    )


def _settle_part(
    made: Restored, group: GroupCommit, end: control_pb2.PartEnd, mine: set[int]
) -> None:
    part = records.PartId(end.began, end.near, end.partition)
    prepared = made.parts.get(part)
    if prepared is None or part.partition not in mine:
        return
    if end.state == COMMITTED:
        record = records.Committed(part, end.timestamp, prepared.partitions)
        group.append(record)
        commit_part(made, record)
    else:
        group.append(records.RolledBack(part))
        made.ends[part] = None
        made.parts.pop(part)


def _settle_job(made: Restored, group: GroupCommit, end: control_pb2.JobEnd) -> None:
    if end.job not in made.jobs:
        return
    if end.HasField("timestamp"):
        group.append(records.JobCommitted(end.job, end.timestamp))
        commit_job(made, end.job, end.timestamp)
    else:
        group.append(records.JobRolledBack(end.job))
        drop_job(made, end.job)


def _leave(made: Restored, group: GroupCommit, view: View, mine: set[int]) -> None:
    """One copy of each partition counts; further ones are made anew from it."""
    gone = frozenset(range(PARTITIONS)) - mine
    made.left.update(gone)
    for partition in sorted(gone):
        group.append(records.PartitionLeft(view.number, partition))
    for store in made.stores.values():
        if gone and not store.schema.replicated:
            store.discard_partitions(gone)
