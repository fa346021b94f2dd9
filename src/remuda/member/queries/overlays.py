"""The writes of a transaction on their way to the members that run its queries."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import MapSchema
from remuda.execution.context import Sources
from remuda.execution.overlay import Layer, MapWrites, OverlaidSources
from remuda.member.base.core import Core
from remuda.rpc.messages import control_pb2
from remuda.rpc.packing import RowPacker, packer
from remuda.storage.indexes.keys import KeyForm
from remuda.transaction.own_writes import Key, Row, canonical_key


def encode_writes(message: control_pb2.QueryStart, overlay: Sequence[MapWrites]) -> None:
    for writes in overlay:
        schema = writes.schema
        rows, keys = _packers(schema)
        part = message.writes.add(map_id=schema.map_id, schema_version=schema.version)
        for key, row in writes.rows.items():
            if row is None:
                part.removed.append(keys.pack(key))
            else:
                part.rows.append(rows.pack(row))


def decode_writes(core: Core, message: control_pb2.QueryStart) -> tuple[MapWrites, ...]:
    """Raises SchemaChanged, ProtocolError."""
    found = []
    for part in message.writes:
        schema = core.store(part.map_id, part.schema_version).schema
        rows, keys = _packers(schema)
        written: dict[Key, Row | None] = {canonical_key(keys.unpack(k)): None for k in part.removed}
        for data in part.rows:
            row = rows.unpack(data)
            written[canonical_key(tuple([row[p] for p in schema.key_positions]))] = row
        found.append(MapWrites(schema, written))
    return tuple(found)


def _packers(schema: MapSchema) -> tuple[RowPacker, RowPacker]:
    types = tuple(column.type for column in schema.columns)
    return packer(types), packer(tuple(types[position] for position in schema.key_positions))


def overlaid(core: Core, base: Sources, overlay: Sequence[MapWrites]) -> Sources:
    """``base`` with ``overlay`` laid over it, as far as this member stores it."""
    if not overlay:
        return base
    owners, me = core.view.owners, core.number
    owns = frozenset(partition for partition, owner in enumerate(owners) if owner == me)

    def form(map_id: int, index_id: int) -> KeyForm:
        return core.readable(map_id, 0).indexes.get(index_id).form

    layers = {writes.schema.map_id: Layer(writes, owns) for writes in overlay}
    return OverlaidSources(base, layers, form)
