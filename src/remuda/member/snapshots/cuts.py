"""Consistent cuts of members that keep logs (design rules 23 to 28).

A cut is a version and a timestamp T above the clock of every member. Each member moves its clock
above T, notes the start in its log, waits for what is prepared at or below T and notes the finish,
with the commits that lie on another side of T than their place in the log says. So every log tells
by its order and by its timestamps alike what belongs to the cut, and no transaction waits for it:
the ones that are only active will prepare above T.

The coordinator is the member that makes the snapshot; the next cut has a version above all that any
member has heard of. A cut that is not finished on every member is in no manifest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from remuda.errors import InputError, NotSupported, TransientError, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import RequestHandler
from remuda.member.commits.commits import Commits
from remuda.member.journal.writer import MemberWal, part_id
from remuda.member.snapshots.commit_counts import CommitCounts
from remuda.member.snapshots.cut_watch import CutWatch, first_open
from remuda.member.snapshots.increment_counts import changes_of, changes_of_jobs, with_jobs
from remuda.member.snapshots.repeated_requests import RepeatedRequests
from remuda.member.snapshots.storage import SnapshotStorage
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.format import records as log
from remuda.storage.format.manifest import Manifest, MemberLog, SegmentObject
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import LogFiles
from remuda.storage.log.reader import LogReader
from remuda.storage.log.replay import ToCut, last_cut
from remuda.storage.log.tally import Stretch, Tally
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.writing import put_segment, segment_key, spans_of_increment

WATCHED = 60.0
"""Seconds that a member remembers commits for a cut that it was asked to begin."""
CUT_TIMEOUT = 60.0
STORE_TIMEOUT = 600.0


@dataclass(frozen=True)
class CutMember:
    """A member's part in a cut."""

    member: int
    identity: str
    start: int
    finish: int
    needs: int
    catalog_version: int


@dataclass(frozen=True)
class Cut:
    version: int
    timestamp: int
    cluster: str
    members: tuple[CutMember, ...]
    catalog_version: int
    """The newest that any of them had when it finished."""


@dataclass(frozen=True)
class StoredLog:
    """A member's part in an increment. ``changes`` by map id; None: the member runs a release that
    does not count them."""

    segments: tuple[SegmentObject, ...]
    changes: Mapping[int, Tally] | None


