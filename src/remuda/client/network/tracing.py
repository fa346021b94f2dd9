"""The span of OpenTelemetry in which a program asks for something, told to the member."""

from __future__ import annotations

import sys
from typing import Final

from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.request import Body, serialized

OPENTELEMETRY: Final = "opentelemetry.trace"
"""The module that a program has imported if it may be inside of a span."""
TRACED: Final = frozenset(
    {
        RpcType.MAP_GET,
        RpcType.MAP_GET_VERSIONED,
        RpcType.MAP_REMOVE,
        RpcType.MAP_TTL,
        RpcType.MAP_SET_TTL,
        RpcType.MAP_PUT,
        RpcType.MAP_COMPUTE,
        RpcType.MAP_CHECKED_WRITE,
        RpcType.MAP_PUT_BATCH,
        RpcType.MAP_SIZE,
        RpcType.TRANSACTION_BEGIN,
        RpcType.TRANSACTION_END,
        RpcType.TRANSACTION_SAVEPOINT,
        RpcType.TRANSACTION_SUSPEND,
    }
)
"""Requests whose messages have a field ``traceparent`` of one number."""


def trace_part() -> bytes:
    """The rest of a RUN_QUERY inside of a span; empty outside of one. A program that has not
    imported OpenTelemetry has none, and pays one lookup."""
    if OPENTELEMETRY not in sys.modules:
        return b""
    parent = _traceparent()
    return user_pb2.RunQuery(traceparent=parent).SerializeToString() if parent else b""


def traced(rpc_type: int, body: Body) -> Body:
    """The message of a request; inside of a span, one that tells the span. Whether
    ``OPENTELEMETRY`` is imported is for the caller to look up: it costs less than a call."""
    parent = _traceparent() if rpc_type in TRACED else ""
    if not parent:
        return body
    return serialized(body) + user_pb2.KeysRequest(traceparent=parent).SerializeToString()


def _traceparent() -> str:
    """As W3C Trace Context has it; "" outside of a span."""
    known = sys.modules[OPENTELEMETRY].get_current_span().get_span_context()
    if not known.is_valid:
        return ""
    return f"00-{known.trace_id:032x}-{known.span_id:016x}-{int(known.trace_flags):02x}"
