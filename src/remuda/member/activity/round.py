"""One question to all members at once."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.message import Message

from remuda.errors import RemudaError
from remuda.member.core import Core
from remuda.member.peers import Peers
from remuda.rpc.connection import Reply

PATIENCE: Final = 2.0
"""Seconds that an operator waits for a member. One that is not heard is suspected soon afterwards,
and not asked any more."""


async def in_one_round(
    core: Core, peers: Peers, rpc_type: int, message: Message, timeout: float
) -> dict[int, Reply | RemudaError]:
    """The answers of the other live members, or why there is none after ``timeout`` seconds."""
    others = [number for number in core.live_members() if number != core.number]

    async def asked(number: int) -> Reply | RemudaError:
        try:
            return await peers.request(number, rpc_type, message, (), timeout)
        except RemudaError as error:
            return error

    answers = await asyncio.gather(*map(asked, others))
    return dict(zip(others, answers, strict=True))
