"""The catalog: which maps exist, with which schemas. Pure values and pure changes.

Changes are serialized by the coordinator of the view and installed everywhere as whole states; a
state is small (thousands of columns at most), so nothing smaller than a state travels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind
from remuda.errors import DuplicateColumn, DuplicateMap, InvalidDefinition, UndefinedMap

COLUMNS_MAX: Final = 1600
NAME_LENGTH_MAX: Final = 255
COLUMN_KINDS: Final = frozenset(Kind) - {Kind.NULL, Kind.INTERVAL}


@dataclass(frozen=True)
class Catalog:
    """All maps at one catalog version. Implements the binder's ``CatalogReader``.

    ``version`` grows by one with every change and never repeats, so the version at which a map
    was made serves as its ``map_id``.
    """

    version: int = 0
    maps: tuple[MapSchema, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, MapSchema]:
        return {schema.name: schema for schema in self.maps}

    @cached_property
    def _by_id(self) -> dict[int, MapSchema]:
        return {schema.map_id: schema for schema in self.maps}

    def find(self, name: str) -> MapSchema | None:
        return self._by_name.get(name)

    def find_id(self, map_id: int) -> MapSchema | None:
        return self._by_id.get(map_id)

    def get(self, name: str) -> MapSchema:
        schema = self._by_name.get(name)
        if schema is None:
            raise undefined_map(name, self.names())
        return schema

    def names(self) -> Sequence[str]:
        return sorted(self._by_name)

    def with_map(self, schema: MapSchema, *, if_not_exists: bool) -> tuple[Catalog, MapSchema]:
        """The catalog with a new map, and the map as it is now: with ``if_not_exists`` an existing
        map of the name stays, whatever its columns. Raises InvalidDefinition, DuplicateMap."""
        existing = self._by_name.get(schema.name)
        if existing is not None:
            if if_not_exists:
                return self, existing
            raise DuplicateMap(f'map "{schema.name}" exists already')
        schema = completed(schema)
        validate(schema)
        version = self.version + 1
        made = replace(schema, map_id=version, version=1)
        return Catalog(version, (*self.maps, made)), made

    def without_map(self, name: str, *, if_exists: bool) -> tuple[Catalog, MapSchema | None]:
        """The catalog without the map, and the map that was dropped. Raises UndefinedMap."""
        existing = self._by_name.get(name)
        if existing is None:
            if if_exists:
                return self, None
            raise undefined_map(name, self.names())
        left = tuple(schema for schema in self.maps if schema is not existing)
        return Catalog(self.version + 1, left), existing


def undefined_map(name: str, names: Sequence[str]) -> UndefinedMap:
    similar = [other for other in names if other.lower() == name.lower()]
    hint = f'Perhaps you meant "{similar[0]}".' if similar else ""
    return UndefinedMap(f'map "{name}" does not exist', hint=hint)


def completed(schema: MapSchema) -> MapSchema:
    """Fill what may be left out: ``partition_by`` is the key; key columns are NOT NULL."""
    keys = set(schema.key)
    columns = tuple(
        replace(column, nullable=False) if column.name in keys and column.nullable else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, partition_by=schema.partition_by or schema.key)


def validate(schema: MapSchema) -> None:
    """Raises InvalidDefinition (DuplicateColumn for a repeated name)."""
    where = f'map "{schema.name}"'
    if not schema.name or len(schema.name) > NAME_LENGTH_MAX:
        raise InvalidDefinition(f"a map name has 1 to {NAME_LENGTH_MAX} characters")
    if not 1 <= len(schema.columns) <= COLUMNS_MAX:
        raise InvalidDefinition(
            f"{where} must have 1 to {COLUMNS_MAX} columns, not {len(schema.columns)}"
        )
    seen: set[str] = set()
    for column in schema.columns:
        if not column.name or len(column.name) > NAME_LENGTH_MAX:
            raise InvalidDefinition(f"{where}: a column name has 1 to {NAME_LENGTH_MAX} characters")
        if column.name in seen:
            raise DuplicateColumn(f'{where}: column "{column.name}" is defined twice')
        seen.add(column.name)
        if column.type.kind not in COLUMN_KINDS:
            raise InvalidDefinition(
                f'{where}: column "{column.name}" cannot have the type {column.type}'
            )
    _validate_key(schema, where, seen)


def _validate_key(schema: MapSchema, where: str, names: set[str]) -> None:
    if not schema.key:
        raise InvalidDefinition(
            f"{where} has no key", hint="Declare one with PRIMARY KEY (column, ...)."
        )
    for name in schema.key:
        if name not in names:
            raise InvalidDefinition(f'{where}: key column "{name}" is not defined')
    if len(set(schema.key)) != len(schema.key):
        raise InvalidDefinition(f"{where}: a key column is named twice")
    if len(set(schema.partition_by)) != len(schema.partition_by) or not set(
        schema.partition_by
    ) <= set(schema.key):
        raise InvalidDefinition(
            f"{where}: the partition attribute must be a subset of the key columns"
        )
