"""What a transaction's maps and statements use in place of the client's ``Core``: the same
connections, but every request goes to the member that has the transaction, and names it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from remuda.client.core import Core
from remuda.client.held import GONE, Held
from remuda.client.requests import Call, ClusterInfo, MapDescription, transaction_part
from remuda.client.result_stream import ResultStream
from remuda.client.tries import Tries
from remuda.errors import (
    ConnectionBroken,
    MemberUnavailable,
    NoActiveTransaction,
    NoAnswer,
    NotServed,
    NotSupported,
    RemudaError,
)
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.request import serialized

T = TypeVar("T")

_NAMED: Final = frozenset(
    {RpcType.MAP_GET, RpcType.MAP_PUT, RpcType.MAP_REMOVE, RpcType.MAP_PUT_BATCH}
    | {RpcType.MAP_COMPUTE, RpcType.MAP_GET_VERSIONED, RpcType.MAP_CHECKED_WRITE}
    | {RpcType.MAP_TTL, RpcType.MAP_SET_TTL}
)
_REFUSED: Final = frozenset({RpcType.JOB_BEGIN})


class TransactionCore(Core):
    """Made by ``within``."""

    in_transaction = True
    held: Held
    _client: Core

    @classmethod
    def within(cls, core: Core, held: Held) -> Self:
        made = cls.__new__(cls)
        made.__dict__.update(core.__dict__)
        made._client = core  # noqa: SLF001 (its own)
        made.held = held
        return made

    def still_described(self, name: str) -> MapDescription | None:
        known = self.described.get(name)
        if known is None or known.catalog_version != self.held.catalog_version:
            return None
        return known

    def call(self, member: int | None, call: Call[T], read: bool = False) -> Coroutine[Any, Any, T]:  # noqa: ARG002
        return self._ask(call)

    def ask(self, owner: int, call: Call[T]) -> Coroutine[Any, Any, T]:  # noqa: ARG002
        return self._ask(call)

    async def write(self, owner: int, call: Call[T], name: str = "") -> T:  # noqa: ARG002
        return await self._ask(call)

    def tries(self, repeats: int, timeout: float | None = None) -> Tries:  # noqa: ARG002
        """What is lost with its connection is lost with the transaction: there is no sense in
        sending it again."""
        return super().tries(0, timeout)

    async def scatter(self, calls: Sequence[tuple[int, Call[T]]]) -> list[T | RemudaError]:
        """One after the other: they go to one member."""
        answers: list[T | RemudaError] = []
        for _, call in calls:
            try:
                answer: T | RemudaError = await self.write(0, call)
            except RemudaError as error:
                answer = error
            answers.append(answer)
        return answers

    async def _ask(self, call: Call[T]) -> T:
        self._require_open()
        if self.held.broken is not None:
            raise self.held.lost()
        if call.rpc_type in _REFUSED:
            raise NotSupported(
                "staged jobs take no part in transactions",
                hint="Use put_all of objects or of a table, or SQL.",
            )
        if call.rpc_type in _NAMED:
            body = bytes(serialized(call.body)) + transaction_part(self.held.name)
            call = replace(call, body=body)
        try:
            return await self.pool(self.held.member).call(call)
        except GONE:
            self.held.state = user_pb2.MARKED_ROLLBACK
            raise
        except (ConnectionBroken, NoAnswer) as error:
            self.held.lost_with(error)
            raise
        except NotServed as error:
            if self.held.member in self.view.by_number:
                raise  # it is asked again
            self.held.broken = error
            raise MemberUnavailable(
                f"the transaction is lost with member {self.held.member}, which had it",
                detail="Nothing of it took effect.",
                hint="Begin another one.",
                member=str(self.held.member),
            ) from error

    async def refresh(self) -> ClusterInfo:
        info = await self._client.refresh()
        self.view, self._members = self._client.view, self._client._members  # noqa: SLF001 (its own kind)
        return info

    def told(self, stream: ResultStream) -> None:
        """The transaction may end by a statement; then its handles are of no use any more."""
        outcome = stream.outcome
        if outcome is None:
            return
        if outcome.session is not None:
            self.session = outcome.session
        if outcome.transaction is not None:
            if outcome.transaction.transaction and outcome.error is None:
                self.held.name = outcome.transaction.transaction  # AND CHAIN
            self.held.told(outcome.transaction, outcome.tag)

    def released(self, text: str) -> Held | None:  # noqa: ARG002
        self._require_open()
        return self.held

    def _require_open(self) -> None:
        """Raises NoActiveTransaction: a map or a statement was kept for longer than it is good."""
        if self.held.ended:
            raise NoActiveTransaction(
                "the transaction is over, and its maps and statements with it",
                hint="Begin another one with client.transaction().",
            )

    def nearest(self, owner: int | None) -> int:  # noqa: ARG002
        return self.held.member

    def next_member(self) -> int:
        return self.held.member
