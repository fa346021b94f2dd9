"""Requests of clients as spans: key operations, and those of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import DecodeError, Message

from remuda.errors import RemudaError
from remuda.member.base.core import Call
from remuda.member.metrics.operations import operation_name
from remuda.member.metrics.traces import Traces
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.request import OnAnswer
from remuda.rpc.transport import Request

MESSAGES: Final[dict[int, type[Message]]] = {
    RpcType.MAP_GET: user_pb2.KeysRequest,
    RpcType.MAP_GET_VERSIONED: user_pb2.KeysRequest,
    RpcType.MAP_REMOVE: user_pb2.KeysRequest,
    RpcType.MAP_TTL: user_pb2.KeysRequest,
    RpcType.MAP_SET_TTL: user_pb2.KeysRequest,
    RpcType.MAP_PUT: user_pb2.PutRequest,
    RpcType.MAP_COMPUTE: user_pb2.ComputeRequest,
    RpcType.MAP_CHECKED_WRITE: user_pb2.CheckedWrite,
    RpcType.MAP_PUT_BATCH: user_pb2.PutBatchRequest,
    RpcType.MAP_SIZE: user_pb2.MapName,
    RpcType.TRANSACTION_BEGIN: user_pb2.TransactionBegin,
    RpcType.TRANSACTION_END: user_pb2.TransactionEnd,
    RpcType.TRANSACTION_SAVEPOINT: user_pb2.TransactionSavepoint,
    RpcType.TRANSACTION_SUSPEND: user_pb2.TransactionSuspend,
}
"""The requests that get a span, and their messages: each has a field ``traceparent``."""


def traced(traces: Traces, member: int, request: Request, answered: OnAnswer) -> OnAnswer:
    """``answered`` for the end of a request that begins now: it makes the span as well. Statements
    have spans of their own."""
    kind = MESSAGES.get(request.rpc_type)
    if kind is None:
        return answered
    message, name, began = (
        _read(kind, request.pbody),
        operation_name(request.rpc_type),
        traces.now(),
    )
    attributes = {"db.operation.name": name, "remuda.member": member, **dict(_about(message))}
    parent = getattr(message, "traceparent", "")

    def ended(error: RemudaError | None) -> None:
        traces.ended(f"remuda.{name}", parent, began, attributes, error)
        answered(error)

    return ended


def parent_of(call: Call) -> str:
    """The span of the client that has sent a request of ``MESSAGES``; "" for none."""
    return getattr(_read(MESSAGES[call.rpc_type], call.pbody), "traceparent", "")


def _read(kind: type[Message], pbody: bytes) -> Message | None:
    """None: the handler of the request refuses it."""
    try:
        return kind.FromString(pbody)
    except DecodeError:
        return None


def _about(message: Message | None) -> Iterator[tuple[str, str | int]]:
    """The map of a request, its transaction, and how many entries it means."""
    name = getattr(message, "map", "") or getattr(message, "name", "")
    if name and not isinstance(message, user_pb2.TransactionSavepoint):
        yield "db.collection.name", name
    if transaction := getattr(message, "transaction", ""):
        yield "remuda.transaction", transaction
    entries = len(getattr(message, "keys", ())) or len(getattr(message, "rows", ()))
    if entries > 1:
        yield "db.operation.batch.size", entries
