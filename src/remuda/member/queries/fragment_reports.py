"""FRAGMENT_DONE and what operators did, to messages and back."""

from __future__ import annotations

from remuda.execution.context import FragmentProfile
from remuda.execution.profile import OperatorProfile
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.messages import common_pb2, control_pb2


def encode_operator(profile: OperatorProfile) -> control_pb2.OperatorProfile:
    return control_pb2.OperatorProfile(
        operator=profile.index,
        name=profile.operator,
        rows=profile.rows,
        batches=profile.batches,
        bytes=profile.bytes,
        seconds=profile.seconds,
        wait=profile.wait,
        waits=profile.waits,
        memory=profile.memory,
        spilled=profile.spilled,
        files=profile.files,
        first=profile.first,
        last=profile.last,
    )


def decode_operator(message: control_pb2.OperatorProfile) -> OperatorProfile:
    return OperatorProfile(
        index=message.operator,
        operator=message.name,
        rows=message.rows,
        batches=message.batches,
        bytes=message.bytes,
        seconds=message.seconds,
        wait=message.wait,
        waits=message.waits,
        memory=message.memory,
        spilled=message.spilled,
        files=message.files,
        first=message.first,
        last=message.last,
    )


def encode_report(
    query: QueryId, profile: FragmentProfile, context: common_pb2.Context
) -> control_pb2.FragmentDone:
    return control_pb2.FragmentDone(
        context=context,
        query_id=encode_query_id(query),
        fragment=profile.fragment,
        instance=profile.instance,
        operators=map(encode_operator, profile.operators),
        seconds=profile.seconds,
        peak_memory=profile.peak_memory,
    )


def decode_report(message: control_pb2.FragmentDone) -> FragmentProfile:
    return FragmentProfile(
        message.fragment,
        message.context.sender,
        tuple(map(decode_operator, message.operators)),
        message.seconds,
        message.peak_memory,
        instance=message.instance,
    )
