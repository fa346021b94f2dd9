"""Parts that cannot be prepared yet: their partition is held, a bulk write of their map is being
committed or is about to be, or this member is not ready to serve.

A machine that has taken a prepare wants its answer at once, so a part that must wait is kept in
front of the machine. A transaction of several parts waits for a bulk write only for a moment: it
may hold keys elsewhere, for which the bulk write may wait in turn. Then the transaction is refused,
which breaks the circle. It waits for a move of its partition as long as a single write does: a
member that moves partitions and waits for pending writes releases its partitions after a moment
(``Giving._hold_writers``), so no circle of waiting includes a move for long.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from remuda.errors import MemberNotReady, RemudaError, SerializationFailure
from remuda.member.base.core import Core
from remuda.member.state.transaction_sets import PartWork
from remuda.member.transactions.pending import Held, PendingParts
from remuda.transaction import states as tx
from remuda.transaction.parts import Address

WAIT_OF_SEVERAL = 1.0
"""Seconds that a part of several waits, unless its partition is being moved."""
WAIT_MAX = 30.0
"""Seconds that a part waits at most."""


@dataclass(slots=True)
class Waiting:
    sender: int
    message: tx.Prepare
    work: PartWork
    until: float
    """Monotonic seconds at which it is refused at the latest."""
    reason: str
    refused_at: float
    """When it is refused for ``reason``."""


Take = Callable[[int, tx.Prepare, Mapping[int, object]], None]


class Admission:
    def __init__(self, core: Core, pending: PendingParts) -> None:
        self._core = core
        self._pending = pending
        self._waiting: dict[Address, Waiting] = {}
        self._refused: dict[Address, RemudaError] = {}
        self._held: Counter[int] = Counter()
        self._gates: Counter[int] = Counter()
        """By map id: bulk writes that wait until nothing is pending there."""
        self._watched: set[Held] = set()
        """Keys that are to be free before something is taken."""
        self._watching = False
        """Whether ``check`` follows the end of any part."""
        self._take: Take = lambda _sender, _message, _work: None
        """Gets what may be prepared now."""
        self._must_wait: Callable[[Address, PartWork], bool] = lambda _address, _work: False
        """See ``Validation.must_wait``."""
        self._doubt: Callable[[Address, PartWork], RemudaError | None] = lambda _address, _work: (
            None
        )
        """Why what a part would wait for may take long: it is in doubt."""
        self._waiters: list[Callable[[], None]] = []

    def admit_by(self, take: Take, must_wait: Callable[[Address, PartWork], bool]) -> None:
        """``take`` gets what may be prepared now."""
        self._take, self._must_wait = take, must_wait

    def ask_for_doubts(self, doubt: Callable[[Address, PartWork], RemudaError | None]) -> None:
        self._doubt = doubt

    def __len__(self) -> int:
        return len(self._waiting) + len(self._waiters)

    @property
    def closing(self) -> tuple[Counter[int], Counter[int]]:
        """Empty when nobody has to wait; they stay the same objects."""
        return self._held, self._gates

    # --- who waits ----------------------------------------------------------------------------

    def obstacle(self, partition: int, map_ids: Iterable[int]) -> str | None:
        """The reason why a write must wait, in words; None: it may go on."""
        if partition in self._held:
            return f"partition {partition} is being moved"
        for map_id in map_ids:
            store = self._core.stores.get(map_id)
            if map_id in self._gates or (store is not None and store.job_pending):
                name = f'"{store.schema.name}"' if store is not None else str(map_id)
                return f"a bulk write of map {name} is being committed"
        if not self._core.readiness.serves(partition):
            return f"member {self._core.number} is not ready to serve"
        return None

    def admits(self, sender: int, message: tx.Prepare, partition: int, work: PartWork) -> bool:
        """Whether a part may be prepared now; otherwise it is kept, and taken later."""
        address = (message.transaction, partition)
        if address in self._waiting:
            return False
        doubt = self._doubt(address, work)
        if doubt is not None:
            self._refused[address] = doubt
            return True
        reason = self._reason(address, work)
        if reason is None:
            return True
        now = self._core.world.clock.monotonic()
        waiting = Waiting(sender, message, work, now + WAIT_MAX, reason, now)
        waiting.refused_at = self._refused_at(waiting, partition, now)
        self._waiting[address] = waiting
        return False

    def _refused_at(self, waiting: Waiting, partition: int, now: float) -> float:
        """The end of a wait that begins now, for a reason that has just come up."""
        if len(waiting.message.partitions) > 1 and partition not in self._held:
            return min(waiting.until, now + WAIT_OF_SEVERAL)
        return waiting.until

    def is_open(self, address: Address, work: PartWork) -> bool:
        """Whether a part may be prepared now."""
        return self._doubt(address, work) is None and self._reason(address, work) is None

    def _reason(self, address: Address, work: PartWork) -> str | None:
        return self.obstacle(address[1], work.map_ids) or self._settling(address, work)

    def _settling(self, address: Address, work: PartWork) -> str | None:
        """A part waits for another transaction that holds what it needs, if that one has committed
        (it holds its keys until its backups have it) or is older: its user may have been told. That
        one never waits for this one. ``check`` is called then."""
        if not self._pending.keys and not self._pending.scans:
            return None  # nobody holds anything here
        held = self._pending.settling(work, address)
        if held is not None:
            if held not in self._watched:
                self._watched.add(held)
                self._pending.when_free(*held, partial(self._freed, held))
            return "an older transaction is about to commit a row that it needs"
        if self._must_wait(address, work):
            if not self._watching:
                self._watching = True
                self._pending.when_changed(self._changed_something)
            return "an older transaction is about to commit rows that it has read by a condition"
        return None

    def _freed(self, held: Held) -> None:
        self._watched.discard(held)
        self.check()

    def _changed_something(self) -> None:
        self._watching = False
        asyncio.get_running_loop().call_soon(self.check)  # not within the step that changes it

    def refusal(self, address: Address) -> RemudaError | None:
        """Why a part that was kept back is refused, if it is."""
        return self._refused.pop(address, None)

    def when_open(self, action: Callable[[], None]) -> None:
        """Call ``action`` when something may have opened (it must ask again)."""
        self._waiters.append(action)

    # --- going on -----------------------------------------------------------------------------

    def check(self) -> None:
        """Take what may go on, refuse what has waited too long."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()
        if not self._waiting:
            return
        now = self._core.world.clock.monotonic()
        for address, waiting in list(self._waiting.items()):
            doubt = self._doubt(address, waiting.work)
            reason = self._reason(address, waiting.work)
            if reason is not None and reason != waiting.reason:
                waiting.reason = reason
                waiting.refused_at = self._refused_at(waiting, address[1], now)
            if doubt is None and reason is not None and now < waiting.refused_at:
                continue
            if self._waiting.pop(address, None) is None:
                continue
            if doubt is not None or reason is not None:
                self._refused[address] = doubt or self._too_long(waiting)
            self._take(waiting.sender, waiting.message, {address[1]: waiting.work})
            self._refused.pop(address, None)

    def _too_long(self, waiting: Waiting) -> RemudaError:
        if not self._core.ready:
            return MemberNotReady(waiting.reason)
        return SerializationFailure(
            f"the transaction had to wait: {waiting.reason}", hint="Run the transaction again."
        )

    def clear(self) -> None:
        """Another view: those that wait ask again, perhaps elsewhere."""
        self._waiting.clear()

    # --- holding ------------------------------------------------------------------------------

    async def hold(self, partitions: Iterable[int]) -> None:
        """From now on nothing new is prepared in these partitions; returns when nothing is pending
        there. ``release`` ends it, also of a call that was cancelled."""
        held = frozenset(partitions)
        self._held.update(held)
        while self._pending.in_partitions(held):
            await self._changed()

    def release(self, partitions: Iterable[int]) -> None:
        self._held -= Counter(frozenset(partitions))
        self.check()

    async def settled(self, map_id: int) -> None:
        """Return when no part that concerns the map is pending. New ones wait meanwhile, and the
        caller must prepare its own write before it awaits anything else. Raises
        PartitionsUnreachable when such a part is in doubt: nobody waits behind the caller then."""
        if not self._pending.of_map(map_id):
            return
        self._gates[map_id] += 1
        try:
            while self._pending.of_map(map_id):
                self._core.require_decidable(map_id)
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._pending.when_settled(map_id, partial(_settle, future))
                self.when_open(partial(_settle, future))
                await future
        finally:
            self._gates -= Counter([map_id])
            asyncio.get_running_loop().call_soon(self.check)

    async def _changed(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.when_changed(lambda: _settle(future))
        await future


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
