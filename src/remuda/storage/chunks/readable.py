"""The schemas under which a map can be read now: the newest, and earlier ones that read right."""

from __future__ import annotations

from remuda.datatypes.schema import MapSchema
from remuda.errors import SchemaChanged
from remuda.storage.chunks.layout import Layouts, reads_as

OLDER_SCHEMAS_MAX = 16
"""So many earlier schemas of a map stay readable, for queries that were planned with them."""


class ReadableSchemas:
    """Any thread may ask; only the event loop changes it, by replacing ``_by_version``."""

    def __init__(self, schema: MapSchema) -> None:
        self.newest = Layouts(schema)
        self._by_version = {schema.version: self.newest}

    def alter(self, schema: MapSchema) -> Layouts:
        """``schema`` is the newest one from now on."""
        older = [
            layouts
            for layouts in [*self._by_version.values()][-OLDER_SCHEMAS_MAX:]
            if reads_as(schema, layouts.schema)
        ]
        self.newest = Layouts(schema)
        self._by_version = {each.schema.version: each for each in (*older, self.newest)}
        return self.newest

    def define_indexes(self, schema: MapSchema) -> Layouts:
        """``schema`` differs from the newest one in its indexes only."""
        self.newest = self._by_version[schema.version] = Layouts(schema)
        return self.newest

    def has(self, version: int) -> bool:
        """Whether the map can be read under this version of its schema."""
        return version in self._by_version

    def under(self, version: int) -> Layouts:
        """How to read the map under a version (0: the newest). Raises SchemaChanged."""
        layouts = self._by_version.get(version) if version else self.newest
        if layouts is None:
            raise SchemaChanged(f'map "{self.newest.schema.name}" was altered')
        return layouts
