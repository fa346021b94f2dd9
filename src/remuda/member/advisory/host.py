"""The host of all advisory locks: the member with the lowest number of the view.

It begins each view without knowledge. With the first claim it asks all members of the view for
the locks of their clients, and waits for all answers: from then on none of these members accepts a
grant of an older view. It also waits until members that were dropped have lost their leases,
because clients of theirs may hold locks until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

from remuda.cluster.lease import takeover_delay
from remuda.datatypes.view import View
from remuda.errors import RemudaError, TransientError, ViewChanged
from remuda.limits import CLOCK_DRIFT
from remuda.member.advisory.wire import decoded, encoded
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.transaction.advisory import (
    AdvisoryLocks,
    Ask,
    Claim,
    Deadlock,
    Effect,
    GiveUp,
    Grant,
    Rebuild,
    Taken,
)

log = logging.getLogger(__name__)

GIVEN_UP_KEPT: Final = 10_000
"""Claims that were given up are remembered: a claim may arrive behind its end."""
PAUSE: Final = 0.1
"""Seconds between two attempts to ask a member."""

Answer: TypeAlias = Callable[[control_pb2.AdvisoryAnswer | RemudaError], None]


class AdvisoryHost:
    def __init__(self, core: Core, peers: Peers, own: Callable[[], list[Claim]]) -> None:
        """``own`` gives the claims that clients of this member hold."""
        self._core = core
        self._peers = peers
        self._own = own
        self._locks = AdvisoryLocks()
        self._answers: dict[tuple[int, int], Answer] = {}
        """Of claims that wait."""
        self._given_up: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._rebuilt: asyncio.Task[None] | None = None
        self._dropped_until = 0.0
        """Monotonic seconds: until then clients of dropped members may hold locks."""

    @property
    def locks(self) -> AdvisoryLocks:
        return self._locks

    # --- views --------------------------------------------------------------------------------

    def on_view(self, before: View, after: View) -> None:
        if before.by_number.keys() - after.by_number.keys():
            delay = takeover_delay(self._core.config.lease_seconds, CLOCK_DRIFT)
            self._dropped_until = self._core.world.clock.monotonic() + delay
        if self._rebuilt is not None:
            self._rebuilt.cancel()
            self._rebuilt = None
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer(ViewChanged("the view has changed while an advisory lock was awaited"))

    async def _known(self) -> None:
        """Returns when this member knows all locks. Raises ViewChanged, TransientError."""
        if self._rebuilt is None or (self._rebuilt.done() and self._failed(self._rebuilt)):
            self._rebuilt = asyncio.get_running_loop().create_task(self._rebuild())
        task = self._rebuilt
        await asyncio.wait([task])
        if task.cancelled():
            raise ViewChanged("the view has changed while advisory locks were gathered")
        task.result()

    @staticmethod
    def _failed(task: asyncio.Task[None]) -> bool:
        return task.cancelled() or task.exception() is not None

    async def _rebuild(self) -> None:
        others = sorted(self._core.view.by_number.keys() - {self._core.number})
        answers = await asyncio.gather(*map(self._held_at, others))
        wait = self._dropped_until - self._core.world.clock.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        # This member's own clients come last: what they hold may have changed during the waits.
        held = [claim for answer in answers for claim in answer] + self._own()
        self._carry_out(self._locks.step(Rebuild(tuple(held))))

    async def _held_at(self, member: int) -> list[Claim]:
        """Asked until it answers in this view, or another view comes, which cancels this."""
        while True:
            message = control_pb2.AdvisoryHeld(context=self._core.context())
            try:
                reply = await self._peers.request(
                    member, RpcType.ADVISORY_HELD, message, repeated=True
                )
            except TransientError as error:
                log.debug("member %d has not told its advisory locks: %s", member, error.message)
                await asyncio.sleep(PAUSE)
                continue
            answer = control_pb2.AdvisoryHeld.FromString(reply.pbody)
            self._core.observe_member(answer.context)
            return [decoded(claim) for claim in answer.held]

    # --- claims -------------------------------------------------------------------------------

    async def claim(self, message: control_pb2.AdvisoryClaim, answer: Answer) -> None:
        """``answer`` hears of the grant or the refusal; of a claim that waits, later. Raises
        ViewChanged, TransientError."""
        claim = decoded(message)
        if message.given_up:
            self._given_up[claim.name] = None
            if len(self._given_up) > GIVEN_UP_KEPT:
                self._given_up.popitem(last=False)
            self._answers.pop(claim.name, None)
            if self._rebuilt is None:  # its member will not tell of it
                answer(control_pb2.AdvisoryAnswer(context=self._core.context()))
                return
        view = self._core.view.number
        await self._known()
        if self._core.view.number != view:
            raise ViewChanged("the view has changed while an advisory lock was asked for")
        if claim.name in self._given_up:
            self._carry_out(self._locks.step(GiveUp(claim)))
            answer(control_pb2.AdvisoryAnswer(context=self._core.context()))
            return
        self._answers[claim.name] = answer
        self._carry_out(self._locks.step(Ask(claim, message.waits)))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            answer = self._answers.pop(effect.claim.name, None)
            if answer is None:
                continue
            told = control_pb2.AdvisoryAnswer(context=self._core.context())
            match effect:
                case Grant():
                    told.granted = True
                case Taken():
                    told.granted = False
                case Deadlock(circle=circle):
                    told.circle.extend(map(encoded, circle))
            answer(told)

    def close(self) -> None:
        if self._rebuilt is not None:
            self._rebuilt.cancel()
            self._rebuilt = None
