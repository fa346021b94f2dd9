"""The maps that a RESTORE SNAPSHOT names, as they will be: their names, schemas and sequences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import PUBLIC, MapSchema, full_name, local_name, prefix
from remuda.errors import DuplicateMap, NotSupported, UndefinedMap, UndefinedSchema
from remuda.sql.definitions.sequences import owned_by, with_renamed_sequence
from remuda.sql.scope.resolution import Place
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.snapshot import RestoreSnapshotTree
from remuda.storage.format.manifest import DataObject
from remuda.storage.snapshot.restoring import RestorePlan


@dataclass
class RestoredMap:
    """``schema`` as the snapshot has it; ``name`` as it will be called."""

    schema: MapSchema
    name: str
    rows: int
    objects: list[DataObject]
    namespace: str
    """The schema that it will be in."""
    passing: int = 0
    """Rows, of this and the other maps, that end by themselves."""
    staged: str = ""
    """Its name while it is filled."""

    @property
    def place(self) -> Place:
        return Place(self.namespace, local_name(self.namespace, self.name))


def chosen(
    path: RestorePlan, catalog: Catalog, tree: RestoreSnapshotTree, schemas: frozenset[str]
) -> list[RestoredMap]:
    """``schemas``: those of the snapshot and of the cluster. Raises UndefinedMap, UndefinedSchema,
    DuplicateMap."""
    for name in tree.schemas:
        if name != PUBLIC and name not in schemas:
            raise UndefinedSchema(
                f'schema "{name}" does not exist',
                hint="It is neither in the cluster nor in the snapshot. CREATE SCHEMA makes it.",
            )
    cut = path.cut
    names = catalog.names()
    wanted = tree.maps or tuple(
        (schema.name, full_name(schema.namespace, tree.prefix + schema.local))
        for schema in map(catalog.get, names)
    )
    found: list[RestoredMap] = []
    for name, new in wanted:
        schema = catalog.find(name)
        if schema is None:
            raise UndefinedMap(
                f'cut {cut.version} of snapshot {cut.name} has no map "{name}"',
                hint=did_you_mean(name, names),
            )
        found.append(_restored(path, schema, new, _schema_of(new, {schema.namespace, *schemas})))
    found += _owned(path, catalog, found)
    _require_parents(found)
    news = [each.name for each in found]
    for name in news:
        if news.count(name) > 1:
            raise DuplicateMap(f'two maps would be restored as "{name}"')
    return found


def _schema_of(name: str, schemas: Iterable[str]) -> str:
    """The schema that a full name begins with."""
    found = [each for each in schemas if each != PUBLIC and name.startswith(prefix(each))]
    return max(found, key=len, default=PUBLIC)


def _restored(path: RestorePlan, schema: MapSchema, new: str, namespace: str) -> RestoredMap:
    rows = next((each.rows for each in path.base.maps if each.map_id == schema.map_id), 0)
    objects = [each for each in path.base.data if each.map_id == schema.map_id]
    return RestoredMap(schema, new, rows, objects, namespace)


def _owned(path: RestorePlan, catalog: Catalog, found: list[RestoredMap]) -> list[RestoredMap]:
    """The sequences that columns of the maps own, which come with them. That of a map with a new
    name gets one as well."""
    there = {each.schema.map_id for each in found}
    more: list[RestoredMap] = []
    for each in found:
        for column in each.schema.columns:
            for schema in owned_by(catalog, [column]):
                if schema.map_id not in there:
                    renamed = each.name != each.schema.name
                    name = f"{each.name}_{column.name}_seq" if renamed else schema.name
                    namespace = each.namespace if renamed else schema.namespace
                    more.append(_restored(path, schema, name, namespace))
    return more


def _require_parents(maps: Sequence[RestoredMap]) -> None:
    """The rows of a foreign key and those that they name are of one moment. Raises
    NotSupported."""
    there = {each.schema.name for each in maps}
    for each in maps:
        for key in each.schema.foreign_keys:
            if key.parent not in there:
                raise NotSupported(
                    f'map "{each.schema.name}" cannot be restored without map "{key.parent}": '
                    f'its foreign key "{key.name}" references it',
                    hint=f'Restore "{key.parent}" by the same statement.',
                )


def _parents(maps: Sequence[RestoredMap], each: RestoredMap) -> MapSchema:
    """Its schema with foreign keys that name the parents by their new names."""
    news = {other.schema.name: other for other in maps}
    keys = tuple(
        replace(key, parent=news[key.parent].name, namespace=news[key.parent].namespace)
        for key in each.schema.foreign_keys
    )
    return replace(each.schema, foreign_keys=keys)


def relinked(maps: Sequence[RestoredMap], salt: str) -> list[RestoredMap]:
    """Columns and sequences of a restore know each other by numbers of its own, and defaults name
    the sequences by their new names: the maps of the snapshot may be there as well."""
    names = [(each.schema.name, each.place) for each in maps if each.schema.sequence is not None]
    found: list[RestoredMap] = []
    for each in maps:
        schema = _parents(maps, each)
        for old, new in names:
            if old != new.full:
                schema = with_renamed_sequence(schema, old, new)
        if schema.sequence is not None:
            link = _link(schema.sequence.link, salt)
            schema = replace(schema, sequence=replace(schema.sequence, link=link))
        columns = tuple(
            replace(column, sequences=tuple(_link(link, salt) for link in column.sequences))
            if column.sequences
            else column
            for column in schema.columns
        )
        found.append(replace(each, schema=replace(schema, columns=columns)))
    return found


def _link(link: int, salt: str) -> int:
    digest = hashlib.blake2b(f"{link} {salt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
