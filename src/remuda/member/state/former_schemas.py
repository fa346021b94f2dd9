"""Schemas that maps have had, for rows that were made under them and arrive later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Final

from remuda.datatypes.schema import MapSchema

SCHEMAS_KEPT: Final = 1000
SCHEMAS_TOLD: Final = 64
"""Of those, at most, stand in a state of the catalog: for members that have joined or that missed a
state, and for the log. A part is in doubt for a moment, so the latest ones are wanted."""


class FormerSchemas:
    """Of all maps of a member, the last ones."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[tuple[int, int], MapSchema] = OrderedDict()

    def remember(self, schema: MapSchema) -> None:
        """In the step in which its map gets another one."""
        self._schemas[schema.map_id, schema.version] = schema
        if len(self._schemas) > SCHEMAS_KEPT:
            self._schemas.popitem(last=False)

    def learn(self, schemas: Iterable[MapSchema]) -> None:
        """Of maps that another member, or a log, has known for longer."""
        for schema in schemas:
            if (schema.map_id, schema.version) not in self._schemas:
                self.remember(schema)

    def lately(self, now: Iterable[MapSchema]) -> list[MapSchema]:
        """The latest of maps that are there ``now``, oldest first."""
        versions = {schema.map_id: schema.version for schema in now}
        former = (
            schema
            for schema in reversed(self._schemas.values())
            if schema.version < versions.get(schema.map_id, 0)
        )
        return list(islice(former, SCHEMAS_TOLD))[::-1]

    def of(self, map_id: int, version: int) -> MapSchema | None:
        return self._schemas.get((map_id, version))
