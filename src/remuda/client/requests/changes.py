"""Requests that change entries depending on what they are: pure, as
``client.requests.requests``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from remuda.client.requests.requests import Call, MapRequests, PhysicalRow
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.rpc import type_codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.packing import packer


@dataclass(frozen=True, slots=True)
class Computation:
    """The part of ``map.compute`` that is the same for every entry: see ``ComputeRequest``."""

    assignments: str
    condition: str
    parameters: Sequence[PhysicalValue]
    types: tuple[SqlType, ...]
    want_old: bool


class ChangeRequests:
    """Of one map, under one version of its schema and one view."""

    def __init__(self, requests: MapRequests) -> None:
        self._requests = requests

    def compute(
        self, keys: Sequence[PhysicalRow], what: Computation, inserted: Sequence[PhysicalRow] = ()
    ) -> Call[list[Any]]:
        """MAP_COMPUTE -> the new row of each key (the old one if ``want_old``), None where nothing
        was changed. ``inserted``: the rows for keys that are absent, one for each key, or none."""
        body = user_pb2.ComputeRequest(assignments=what.assignments, want_old=what.want_old)
        if what.condition:
            body.condition = what.condition
        if what.types:
            body.parameter_types = type_codec.encode_types(what.types)
            body.parameters = packer(what.types).pack(tuple(what.parameters))
        body.rows.extend(map(self._requests.pack_row, inserted))
        return Call(user_pb2.MAP_COMPUTE, self._about(body, keys), self._requests.rows)

    def checked(
        self,
        key: PhysicalRow,
        row: PhysicalRow | None,
        *,
        version: int | None = None,
        expected: PhysicalRow | None = None,
        want_old: bool = False,
    ) -> Call[list[Any]]:
        """MAP_CHECKED_WRITE: store ``row`` (None: remove the entry) if the entry has ``version``
        and is ``expected``, as far as they are given -> its old row (empty unless ``want_old``),
        None if nothing was done."""
        body = user_pb2.CheckedWrite(want_old=want_old)
        if row is not None:
            body.rows.append(self._requests.pack_row(row))
        if version is not None:
            body.versions.append(version)
        if expected is not None:
            body.expected.append(self._requests.pack_row(expected))
        return Call(user_pb2.MAP_CHECKED_WRITE, self._about(body, (key,)), self._requests.rows)

    def get_versioned(
        self, keys: Sequence[PhysicalRow]
    ) -> Call[list[tuple[PhysicalRow, int] | None]]:
        """MAP_GET_VERSIONED -> (row, version) of each key, or None."""
        requests, unpack = self._requests, self._requests.unpack_row

        def parse(pbody: bytes) -> list[tuple[PhysicalRow, int] | None]:
            message = user_pb2.RowsResponse.FromString(pbody)
            requests.clock.observe(message.context)
            return [
                (unpack(item.row), item.version) if item.HasField("row") else None
                for item in message.rows
            ]

        body = user_pb2.KeysRequest()
        return Call(user_pb2.MAP_GET_VERSIONED, self._about(body, keys), parse)

    def _about(
        self,
        body: user_pb2.KeysRequest | user_pb2.ComputeRequest | user_pb2.CheckedWrite,
        keys: Sequence[PhysicalRow],
    ) -> bytes:
        schema, requests = self._requests.schema, self._requests
        body.map, body.map_id, body.schema_version = schema.name, schema.map_id, schema.version
        body.keys.extend(map(requests.pack_key, keys))
        requests.clock.stamp(body.context, requests.view)
        return body.SerializeToString()
