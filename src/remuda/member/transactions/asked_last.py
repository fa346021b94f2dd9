"""Commits of two members in which the one that is asked last decides (``transaction.last_part``),
on members without logs. The near member prepares its own parts before it asks; the other one keeps
them and commits. Everything else is done as for other parts, by ``TransactionShell``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, cast

from remuda.member.base.core import Core
from remuda.member.state.transaction_sets import PartWork
from remuda.member.state.view_layout import ViewLayout
from remuda.member.transactions.admission import Admission
from remuda.member.transactions.apply import Applying
from remuda.member.transactions.backup_room import BackupRoom
from remuda.member.transactions.outgoing import Outgoing
from remuda.member.transactions.pending import PendingParts
from remuda.member.transactions.slices import ROWS_PER_STEP, rows_of
from remuda.member.transactions.validation import Validation
from remuda.transaction import states as tx
from remuda.transaction.last_part import common_backup
from remuda.transaction.near import Near
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
    def __init__(self, core: Core, shell: Shell, applying: Applying, apply: Apply) -> None:
        """``apply`` stores a part that is committed on this copy."""
        self._core = core
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
        if sum([len(part.writes) for part in work.values()]) > ROWS_PER_STEP:
            return kept
        own = [((transaction, p), part) for p, part in work.items() if p != last]
        admission, validation = shell.admission, shell.validation
        validation.begin_step()
        for address, part in own:
            if not admission.is_open(address, part) or validation.conflict(address, part):
                return kept
        partitions, timestamp = near.partitions, core.timestamp()
        for address, part in own:
            shell.pending.add(address, part, timestamp, readers_wait=True)
            kept.append(parts.prepare_companion(address, partitions, part, timestamp))
        near.begin_with_last(core.world.clock.monotonic())
        return kept

    # --- the member that is asked last --------------------------------------------------------

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
