"""A map as its requests by key need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import RowCheck
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.member.state.constraints import Constraints
from remuda.member.state.routing import Router
from remuda.rpc.messages import user_pb2
from remuda.rpc.packing import packer
from remuda.rpc.point_encoding import KEYS_ITEM, field
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.own_writes import Key, Row


class OpenMap:
    """The parts of one map that every request needs, prepared once per schema."""

    def __init__(self, schema: MapSchema, store: MapStore, constraints: Constraints) -> None:
        self.schema = schema
        positions = schema.key_positions
        self._one_column = positions[0] if len(positions) == 1 else None
        self.store = store
        self.router = Router(schema)
        self.check = RowCheck(schema)
        self._entering = RowCheck(schema.given) if schema.generated else self.check
        self.conditions = constraints.of(schema)
        self.arrow_schema = engine_schema(schema)
        self.rows = packer(tuple(column.type for column in schema.columns))
        self._asked = user_pb2.KeysRequest(
            map=schema.name, map_id=schema.map_id, schema_version=schema.version
        ).SerializeToString()
        """The part of a request for keys that is always the same."""
        self.keys = packer(tuple(schema.columns[i].type for i in schema.key_positions))

    def keys_request(self, keys: Iterable[Key]) -> bytes:
        """A ``KeysRequest`` for another member, without a context: that of its envelope counts."""
        pack = self.keys.pack
        return b"".join([self._asked, *[field(KEYS_ITEM, pack(key)) for key in keys]])

    def unpack_keys(self, packed: Iterable[bytes]) -> list[Key]:
        """Raises ProtocolError, and ObjectMismatch for a NULL in a key."""
        keys = list(map(self.keys.unpack, packed))
        for key in keys:
            if None in key:
                self.check.key(key)
        return keys

    def unpack_rows(self, packed: Iterable[bytes]) -> list[Row]:
        """Raises ProtocolError, and the errors of ``RowCheck.row`` and ``Conditions.check``."""
        unpack, check = self.rows.unpack, self._entering.row
        rows = []
        for data in packed:
            row = unpack(data)
            check(row)
            rows.append(row)
        return self.completed(rows)

    def completed(self, rows: Sequence[Row]) -> list[Row]:
        """``rows``, which fit the columns, with the values of generated ones. Raises the errors of
        ``Conditions.completed_rows`` and ``Conditions.check``."""
        if self.schema.generated:
            rows = self.conditions.completed_rows(rows)
        if self.schema.checks:
            self.conditions.check_rows(rows)
        return list(rows)

    def key_of(self, row: Sequence[PhysicalValue]) -> Key:
        if self._one_column is not None:
            return (row[self._one_column],)
        return tuple([row[position] for position in self.schema.key_positions])

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        columns = zip(*rows, strict=True)
        arrays = [
            values_to_array(list(values), column.type)
            for values, column in zip(columns, self.schema.columns, strict=True)
        ]
        return pa.record_batch(arrays, schema=self.arrow_schema)
