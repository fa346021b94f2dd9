"""Transactions of two members: the one that is asked last decides. Pure.

The near member has prepared all other parts, as their primary. The last part is then committed in
one phase (Gray's last agent), so nobody has to be asked and told one after the other. It may be
committed only when all others are prepared on all their copies, and from the moment in which its
primary may have been asked, nobody rolls the others back unless that primary has refused.

Where the primary of the last part is the one backup of the others, one message brings it the parts
to keep and the part to commit (``PrepareLast``). That member knows the decision first. It ends its
copies of the others in the same step, and its vote tells that it has.

Where all parts are the near member's own and have one backup in common, that backup is asked last:
it keeps and commits all of them in one step (``KeepAll``), or none.

The parts are ordinary ones (``transaction.parts``), and so is what happens to them when messages or
members are lost: they are sent again, promoted, given away; recovery asks the last part as well.
Each step here asks first whether nothing has gone wrong. If something has, it changes nothing, and
the general step follows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from remuda.limits import PARTITIONS
from remuda.transaction.alone import AloneParts
from remuda.transaction.part import Part
from remuda.transaction.part_table import Address
from remuda.transaction.states import (
    BackupPrepare,
    Effect,
    KeepAll,
    KeepHere,
    Layout,
    PrepareLast,
    Send,
    SettledHere,
    State,
    TransactionId,
    Vote,
    made,
)


class Settled(NamedTuple):
    """A last part that has committed on all its copies, in this very step."""

    ended: list[tuple[Address, Part]]
    """It, and the copies of the others that have committed with it."""
    vote: Vote


def last_part(me: int, partitions: Collection[int], layout: Layout) -> int | None:
    """The one part whose primary is another member than ``me``, if that member is the only backup
    of all the other parts, and has at most one backup for this one. (With two, a part in one phase
    that was sent again could have two timestamps.) None: there is no such part."""
    last = None
    for partition in partitions:
        if partition >= PARTITIONS:
            return None
        if layout.primary(partition) != me:
            if last is not None:
                return None
            last = partition
    if last is None or len(partitions) == 1 or len(layout.backups(last)) > 1:
        return None
    keeper = (layout.primary(last),)
    for partition in partitions:
        if partition != last and layout.backups(partition) != keeper:
            return None
    return last


def common_backup(me: int, partitions: Collection[int], layout: Layout) -> int | None:
    """The only backup of several parts that all are this member's own."""
    if len(partitions) == 1 or any(layout.primary(partition) != me for partition in partitions):
        return None
    copies = {layout.backups(partition) for partition in partitions}
    backups = copies.pop()
    return backups[0] if not copies and len(backups) == 1 else None


