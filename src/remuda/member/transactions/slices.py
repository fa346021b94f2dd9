"""Large transactions in slices: a member that encodes, prepares or applies tens of thousands of
rows lets the event loop go on after some of them, or reads wait for it, and the lease of the member
runs out.

Nothing relies on it: to a machine, a slice that comes later is a message that was under way longer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, cast

from remuda.member.base.core import bug
from remuda.member.state.transaction_sets import PartWork
from remuda.rpc.messages import control_pb2
from remuda.transaction import states as tx

ROWS_PER_STEP: Final = 500
"""About 20 ms of work."""
ROWS_PER_RESEND: Final = 2_000
"""For each so many rows, a near member waits that much longer before it asks again."""

Item = control_pb2.PartMessage | control_pb2.AlonePart | tx.Message
Take = Callable[[int, Item], int]


def rows_of(message: tx.Message) -> int:
    """How many rows have to be written down for it."""
    match message:
        case tx.Prepare(work=work) | tx.KeepAll(work=work):
            return _writes_of(work.values())
        case tx.PrepareLast(work=PartWork(writes=writes), companions=companions):
            rows = len(writes)
            for keep in companions:
                assert isinstance(keep.work, PartWork)
                rows += len(keep.work.writes)
            return rows
        case tx.BackupPrepare(work=PartWork(writes=writes)):
            return len(writes)
        case _:
            return 0


def _writes_of(work: Iterable[object]) -> int:
    rows = 0
    for part in work:
        assert isinstance(part, PartWork)
        rows += len(part.writes)
    return rows


def patience(work: Mapping[int, PartWork], resend: float) -> float:
    """When to ask again: sooner, a large transaction would be sent several times."""
    return resend * (1 + _writes_of(work.values()) / ROWS_PER_RESEND)


def slices(message: tx.Prepare) -> Iterator[tx.Prepare]:
    """The same question in pieces of about ``ROWS_PER_STEP`` rows; a part is never divided."""
    piece: dict[int, object] = {}
    rows = 0
    for partition, work in message.work.items():
        piece[partition] = work
        rows += 1 + len(cast("PartWork", work).writes)
        if rows >= ROWS_PER_STEP:
            yield tx.Prepare(message.transaction, message.partitions, piece, message.one_phase)
            piece, rows = {}, 0
    if piece:
        yield tx.Prepare(message.transaction, message.partitions, piece, message.one_phase)


class Inbox:
    """The messages that have come and are not carried out yet, in the order in which they came.
    ``take`` carries an item out, and says how many rows that took."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._waiting: deque[tuple[int, Item]] = deque()
        self._later = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, sender: int, item: Item) -> None:
        self._waiting.append((sender, item))

    def hear(self, sender: int, items: Iterable[Item]) -> None:
        """Carry them out behind what there is, or as much as fits into this step."""
        if self._waiting or self._later:
            self._waiting.extend((sender, item) for item in items)
            if not self._later:
                self._go_on()
            return
        rows = 0
        for item in items:
            if rows >= ROWS_PER_STEP or self._waiting:
                self._waiting.append((sender, item))
                continue
            try:
                rows += self._take(sender, item)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                bug(error, "a message of a part")
        if self._waiting:
            self.later()

    def later(self) -> None:
        """Carry it out in another step."""
        if not self._later and self._waiting:
            self._later = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._later = False
        rows = 0
        while self._waiting and rows < ROWS_PER_STEP:
            sender, item = self._waiting.popleft()
            try:
                rows += self._take(sender, item)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                bug(error, "a message of a part")
        if self._waiting:
            self.later()

    def clear(self) -> None:
        """Another view: messages that matter are sent again."""
        self._waiting.clear()
