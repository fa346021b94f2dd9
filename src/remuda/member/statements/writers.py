"""Open transactions of this member that are about to write the same entry: one after the other.

Transactions lock nothing until they commit, and the first one that commits wins. Of some that
change one entry all the time, all but one do their work in vain, and one of them may never win. So
a statement that finds an entry in the write set of another transaction of its member waits for the
end of that one, in the order of arrival, as for a row lock of PostgreSQL. It is no lock: nobody
waits for a transaction that does nothing, or in a circle, and none of the checks of the commit
relies on it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.transaction.own_writes import Key
from remuda.transaction.states import State, TransactionId
from remuda.world import Clock

KEYS_MAX: Final = 16
"""A statement that writes more entries waits for nobody."""
IDLE: Final = 0.02
"""Seconds since the last statement of a transaction after which others do not wait for it."""
WAIT_MAX: Final = 1.0
"""Seconds."""

Place: TypeAlias = tuple[int, Key]
"""Map id and canonical key."""


@dataclass(slots=True)
class _Line:
    first: OpenTransaction
    waiting: deque[tuple[OpenTransaction, asyncio.Future[None]]] = field(default_factory=deque)


class Writers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: dict[Place, _Line] = {}
        self._taken: dict[TransactionId, list[Place]] = {}
        self._waits: dict[TransactionId, _Line] = {}

    def take(self, transaction: OpenTransaction, map_id: int, keys: Iterable[Key]) -> list[Place]:
        """From now on others wait for it before they write these; not if others were first: their
        places are returned."""
        others: list[Place] = []
        for key in keys:
            place = map_id, key
            line = self._lines.get(place)
            if line is None:
                self._lines[place] = _Line(transaction)
                self._note(transaction, place)
            elif line.first is not transaction:
                others.append(place)
        return others

    async def wait(self, transaction: OpenTransaction, places: Iterable[Place]) -> bool:
        """Until it is the first one at these, or there is no point in waiting. False: it has waited
        for nobody."""
        ends = self._clock.monotonic() + WAIT_MAX
        came = False
        for place in places:
            line = self._lines.get(place)
            if line is None:  # its transaction has ended while another one was waited for
                self.take(transaction, place[0], (place[1],))
                came = True
            elif line.first is not transaction and not self._circle(transaction, line):
                came |= await self._turn(transaction, line, ends)
        return came

    async def _turn(self, transaction: OpenTransaction, line: _Line, ends: float) -> bool:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append((transaction, turn))
        self._waits[transaction.id] = line
        try:
            while not turn.done() and self._clock.monotonic() < ends and not self._idle(line.first):
                await asyncio.wait([turn], timeout=IDLE)
        finally:
            self._waits.pop(transaction.id, None)
            if not turn.done():
                line.waiting.remove((transaction, turn))
        return turn.done()

    def _idle(self, transaction: OpenTransaction) -> bool:
        if transaction.state is State.MARKED_ROLLBACK:
            return True
        return not transaction.running and self._clock.monotonic() > transaction.last_used + IDLE

    def _circle(self, transaction: OpenTransaction, line: _Line | None) -> bool:
        while line is not None:
            if line.first is transaction:
                return True
            line = self._waits.get(line.first.id)
        return False

    def _note(self, transaction: OpenTransaction, place: Place) -> None:
        taken = self._taken.get(transaction.id)
        if taken is None:
            taken = self._taken[transaction.id] = []
            transaction.at_end.append(partial(self._ended, transaction))
        taken.append(place)

    def _ended(self, transaction: OpenTransaction) -> None:
        for place in self._taken.pop(transaction.id):
            line = self._lines[place]
            while line.waiting:
                following, turn = line.waiting.popleft()
                if following.open and not turn.done():
                    line.first = following
                    self._waits.pop(following.id, None)
                    self._note(following, place)
                    turn.set_result(None)
                    break
            else:
                del self._lines[place]
