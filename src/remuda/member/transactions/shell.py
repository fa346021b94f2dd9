"""The shell around ``transaction.parts`` and ``transaction.near``: messages, stores, locks, time.

Messages to one member are gathered over a step of the event loop and go in one frame. A message of
a member to itself is not sent, but waits until the step is done, too: a machine never hears an
answer before its effects are carried out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import ParamSpec, cast

from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.view import View
from remuda.errors import RemudaError, ViewChanged
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core, attempt, bug
from remuda.member.base.peers import Peers
from remuda.member.state.transaction_sets import PartWork
from remuda.member.state.view_layout import Receivers, ViewLayout
from remuda.member.transactions.admission import Admission
from remuda.member.transactions.apply import Applying
from remuda.member.transactions.asked_last import AskedLast
from remuda.member.transactions.awaited_ends import LINGERING, AwaitedEnds
from remuda.member.transactions.backup_room import BackupRoom
from remuda.member.transactions.catalog_part import NOTHING, CatalogPart, Decision
from remuda.member.transactions.finished import Done, Finished, Heard, Leading
from remuda.member.transactions.outgoing import Outgoing
from remuda.member.transactions.pending import PendingParts
from remuda.member.transactions.slices import ROWS_PER_STEP, Inbox, Item, patience, slices
from remuda.member.transactions.validation import Validation, misses_a_copy
from remuda.member.transactions.wire import decode_alone, decode_message
from remuda.rpc.messages import control_pb2
from remuda.rpc.transport import Request
from remuda.transaction import states as tx
from remuda.transaction.last_part import last_part
from remuda.transaction.near import Near
from remuda.transaction.parts import Address, Parts

log = logging.getLogger(__name__)
P = ParamSpec("P")

TICK = 0.1
QUIET_TICKS = 10
RESEND = 0.5


class TransactionShell:
    """All parts on this member, and the transactions that it is the near member of."""

    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._receivers: Receivers = lambda _partition: ()
        self.pending = PendingParts(core)
        core.room.counts(lambda: self.pending.nbytes)
        self.validation = Validation(core, self.pending)
        self._applying = Applying(core)
        self.admission = Admission(core, self.pending)
        self.backup_room = BackupRoom(core, self.pending)
        self.layout = ViewLayout(core.view, self._receivers)
        self._parts = Parts(core.number, self.layout, resend=RESEND)
        self._nears: dict[tx.TransactionId, Leading] = {}
        self._to_me: deque[tx.Message] = deque()
        self._inbox = Inbox(self._arrived)
        self._rows = 0
        """Written or prepared so far."""
        self._rows_before = 0
        """Before this step."""
        self._stepping = False
        self._heard: Heard = {}
        self._finished = Finished(core, self._nears, self._heard)
        self.outgoing = Outgoing(core, peers, self._finished.frame)
        self._asked_last = AskedLast(core, self, self._applying, self._apply_alone, self._nears)
        self.catalog_part = CatalogPart(core, self)
        self._awaited_ends = AwaitedEnds(core, self.pending)
        self._latest = 0
        """The newest transaction of this member."""
        self.on_tick: list[Callable[[float], None]] = []
        self._waits: Callable[[], int] = lambda: 0
        self._ticker: asyncio.Task[None] | None = None

    def watch(self, waits: Callable[[], int]) -> None:
        """Checks go on while there are ``waits()``: transactions that wait for keys, without a part
        here."""
        self._waits = waits

    def receive_with(self, receivers: Receivers) -> None:
        """Members that are being given a copy of a partition get its writes from now on."""
        self._receivers = receivers
        self.layout.receive_with(receivers)

    def start(self) -> None:
        """The first view is there: this member has its number."""
        self.layout = ViewLayout(self._core.view, self._receivers)
        self._parts = Parts(self._core.number, self.layout, resend=RESEND)
        self.outgoing.enter(self.layout.number)
        self.admission.admit_by(self._take_prepare, self.validation.must_wait)
        self.pending.tell_of_waits(self.outgoing.hurry)
        self._ticker = self._core.spawn(self._tick(), "transaction checks")

    def close(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()

    # --- as the near member -------------------------------------------------------------------

    def begin(
        self,
        work: Mapping[int, PartWork],
        done: Done,
        *,
        one_phase: bool,
        decision: Decision | None = None,
    ) -> Near:
        """Commit; ``done`` is called once with the end of it, at once perhaps. ``decision``: the
        catalog decides."""
        core = self._core
        if core.pulse.resting:
            core.pulse.wake()
        self._latest = core.timestamp()
        transaction = tx.made(tx.TransactionId, (self._latest, core.number))
        one = next(iter(work.values()))  # all parts have one owner
        locked = one.owner is not None  # others wait for its keys
        last: int | None
        if decision is not None:
            work, last = {**work, tx.CATALOG: NOTHING}, tx.CATALOG
            done = self.catalog_part.begin(transaction, decision, done)
        else:
            last = None if core.wal.active else last_part(core.number, work, self.layout)
        near = Near(
            core.number,
            transaction,
            work,
            self.layout,
            one_phase=one_phase,
            when_finished=locked,
            resend=patience(work, RESEND),
            last=last,
        )
        self._nears[transaction] = Leading(near, done)
        if decision is not None or not self._asked_last.begin(
            near, work, last, self._parts, self.layout
        ):
            self._run(near.prepare(core.world.clock.monotonic()))
            self._drop_done(near)
        return near

    def begin_alone(self, partition: int, work: PartWork, done: Done) -> bool:
        """``begin`` in one phase of a part of this member's own, whose keys the caller has found
        free and whose condition it has decided in this very step, at the snapshot of ``work``: the
        same states, without asking itself. False: it takes ``begin`` (several backups, scans that
        must be compared, rows that expire). Raises DiskFull, StorageFull, and nothing is begun."""
        core, layout = self._core, self.layout
        if len(layout.backups(partition)) > 1 or self.validation.must_look(partition, work):
            return False
        core.room.admit_part(work, primary=True)
        if core.pulse.resting:
            core.pulse.wake()
        # Nobody has read at this timestamp since it was given out, so it is that of the prepare.
        self._latest = timestamp = work.snapshot
        transaction = tx.made(tx.TransactionId, (timestamp, core.number))
        address = (transaction, partition)
        alone = {partition: work}
        near = Near(core.number, transaction, alone, layout, one_phase=True, resend=RESEND)
        self._nears[transaction] = tx.made(Leading, (near, done))
        near.begin_alone(core.world.clock.monotonic())
        self.pending.add_writes(address, work, timestamp)
        effects = self._parts.prepare_alone(address, work, timestamp)
        if not effects:
            self._settle_alone(address, ())
        elif len(effects) == 1 and isinstance(effects[0], tx.Send):
            self.outgoing.post(*effects[0])
        else:
            self._run(effects)
        return True

    def _settle_alone(self, address: Address, kept: tuple[int, ...]) -> bool:
        """Carry out what ``Parts.settle_alone`` says; False: nothing."""
        part = self._parts.settle_alone(address, kept)
        if part is None:
            return False
        work, timestamp = part.work, part.prepare_timestamp
        assert isinstance(work, PartWork)
        self._apply_alone(address, work, timestamp, part.partitions)
        transaction = address[0]
        leading = self._nears.get(transaction)
        if leading is None:
            return True
        report = leading.near.committed_alone(timestamp)
        if report is None:  # it is in doubt: its user was told
            vote = tx.Vote(transaction, address[1], timestamp, committed=True)
            self._step(self._receive, self._core.number, vote)
            return True
        del self._nears[transaction]
        self._core.wal.after(partial(attempt, "the end of a write", partial(leading.done, report)))
        return True

    def _apply_alone(
        self, address: Address, work: PartWork, timestamp: int, partitions: tuple[int, ...]
    ) -> None:
        """The part is committed on all copies that this one has to know of, as ``ResolveHere`` and
        ``SettledHere`` say."""
        self._applying.apply(address[1], work, timestamp)
        wal = self._core.wal
        if wal.active:
            wal.part_committed(address, work, timestamp, partitions)
        if address in self.pending.parts:
            wal.after(partial(self.pending.remove_writes, address))

    def _keep_alone(self, sender: int, message: tx.BackupPrepare) -> bool:
        """Carry out what ``Parts.keep_alone`` says; False: nothing."""
        work = message.work
        assert isinstance(work, PartWork)
        if not self._applying.knows(work) or self.backup_room.refusal(message, self._parts):
            return False
        if not self._parts.keep_alone(message):
            return False
        self._rows += len(work.writes)
        address, timestamp = (message.transaction, message.partition), message.timestamp
        if self._core.wal.active:  # who is promoted meanwhile lets readers wait for the log
            self.pending.add(address, work, timestamp, readers_wait=self._serves(address[1]))
        self._apply_alone(address, work, timestamp, message.partitions)
        self.outgoing.post(sender, tx.made(tx.BackupPrepared, address))
        return True

    def roll_back(self, near: Near, cause: RemudaError) -> None:
        self._run(near.rollback(self._core.world.clock.monotonic(), cause))
        self._drop_done(near)

    def hears_catalog(self, near: Near, effects: list[tx.Effect]) -> None:
        self._run(effects)
        self._drop_done(near)

    def tells(self, to: int, message: tx.Message) -> None:
        """Send it at the end of this step, to this member as well."""
        self._run([tx.Send(to, message)])

    def leads(self, transaction: tx.TransactionId) -> bool:
        """Whether a transaction of this member has not ended everywhere."""
        return transaction in self._nears

    def _drop_done(self, near: Near) -> None:
        if near.done:
            self._nears.pop(near.transaction, None)

    def _reported(self, report: tx.Report) -> None:
        leading = self._nears.get(report.transaction)
        if leading is not None:
            told = partial(attempt, "the end of a transaction", partial(leading.done, report))
            self._core.wal.after(told)

    # --- messages -----------------------------------------------------------------------------

    def on_messages(self, request: Request) -> None:
        self._rows_before = self._rows
        frame = control_pb2.PartMessages.FromString(request.pbody)
        context = frame.context
        try:
            self._core.observe_member(context)
        except ViewChanged as error:  # everything is sent again, along the newer view
            log.debug("messages of parts dropped: %s", error.message)
            return
        if context.sender not in self._core.view.by_number:  # dropped, and does not know it yet
            return
        if self._core.pulse.resting and (frame.messages or frame.alone):
            self._core.pulse.wake()
        self._heard[context.sender] = frame.finished_below, frozenset(frame.in_doubt)
        sender, me = context.sender, self._core.number
        for began, partition in zip(frame.kept, frame.kept_partitions, strict=False):
            address = (tx.made(tx.TransactionId, (began, me)), partition)
            if sender in self.backup_room.full or not self._settle_alone(address, (sender,)):
                self._inbox.hear(sender, [tx.BackupPrepared(*address)])
        if frame.alone:
            self._inbox.hear(sender, frame.alone)
        if frame.messages:
            self._inbox.hear(sender, frame.messages)

    def _arrived(self, sender: int, message: Item) -> int:
        """The number of rows that were written or prepared."""
        before = self._rows
        try:
            if isinstance(message, control_pb2.AlonePart):
                alone = decode_alone(message, sender)
                if self._keep_alone(sender, alone):
                    return self._rows - before
                decoded: tx.Message = alone
            elif isinstance(message, control_pb2.PartMessage):
                decoded = decode_message(message)
            else:  # said to itself
                decoded = message
        except RemudaError as error:
            log.warning("a message of member %d about a part: %s", sender, error.message)
            return 0
        if isinstance(decoded, tx.BackupPrepare):
            straight = decoded.one_phase and self._keep_alone(sender, decoded)
        else:
            rows = self._asked_last.hear(sender, decoded, self._parts)
            straight = rows is not None
            self._rows += rows or 0
        if not straight:
            self._step(self._receive, sender, decoded)
        return self._rows - before

    def _near_hears(self, sender: int, message: tx.ToNear) -> None:
        if isinstance(message, tx.Vote) and message.refusal is None:
            self._core.observe_clock(message.timestamp)
        leading = self._nears.get(message.transaction)
        if leading is not None:
            now = self._core.world.clock.monotonic()
            self._perform(leading.near.on_message(now, sender, message))
            self._drop_done(leading.near)

    def _receive(self, sender: int, message: tx.Message) -> None:
        match message:
            case tx.Vote() | tx.KeptAll() | tx.Told() if (
                message.transaction.near == self._core.number
            ):
                self._near_hears(sender, message)
            case tx.Finished():
                self._near_hears(sender, message)
                self._perform(self._parts.on_message(sender, message))
            case tx.Prepare():
                self._prepare(sender, message)
            case tx.PrepareLast():
                effects, last = self._asked_last.keep_companions(sender, message, self._parts)
                self._perform(effects)
                self._prepare(sender, last)
            case tx.KeepAll():
                self._rows += self._asked_last.keep_all(sender, message, self._parts)
            case tx.Finish(partition=tx.CATALOG):
                self.catalog_part.ended(message.transaction)
            case tx.Inquire(partition=tx.CATALOG):
                self.catalog_part.inquired(sender, message)
            case tx.Finish():
                self._awaited_ends.note(message, self.layout)
                self._perform(self._parts.on_message(sender, message))
            case tx.BackupPrepare(work=PartWork() as work) if not self._applying.knows(work):
                log.debug("a part waits for the definition of its map: %s", message)
            case tx.BackupPrepared() | tx.BackupRefused():
                self.backup_room.note(sender, message)
                self._perform(self._parts.on_message(sender, message))
            case tx.BackupPrepare() if refusal := self.backup_room.refusal(message, self._parts):
                self._perform(self._parts.refuse_to_keep(sender, message, refusal))
            case _:
                self._perform(self._parts.on_message(sender, message))

    def _prepare(self, sender: int, message: tx.Prepare) -> None:
        """Parts that must wait are kept back; the machine gets what can be prepared at once."""
        ready: dict[int, object] = {}
        for partition, work in message.work.items():
            address = (message.transaction, partition)
            parts = self._parts
            known = (address in parts and not parts.lapsed(address)) or not self._serves(partition)
            assert isinstance(work, PartWork)
            if known or self.admission.admits(sender, message, partition, work):
                ready[partition] = work
        if ready:
            self._take_prepare(sender, message, ready)

    def _take_prepare(self, sender: int, message: tx.Prepare, work: Mapping[int, object]) -> None:
        self.validation.begin_step()
        if len(work) < len(message.work):
            message = message._replace(work=work)
        self._run(self._parts.on_message(sender, message))

    def undecided(self, map_id: int) -> bool:
        """See ``PendingParts.undecided``."""
        return self.pending.undecided(map_id, self._serves)

    def _serves(self, partition: int) -> bool:
        return self.layout.primary(partition) == self._core.number

    # --- effects ------------------------------------------------------------------------------

    def _run(self, effects: list[tx.Effect]) -> None:
        self._step(self._perform, effects)

    def _step(self, action: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Messages of the member to itself meanwhile are delivered when ``action`` is done."""
        if self._stepping:
            action(*args, **kwargs)
            return
        self._stepping = True
        try:
            action(*args, **kwargs)
            while self._to_me:
                if self._rows - self._rows_before >= ROWS_PER_STEP:
                    self._hear_later()
                    break
                message = self._to_me.popleft()
                try:
                    self._receive(self._core.number, message)
                except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                    bug(error, "a message of a part")
        finally:
            self._stepping = False

    def _hear_later(self) -> None:
        """Enough was written in this step."""
        self._rows_before = self._rows
        for message in self._to_me:
            self._inbox.put(self._core.number, message)
        self._to_me.clear()
        self._inbox.later()

    def _perform(self, effects: list[tx.Effect]) -> None:
        for effect in effects:
            match effect:
                case tx.Send(to, message):
                    self._send(to, message)
                case tx.PrepareHere(transaction, partition, work):
                    assert isinstance(work, PartWork)
                    self._prepare_here((transaction, partition), work)
                case tx.KeepHere(transaction, partition, timestamp, work):
                    assert isinstance(work, PartWork)
                    self._core.clock.observe(timestamp)
                    self._rows += len(work.writes)
                    address, waits = (transaction, partition), self._serves(partition)
                    self.pending.add(address, work, timestamp, readers_wait=waits)
                    self._note_prepared(address, work, timestamp)
                case tx.ResolveHere():
                    self._resolve_here(effect)
                case tx.SettledHere(transaction, partition):
                    self._core.wal.after(partial(self.pending.remove, (transaction, partition)))
                case tx.HoldHere(transaction, partition, work):
                    address, held = (transaction, partition), cast("PartWork", work)
                    self.pending.add(address, held, FOREVER, readers_wait=False)
                case tx.Report():
                    self._reported(effect)
                case tx.DecideHere(transaction, timestamp):
                    self.catalog_part.decide(self._nears[transaction].near, timestamp)

    def _prepare_here(self, address: Address, work: PartWork) -> None:
        refusal = self.admission.refusal(address)
        if address[1] >= PARTITIONS and refusal is None:
            refusal = misses_a_copy(self._core.view, self._parts.partitions(address), work)
        refusal = refusal or self.validation.conflict(address, work)
        if refusal is not None:
            self._perform(self._parts.refused_here(address, refusal))
            return
        self._rows += len(work.writes)
        timestamp = self._core.timestamp()
        self.pending.add(address, work, timestamp, readers_wait=True)
        self._note_prepared(address, work, timestamp)
        self._perform(self._parts.prepared_here(address, timestamp))

    def _note_prepared(self, address: Address, work: PartWork, timestamp: int) -> None:
        """In one phase, the commit is noted alone: nobody was promised anything before."""
        wal, parts = self._core.wal, self._parts
        if wal.active and not parts.one_phase(address):
            wal.part_prepared(address, work, timestamp, parts.partitions(address))

    def _resolve_here(self, end: tx.ResolveHere) -> None:
        address, timestamp = (end.transaction, end.partition), end.timestamp
        part, wal = self.pending.parts.get(address), self._core.wal
        if timestamp is None or part is None:
            (wal.part_rolled_back if end.partitions else wal.part_let_go)(address)
            self.pending.remove(address)
            return
        clock = self._core.clock
        if timestamp > clock.last:
            clock.observe(timestamp)
        self._rows += len(part.work.writes)
        self._applying.apply(address[1], part.work, timestamp)
        if wal.active:
            wal.part_committed(address, part.work, timestamp, end.partitions)
        wal.after(partial(self.pending.decided, address))

    # --- sending ------------------------------------------------------------------------------

    def _send(self, to: int, message: tx.Message) -> None:
        if isinstance(message, tx.Prepare) and len(message.work) > 1:
            pieces = list(slices(message))
            if len(pieces) > 1:
                self._send_pieces(to, pieces)
                return
        lingers = isinstance(message, LINGERING) and self._awaited_ends.may_linger(message)
        if to == self._core.number:
            self._to_me.append(message)
        elif lingers:
            self.outgoing.linger(to, message)
        else:
            self.outgoing.post(to, message)

    def _send_pieces(self, to: int, pieces: list[tx.Prepare]) -> None:
        for piece in pieces:
            if to == self._core.number:
                self._inbox.put(to, piece)
            else:
                self._send(to, piece)
        self._inbox.later()

    # --- time and views -----------------------------------------------------------------------

    async def _tick(self) -> None:
        pulse, quiet = self._core.pulse, 0
        while True:
            quiet = quiet + 1 if self._quiet else 0
            if quiet >= QUIET_TICKS and await pulse.rest():
                quiet = 0
            if quiet < QUIET_TICKS:
                await asyncio.sleep(TICK)
            attempt("transaction checks", self._check)

    @property
    def _quiet(self) -> bool:
        """Whether checks have nothing to look at until something begins."""
        told = self._finished.all_told(self._latest)
        return told and not (len(self._parts) or any(self.gauges().values()) or self._waits())

    def _check(self) -> None:
        now = self._core.world.clock.monotonic()
        for leading in list(self._nears.values()):
            self._run(leading.near.on_tick(now))
            self._drop_done(leading.near)
        if len(self._parts):
            self._run(self._parts.on_tick(now))
            self._forget()
        self.admission.check()
        self._tell_finished(now)
        for listener in self.on_tick:
            listener(now)

    def _forget(self) -> None:
        for near, finished in self._finished.by_member().items():
            if self.layout.alive(near):
                self._run(self._parts.forget(near, *finished))

    def let_go(self, partitions: Collection[int]) -> None:
        """New copies of these partitions are about to come: see ``Parts.let_go``."""
        self._run(self._parts.let_go(partitions))

    def _tell_finished(self, now: float) -> None:
        if not self._finished.due(self._latest, now):
            return
        frame, wal = self._finished.frame, self._core.wal
        for member in self._core.view.by_number:
            if member != self._core.number:
                wal.after(partial(self.outgoing.send_frame, member, frame()))

    def given(self, partitions: Collection[int]) -> list[tx.GivenPart]:
        """See ``Parts.given``."""
        return self._parts.given(partitions)

    def take(self, given: tx.GivenPart) -> bool:
        """See ``Parts.take``. False: the definition of a map that it writes is not known here."""
        if given.work is not None and not self._applying.knows(cast("PartWork", given.work)):
            return False
        self._run(self._parts.take(given))
        return True

    @property
    def parts(self) -> Parts:
        """To be asked only: this shell steps it."""
        return self._parts

    def ends(self) -> dict[Address, int | None]:
        """See ``Parts.ends``."""
        return self._parts.ends()

    def gauges(self) -> dict[str, int]:
        """Nothing of it is left when the member is idle."""
        return {
            "committing": len(self._nears),
            "parts": len(self.pending),
            "part_waits": len(self.admission) + self.pending.waiters + len(self._inbox),
        }

    @property
    def remembered(self) -> int:
        """Parts that may still be asked for."""
        return len(self._parts)

    def on_view(self, _before: View, after: View) -> None:
        """Another view is installed: promoted parts go on here, lost near members are replaced."""
        self.layout = ViewLayout(after, self._receivers)
        self._finished.keep(after.by_number)
        self.outgoing.enter(after.number)
        self._awaited_ends.clear()
        self._inbox.clear()
        self.admission.clear()
        self.pending.serve_partitions(self._serves)
        self._step(self._go_on)
        self.pending.drop_decided(self._serves)
        self.pending.wake_all()

    def _go_on(self) -> None:
        """All machines get the new layout before any of them hears another one."""
        now = self._core.world.clock.monotonic()
        self._perform(self._parts.on_layout(self.layout))
        for leading in list(self._nears.values()):
            self._perform(leading.near.on_layout(now, self.layout))
            self._drop_done(leading.near)
