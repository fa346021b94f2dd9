"""Commits of two members in which the one that is asked last decides (``transaction.last_part``),
on members without logs. The near member prepares its own parts before it asks; the other one keeps
them and commits. Everything else is done as for other parts, by ``TransactionShell``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from functools import partial
from typing import Protocol, cast

from remuda.member.base.core import Core, attempt
from remuda.member.state.transaction_sets import PartWork
from remuda.member.state.view_layout import ViewLayout
from remuda.member.transactions.admission import Admission
from remuda.member.transactions.apply import Applying
from remuda.member.transactions.backup_room import BackupRoom
from remuda.member.transactions.finished import Leading
from remuda.member.transactions.outgoing import Outgoing
from remuda.member.transactions.pending import PendingParts
from remuda.member.transactions.slices import ROWS_PER_STEP, rows_of
from remuda.member.transactions.validation import Validation
from remuda.transaction import states as tx
from remuda.transaction.last_part import common_backup
from remuda.transaction.near import Near
from remuda.transaction.part import Part
from remuda.transaction.parts import Address, Parts

Apply = Callable[[Address, PartWork, int, tuple[int, ...]], None]


class Shell(Protocol):
    """``TransactionShell``, as far as it is needed here."""

    pending: PendingParts
    validation: Validation
    admission: Admission
    backup_room: BackupRoom
    outgoing: Outgoing


class AskedLast:
    def __init__(
        self,
        core: Core,
        shell: Shell,
        applying: Applying,
        apply: Apply,
        nears: MutableMapping[tx.TransactionId, Leading],
    ) -> None:
        """``apply`` stores a part that is committed on this copy. ``nears``: the transactions of
        this member."""
        self._core = core
        self._nears = nears
        self._shell = shell
        self._applying = applying
        self._apply = apply

    # --- the near member ----------------------------------------------------------------------

    def begin(
        self,
        near: Near,
        work: Mapping[int, PartWork],
        last: int | None,
        parts: Parts,
        layout: ViewLayout,
    ) -> bool:
        """Prepare the parts of this member's own, and ask the primary of the last part to keep them
        and to commit; or, if there is no other part, their common backup. False: nothing is begun,
        since no member can be asked so, or one of the parts must wait, or is refused, or there is
        much to write: it takes ``Near.prepare``."""
        if self._core.wal.active:
            return False
        if last is None:
            keeper = common_backup(self._core.number, work, layout)
        else:
            keeper = layout.primary(last)
        if keeper is None:
            return False
        kept = self._prepare_own(near, work, last, parts)
        if not kept:
            return False
        message: tx.Message
        if last is None:
            message = tx.made(tx.KeepAll, (near.transaction, kept[0].timestamp, work))
        else:
            asked = (near.transaction, near.partitions, last, work[last], tuple(kept))
            message = tx.made(tx.PrepareLast, asked)
        self._shell.outgoing.post(keeper, message)
        return True

    def _prepare_own(
        self, near: Near, work: Mapping[int, PartWork], last: int | None, parts: Parts
    ) -> list[tx.BackupPrepare]:
        """Prepare all parts but the last one at one timestamp. The messages for their backup; []:
        nothing is begun."""
        transaction, core, shell = near.transaction, self._core, self._shell
        kept: list[tx.BackupPrepare] = []
        own: list[tuple[Address, PartWork]] = []
        rows = 0
        for partition, part in work.items():
            rows += len(part.writes)
            if partition != last:
                own.append(((transaction, partition), part))
        if rows > ROWS_PER_STEP:
            return kept
        admission, validation = shell.admission, shell.validation
        validation.begin_step()
        for address, part in own:
            if not admission.is_open(address, part) or validation.conflict(address, part):
                return kept
        partitions, timestamp = near.partitions, core.timestamp()
        for address, part in own:
            shell.pending.add_now(address, part, timestamp)
            kept.append(parts.prepare_companion(address, partitions, part, timestamp))
        near.begin_with_last(core.world.clock.monotonic())
        return kept

    def _end(self, sender: int, vote: tx.Vote, parts: Parts) -> int | None:
        """The last part has committed, and so do the others, which are this member's own."""
        leading = self._nears.get(vote.transaction)
        if leading is None or not leading.near.ends_with(vote):
            return None
        ended = parts.settle_companions(vote, sender)
        if ended is None:
            return None
        self._core.observe_clock(vote.timestamp)
        report = leading.near.committed_with_last(vote.timestamp)
        del self._nears[vote.transaction]
        rows = self._apply_all(ended, vote.timestamp)
        told = partial(attempt, "the end of a transaction", partial(leading.done, report))
        self._core.wal.after(told)
        return rows

    # --- when nothing goes wrong --------------------------------------------------------------

    def hear(self, sender: int, message: tx.Message, parts: Parts) -> int | None:
        """Carry out a message of such a transaction in one step, as the machines would if they said
        each effect to each other; how many rows were written or prepared. None: nothing has
        changed, and the general step follows."""
        if isinstance(message, tx.BackupPrepared):
            return self._settle(sender, message, parts)
        if isinstance(message, tx.Vote):
            return self._end(sender, message, parts)
        if isinstance(message, tx.PrepareLast):
            return self._prepare(message, parts)
        return None

    def _apply_all(self, ended: Iterable[tuple[Address, Part]], timestamp: int) -> int:
        rows = 0
        for address, part in ended:
            work = part.work
            assert isinstance(work, PartWork)
            rows += len(work.writes)
            self._apply(address, work, timestamp, part.partitions)
        return rows

    # --- the member that is asked last --------------------------------------------------------

    def _settle(self, sender: int, message: tx.BackupPrepared, parts: Parts) -> int | None:
        """The backup of the last part has committed: so do that part and the copies of the others
        that this member keeps, and the near member is told."""
        address = message.transaction, message.partition
        if sender in self._shell.backup_room.full:
            return None
        settled = parts.settle_last(address, sender)
        if settled is None:
            return None
        rows = self._apply_all(settled.ended, settled.vote.timestamp)
        self._shell.outgoing.post(address[0].near, settled.vote)
        return rows

    def _prepare(self, message: tx.PrepareLast, parts: Parts) -> int | None:
        """Keep the other parts, prepare the last one and send it to its backup, unless something is
        known of them here, or one of them must wait, or is refused."""
        shell, core = self._shell, self._core
        transaction, _, partition, work, companions = message
        address = transaction, partition
        assert isinstance(work, PartWork)
        if not parts.may_prepare_last(message) or not shell.admission.is_open(address, work):
            return None
        shell.validation.begin_step()
        if shell.validation.conflict(address, work) is not None:
            return None
        for keep in companions:
            other = keep.work
            assert isinstance(other, PartWork)
            if not self._applying.knows(other) or shell.backup_room.refusal(keep, parts):
                return None
        rows = len(work.writes)
        for keep in companions:
            other, at = keep.work, keep.timestamp
            assert isinstance(other, PartWork)
            rows += len(other.writes)
            shell.pending.add((transaction, keep.partition), other, at, readers_wait=False)
        timestamp = core.timestamp()  # above those of the others: the frame has brought their clock
        shell.pending.add_now(address, work, timestamp)
        shell.outgoing.post(*parts.prepare_last(message, timestamp))
        return rows

    def keep_companions(
        self, sender: int, message: tx.PrepareLast, parts: Parts
    ) -> tuple[list[tx.Effect], tx.Prepare]:
        """The effects that keep the other parts, and the question that follows. If one of them
        cannot be kept, nothing follows: its primary tells the near member, or asks again."""
        effects: list[tx.Effect] = []
        for keep in message.companions:
            if not self._applying.knows(cast("PartWork", keep.work)):
                return effects, tx.Prepare(message.transaction, message.partitions, {})
            refusal = self._shell.backup_room.refusal(keep, parts)
            if refusal is not None:
                refused = parts.refuse_to_keep(sender, keep, refusal)
                return [*effects, *refused], tx.Prepare(message.transaction, message.partitions, {})
            effects += parts.keep_companion(keep)
        transaction, partitions, partition, work, companions = message
        kept = tuple([keep.partition for keep in companions])
        prepare = tx.made(tx.Prepare, (transaction, partitions, {partition: work}, True, kept))
        return effects, prepare

    def keep_all(self, sender: int, message: tx.KeepAll, parts: Parts) -> int:
        """Commit all parts, and say so; how many rows were stored. Where this member cannot keep
        one of them, it does nothing: its primary asks for each of them later, and hears why."""
        transaction, at, works = message
        rows = 0
        if not parts.has_kept_all(message):
            if not self._may_keep(message, parts) or not parts.keep_all(message):
                return 0
            partitions = tuple(sorted(works))
            for partition, work in works.items():
                self._apply((transaction, partition), cast("PartWork", work), at, partitions)
            rows = rows_of(message)
        self._shell.outgoing.post(sender, tx.KeptAll(transaction, at))
        return rows

    def _may_keep(self, message: tx.KeepAll, parts: Parts) -> bool:
        transaction, at, works = message
        for partition, work in works.items():
            keep = tx.BackupPrepare(transaction, partition, at, (), work, False)
            known = self._applying.knows(cast("PartWork", work))
            if not known or self._shell.backup_room.refusal(keep, parts):
                return False
        return True
