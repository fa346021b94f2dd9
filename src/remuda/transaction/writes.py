"""A write of one entry in a transaction, and the writes of a transaction together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue

Key: TypeAlias = tuple[PhysicalValue, ...]
Row: TypeAlias = tuple[PhysicalValue, ...]


class Write(NamedTuple):
    """One entry: stored, or with ``row`` None removed. Values in engine form, the key's in the
    order of the key columns, the row's in that of the columns of ``schema_version``."""

    map_id: int
    schema_version: int
    key: Key
    row: Row | None = None
    ttl: int | None = None
    """How long the row lives from the commit on, in microseconds; 0: for ever; None: as the map
    says. Known before the write goes to its copies, which must agree."""
    keeps: bool = False
    """The row was there when its writer read it, with the same values in the columns of all unique
    indexes. Only the near member knows this, before it commits."""

    def lasting(self, schema: MapSchema) -> Write:
        """With what the map says, if it says nothing itself."""
        if self.ttl is None and schema.options.ttl and self.row is not None:
            return self._replace(ttl=schema.options.ttl)
        return self


WriteSet: TypeAlias = Sequence[Write]
"""At most one write per map and key."""
