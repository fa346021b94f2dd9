"""Parts whose near member is lost: their primaries ask each other, and end them. Pure.

The near member of a transaction with definitions had the catalog decide (decision 0109). Such parts
ask the catalog when all others are prepared or lost, and never decide by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from remuda.transaction.last_part import LastParts
from remuda.transaction.part import Part
from remuda.transaction.part_table import Address
from remuda.transaction.states import (
    CATALOG,
    BackupForget,
    Effect,
    Finish,
    Finished,
    Inquire,
    Send,
    State,
    Told,
)


class RecoveredParts(LastParts, ABC):
    @abstractmethod
    def _spread(self, address: Address, part: Part) -> list[Effect]:
        """Tell the state to the backups that are not known to have it; go on if there are none."""

    def _recover(self, address: Address, part: Part) -> list[Effect]:
        """When the near member is lost: ask about the other parts, then tell them how it ended,
        then forget it."""
        transaction, partition = address
        if self.layout.alive(transaction.near) or not part.settled or address not in self._parts:
            return []
        if part.unfinished != set() and self._speaker(address, part) != partition:
            return []
        if part.state is State.PREPARED:
            return self._ask_others(address, part)
        if part.unfinished is None:
            part.unfinished = set(part.partitions) - {partition, CATALOG}
            self._recovering[address] = None
        part.unfinished = {p for p in part.unfinished if not self._gone(p)}
        if not part.unfinished and not part.to_tell:
            return self._finished_everywhere(address, part)
        return [
            effect
            for other in sorted(part.unfinished)
            for effect in self._to_primary(other, Finish(transaction, other, part.commit_timestamp))
        ]

    def _speaker(self, address: Address, part: Part) -> int:
        """Of the parts that this member is the primary of, one asks and tells all others, its
        neighbours here as well: if each did, a transaction of all partitions would cost their
        number squared."""
        transaction, partition = address
        for other in part.partitions:
            known = self._parts.get((transaction, other))
            if known is not None and known.partitions and self.layout.primary(other) == self.me:
                return other
        return partition

    def _finished_everywhere(self, address: Address, part: Part) -> list[Effect]:
        """All parts have ended, on all copies: nobody asks for those that are here any more."""
        transaction, out = address[0], list[Effect]()
        for partition in part.partitions or address[1:]:
            here = self._parts.get((transaction, partition))
            if here is None or not here.ended or self.layout.primary(partition) != self.me:
                continue
            here.unfinished = set()
            if here.settled and not here.to_tell:
                del self._parts[transaction, partition]
                forget = BackupForget(transaction, partition)
                out += [Send(to, forget) for to in self.layout.backups(partition)]
        if CATALOG in part.partitions:
            end = part.commit_timestamp
            out += self._to_primary(CATALOG, Finish(transaction, CATALOG, end))
        return out

    def _ask_others(self, address: Address, part: Part) -> list[Effect]:
        transaction, partition = address
        out: list[Effect] = []
        for other in part.partitions:
            if other in (partition, CATALOG) or other in part.told:
                continue
            if self._gone(other):
                part.told[other] = Told(transaction, other, partition, State.UNKNOWN, 0)
            out += self._to_primary(other, Inquire(transaction, other, partition))
        return out or self._decide(address, part)

    def _ask_catalog(self, address: Address, part: Part) -> list[Effect]:
        """If that is all that is missing: it may have committed a transaction of which a part is
        lost by now."""
        transaction, partition = address
        missing = {*part.partitions} - {partition, *part.told}
        if missing != {CATALOG}:
            return []
        return self._to_primary(CATALOG, Inquire(transaction, CATALOG, partition))

    def _inquired(self, sender: int, message: Inquire) -> list[Effect]:
        address = (message.transaction, message.partition)
        if not self._primary(address):
            return []
        part = self._parts.get(address)
        if part is None:
            part = self._parts[address] = Part(State.ROLLED_BACK)
        if part.state is State.PREPARING:
            return []  # it will be prepared, or this member will be lost; they ask again
        timestamp = part.commit_timestamp if part.ended else part.prepare_timestamp
        part.to_tell[
            Told(*address, asking=message.asking, state=part.state, timestamp=timestamp or 0)
        ] = sender
        return self._spread(address, part)

    def _told(self, message: Told) -> list[Effect]:
        address = (message.transaction, message.asking)
        part = self._parts.get(address)
        if part is None or part.state is not State.PREPARED or not self._primary(address):
            return []
        part.told[message.partition] = message
        return self._decide(address, part)

    def _decide(self, address: Address, part: Part) -> list[Effect]:
        told = list(part.told.values())
        states = {answer.state for answer in told}
        if State.COMMITTED in states:
            end = next(t.timestamp for t in told if t.state is State.COMMITTED)
            return self._end_recovery(address, part, end)
        if State.ROLLED_BACK in states:
            return self._end_recovery(address, part, None)
        if len(told) + 1 < len(part.partitions):
            return self._ask_catalog(address, part)
        if State.UNKNOWN in states:  # nobody has committed, and a part is lost
            return self._end_recovery(address, part, None)
        stamps = [part.prepare_timestamp, *(answer.timestamp for answer in told)]
        return self._end_recovery(address, part, max(stamps))

    def _end_recovery(self, address: Address, part: Part, timestamp: int | None) -> list[Effect]:
        out = self._end(address, part, timestamp)
        return [*out, *self._spread(address, part), *self._recover(address, part)]

    def _other_finished(self, message: Finished) -> list[Effect]:
        for address in list(self._recovering):
            part = self._parts.get(address)
            if part is None or part.unfinished is None:
                del self._recovering[address]
            elif address[0] == message.transaction:
                part.unfinished.discard(message.partition)
        return []
