"""Advisory locks of this member's clients, and the messages about them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Final

from google.protobuf.message import DecodeError

from remuda.datatypes.view import View
from remuda.errors import DeadlockDetected, RemudaError, TransientError, ViewChanged
from remuda.member.advisory.holdings import Holdings
from remuda.member.advisory.host import AdvisoryHost
from remuda.member.advisory.wire import decoded, encoded
from remuda.member.base.core import Core, bug
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.advisory import Claim, LockKey, Owner

log = logging.getLogger(__name__)

PAUSE: Final = 0.05
"""Seconds before a claim is sent again, in another view perhaps."""
PATIENCE: Final = 30.0
"""Seconds for which a claim is sent while members are lost and views change."""


class AdvisoryService(Wing):
    """The caller names the owner of a lock: a session, or a transaction."""

    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers
        self._holdings = Holdings()
        self._host = AdvisoryHost(core, peers, lambda: list(self._holdings))
        self._numbers = count(1)
        self._waiting: dict[int, Claim] = {}
        core.listeners.view.add(self._on_view)

    def routes(self) -> Routes:
        return Routes(
            control={
                RpcType.ADVISORY_CLAIM: self._on_claim,
                RpcType.ADVISORY_HELD: self._on_held,
            }
        )

    def gauges(self) -> dict[str, int]:
        return {"advisory_locks": len(self._holdings) + len(self._waiting)}

    def _on_view(self, before: View, after: View) -> None:
        self._host.on_view(before, after)

    def close(self) -> None:
        self._host.close()

    # --- what clients ask ---------------------------------------------------------------------

    async def lock(
        self, owner: str, key: LockKey, *, shared: bool, of_transaction: bool, waits: bool
    ) -> bool:
        """Whether the owner has the lock now; True, if it ``waits``. Raises DeadlockDetected,
        TransientError. A lock that is awaited and cancelled is not held."""
        if self._holdings.has(owner, key, shared=shared):
            await self._surely_held()
        if self._holdings.again(owner, key, shared=shared, of_transaction=of_transaction):
            return True
        claim = Claim(next(self._numbers), Owner(self._core.number, owner), key, shared)
        self._waiting[claim.number] = claim
        try:
            granted = await self._claimed(claim, waits)
        except BaseException:
            self._give_up(claim)
            raise
        finally:
            del self._waiting[claim.number]
        # A refused claim is given up, too: it may have been sent twice, and be granted later.
        if not granted or not self._holdings.add(claim, of_transaction=of_transaction):
            self._give_up(claim)
        return granted

    async def _surely_held(self) -> None:
        """No message asks the host about a lock that is held already. Without a lease this member
        may have been dropped, and its locks be given to others. Raises NoLease, MemberNotReady."""
        await self._core.until_ready()

    async def _claimed(self, claim: Claim, waits: bool) -> bool:
        """The answer of the host, in the step in which it came."""
        clock = self._core.world.clock
        failing_since: float | None = None
        while True:
            try:
                await self._core.until_ready()
                answer = await self._asked(claim, waits)
                # The host of a later view has asked for the locks that are held already: what an
                # older one has granted since does not count. Without a lease this member may have
                # been dropped, and its locks be given to others.
                self._core.observe_member(answer.context)
                self._core.require_lease()
            except TransientError:
                now = clock.monotonic()
                failing_since = now if failing_since is None else failing_since
                if now - failing_since > PATIENCE:
                    raise
                await asyncio.sleep(PAUSE)
                continue
            if answer.circle:
                raise _deadlock([decoded(each) for each in answer.circle])
            return answer.granted

    async def _asked(self, claim: Claim, waits: bool) -> control_pb2.AdvisoryAnswer:
        message = encoded(claim)
        message.waits = waits
        message.context.CopyFrom(self._core.context())
        host = min(self._core.view.by_number)
        if host == self._core.number:
            return await self._asked_here(message)
        done: asyncio.Future[control_pb2.AdvisoryAnswer]
        done = asyncio.get_running_loop().create_future()
        answered = partial(_answered, done)
        self._peers.request_nowait(host, RpcType.ADVISORY_CLAIM, message, (), answered)
        again = self._peers.ask_again(host, RpcType.ADVISORY_CLAIM, message, (), answered)
        try:
            return await done  # the loss of the host answers, too
        finally:
            again.cancel()

    async def _asked_here(self, message: control_pb2.AdvisoryClaim) -> control_pb2.AdvisoryAnswer:
        done: asyncio.Future[control_pb2.AdvisoryAnswer]
        done = asyncio.get_running_loop().create_future()
        await self._host.claim(message, partial(_settle, done))
        return await done

    def unlock(self, owner: str, key: LockKey, *, shared: bool) -> bool:
        """Whether the session held the lock."""
        held, claim = self._holdings.unlock(owner, key, shared=shared)
        if claim is not None:
            self._give_up(claim)
        return held

    def unlock_all(self, owner: str) -> None:
        """All locks of a session but those of its transaction."""
        self._give_up_all(self._holdings.unlock_all(owner))

    def end_transaction(self, owner: str) -> None:
        self._give_up_all(self._holdings.end_transaction(owner))

    def end_session(self, owner: str) -> None:
        self.end_transaction(owner)
        self.unlock_all(owner)

    def _give_up_all(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._give_up(claim)

    def _give_up(self, claim: Claim) -> None:
        """Tell the host; that of a later view does not hear of the claim at all."""
        host = min(self._core.view.by_number)

        def message() -> control_pb2.AdvisoryClaim:
            told = encoded(claim)
            told.given_up = True
            told.context.CopyFrom(self._core.context())
            return told

        if host == self._core.number:
            self._core.spawn(self._given_up_here(message()), "the end of an advisory lock")
        else:
            self._peers.tell(host, RpcType.ADVISORY_CLAIM, message)

    async def _given_up_here(self, message: control_pb2.AdvisoryClaim) -> None:
        try:
            await self._host.claim(message, lambda _: None)
        except TransientError as error:  # the host of another view does not hear of it at all
            log.debug("an advisory lock was given up, and not here: %s", error.message)

    # --- messages -----------------------------------------------------------------------------

    def _on_claim(self, request: Request) -> None:
        message = control_pb2.AdvisoryClaim.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._answer(request, message))

    async def _answer(self, request: Request, message: control_pb2.AdvisoryClaim) -> None:
        host = min(self._core.view.by_number)
        if host != self._core.number and not message.given_up:
            raise ViewChanged(f"member {host} hosts the advisory locks")

        def answer(found: control_pb2.AdvisoryAnswer | RemudaError) -> None:
            if isinstance(found, RemudaError):
                request.fail(found)
            else:
                request.reply(RpcType.ADVISORY_CLAIM, found)

        await self._host.claim(message, answer)

    def _on_held(self, request: Request) -> None:
        """The host asks, or a member that shows them."""
        message = control_pb2.AdvisoryHeld.FromString(request.pbody)
        if message.any_view:
            self._core.observe_peer(message.context)
        else:
            self._core.observe_member(message.context)
        request.reply(RpcType.ADVISORY_HELD, self.described())

    def described(self) -> control_pb2.AdvisoryHeld:
        """The claims of this member's clients."""
        return control_pb2.AdvisoryHeld(
            context=self._core.context(),
            held=map(encoded, self._holdings),
            waiting=map(encoded, self._waiting.values()),
        )


