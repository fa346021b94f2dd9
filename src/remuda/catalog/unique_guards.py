"""The maps of guards: which values of unique indexes were written a moment ago, and which keys that
foreign keys reference were taken away.

A write of new values of a unique index looks for other rows that have them, and writes one entry
for each value into this map, in the same transaction. Two writers of the same value at a time meet
there. The rows of the map say nothing, so nothing goes wrong when they are lost: that somebody has
written an entry since one has looked is what counts. They end by themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, Kind, SqlType
from remuda.datatypes.values import PhysicalValue

GUARDS_NAME: Final = "\x01unique guards"
"""No name in an SQL text or of a client's map begins so."""
GUARD_TTL: Final = 10_000_000
"""Microseconds. An ended entry can still be seen as long as somebody reads at an earlier time."""
GUARDS: Final = MapSchema(
    name=GUARDS_NAME,
    columns=(Column("slot", BIGINT, nullable=False),),
    key=("slot",),
    partition_by=("slot",),
)

KEY_GUARDS_NAME: Final = "\x01key guards"
"""The map of the guards of keys that foreign keys reference: a transaction that takes a key away
writes an entry, and one that writes a row that names the key reads it."""
KEY_GUARDS: Final = MapSchema(
    name=KEY_GUARDS_NAME,
    columns=(Column("slot", BIGINT, nullable=False),),
    key=("slot",),
    partition_by=("slot",),
)

Values = tuple[PhysicalValue, ...]


def is_guards(schema: MapSchema) -> bool:
    return schema.name in (GUARDS_NAME, KEY_GUARDS_NAME)


def same_values(values: Values, types: tuple[SqlType, ...]) -> Values:
    """A value that is the same for values that SQL takes for equal, and equals itself."""
    return tuple([_same(value, kind.kind) for value, kind in zip(values, types, strict=True)])


def _same(value: PhysicalValue, kind: Kind) -> PhysicalValue:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0  # noqa: PLR0124 (-0.0 is 0.0)
    if kind is Kind.CHAR and isinstance(value, str):
        return value.rstrip(" ")
    return value


def slot_of(index_id: int, same: Values) -> int:
    """The key of the guard of values as ``same_values`` gives them."""
    return _hashed((index_id, same))


def key_slot_of(map_id: int, pairs: Sequence[tuple[int, PhysicalValue]]) -> int:
    """The key of the guard of a key of a map: by the ids of its columns, in order, their values as
    ``same_values`` gives them."""
    return _hashed((map_id, tuple(pairs)))


def _hashed(value: object) -> int:
    digest = hashlib.blake2b(repr(value).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
