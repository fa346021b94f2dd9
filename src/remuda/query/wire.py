"""Query ids <-> protobuf (rpc, a lower layer, does not know them)."""

from __future__ import annotations

from remuda.query.ids import QueryId
from remuda.rpc.messages import common_pb2


def encode_query_id(query: QueryId) -> common_pb2.QueryId:
    return common_pb2.QueryId(part1=query.part1, part2=query.part2)


def decode_query_id(message: common_pb2.QueryId) -> QueryId:
    return QueryId(message.part1, message.part2)
