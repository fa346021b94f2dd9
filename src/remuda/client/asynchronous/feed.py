"""Reads the changes of one query from the primaries of all partitions, for as long as somebody
wants them, whatever becomes of the members.

One request is under way for each member, and each partition is in one of them at most; the member
holds it until something has changed. Where a partition has gone to another member, the request is
given up, and the other member is asked from the same position on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from remuda.client.core.core import Core
from remuda.client.network import backoff
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.requests import requests
from remuda.client.requests.feeds import (
    FeedPage,
    FeedPositions,
    FeedQuery,
    changes_end,
    changes_read,
)
from remuda.datatypes.view import View
from remuda.errors import PartitionsLost, RemudaError, SnapshotTooOld, TransientError

WAIT = 1.0
"""Seconds that a member may wait for a change. The position moves on after it in any case, so that
it does not fall behind what members keep."""
ANSWER_TIMEOUT = 5.0
"""Seconds that an answer may take beyond that."""
LEAVE_TIMEOUT = 1.0
"""Seconds that the members may take to hear that nobody reads any more."""
LOOK = 0.1
"""Seconds between two looks at the view while nothing comes."""
PAUSE_MAX = 0.25
LOST_FOR_GOOD = 3.0
"""Seconds after which it is believed that every copy of a partition is lost."""
PAGE_ROWS = 1024
PAGE_ROWS_MIN = 64
"""Changes that one answer brings; so many more than there is room for may come from each member."""


@dataclass(eq=False, slots=True)
class _Poll:
    member: int
    partitions: Sequence[int]
    asked: float


@dataclass(slots=True)
class Ends:
    """The events of a feed besides pages: changes were lost; it is over."""

    gap: Callable[[int], None] | None
    """None: then it is over."""
    failed: Callable[[RemudaError], None]
    answered: Callable[[], None] = field(default=lambda: None)
    interrupted: Callable[[], None] = field(default=lambda: None)


class Feed:
    """``on_page`` gets each answer, in the order of the changes of each key, while ``room()`` says
    that there is place for one; ``wake`` tells that it does again."""

    def __init__(  # noqa: PLR0917 (what to read, for whom)
        self,
        core: Core,
        query: FeedQuery,
        partitions: Iterable[int] | None,
        on_page: Callable[[FeedPage], None],
        room: Callable[[], bool],
        ends: Ends,
        wait: float = WAIT,
        rows: int = PAGE_ROWS,
    ) -> None:
        self._core = core
        self._wait = min(wait, WAIT)
        self._rows = max(PAGE_ROWS_MIN, min(rows, PAGE_ROWS))
        self._query = query
        self._patience = core.settings.request_timeout
        self._on_page = on_page
        self._room = room
        self._ends = ends
        self._wanted = None if partitions is None else tuple(partitions)
        self._map_id = 0
        self._positions = FeedPositions(0, self._wanted)
        self._heard = dict.fromkeys(self._positions.partitions, 0.0)
        """When an answer for each partition was asked for."""
        self._polls: dict[asyncio.Task[FeedPage], _Poll] = {}
        self._asked: set[int] = set()
        """Members that know the subscription."""
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._silent: dict[int, float] = {}
        """Members that do not answer, and since when."""
        self._pauses = 0
        self._pause_until = 0.0

    @property
    def position(self) -> int:
        """Everything that was committed at or below it has been told."""
        return self._positions.low

    @property
    def confirmed(self) -> float:
        """Everything that was committed before this moment (monotonic) has been told."""
        return min(self._heard.values())

    async def open(self, positions: FeedPositions | None = None, map_id: int = 0) -> int:
        """Begin now, or at ``positions`` of the map with this id: returns the timestamp of now,
        after which every change is told in any case. Every primary has heard of it, so all that is
        written from now on comes later. Raises what a wrong query raises, InsufficientPrivilege,
        LimitExceeded, ChangesExpired, and when the cluster does not answer."""
        core = self._core
        deadline = core.deadline()
        now = await core.call(None, requests.cluster_info(core.clock), True, deadline)
        self._positions = positions or FeedPositions(now.clock, self._wanted)
        self._map_id = map_id or self._map_id
        unheard = set(self._positions.partitions)
        tries = core.tries(core.settings.retry_reads, deadline, reads=True)
        while unheard:
            for member, partitions in list(self._by_member(unheard).items()):
                asked = time.monotonic()
                try:
                    page = await self._ask(member, partitions, 0.0, deadline)
                except SnapshotTooOld:
                    raise
                except TransientError as error:
                    await tries.after(error)
                    break
                self._arrived(partitions, page, asked)
                unheard -= set(partitions)
        return now.clock

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        """There is room again."""
        self._woken.set()

    async def close(self) -> None:
        """Read no more, and tell the members."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._leave()

    async def _leave(self) -> None:
        core, asked = self._core, self._asked
        self._asked = set()
        if not core.closed:
            there = [core.pool(member) for member in asked if member in core.view.by_number]
            end = changes_end(self._query.name)
            # Errors do no harm: members find out by themselves.
            await core.ports.together([(port, end) for port in there], Deadline(LEAVE_TIMEOUT))

    # --- the loop -----------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                if self._room():
                    self._ask_all()
                self._woken.clear()
                woken = asyncio.ensure_future(self._woken.wait())
                try:
                    await asyncio.wait(
                        [*self._polls, woken], timeout=LOOK, return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    woken.cancel()
                for task in [task for task in self._polls if task.done()]:
                    poll = self._polls.pop(task)
                    await self._ended(poll, task)
                self._give_up_moved()
        except RemudaError as error:
            self._ends.failed(error)
            self._give_up()
            await self._leave()
        finally:
            self._give_up()

    def _give_up(self) -> None:
        for task in self._polls:
            task.cancel()
        self._polls.clear()

    def _ask_all(self) -> None:
        """Ask for every partition that is not being asked for."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._pause_until:
            return
        busy = {p for poll in self._polls.values() for p in poll.partitions}
        free = [p for p in self._positions.partitions if p not in busy]
        members = {poll.member for poll in self._polls.values()}
        for member, partitions in self._by_member(free).items():
            if member not in members:  # else soon, together with what it is asked for now
                task = loop.create_task(self._ask(member, partitions, self._wait))
                task.add_done_callback(_looked_at)
                self._polls[task] = _Poll(member, partitions, time.monotonic())

    def _give_up_moved(self) -> None:
        view = self._core.view
        for task, poll in list(self._polls.items()):
            if not self._serves(view, poll):
                task.cancel()
                del self._polls[task]

    def _serves(self, view: View, poll: _Poll) -> bool:
        return all(view.owners[partition] == poll.member for partition in poll.partitions)

    def _by_member(self, partitions: Iterable[int]) -> dict[int, list[int]]:
        view = self._core.view
        found: dict[int, list[int]] = {}
        for partition in partitions:
            found.setdefault(view.owners[partition], []).append(partition)
        return found

    async def _ask(
        self, member: int, partitions: Sequence[int], wait: float, deadline: Deadline = NEVER
    ) -> FeedPage:
        core = self._core
        call = changes_read(
            self._query,
            self._positions,
            partitions,
            wait,
            self._rows,
            self._map_id,
            core.clock,
            core.view.number,
        )
        port = core.pool(member)
        self._asked.add(member)
        return await port.call(call, Deadline(deadline.left(wait + ANSWER_TIMEOUT)))

    # --- answers ------------------------------------------------------------------------------

    def _arrived(self, partitions: Sequence[int], page: FeedPage, asked: float) -> None:
        self._map_id = page.map_id
        self._positions.advance(partitions, page)
        if page.confirmed and page.through[1] is None:
            self._heard.update(dict.fromkeys(partitions, asked))
        self._pauses = 0
        self._on_page(page)
        self._ends.answered()

    async def _ended(self, poll: _Poll, task: asyncio.Task[FeedPage]) -> None:
        """Raises what nothing can be done about."""
        try:
            page = task.result()
        except SnapshotTooOld:
            if self._ends.gap is None:
                raise
            await self._skip(poll)
        except TransientError as error:
            self._later(poll.member, error)
        else:
            self._silent.pop(poll.member, None)
            self._arrived(poll.partitions, page, poll.asked)

    async def _skip(self, poll: _Poll) -> None:
        """Changes are lost: go on from now."""
        core = self._core
        try:
            now = await core.call(poll.member, requests.cluster_info(core.clock), read=True)
        except TransientError as error:
            self._later(poll.member, error)
            return
        self._positions.skip(poll.partitions, now.clock)
        if self._ends.gap is not None:
            self._ends.gap(now.clock)

    def _later(self, member: int, error: RemudaError) -> None:
        """Ask again after a pause, along the newest view. Raises the error when the member has not
        answered for as long as a request may take, or nobody has the partition any more."""
        core, now = self._core, asyncio.get_running_loop().time()
        since = self._silent.setdefault(member, now)
        patience = LOST_FOR_GOOD if isinstance(error, PartitionsLost) else self._patience
        if core.closed or now - since > patience:
            raise error
        self._ends.interrupted()
        self._pause_until = now + min(backoff.pause(self._pauses), PAUSE_MAX)
        self._pauses += 1
        core.clock.on_view()


def _looked_at(task: asyncio.Task[FeedPage]) -> None:
    """An answer that is given up may be an error: nobody need know."""
    if not task.cancelled():
        task.exception()
