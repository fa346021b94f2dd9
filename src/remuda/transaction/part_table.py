"""The parts of transactions that a member knows, and the members that it tells of them. Pure."""

from __future__ import annotations

from remuda.transaction.part import Part
from remuda.transaction.states import (
    Effect,
    Layout,
    Message,
    ResolveHere,
    Send,
    State,
    TransactionId,
    made,
)

Address = tuple[TransactionId, int]
"""A part: transaction and partition."""


class PartTable:
    """All parts on member ``me``; ``transaction.parts`` changes them."""

    def __init__(self, me: int, layout: Layout, *, resend: float) -> None:
        self.me = me
        self.layout = layout
        self._resend = resend
        self._sent = 0.0
        self._parts: dict[Address, Part] = {}
        self._recovering: dict[Address, None] = {}
        """Parts with ``unfinished`` others, and some that are gone."""
        self._forgotten: dict[int, int] = {}
        self._unfinished: dict[int, frozenset[int]] = {}
        """By near member: which of the forgotten ones are in doubt, by when they began."""

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, address: Address) -> bool:
        return address in self._parts

    def __str__(self) -> str:
        return "\n".join(
            f"{transaction} part {partition} {part.state.value}"
            for (transaction, partition), part in self._parts.items()
        )

    def partitions(self, address: Address) -> tuple[int, ...]:
        """Of the whole transaction that a part is known of."""
        return self._parts[address].partitions

    def ends(self) -> dict[Address, int | None]:
        """How parts of several partitions ended that others may ask for: commit timestamps."""
        return {
            address: part.commit_timestamp
            for address, part in self._parts.items()
            if part.ended and len(part.partitions) > 1
        }

    def lapsed(self, address: Address) -> bool:
        """Whether a part that is known is to be prepared anew."""
        return self._parts[address].lapsed

    def one_phase(self, address: Address) -> bool:
        """Whether a part that is known commits in one phase."""
        return self._parts[address].one_phase

    @property
    def pending(self) -> list[Address]:
        """Parts that hold locks and may make readers wait."""
        return [address for address, part in self._parts.items() if not part.ended]

    # --- addresses ----------------------------------------------------------------------------

    def _gone(self, partition: int) -> bool:
        """Whether no copy of it is left anywhere."""
        layout = self.layout
        return layout.primary(partition) is None and not layout.unreachable(partition)

    def in_doubt(self) -> frozenset[int]:
        """Partitions with parts, pending or ended, of transactions that an unreachable partition
        takes part in: their ends must stay with their copies."""
        unreachable = self.layout.unreachable
        return frozenset(
            partition
            for (_, partition), part in self._parts.items()
            if any(unreachable(other) for other in part.partitions)
        )

    def away(self, address: Address) -> tuple[int, ...]:
        """The unreachable partitions that the transaction of an undecided part waits for."""
        part = self._parts.get(address)
        if part is None or part.ended:
            return ()
        return tuple(sorted(filter(self.layout.unreachable, part.partitions)))

    def _primary(self, address: Address) -> bool:
        return self.layout.primary(address[1]) == self.me

    def _is_forgotten(self, transaction: TransactionId) -> bool:
        near, began = transaction.near, transaction.began
        if began >= self._forgotten.get(near, 0):
            return False
        return began not in self._unfinished.get(near, ())

    def _end(self, address: Address, part: Part, timestamp: int | None) -> list[Effect]:
        part.state = State.ROLLED_BACK if timestamp is None else State.COMMITTED
        part.commit_timestamp = timestamp
        part.answered.clear()
        part.settled = part.lapsed = False
        part.rounds = 0
        return [made(ResolveHere, (*address, timestamp, part.partitions))]

    def _to_primary(self, partition: int, message: Message) -> list[Effect]:
        primary = self.layout.primary(partition)
        return [] if primary is None else self._send(primary, message)

    def _send(self, to: int, message: Message) -> list[Effect]:
        return [made(Send, (to, message))] if self.layout.alive(to) else []
