"""Schemas that maps have had, for rows that were made under them and arrive later."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from remuda.datatypes.schema import MapSchema

SCHEMAS_KEPT: Final = 1000


class FormerSchemas:
    """Of all maps of a member, the last ones."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[tuple[int, int], MapSchema] = OrderedDict()

    def remember(self, schema: MapSchema) -> None:
        """In the step in which its map gets another one."""
        self._schemas[schema.map_id, schema.version] = schema
        if len(self._schemas) > SCHEMAS_KEPT:
            self._schemas.popitem(last=False)

    def of(self, map_id: int, version: int) -> MapSchema | None:
        return self._schemas.get((map_id, version))
