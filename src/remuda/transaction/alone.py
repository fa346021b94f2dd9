"""Parts that are alone: the one part of a transaction, in one phase, whose near member is its
primary, with one backup at most. Puts and other small writes are such. Pure.

They are parts as all others are (``transaction.parts``), in the same states, and everything that
happens to parts happens to them: they are sent again, promoted, given away, forgotten. Only what
happens to them when nothing goes wrong is written out here: one step for the backup, and one for
the primary when the backup has answered. Each step asks first whether that is the case; if not, it
changes nothing, and the general step follows.
"""

from __future__ import annotations

from remuda.transaction.part import Part
from remuda.transaction.part_table import Address, PartTable
from remuda.transaction.states import BackupPrepare, Effect, Send, State, made


class AloneParts(PartTable):
    def prepare_alone(self, address: Address, work: object, timestamp: int) -> list[Effect]:
        """This member is near member and primary of a transaction of one part, and has validated
        and registered it in this very step: the same as a Prepare in one phase and
        ``prepared_here``. Without backups nothing is left to ask: ``settle_alone`` follows in the
        same step."""
        transaction, partition = address
        part = self._parts[address] = Part(State.PREPARING, (partition,), work, True, timestamp)
        backups = self.layout.backups(partition)
        if not backups:
            return []
        fields = (transaction, partition, timestamp, part.partitions, work, True)
        message = made(BackupPrepare, fields)
        if len(backups) == 1:
            return [made(Send, (backups[0], message))]
        return [Send(to, message) for to in backups]

    def keep_alone(self, message: BackupPrepare) -> bool:
        """On the backup: the part is committed with the timestamp of the message, what it writes is
        applied in this very step, and the sender is told (``BackupPrepared``). False: nothing has
        changed, because this member knows the part, or has forgotten it."""
        transaction, partition, at, partitions, work, one_phase = message
        address = transaction, partition
        if not one_phase or address in self._parts:
            return False
        near, began = transaction.near, transaction.began
        if began < self._forgotten.get(near, 0) and self._is_forgotten(transaction):
            return False
        self._parts[address] = Part(State.COMMITTED, partitions, work, True, at, at)
        return True

    def settle_alone(self, address: Address, kept: tuple[int, ...]) -> Part | None:
        """On the primary: the members ``kept`` have committed. If these are all backups, the part
        is committed, what it writes is applied in this very step, and the near member, which is
        this one, hears of the commit. None: nothing has changed, because there are other copies to
        ask, or the part has ended, or is another primary's by now."""
        part = self._parts.get(address)
        if (
            part is None
            or part.state is not State.PREPARING
            or not part.one_phase
            or part.to_tell
            or part.decided is not None
            or address[0].near != self.me
            or self.layout.primary(address[1]) != self.me
            or self.layout.backups(address[1]) != kept
        ):
            return None
        part.state, part.commit_timestamp = State.COMMITTED, part.prepare_timestamp
        part.settled = True
        part.rounds = 0
        return part
