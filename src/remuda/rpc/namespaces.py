"""SQL schemas in messages."""

from __future__ import annotations

from remuda.datatypes.schema import Namespace
from remuda.rpc.messages import common_pb2


def encode_namespace(namespace: Namespace) -> common_pb2.Namespace:
    return common_pb2.Namespace(
        name=namespace.name,
        comment=namespace.comment or None,
        oid=namespace.oid or None,
    )


def decode_namespace(message: common_pb2.Namespace) -> Namespace:
    return Namespace(message.name, message.comment, message.oid)
