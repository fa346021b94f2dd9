"""One question to all members at once, and which of them have not answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.rpc.messages import common_pb2

PATIENCE: Final = 2.0
"""Seconds that an operator waits for a member. One that is not heard is suspected soon afterwards,
and not asked any more."""


class Answering(Protocol):
    """Each answer of a member carries its clock."""

    @property
    def context(self) -> common_pb2.Context: ...


Answer = TypeVar("Answer", bound=Answering)


@dataclass(frozen=True, slots=True)
class Gathered(Generic[Answer]):
    known: dict[int, Answer]
    """By member, in order."""
    failed: dict[int, RemudaError]
    """Live members that have not answered, each with the reason."""
    suspected: tuple[int, ...]
    """Members that were not asked."""

    @property
    def silent(self) -> tuple[int, ...]:
        """Members of the view whose share is missing."""
        return tuple(sorted((*self.failed, *self.suspected)))

    def whole(self) -> dict[int, Answer]:
        """The answers of all live members. Raises the reason of one that has not answered."""
        for error in self.failed.values():
            raise error
        return self.known

    def with_own(self, number: int, answer: Answer) -> Gathered[Answer]:
        """The same with the answer of the member that has asked."""
        known = dict(sorted({**self.known, number: answer}.items()))
        return Gathered(known, self.failed, self.suspected)


NO_ANSWER: Final = "no answer"


def no_answer(
    member: int, member_place: int, width: int, state_place: int | None = None
) -> tuple[Any, ...]:
    """The row of a system relation in place of what a member has not told. ``width`` columns; those
    for the member and for a state (if there is one) are counted from 0."""
    row: list[Any] = [None] * width
    row[member_place] = member
    if state_place is not None:
        row[state_place] = NO_ANSWER
    return tuple(row)


def listed(members: Iterable[int]) -> str | None:
    """Members as text; None: there are none."""
    return ", ".join(map(str, members)) or None


async def in_one_round(  # noqa: PLR0917 (a question, its answer, a patience)
    core: Core,
    peers: Peers,
    rpc_type: int,
    message: Message,
    decode: Callable[[bytes], Answer],
    timeout: float,
) -> Gathered[Answer]:
    """The answers of the other members. ``timeout`` in seconds; members that are silent for longer
    do not hold up the answers of the others."""
    others = [number for number in core.live_members() if number != core.number]

    async def asked(number: int) -> Answer | RemudaError:
        try:
            reply = await peers.request(number, rpc_type, message, (), timeout)
        except RemudaError as error:
            return error
        answer = decode(reply.pbody)
        core.observe(answer.context)
        return answer

    known: dict[int, Answer] = {}
    failed: dict[int, RemudaError] = {}
    for number, found in zip(others, await asyncio.gather(*map(asked, others)), strict=True):
        if isinstance(found, RemudaError):
            failed[number] = found
        else:
            known[number] = found
    suspected = tuple(n for n in core.view.by_number if n in core.lost and n not in failed)
    return Gathered(known, failed, suspected)
