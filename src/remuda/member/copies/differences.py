"""The side of a primary that gives a copy to a member which has a former one: it finds out what is
lacking there, and has the rest of the former copy taken (``storage.maps.copy_comparison``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.base.peers import Peers
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.storage.chunks.chunk import Flags
from remuda.storage.maps.copy_comparison import (
    WORD,
    Buckets,
    Digests,
    Inventory,
    Marks,
    bucket_bits,
    compared,
    differing,
)
from remuda.storage.maps.transfer import Extraction, Versions

BUCKETS_TOGETHER = 2048
"""Described in one message."""
TIMEOUT = 60.0


class Differences:
    def __init__(self, core: Core, peers: Peers, offload: Offload) -> None:
        self._core = core
        self._peers = peers
        self._offload = offload
        self.bytes = 0
        """Of what was sent and received to compare copies."""

    async def lacking(
        self,
        receiver: int,
        transfer: str,
        extraction: Extraction,
        partitions: list[int],
        floor: int,
    ) -> Iterator[Versions]:
        """The rows of ``extraction`` that the former copy of ``partitions`` lacks. The receiver has
        taken the rest of it when this returns. Any thread may read the result."""
        inventory = await self._offload.result(lambda: Inventory(extraction, partitions))
        bits = bucket_bits(len(inventory), len(partitions))
        message = control_pb2.CopyCompare(
            transfer=transfer,
            map_id=extraction.schema.map_id,
            schema_version=extraction.schema.version,
            bits=bits,
        )
        answer = await self._ask(receiver, message)
        if not answer.digests:
            return inventory.versions(np.ones(len(inventory), dtype=np.bool_))
        theirs: Digests = np.frombuffer(answer.digests, dtype=WORD).astype(np.uint64)
        mine = await self._offload.result(lambda: inventory.digests(bits))
        buckets = differing(mine, theirs)
        sent: Flags = np.zeros(len(inventory), dtype=np.bool_)
        for start in range(0, len(buckets), BUCKETS_TOGETHER):
            some = buckets[start : start + BUCKETS_TOGETHER]
            sent |= await self._compare(receiver, message, inventory, some)
        del message.buckets[:], message.void[:]
        message.voided, message.take, message.floor = False, True, floor
        await self._ask(receiver, message)
        return inventory.versions(sent)

    async def _compare(
        self,
        receiver: int,
        message: control_pb2.CopyCompare,
        inventory: Inventory,
        buckets: Buckets,
    ) -> Flags:
        """Which versions in some buckets are lacking; the receiver learns which of its are void."""
        message.voided = False
        message.buckets[:], message.void[:] = buckets.tolist(), []
        answer = await self._ask(receiver, message)
        theirs = Marks.from_bytes(answer.marks)

        def work() -> tuple[Flags, Flags]:
            inside = inventory.inside(message.bits, buckets)
            lacking, void = compared(inventory.marks.where(inside), theirs)
            inside[inside] = lacking
            return inside, void

        sent, void = await self._offload.result(work)
        if void.any():
            message.voided = True
            message.void[:] = np.flatnonzero(void).tolist()
            await self._ask(receiver, message)
        return sent

    async def _ask(
        self, receiver: int, message: control_pb2.CopyCompare
    ) -> control_pb2.CopyCompared:
        message.context.CopyFrom(self._core.context())
        reply = await self._peers.request(receiver, RpcType.COPY_COMPARE, message, timeout=TIMEOUT)
        self.bytes += message.ByteSize() + len(reply.pbody)
        return control_pb2.CopyCompared.FromString(reply.pbody)