class LastParts(AloneParts):
    def prepare_companion(
        self, address: Address, partitions: tuple[int, ...], work: object, timestamp: int
    ) -> BackupPrepare:
        """The near member and primary has validated and registered the part in this very step. The
        message for its backup, which ``PrepareLast`` or ``KeepAll`` brings there."""
        transaction, partition = address
        part = self._parts[address] = Part(State.PREPARING, partitions, work)
        part.prepare_timestamp, part.pledged = timestamp, self.layout.number
        return made(BackupPrepare, (transaction, partition, timestamp, partitions, work, False))

    def keep_companion(self, message: BackupPrepare) -> list[Effect]:
        """On the primary of the last part, as a backup: the part is kept; the vote on the last part
        will say so. One that is known already stays as it is."""
        transaction, partition, at, partitions, work, _ = message
        address = transaction, partition
        if address in self._parts or self._is_forgotten(transaction):
            return []
        part = self._parts[address] = Part(State.PREPARED, partitions, work, prepare_timestamp=at)
        part.promised = True
        return [made(KeepHere, (transaction, partition, at, work))]

    def keep_all(self, message: KeepAll) -> bool:
        """On the backup: all parts are committed. The caller applies their writes in this very
        step and tells the sender (``KeptAll``). False: nothing has changed, because this member
        knows one of them, or has forgotten them."""
        transaction, at, works = message
        parts, partitions = self._parts, tuple(sorted(works))
        if self._is_forgotten(transaction):
            return False
        for partition in partitions:
            if (transaction, partition) in parts:
                return False
        for partition, work in works.items():
            part = Part(State.COMMITTED, partitions, work, False, at, at)
            parts[transaction, partition] = part
        return True

    def has_kept_all(self, message: KeepAll) -> bool:
        """Whether it did so before: the message has come twice."""
        transaction, at, works = message
        for partition in works:
            part = self._parts.get((transaction, partition))
            if part is None or part.commit_timestamp != at:
                return False
        return True

    # --- when nothing goes wrong --------------------------------------------------------------

    def may_prepare_last(self, message: PrepareLast) -> bool:
        """Whether ``prepare_last`` may follow in this step: nothing of the transaction is known
        here, and the last part is this member's own, with one backup."""
        transaction, _, partition, _, companions = message
        parts, layout = self._parts, self.layout
        for keep in companions:
            if (transaction, keep.partition) in parts:
                return False
        return not (
            (transaction, partition) in parts
            or layout.primary(partition) != self.me
            or len(layout.backups(partition)) != 1
            or self._is_forgotten(transaction)
        )

    def prepare_last(self, message: PrepareLast, timestamp: int) -> Send:
        """On the primary of the last part, which has validated and registered all parts in this
        very step. The same as ``keep_companion``, a Prepare and ``prepared_here``."""
        transaction, partitions, partition, work, companions = message
        parts, kept = self._parts, list[int]()
        for keep in companions:
            at = keep.timestamp
            other = Part(State.PREPARED, partitions, keep.work, prepare_timestamp=at, promised=True)
            parts[transaction, keep.partition] = other
            kept.append(keep.partition)
        last = Part(State.PREPARING, partitions, work, True, timestamp, companions=tuple(kept))
        parts[transaction, partition] = last
        fields = (transaction, partition, timestamp, partitions, work, True)
        backup = self.layout.backups(partition)[0]
        return made(Send, (backup, made(BackupPrepare, fields)))

    def settle_last(self, address: Address, backup: int) -> Settled | None:
        """On the primary of the last part: ``backup`` has committed. If it is the only one, the
        part and those that this member keeps are committed. In this very step, the caller applies
        their writes, and then tells the near member (``Settled.vote``). None: nothing has
        changed."""
        part, (transaction, partition) = self._parts.get(address), address
        layout = self.layout
        if (
            part is None
            or part.state is not State.PREPARING
            or not part.companions
            or not part.one_phase
            or part.lapsed
            or part.to_tell
            or part.decided is not None
            or layout.primary(partition) != self.me
            or layout.backups(partition) != (backup,)
            or transaction.near == self.me
            or not layout.alive(transaction.near)
        ):
            return None
        self._end(address, part, part.prepare_timestamp)
        part.settled = True
        ended = [(address, part)]
        committed: list[int] = []
        for other in part.companions:
            kept = self._parts.get((transaction, other))
            if kept is None:
                continue
            if not kept.ended and layout.primary(other) != self.me:
                self._end((transaction, other), kept, part.commit_timestamp)
                ended.append(((transaction, other), kept))
            if kept.state is State.COMMITTED:
                committed.append(other)
        at = part.prepare_timestamp
        vote = made(Vote, (transaction, partition, at, True, None, tuple(committed)))
        return made(Settled, (ended, vote))

    def settle_companions(self, vote: Vote, keeper: int) -> list[tuple[Address, Part]] | None:
        """On the near member: ``keeper`` has committed the last part and its copies of the others,
        as the vote says. If it is their only backup, they are committed here, and the caller
        applies their writes in this very step. None: nothing has changed."""
        transaction, at, layout = vote.transaction, vote.timestamp, self.layout
        found: list[tuple[Address, Part]] = []
        for partition in vote.companions:
            part = self._parts.get((transaction, partition))
            if (
                part is None
                or part.state is not State.PREPARING
                or not part.pledged
                or part.lapsed
                or part.to_tell
                or part.decided is not None
                or layout.primary(partition) != self.me
                or layout.backups(partition) != (keeper,)
            ):
                return None
            found.append(((transaction, partition), part))
        for address, part in found:
            self._end(address, part, at)
            part.answered.add(keeper)
            part.settled = True
        return found

    # --- the others of a last part ------------------------------------------------------------

    def _keeps(self, transaction: TransactionId, companions: tuple[int, ...]) -> bool:
        """Whether this member keeps these parts, undecided."""
        for partition in companions:
            part = self._parts.get((transaction, partition))
            if part is None or part.state is not State.PREPARED:
                return False
        return True

    def _end_companions(self, transaction: TransactionId, last: Part) -> list[Effect]:
        """The last part has committed on all its copies: so have those that this member keeps as a
        backup. (Recovery settles parts of which it is the primary by now.)"""
        out: list[Effect] = []
        for partition in last.companions:
            address = transaction, partition
            part = self._parts.get(address)
            if part is not None and not part.ended and not self._primary(address):
                out += self._end(address, part, last.commit_timestamp)
                out.append(made(SettledHere, address))
        return out

    def _ended_companions(self, transaction: TransactionId, last: Part) -> tuple[int, ...]:
        """Of which companions of a part that has committed this member's copy has, too."""
        return tuple(
            [
                partition
                for partition in last.companions
                if (part := self._parts.get((transaction, partition))) is not None
                and part.state is State.COMMITTED
            ]
        )
