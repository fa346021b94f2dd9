"""The commit of a client's job and the last step of a move exclude each other: the rows of a job
are where the view says while it is being committed, and the commit is not refused because a
partition changed hands (design rule 22). Everything else of a move goes on meanwhile, and so do
jobs that are still being written.

A job asks all members in the order of their numbers, so two jobs and two moves never wait for each
other in a circle. A move that waits lets no other job in for a while, so it is its turn when those
are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from remuda.errors import MemberGivenUp, MemberUnavailable, TransientError, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.turns import coordinator_of
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.move_pause import HeldPauses, OpenPauses, Pause

GRANT_WAIT: Final = 30.0
"""Seconds that a job waits for moves."""
LOOK: Final = 0.01
ASK_AGAIN: Final = 0.1


class MovePauses:
    def __init__(self, core: Core, peers: Peers, writes: Callable[[str], bool]) -> None:
        """``writes``: whether this member is the primary of rows that a job has staged."""
        self._core = core
        self._peers = peers
        self._writes = writes
        self._open = OpenPauses()
        self._held = HeldPauses()
        self._moving = False
        self._wanted = False

    # --- moves ------------------------------------------------------------------------------------

    async def begin_move(self) -> None:
        """Return when no job is being committed; none is before ``end_move``."""
        self._wanted = True
        try:
            while self._jobs():
                await asyncio.sleep(LOOK)
        finally:
            self._wanted = False
        self._moving = True

    def end_move(self) -> None:
        self._moving = False

    def _jobs(self) -> Collection[str]:
        return self._held.jobs(self._now(), self._core.view.by_number)

    # --- jobs -------------------------------------------------------------------------------------

    def on_pause(self, request: Request) -> None:
        message = control_pb2.MovesPause.FromString(request.pbody)
        pause = Pause(message.job, message.number)
        coordinator = coordinator_of(pause.job)  # raises JobAborted for what is no id of a job
        if message.over:
            self._held.release(coordinator, pause)
            self._held.forget(coordinator, message.oldest)
            answer = control_pb2.MovesPaused(context=self._core.context())
            request.reply(RpcType.MOVES_PAUSE, answer)
            return
        self._core.observe_member(message.context)
        self._held.forget(coordinator, message.oldest)
        self._core.serve(request, self._answer(request, pause))

    async def _answer(self, request: Request, pause: Pause) -> None:
        writes = await self._pause_here(pause)
        answer = control_pb2.MovesPaused(context=self._core.context(), writes=writes)
        request.reply(RpcType.MOVES_PAUSE, answer)

    async def _pause_here(self, pause: Pause) -> bool:
        deadline = self._now() + GRANT_WAIT
        await self._core.until_ready()
        while pause.job not in self._jobs() and (self._moving or self._wanted):
            if self._now() > deadline and not self._moving:
                break  # a long commit holds the move up: that is no reason to fail this one
            if self._now() > deadline:
                raise TransientError(
                    f"member {self._core.number} has been moving a partition for "
                    f"{GRANT_WAIT:.0f} s",
                    hint="Write the rows again.",
                )
            await asyncio.sleep(LOOK)
            await self._core.until_ready()  # a move may begin meanwhile
        if not self._held.hold(self._now(), coordinator_of(pause.job), pause):
            raise TransientError(f"the commit of job {pause.job} has ended already")
        return self._writes(pause.job)

    async def pause(self, job: str) -> tuple[int, ...]:
        """From now on, until ``resume``, nothing changes hands; the members that are primaries of
        rows of the job. A member that does not answer is waited for until a view drops it: then
        others have its rows. Raises MemberUnavailable, ViewChanged, TransientError."""
        deadline = self._now() + GRANT_WAIT
        pause = self._open.begin(Pause(job, self._core.timestamp()))
        while True:
            core, view = self._core, self._core.view
            try:
                found = [n for n in sorted(view.by_number) if await self._pause_at(n, pause)]
            except MemberGivenUp:
                raise
            except (ViewChanged, MemberUnavailable):
                if self._now() > deadline or core.readiness.hopeless or core.stopping:
                    raise
                await asyncio.sleep(ASK_AGAIN)
                continue
            if core.view is view:
                return tuple(found)

    async def _pause_at(self, number: int, pause: Pause) -> bool:
        core = self._core
        if number == core.number:
            return await self._pause_here(pause)
        core.require_alive(number)
        self._open.ask(pause, number)
        reply = await self._peers.request(
            number,
            RpcType.MOVES_PAUSE,
            self._message(pause),
            timeout=2 * GRANT_WAIT,
            repeated=True,  # the others hold their moves up until it is answered
        )
        paused = control_pb2.MovesPaused.FromString(reply.pbody)
        if paused.context.view != core.view.number:
            raise ViewChanged(f"member {number} is in another view")
        return paused.writes

    def resume(self, job: str) -> None:
        """The job has ended: every member that was asked to pause is told so."""
        pause = self._open.end(job)
        if pause is None:
            return
        coordinator = coordinator_of(job)
        self._held.release(coordinator, pause)
        self._held.forget(coordinator, self._open.oldest(pause))
        for number in self._open.unheard(pause):
            self._peers.tell(
                number,
                RpcType.MOVES_PAUSE,
                partial(self._message, pause, over=True),
                partial(self._open.heard, pause, number),
            )

    def _message(self, pause: Pause, *, over: bool = False) -> control_pb2.MovesPause:
        return control_pb2.MovesPause(
            context=self._core.context(),
            job=pause.job,
            over=over,
            number=pause.number,
            oldest=self._open.oldest(pause),
        )

    def _now(self) -> float:
        return self._core.world.clock.monotonic()