def _settle(
    done: asyncio.Future[control_pb2.AdvisoryAnswer],
    found: control_pb2.AdvisoryAnswer | RemudaError,
) -> None:
    if done.done():
        return
    if isinstance(found, RemudaError):
        done.set_exception(found)
    else:
        done.set_result(found)


def _answered(done: asyncio.Future[control_pb2.AdvisoryAnswer], reply: Reply | RemudaError) -> None:
    if isinstance(reply, RemudaError):
        _settle(done, reply)
        return
    try:
        found: control_pb2.AdvisoryAnswer | RemudaError
        found = control_pb2.AdvisoryAnswer.FromString(reply.pbody)
    except DecodeError as error:  # called back: nobody else would answer
        found = bug(error, "the answer to an advisory lock")
    _settle(done, found)


def _deadlock(circle: list[Claim]) -> DeadlockDetected:
    """In PostgreSQL's words; it names processes by their numbers."""
    lines = []
    for claim, after in zip(circle, [*circle[1:], circle[0]], strict=True):
        mode = "ShareLock" if claim.shared else "ExclusiveLock"
        lines.append(
            f"{claim.owner.name} of member {claim.owner.member} waits for {mode} on {claim.key}; "
            f"blocked by {after.owner.name} of member {after.owner.member}."
        )
    return DeadlockDetected(
        "deadlock detected",
        detail="\n".join(lines),
        hint="Run the transaction again. Sessions that take locks in one order never meet like "
        "this.",
    )
