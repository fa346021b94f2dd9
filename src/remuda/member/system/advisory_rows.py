"""Rows of pg_locks that tell of advisory locks."""

from __future__ import annotations

from typing import Any, Final

from remuda.catalog.pg_objects import DATABASE_OID
from remuda.member.advisory.locks import AdvisoryService
from remuda.member.advisory.wire import decoded
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import PATIENCE, in_one_round
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.transaction.advisory import Claim

Row = tuple[Any, ...]

_LOW: Final = 0xFFFFFFFF


class AdvisoryRows:
    def __init__(self, core: Core, peers: Peers, locks: AdvisoryService) -> None:
        self._core = core
        self._peers = peers
        self._locks = locks

    async def rows(self) -> list[Row]:
        """Of all members that answer soon."""
        message = control_pb2.AdvisoryHeld(context=self._core.context(), any_view=True)
        decode = control_pb2.AdvisoryHeld.FromString
        kind = RpcType.ADVISORY_HELD
        found = await in_one_round(self._core, self._peers, kind, message, decode, PATIENCE)
        answers = found.with_own(self._core.number, self._locks.described()).known.values()
        return [
            *(_row(decoded(claim), True) for answer in answers for claim in answer.held),
            *(_row(decoded(claim), False) for answer in answers for claim in answer.waiting),
        ]


def _row(claim: Claim, granted: bool) -> Row:
    """As PostgreSQL has it: classid and objid are the halves of a key, objsubid 2 tells that it was
    given as two numbers."""
    key, (kind, _, number) = claim.key, claim.owner.name.partition(" ")
    place = (None, (key.number >> 32) & _LOW, key.number & _LOW, 2 if key.pair else 1)
    relation, classid, objid, objsubid = (key.number, None, None, None) if key.table else place
    return (
        "relation" if key.table else "advisory", DATABASE_OID, relation, None, None, None, None,
        classid, objid, objsubid,
        None if kind == "process" else number, int(number) if kind == "process" else None,
        "ShareLock" if claim.shared else "ExclusiveLock", granted, False, None,
    )  # fmt: skip
