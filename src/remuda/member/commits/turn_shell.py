"""The shell around ``member.commits.turns``: a turn is asked of the map's home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from remuda.errors import ConnectionBroken, MemberUnavailable, NotServed
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.turns import Turns
from remuda.member.state.lock_rows import LockRow
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.locks import Mode


class CommitTurns:
    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers
        self._turns = Turns()
        self._homes: dict[tuple[int, str], tuple[int, int]] = {}
        """Where a turn of this member was taken, and its number: it is ended there, whatever views
        come."""

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the control channel."""
        return {RpcType.COMMIT_TURN: self.on_turn, RpcType.COMMIT_TURN_END: self.on_turn_end}

    async def turn(self, map_id: int, job: str) -> None:
        """Wait for this job's turn to write the map atomically; ``end_turn`` gives it on."""
        try:
            await self._take_turn(map_id, job)
        except BaseException:
            self.end_turn(map_id, job)
            raise

    async def _take_turn(self, map_id: int, job: str) -> None:
        home, number = self._home(map_id), self._core.timestamp()
        self._homes[map_id, job] = home, number
        if home == self._core.number:
            event = asyncio.Event()
            self._turns.take(map_id, job, event.set, number)
            await event.wait()
            return
        message = self._message(map_id, job, number)
        try:
            reply = await self._peers.request(
                home, RpcType.COMMIT_TURN, message, timeout=600.0, repeated=True
            )
        except (ConnectionBroken, MemberUnavailable) as error:
            raise NotServed(
                f"member {home}, which gives the turns to write the map, was lost: {error.message}",
                member=str(home),
                hint="Write again.",
            ) from error
        self._core.observe(common_pb2.Context.FromString(reply.pbody))

    def end_turn(self, map_id: int, job: str) -> None:
        taken = self._homes.pop((map_id, job), None)
        if taken is not None:
            self._end_turn(*taken, map_id, job)

    def _end_turn(self, home: int, number: int, map_id: int, job: str) -> None:
        if home == self._core.number:
            self._turns.end(map_id, job, number)
            return
        message = partial(self._message, map_id, job, number)
        self._peers.tell(home, RpcType.COMMIT_TURN_END, message)

    def _message(self, map_id: int, job: str, number: int) -> control_pb2.CommitTurn:
        return control_pb2.CommitTurn(
            context=self._core.context(), map_id=map_id, job=job, number=number
        )

    def _home(self, map_id: int) -> int:
        home = self._core.view.owners[map_id % PARTITIONS]
        usable = home in self._core.view.by_number and home not in self._core.lost
        return home if usable else self._core.coordinator

    def on_turn(self, request: Request) -> None:
        message = control_pb2.CommitTurn.FromString(request.pbody)
        self._core.observe_member(message.context)

        def granted() -> None:
            if request.channel.closed:
                self._turns.end(message.map_id, message.job, message.number)
            else:
                request.reply(RpcType.COMMIT_TURN, self._core.context())

        self._turns.take(message.map_id, message.job, granted, message.number)

    def on_turn_end(self, request: Request) -> None:
        message = control_pb2.CommitTurn.FromString(request.pbody)
        self._turns.end(message.map_id, message.job, message.number)
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def member_lost(self, number: int) -> None:
        self._turns.member_lost(number)

    def rows(self) -> Iterator[LockRow]:
        """Atomic writes of maps that this member gives the turns of."""
        for map_id, jobs in self._turns.queues():
            for place, job in enumerate(jobs):
                ahead = jobs[:1] if place else ()
                yield LockRow(map_id, None, "map", Mode.EXCLUSIVE, not place, job, blockers=ahead)

    def __len__(self) -> int:
        return len(self._turns)
