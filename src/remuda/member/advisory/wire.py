"""Claims in messages."""

from __future__ import annotations

from remuda.rpc.messages import control_pb2
from remuda.transaction.advisory import Claim, LockKey, Owner


def encoded(claim: Claim) -> control_pb2.AdvisoryClaim:
    return control_pb2.AdvisoryClaim(
        member=claim.owner.member,
        owner=claim.owner.name,
        number=claim.number,
        pair=claim.key.pair,
        key=claim.key.number,
        shared=claim.shared,
        table=claim.key.table,
    )


def decoded(message: control_pb2.AdvisoryClaim) -> Claim:
    return Claim(
        message.number,
        Owner(message.member, message.owner),
        LockKey(message.pair, message.key, message.table),
        message.shared,
    )
