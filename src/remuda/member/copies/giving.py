"""Copies that this member gives away: rows of partitions that it is the primary of, to members that
are to keep them (repair after a loss, rebalancing when members join, moving away for one that
leaves).

One move at a time (``cluster.movement``). Rows are sent in rounds while writers go on, each up to a
timestamp at which everything is decided; when a round was short, writers are held for the last one.
From then on the receiver is told of every small write, as a backup is; atomic writes of many rows
wait until a view names it. A move that fails starts from its beginning, and nothing is lost by it:
the rows of the receiver mean nothing before a view says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from remuda.cluster import movement
from remuda.cluster.movement import Move
from remuda.datatypes.view import View
from remuda.errors import RemudaError, StorageFull, TransientError
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.job_rows import JobRows
from remuda.member.commits.participants import CommitParticipants
from remuda.member.copies.differences import Differences
from remuda.member.membership.membership import Membership
from remuda.member.state.log import fields
from remuda.member.transactions.transactions import Transactions
from remuda.rpc import arrow_stream
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.storage.maps import transfer
from remuda.storage.maps.expiring_rows import estimated_rows
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, Extraction, Versions

log = logging.getLogger(__name__)

TOGETHER = 2
ROWS_TOGETHER = 60_000
"""So many partitions move at once, more if they have no more rows than that: each step of the loop
hands over little, and little data is moved in few steps."""
LOOK_EVERY = 0.5
WISH_EVERY = 0.1
PAUSE = 0.02
ROUNDS_MAX = 5
SHORT_ROUND_ROWS = 2000
HOLD_WAIT = 1.0
"""Seconds, about, that writers are held while others are waited for."""
HOLDS_MAX = 20
SEND_TIMEOUT = 60.0
FAILED_PAUSE_MAX = 4.0
"""Seconds until a move that has failed begins again, at most, unless a view comes: LOOK_EVERY after
the first failure, twice as long after each further one."""
FULL_PAUSE = 2.0
"""Seconds until a receiver that had no room is asked again."""
THROTTLE = 0.25
"""Seconds of rest for each second of copying."""


@dataclass
class Transfer:
    """A move that is going on."""

    move: Move
    name: str
    low: dict[int, int] = field(default_factory=dict)
    """Up to where the receiver has each map."""
    rows: int = 0
    staged: int = 0
    """Rows of jobs that are not committed."""
    former: list[int] = field(default_factory=list)
    """Partitions of which the receiver has former copies, in order."""


class Giving(Wing):
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        peers: Peers,
        commits: CommitParticipants,
        transactions: Transactions,
        membership: Membership,
        offload: Offload,
        job_rows: JobRows,
    ) -> None:
        self._job_rows = job_rows
        self._pauses = job_rows.pauses
        self._core = core
        self._peers = peers
        self._commits = commits
        self._transactions = transactions
        self._membership = membership
        self._offload = offload
        self._differences = Differences(core, peers, offload)
        self._receivers: dict[int, int] = {}
        self._now: Transfer | None = None
        self._changed = asyncio.Event()
        self._looks = False
        """Nothing is to be done, so each beat looks again."""
        self._looked: tuple[object, ...] = ()
        """The state in which the last look found nothing to do."""
        self.moved = 0
        """Rows that were sent."""
        self._refused = ""
        self._failed = 0
        """Moves that have failed since the last one that did not."""
        self._most: int | None = None
        """Partitions that a move may have, while receivers are short of room; None: any number."""
        self.moved_bytes = 0
        """Bytes of these rows, as they were sent."""
        core.listeners.leaving.add_later(self._leaving)

    def routes(self) -> Routes:
        return Routes(control={RpcType.COPY_REPLICATED: self.on_replicated})

    def start(self) -> None:
        self._transactions.receive_with(self.receivers)
        self._core.pulse.on_beat(self._look)
        self._core.spawn(self._run(), "copies")

    def _look(self) -> None:
        if self._looks:
            self._changed.set()

    def receivers(self, partition: int) -> tuple[int, ...]:
        """The members that are being given a copy and must get every write of a partition of this
        member."""
        receiver = self._receivers.get(partition)
        if receiver is None:
            return ()
        row = self._core.view.replicas[partition]  # of a view that may just have come
        return () if receiver in row or row[:1] != (self._core.number,) else (receiver,)

    def on_view(self, _before: View, view: View) -> None:
        now = self._now
        if now is not None and not any(place.fits(view) for place in now.move.placements):
            self._receivers.clear()
            self._transactions.copies_changed()
            self._copy_no_more_staged_rows()
        self._changed.set()

    def _leaving(self, members: frozenset[int]) -> None:
        """These members want to leave: they are to keep nothing."""
        self._core.members_leave(members)
        self._changed.set()

    # --- what to do next ----------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            move = self._next()
            if move is None:
                self._refused, self._most = "", None
                self._looks = True
                await self._changed.wait()
                self._looks = False
                continue
            giving = Transfer(move, f"{self._core.number}-{self._core.world.chance.bits(96):024x}")
            try:
                await self._carry_out(giving)
                self._refused, self._failed = "", 0
            except StorageFull as error:
                await self._no_room(giving, error)
            except RemudaError as error:
                log.info(
                    "copies: the move starts again",
                    extra=fields(receiver=move.receiver or 0, cause=error.message),
                )
                await self._begin_again(giving)
            except Exception:
                log.exception("copies: the move starts again")
                await self._begin_again(giving)

    async def _no_room(self, giving: Transfer, error: StorageFull) -> None:
        """The partitions stay as they are until there is room: with too few copies, perhaps."""
        move = giving.move
        if not self._refused:
            log.warning(
                "copies: the receiver has no room",
                extra=fields(
                    receiver=move.receiver or 0,
                    partitions=len(move.partitions),
                    cause=error.message,
                ),
            )
        self._refused = error.message
        await self._withdraw(giving)
        if len(move.partitions) > 1:  # some of them may fit
            self._most = len(move.partitions) // 2
        else:
            await self._wait(FULL_PAUSE)

    @property
    def refused(self) -> str:
        """Why the last copy was not taken; "" if it was, or if none is to be made."""
        return self._refused

    async def _begin_again(self, giving: Transfer) -> None:
        pause = min(LOOK_EVERY * 2**self._failed, FAILED_PAUSE_MAX)
        self._failed = min(self._failed + 1, 10)
        await self._withdraw(giving, pause)

    async def _withdraw(self, giving: Transfer, pause: float = LOOK_EVERY) -> None:
        """After a while, tell the receiver that nothing more comes under this name: the next move
        may be another one, and the rows that have come would stay for ever."""
        await self._wait(pause)
        receiver = giving.move.receiver
        if receiver is None:
            return

        def message() -> control_pb2.CopyBegin:
            return control_pb2.CopyBegin(context=self._core.context(), transfer=giving.name)

        self._peers.tell(receiver, RpcType.COPY_BEGIN, message)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    @property
    def _copies(self) -> int:
        return self._core.view.backups + 1

    def _next(self) -> Move | None:
        core = self._core
        if not core.ready or core.lost.keys() & core.view.by_number.keys():
            return None  # first it must be known who is there
        if self._commits.in_doubt:
            return None  # it would wait for a bulk write that waits for a copy to come back
        together, doubtful = self._together, frozenset[int]()
        if core.view.unreachable:
            doubtful = self._transactions.shell.parts.in_doubt()
        returning, awaited = self._membership.leavers.returning, self._awaited()
        looked = (core.view, together, core.leaving, doubtful, returning, awaited)
        if looked == self._looked:  # its view by identity, mostly
            return None
        move = movement.next_move(
            core.view,
            core.number,
            self._copies,
            together,
            core.leaving,
            doubtful,
            returning,
            awaited,
        )
        self._looked = looked if move is None else ()
        return move

    def _awaited(self) -> frozenset[int]:
        """Members that have left, and whose copies are not made elsewhere yet."""
        view = self._core.view
        if not view.away:
            return movement.NOBODY
        now = self._core.timestamp()
        return frozenset(
            each.member.number
            for each in view.away
            if each.until > now and each.member.number not in view.by_number
        )

    @property
    def _together(self) -> int:
        rows = sum(estimated_rows(store) for store in self._stores().values())
        mine = self._core.view.owners.count(self._core.number)
        together = max(TOGETHER, mine * ROWS_TOGETHER // max(rows, 1))
        return together if self._most is None else min(together, self._most)

    # --- one move -----------------------------------------------------------------------------

    async def _carry_out(self, giving: Transfer) -> None:
        core, move = self._core, giving.move
        self._now = giving
        began, before = core.world.clock.monotonic(), self.moved_bytes
        try:
            if move.receiver is not None:
                await self._copy(giving)
            await self._pauses.begin_move()
            try:
                await self._finish(giving)
            finally:
                self._pauses.end_move()
        finally:
            self._now = None
            self._receivers.clear()
            self._copy_no_more_staged_rows()
            self._transactions.copies_changed()
            for store in self._stores().values():
                store.kept_from = transfer.NOT_KEPT
        log.info(
            "copies moved" if move.receiver is not None else "copies placed",
            extra=fields(
                partitions=len(move.placements),
                receiver=move.receiver or 0,
                rows=giving.rows,
                bytes=self.moved_bytes - before,
                staged=giving.staged,
                left=self.progress()["partitions_to_place"],
                seconds=round(core.world.clock.monotonic() - began, 3),
            ),
        )

    def _stores(self) -> dict[int, MapStore]:
        stores = self._core.stores
        return {m: store for m, store in stores.items() if not store.schema.replicated}

    def _require_fit(self, move: Move) -> None:
        """Raises TransientError when another view has overtaken the move."""
        if not all(place.fits(self._core.view) for place in move.placements):
            raise TransientError("another view has changed the copies")
        if self._job_rows.failed is not None:
            cause = self._job_rows.failed.message
            raise TransientError(f"staged rows could not be copied: {cause}")

    async def _copy_staged_rows(self, giving: Transfer) -> None:
        """From now on the receiver gets what is staged, and before that what is there already."""
        receiver = giving.move.receiver
        assert receiver is not None
        self._copy_no_more_staged_rows()
        self._job_rows.copy_to(dict.fromkeys(giving.move.partitions, receiver))
        giving.staged = await self._job_rows.send_all(receiver, giving.move.partitions)

    def _copy_no_more_staged_rows(self) -> None:
        self._job_rows.copy_no_more()

    async def _copy(self, giving: Transfer) -> None:
        """Everything but the last round."""
        core, receiver = self._core, giving.move.receiver
        assert receiver is not None
        message = control_pb2.CopyBegin(
            context=core.context(),
            transfer=giving.name,
            partitions=sorted(giving.move.partitions),
            bytes=self._bytes_of(giving.move),
        )
        reply = await self._peers.request(receiver, RpcType.COPY_BEGIN, message)
        giving.former = list(control_pb2.CopyBegun.FromString(reply.pbody).kept)
        await self._copy_staged_rows(giving)
        for _ in range(ROUNDS_MAX):
            sent = 0
            for map_id in self._stores():
                high = core.timestamp()
                await self._commits.settled(map_id, high)
                sent += await self._round(giving, map_id, high)
            if sent <= SHORT_ROUND_ROWS:
                break

    def _bytes_of(self, move: Move) -> int:
        """Of the rows that are to be copied, estimated: partitions are of about the same size."""
        mine = len(self._core.view.partitions_of(self._core.number))
        held = sum(store.bytes for store in self._stores().values())
        return held * len(move.partitions) // max(mine, 1)

    async def _round(self, giving: Transfer, map_id: int, high: int) -> int:
        """Send what was decided since the last round and up to ``high``."""
        self._require_fit(giving.move)
        store, low = self._core.stores.get(map_id), giving.low.get(map_id, ALWAYS)
        if store is None:
            return 0  # dropped
        receiver = giving.move.receiver
        assert receiver is not None
        former = giving.former if low == ALWAYS else []
        whole = store.extraction(giving.move.partitions - set(former), low, high)
        versions, floor = whole.versions(), store.floor
        compared = store.extraction(frozenset(former), low, high)
        giving.low[map_id] = store.kept_from = high
        if former:
            lacking = await self._lacking(receiver, giving.name, compared, former, floor)
            versions = chain(lacking, versions)
        rows = await self._send(receiver, giving.name, store, low, versions)
        giving.rows += rows
        self.moved += rows
        return rows

    async def _lacking(
        self, receiver: int, name: str, extraction: Extraction, former: list[int], floor: int
    ) -> Iterator[Versions]:
        """The rows that a receiver with former copies needs."""
        differences = self._differences
        before = differences.bytes
        try:
            return await differences.lacking(receiver, name, extraction, former, floor)
        finally:
            self.moved_bytes += differences.bytes - before

    async def _send(
        self, receiver: int, name: str, store: MapStore, low: int, versions: Iterator[Versions]
    ) -> int:
        """Send versions, one request at a time, with rests. How many there were."""
        core, clock = self._core, self._core.world.clock
        schema, floor, rows = store.schema, store.floor, 0
        versions = transfer.joined(versions)
        while (found := await self._offload.result(lambda: next(versions, None))) is not None:
            for batch in transfer.wire_batches(found.on_wire()):
                began = clock.monotonic()
                message = control_pb2.CopyRows(
                    context=core.context(),
                    transfer=name,
                    map_id=schema.map_id,
                    schema_version=schema.version,
                    low=low,
                    floor=floor,
                )
                body = arrow_stream.encode(batch.schema, [batch])
                self.moved_bytes += len(body)
                await self._peers.request(
                    receiver, RpcType.COPY_ROWS, message, [body], timeout=SEND_TIMEOUT
                )
                rows += batch.num_rows
                await asyncio.sleep(min((clock.monotonic() - began) * THROTTLE, 1.0))
        if not rows and floor:  # what was removed, and is not kept any more, must not be read there
            await self._peers.request(
                receiver,
                RpcType.COPY_ROWS,
                control_pb2.CopyRows(
                    context=core.context(),
                    transfer=name,
                    map_id=schema.map_id,
                    schema_version=schema.version,
                    low=low,
                    floor=floor,
                ),
                timeout=SEND_TIMEOUT,
            )
        return rows

    async def _finish(self, giving: Transfer) -> None:
        """With writers held: the last round, then ask for the view."""
        core, move = self._core, giving.move
        held = small = False
        try:
            await self._hold_writers(move)
            held = small = True
            if move.receiver is not None:
                for map_id in self._stores():
                    await self._round(giving, map_id, core.timestamp())
                self._require_fit(move)
                self._receivers = dict.fromkeys(move.partitions, move.receiver)
                self._job_rows.promise()
                self._transactions.copies_changed()
                self._transactions.release(move.partitions)
                small = False
            # Without a receiver, writes of the partitions are held until the view is there: the
            # next primary does not know parts that are pending here, and serves reads above them.
            # From here on the view may come at any time: there is no way back but another one.
            while any(place.fits(core.view) for place in move.placements):
                self._membership.wish_places(
                    [place for place in move.placements if place.fits(core.view)]
                )
                self._changed.clear()
                await self._wait(WISH_EVERY)
        finally:
            if small:
                self._transactions.release(move.partitions)
            if held:
                self._commits.release()

    async def _hold_writers(self, move: Move) -> None:
        """Return when no write is pending: of the maps, and of the partitions. Two members that
        hold at the same time may wait for each other's writes: a member that has waited for long
        lets go for a while. Raises TransientError, and then nothing is held."""
        fraction = self._core.world.chance.fraction
        for _ in range(HOLDS_MAX):
            small = False
            try:
                async with asyncio.timeout(HOLD_WAIT * (0.5 + fraction())):
                    await self._commits.hold()
                    small = True
                    await self._transactions.hold(move.partitions)
            except BaseException as problem:
                if small:
                    self._transactions.release(move.partitions)
                self._commits.release()
                if not isinstance(problem, TimeoutError):
                    raise
                await asyncio.sleep(HOLD_WAIT * fraction())
            else:
                return
        raise TransientError("writes were pending all the time")

    # --- replicated maps ----------------------------------------------------------------------

    def on_replicated(self, request: Request) -> None:
        """A member that has joined wants a replicated map. It takes part in all commits since it is
        in the view, and prepares none before it has this copy."""
        message = control_pb2.CopyBegin.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._send_replicated(request, message))

    async def _send_replicated(self, request: Request, message: control_pb2.CopyBegin) -> None:
        core, receiver, map_id = self._core, message.context.sender, message.map_id
        await core.until_ready()
        while True:  # what was prepared in a view without the receiver
            while self._commits.prepared_without(map_id, receiver):
                await self._commits.next_decision(map_id)
            await self._transactions.settled(map_id)
            if not self._commits.prepared_without(map_id, receiver):
                break
        store = core.store(map_id, 0)
        high = core.timestamp()
        extraction = store.extraction(transfer.EVERY_PARTITION, ALWAYS, high)
        versions, before = extraction.versions(), self.moved_bytes
        if message.kept:
            every = sorted(transfer.EVERY_PARTITION)
            versions = await self._lacking(
                receiver, message.transfer, extraction, every, store.floor
            )
        rows = await self._send(receiver, message.transfer, store, ALWAYS, versions)
        size = self.moved_bytes - before
        log.info("replicated map sent", extra=fields(map=store.schema.name, rows=rows, bytes=size))
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    # --- state --------------------------------------------------------------------------------

    def progress(self) -> dict[str, int]:
        """For the log and the system relations."""
        return {
            **movement.progress(self._core.view, self._copies, self._core.leaving),
            "rows_moved": self.moved,
            "bytes_moved": self.moved_bytes,
        }

    def gauges(self) -> dict[str, int]:
        return {"copies_outgoing": 0 if self._now is None else 1}