class Cuts:
    def __init__(
        self, core: Core, peers: Peers, commits: Commits, storage: SnapshotStorage
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._storage = storage
        self._repeated = RepeatedRequests(core)
        self.version = 0
        """Of the last cut that this member has heard of."""
        self._learned = False
        self._watch: CutWatch | None = None
        """Since the clock was asked for."""
        self._counts = CommitCounts()
        self._forget: asyncio.TimerHandle | None = None
        self._finished: ToCut | None = None
        """Cut ``version`` as this member's log has it, once it is there."""
        self._stored: Mapping[str, SegmentObject] = {}
        """The segments of the last increment, by key: the first of the next one is among them."""

    @property
    def wal(self) -> MemberWal | None:
        wal = self._core.wal
        return wal if isinstance(wal, MemberWal) and wal.group is not None else None

    def close(self) -> None:
        if self._forget is not None:
            self._forget.cancel()

    # --- the coordinator ----------------------------------------------------------------------

    async def clocks(self) -> dict[int, control_pb2.CutClock]:
        """Ask all members for clocks and logs; they remember commits from here on. Raises
        TransientError."""
        core = self._core
        message = control_pb2.CutClock(context=core.context())
        others = [number for number in core.view.by_number if number != core.number]
        replies = await asyncio.gather(
            *(
                self._peers.request(
                    number, RpcType.CUT_CLOCK, message, timeout=CUT_TIMEOUT, repeated=True
                )
                for number in others
            )
        )
        await self._learn_version()
        found = {core.number: self._clock_here()}
        for number, reply in zip(others, replies, strict=True):
            found[number] = control_pb2.CutClock.FromString(reply.pbody)
            core.observe(found[number].context)
        return found

    async def take(self, version: int, clocks: dict[int, control_pb2.CutClock]) -> Cut:
        """The cut on all members. Raises TransientError when one of them cannot finish it."""
        core = self._core
        timestamp = max(answer.clock for answer in clocks.values())
        mark = control_pb2.CutMark(context=core.context(), version=version, timestamp=timestamp)

        async def member(number: int) -> CutMember:
            if number == core.number:
                done = await self._mark(mark)
            else:
                reply = await self._peers.request(
                    number, RpcType.CUT_MARK, mark, timeout=CUT_TIMEOUT, repeated=True
                )
                done = control_pb2.CutDone.FromString(reply.pbody)
                core.observe(done.context)
            identity = clocks[number].log_identity.hex()
            sequences = done.start, done.finish, done.needs
            return CutMember(number, identity, *sequences, done.catalog_version)

        members = await asyncio.gather(*(member(number) for number in sorted(clocks)))
        cluster = clocks[core.number].cluster_identity.hex()
        newest = max(each.catalog_version for each in members)
        return Cut(version, timestamp, cluster, tuple(members), newest)

    async def store(
        self, parent: Manifest, cut: Cut, logs: Sequence[MemberLog]
    ) -> dict[int, StoredLog]:
        """Have every member put what its log has since the cut before, ``parent``, into the object
        store, and count it; by member. ``logs``: of this cut. Raises InputError where an increment
        would not be restorable."""
        core = self._core
        needs = {each.identity: each.needs for each in parent.logs}

        async def member(each: MemberLog) -> StoredLog:
            message = control_pb2.CutStore(
                context=core.context(),
                snapshot=parent.name,
                version=cut.version,
                needs=needs[each.identity],
                above=parent.timestamp,
                partitions=each.partitions,
            )
            if each.member == core.number:
                stored = await self._store(message)
            else:
                reply = await self._peers.request(
                    each.member, RpcType.CUT_STORE, message, timeout=STORE_TIMEOUT, repeated=True
                )
                stored = control_pb2.CutStored.FromString(reply.pbody)
                core.observe(stored.context)
            return _stored_log(stored)

        # All are waited for: none must put a segment when spare ones were taken away.
        outcomes = await asyncio.gather(*(member(each) for each in logs), return_exceptions=True)
        found: dict[int, StoredLog] = {}
        for each, outcome in zip(logs, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            found[each.member] = outcome
        return found

    # --- a member's part ----------------------------------------------------------------------

    def routes(self) -> dict[int, RequestHandler]:
        return {
            RpcType.CUT_CLOCK: self.on_clock,
            RpcType.CUT_MARK: self.on_mark,
            RpcType.CUT_STORE: self.on_store,
        }

    def on_clock(self, request: Request) -> None:
        message = control_pb2.CutClock.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, self._answer_clock)

    async def _answer_clock(self) -> control_pb2.CutClock:
        await self._learn_version()
        return self._clock_here()

    async def _learn_version(self) -> None:
        """The last cut in the log, from before this process: no version is used twice in a log."""
        wal = self.wal
        if wal is None or self._learned:
            return
        found = await self._storage.aside(lambda: self._last_version(wal))
        self.version = max(self.version, found)
        self._learned = True

    def _clock_here(self) -> control_pb2.CutClock:
        core, wal = self._core, self.wal
        answer = control_pb2.CutClock(version=self.version)
        if wal is not None and wal.place is not None:
            self._begin_watch(wal)
            answer.cluster_identity = wal.place[1].cluster
            answer.log_identity = wal.place[1].member
        answer.clock = core.timestamp()
        answer.context.CopyFrom(core.context())
        return answer

    def _begin_watch(self, wal: MemberWal) -> None:
        if self._counts.noted not in wal.watchers:  # from the first cut on
            wal.watchers.append(self._counts.noted)
        if self._watch is None:
            self._watch = CutWatch(wal)
            wal.watchers.append(self._watch.noted)
        self._counts.asked()
        self.close()
        self._forget = asyncio.get_running_loop().call_later(WATCHED, self._end_watch, wal)

    def _end_watch(self, wal: MemberWal) -> None:
        if self._watch is not None:
            wal.watchers.remove(self._watch.noted)
        self._watch = None
        self._counts.given_up()

    def on_mark(self, request: Request) -> None:
        message = control_pb2.CutMark.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, partial(self._mark, message))

    async def _mark(self, message: control_pb2.CutMark) -> control_pb2.CutDone:
        core, wal, timestamp = self._core, self.wal, message.timestamp
        watch = self._watch
        if wal is None or watch is None or wal.group is None:
            raise TransientError(f"member {core.number} was not asked for its clock before a cut")
        if message.version <= self.version:
            raise TransientError(
                f"member {core.number} has heard of cut {self.version}, and"
                f" {message.version} is to begin"
            )
        view = core.view.number
        self.version, self._finished = message.version, None
        core.observe_clock(timestamp)
        start = wal.append(log.CutStart(message.version, timestamp))
        needs = first_open(wal, start)
        await self.settled(timestamp)
        if core.view.number != view:
            raise ViewChanged("the members changed during a cut")
        if self._watch is not watch or self.version != message.version:
            raise TransientError(  # commits since then were not noted for it
                f"member {core.number} waited too long for what was prepared before cut"
                f" {message.version}"
            )
        before, after = watch.sides(start, timestamp)
        needs = watch.lowest(after, needs)
        finish = wal.append(log.CutFinish(message.version, before, after))
        self._counts.finished(timestamp, {part_id(address) for address in wal.prepared})
        self._end_watch(wal)
        await wal.safe()
        # Begins another segment; the one of the finish is complete then, and on the disk before
        # the next one is (unless log_sync is "none").
        wal.group.writer.roll()
        wal.append(log.Closed(0))
        await wal.safe()
        # What was before the cut before this one may go; this one's increment is still to come.
        wal.keep_from = needs
        self._finished = ToCut(
            message.version, timestamp, start, finish, frozenset(before), frozenset(after)
        )
        return control_pb2.CutDone(
            context=core.context(),
            start=start,
            finish=finish,
            needs=needs,
            catalog_version=core.catalog.version,
        )

    async def settled(self, timestamp: int) -> None:
        """Return when nothing can commit at or below the timestamp any more: the clock is above
        it."""
        while (waiting := self._pending(timestamp)) is not None:
            await self._commits.settled(waiting, timestamp)

    def _pending(self, timestamp: int) -> int | None:
        """A map with a write that may still commit at or below the timestamp."""
        for map_id, store in self._core.stores.items():
            if store.pending_at_or_below(timestamp):
                return map_id
        return None

    # --- the log on the disk, on the thread of the store ----------------------------------------

    def _place(self, wal: MemberWal) -> tuple[Path, Identity]:
        if wal.place is None:
            raise NotSupported("this member has no log", hint="Start the members with data_dir.")
        return wal.place

    def _last_version(self, wal: MemberWal) -> int:
        folder, identity = self._place(wal)
        files = LogFiles(self._core.world.disk, folder)
        reader = LogReader(files, identity)
        return last_cut(reader.entries(0, reader.tail()))

    def on_store(self, request: Request) -> None:
        message = control_pb2.CutStore.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._repeated.serve(request, partial(self._store, message))

    async def _store(self, message: control_pb2.CutStore) -> control_pb2.CutStored:
        wal = self.wal
        if wal is None:
            raise InputError(f"member {self._core.number} keeps no log")

        finished, folder = self._finished, self._place(wal)
        if finished is None or message.version != self.version:
            raise InputError(
                f"cut {message.version} was not finished on member {self._core.number}"
            )
        known = self._stored

        def put(store: ObjectStore, key: ObjectKey | None) -> list[SegmentObject]:
            return self._put(store, key, message, finish=finished.finish, known=known, place=folder)

        stored = await self._storage.work(put)
        self._stored = {each.key: each for each in stored}
        answer = control_pb2.CutStored()
        if message.HasField("above"):
            for map_id, (rows, removed) in (await self._count(wal, message, finished)).items():
                answer.changes.add(map_id=map_id, put=rows, removed=removed)
            answer.counted = True
        for each in stored:
            answer.segments.add(
                key=each.key,
                sha256=each.sha256,
                size=each.size,
                number=each.number,
                first=each.first,
                last=each.last,
            )
        answer.context.CopyFrom(self._core.context())
        return answer

    async def _count(
        self, wal: MemberWal, message: control_pb2.CutStore, cut: ToCut
    ) -> dict[int, Tally]:
        """The log is read only where this process did not count while it noted: for a cut from
        before it, and for jobs."""
        folder, identity = self._place(wal)
        files = LogFiles(self._core.world.disk, folder)
        partitions = frozenset(message.partitions)
        stretch = Stretch(message.needs, message.above, cut, partitions)
        parts = self._counts.between(message.above, cut.timestamp, partitions)
        if parts is None:
            return await self._storage.aside(
                lambda: changes_of(stretch, files, identity, wal.packings, self._core.number)
            )
        if not parts.jobs:
            return parts.tallies
        jobs = await self._storage.aside(
            lambda: changes_of_jobs(stretch, files, identity, wal.packings)
        )
        return with_jobs(parts.tallies, jobs)

    def _put(
        self,
        store: ObjectStore,
        key: ObjectKey | None,
        message: control_pb2.CutStore,
        *,
        finish: int,
        known: Mapping[str, SegmentObject],
        place: tuple[Path, Identity],
    ) -> list[SegmentObject]:
        """On the thread."""
        folder, identity = place
        files = LogFiles(self._core.world.disk, folder)
        number, name = self._core.number, message.snapshot
        found: list[SegmentObject] = []
        for span in spans_of_increment(files, message.needs, finish, member=number):
            path = segment_key(name, identity.member.hex(), span.number)
            if path in known and path in store.keys(path):
                found.append(known[path])
                continue
            data = files.read(span.number)
            found.append(put_segment(store, name, identity.member.hex(), span, data, key=key))
        return found


def _stored_log(message: control_pb2.CutStored) -> StoredLog:
    segments = [
        SegmentObject(s.key, s.sha256, s.size, s.number, s.first, s.last) for s in message.segments
    ]
    changes = {each.map_id: Tally(each.put, each.removed) for each in message.changes}
    return StoredLog(tuple(segments), changes if message.counted else None)


def all_keep_logs(clocks: dict[int, control_pb2.CutClock]) -> bool:
    """Whether a cut can be taken."""
    return all(answer.log_identity for answer in clocks.values())
