"""The catalog: which maps exist, with which schemas. Pure values and pure changes.

Changes are serialized by the coordinator of the view and installed everywhere as whole states; a
state is small (thousands of columns at most), so nothing smaller than a state travels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Final

from remuda.catalog.edits import (
    DecidedTransaction,
    DropMap,
    DropNamespace,
    DropType,
    DropView,
    Edit,
    PutMap,
    PutNamespace,
    PutType,
    PutView,
)
from remuda.catalog.enums import Retyping, adopted, enums_of, users_of
from remuda.catalog.foreign_keys import linked
from remuda.catalog.indexes import carried, same_rows
from remuda.catalog.oids import FIRST_OID, allotted
from remuda.datatypes.hashes.keyhash import is_key_type
from remuda.datatypes.map_options import refuse_for_replicated
from remuda.datatypes.schema import (
    PUBLIC,
    Column,
    MapSchema,
    Namespace,
    ViewDefinition,
    full_name,
)
from remuda.datatypes.sql import EnumType, Kind
from remuda.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateMap,
    DuplicateSchema,
    InvalidDefinition,
    UndefinedMap,
    UndefinedSchema,
    UndefinedType,
)

COLUMNS_MAX: Final = 1600
NAME_LENGTH_MAX: Final = 255
COLUMN_KINDS: Final = frozenset(Kind) - {Kind.NULL, Kind.ROW}


@dataclass(frozen=True)
class Catalog:
    """All maps at one catalog version. Implements the binder's ``CatalogReader``.

    ``version`` grows by one with every change and never repeats, so the version at which a map
    was made serves as its ``map_id``.
    """

    version: int = 0
    maps: tuple[MapSchema, ...] = ()
    views: tuple[ViewDefinition, ...] = ()
    following_oid: int = FIRST_OID
    """The next OID that was never allotted."""
    namespaces: tuple[Namespace, ...] = ()
    """The SQL schemas of the users besides ``public``, and ``public`` if it was changed."""
    types: tuple[EnumType, ...] = ()
    """The enums. Columns have them whole (``catalog.enums``)."""
    decided: tuple[DecidedTransaction, ...] = ()
    """Transactions whose definitions are in it, or never will be."""

    @cached_property
    def _by_name(self) -> dict[str, MapSchema]:
        return {schema.name: schema for schema in self.maps}

    @cached_property
    def _by_id(self) -> dict[int, MapSchema]:
        return {schema.map_id: schema for schema in self.maps}

    @cached_property
    def _view_by_name(self) -> dict[str, ViewDefinition]:
        return {view.name: view for view in self.views}

    @cached_property
    def namespace_names(self) -> frozenset[str]:
        return frozenset(namespace.name for namespace in self.namespaces)

    @cached_property
    def shown(self) -> Catalog:
        """Without the maps that a restore is still filling, and those of guards and of
        notifications."""
        maps = tuple(s for s in self.maps if not s.internal)
        return self if len(maps) == len(self.maps) else replace(self, maps=maps)

    def find(self, name: str) -> MapSchema | None:
        return self._by_name.get(name)

    def find_view(self, name: str) -> ViewDefinition | None:
        return self._view_by_name.get(name)

    @cached_property
    def _type_by_name(self) -> dict[str, EnumType]:
        return {full_name(enum.namespace, enum.local): enum for enum in self.types}

    def find_type(self, name: str) -> EnumType | None:
        """The enum of a full name."""
        return self._type_by_name.get(name)

    def find_id(self, map_id: int) -> MapSchema | None:
        return self._by_id.get(map_id)

    def get(self, name: str) -> MapSchema:
        schema = self._by_name.get(name)
        if schema is None:
            raise undefined_map(name, self.names())
        return schema

    def names(self) -> Sequence[str]:
        return sorted(self._by_name)

    @cached_property
    def tables(self) -> tuple[MapSchema, ...]:
        """The maps that are no sequences."""
        return tuple(schema for schema in self.maps if schema.sequence is None)

    @cached_property
    def sequences(self) -> tuple[MapSchema, ...]:
        return tuple(schema for schema in self.maps if schema.sequence is not None)

    def owner(self, sequence: MapSchema) -> MapSchema | None:
        """The map of the column that owns a sequence."""
        found = sequence.sequence and self.owners.get(sequence.sequence.link)
        return found[0] if found else None

    @cached_property
    def owners(self) -> Mapping[int, tuple[MapSchema, Column]]:
        """The columns that own sequences, by the links of these."""
        return {
            link: (schema, column)
            for schema in self.tables
            for column in schema.columns
            for link in column.sequences
        }

    def view_names(self) -> Sequence[str]:
        return sorted(self._view_by_name)

    def with_map(self, schema: MapSchema, *, if_not_exists: bool) -> tuple[Catalog, MapSchema]:
        """The catalog with a new map, and the map as it is now: with ``if_not_exists`` an existing
        map of the name stays, whatever its columns. Raises InvalidDefinition, DuplicateMap."""
        self.check_namespace(schema.namespace)
        existing = self._by_name.get(schema.name)
        if existing is not None:
            if if_not_exists and existing.namespace == schema.namespace:
                return self, existing
            raise DuplicateMap(f'map "{schema.name}" exists already')
        if schema.name in self._view_by_name:
            raise DuplicateMap(f'a view of the name "{schema.name}" exists already')
        version = self.version + 1
        made = made_map(schema, version, _index_ids(version, 0))
        changed = self.following(version, (*self.maps, made), self.views)
        return changed, changed.get(made.name)

    def without_map(self, name: str, *, if_exists: bool) -> tuple[Catalog, MapSchema | None]:
        """The catalog without the map, and the map that was dropped. Raises UndefinedMap,
        DependentObjects when a view reads it."""
        existing = self._by_name.get(name)
        if existing is None:
            if if_exists:
                return self, None
            raise undefined_map(name, self.names())
        using = [f'view "{view.name}"' for view in self.views if name in view.uses]
        if using:
            raise DependentObjects(
                f'cannot drop map "{name}" because other objects depend on it',
                detail=f"{', '.join(using)} {'depends' if len(using) == 1 else 'depend'} on it.",
                hint="Use DROP TABLE ... CASCADE to drop them too.",
            )
        if existing.sequence is not None:
            raise InvalidDefinition(f'"{name}" is a sequence', hint="Use DROP SEQUENCE.")
        links = {link for column in existing.columns for link in column.sequences}
        left = {
            schema.map_id: schema
            for schema in self.maps
            if schema is not existing
            and (schema.sequence is None or schema.sequence.link not in links)
        }
        maps = tuple(linked(self._by_id, left).values())
        return replace(self, version=self.version + 1, maps=maps), existing

    def edited(self, edits: Sequence[Edit]) -> Catalog:
        """The catalog after all of ``edits``, as its next version. Raises InvalidDefinition,
        DuplicateMap, UndefinedMap."""
        version = self.version + 1
        maps = {schema.map_id: schema for schema in self.maps}
        views = {view.view_id: view for view in self.views}
        for number, edit in enumerate(edits):
            match edit:
                case DropMap(name=name):
                    del maps[self.get(name).map_id]
                case DropView(name=name):
                    view = self.find_view(name)
                    if view is None:
                        raise UndefinedMap(f'view "{name}" does not exist')
                    del views[view.view_id]
                case PutMap(schema=schema):
                    before = maps.get(schema.map_id)
                    if before is None:
                        map_id, ids = _new_id(version, number), _index_ids(version, number)
                        made = made_map(schema, map_id, ids)
                    else:
                        ids = _index_ids(version, number)
                        made = next_map(before, schema, before.version + 1, ids)
                    maps[made.map_id] = made
                case PutView(view=view):
                    if view.view_id not in views:
                        view = replace(view, view_id=_new_id(version, number))
                    views[view.view_id] = view
                case PutNamespace() | DropNamespace() | PutType() | DropType():
                    continue
        maps = linked(self._by_id, maps)
        types = self._edited_types(edits, [*maps.values(), *views.values()])
        names = [schema.name for schema in maps.values()] + [view.name for view in views.values()]
        names += [full_name(enum.namespace, enum.local) for enum in types]
        for name in set(names):
            if names.count(name) > 1:
                what = "map, view or type" if types else "map or view"
                raise DuplicateMap(f'a {what} of the name "{name}" exists already')
        after = replace(self, namespaces=self._edited_namespaces(edits))
        places = [each.namespace for each in maps.values()]
        places += [each.namespace for each in views.values()]
        for namespace in (*places, *(enum.namespace for enum in types)):
            after.check_namespace(namespace)
        return after.following(version, tuple(maps.values()), tuple(views.values()), types)

    def deciding(
        self, transaction: DecidedTransaction, forgotten: Collection[DecidedTransaction]
    ) -> Catalog:
        """The catalog, of which the last edits were those of ``transaction``."""
        left = self.forgetting(forgotten)
        return replace(left, decided=(*left.decided, transaction))

    def forgetting(self, forgotten: Collection[DecidedTransaction]) -> Catalog:
        """Without the notes of these transactions."""
        left = tuple(n for n in self.decided if not any(map(n.same, forgotten)))
        return self if left == self.decided else replace(self, decided=left)

    def end_of(self, transaction: DecidedTransaction) -> DecidedTransaction | None:
        """Its note, if there is one."""
        return next(filter(transaction.same, self.decided), None)

    def _edited_types(
        self, edits: Sequence[Edit], relations: Sequence[MapSchema | ViewDefinition]
    ) -> tuple[EnumType, ...]:
        """Raises DependentObjects, DuplicateObject."""
        found = list(self.types)
        for edit in edits:
            match edit:
                case PutType(enum=enum):
                    known = any(enum.oid == each.oid for each in found)
                    if enum.oid and not known:
                        raise UndefinedType(f'type "{enum.local}" does not exist')
                    others = [each if each.oid != enum.oid else enum for each in found]
                    found = others if known else [*found, enum]
                case DropType(oid=oid):
                    for enum in [each for each in found if each.oid == oid]:
                        for relation, column in users_of(enum, relations):
                            raise DependentObjects(
                                f"cannot drop type {enum.local} because other objects depend on it",
                                detail=f'column "{column.name}" of "{relation.name}" has it.',
                            )
                        found.remove(enum)
        return adopted(self.types, found, relations)

    def _edited_namespaces(self, edits: Sequence[Edit]) -> tuple[Namespace, ...]:
        """Raises DuplicateSchema."""
        found = {each.name: each for each in self.namespaces}
        for edit in edits:
            match edit:
                case PutNamespace(namespace=namespace):
                    if namespace.oid:
                        found = {n: each for n, each in found.items() if each.oid != namespace.oid}
                    if namespace.name in found:
                        raise DuplicateSchema(f'schema "{namespace.name}" already exists')
                    found[namespace.name] = namespace
                case DropNamespace(name=name):
                    found.pop(name, None)
        return tuple(found.values())

    def check_namespace(self, name: str) -> None:
        """No relation is in a schema that is not there. Raises UndefinedSchema."""
        if name != PUBLIC and name not in self.namespace_names:
            raise UndefinedSchema(f'schema "{name}" does not exist')

    def check_types(self, schema: MapSchema) -> None:
        """No column has a type that is not there. Raises UndefinedType."""
        for enum in enums_of(schema.columns):
            if enum not in self.types:
                raise UndefinedType(f'type "{enum.local}" does not exist')

    def _is_unchanged(self, schema: MapSchema) -> bool:
        before = self.find_id(schema.map_id)
        return before is not None and before.version == schema.version

    def following(
        self,
        version: int,
        maps: tuple[MapSchema, ...],
        views: tuple[ViewDefinition, ...],
        types: tuple[EnumType, ...] | None = None,
    ) -> Catalog:
        """The next version: new objects in it get OIDs."""
        known = {s.map_id for s in self.maps} | {v.view_id for v in self.views}
        oid = self.following_oid
        enums = self.types if types is None else types
        parts = allotted(maps, views, oid, known, self.namespaces, enums)
        made = Catalog(version, *parts, self.decided)
        if not enums:
            return made
        retyping = Retyping(self.types, made.types)
        return replace(
            made,
            maps=tuple(
                retyping.map(schema, known=self._is_unchanged(schema)) for schema in made.maps
            ),
            views=tuple(map(retyping.view, made.views)),
        )


def undefined_map(name: str, names: Sequence[str]) -> UndefinedMap:
    similar = [other for other in names if other.lower() == name.lower()]
    hint = f'Perhaps you meant "{similar[0]}".' if similar else ""
    return UndefinedMap(f'map "{name}" does not exist', hint=hint)


def _new_id(version: int, number: int) -> int:
    """The id of what the edit ``number`` makes in this version: the version itself for the first
    one, as it is for maps that are made one by one."""
    return version if number == 0 else version + (number << 40)


def _index_ids(version: int, number: int) -> Iterator[int]:
    """Ids of the indexes that an edit makes."""
    return (_new_id(version, number) + (place << 50) for place in count(1))


def made_map(schema: MapSchema, map_id: int, ids: Iterator[int]) -> MapSchema:
    """A new map of this number, whose indexes get theirs of ``ids``. Raises InvalidDefinition."""
    schema = completed(schema)
    validate(schema)
    # There are no rows, so each member has built the indexes.
    indexes = tuple(replace(i, index_id=next(ids), ready=True) for i in schema.indexes)
    return replace(schema, map_id=map_id, version=1, indexes=indexes)


def next_map(before: MapSchema, schema: MapSchema, version: int, ids: Iterator[int]) -> MapSchema:
    """``before`` with another schema, as ``version`` if its rows are other ones by it. Raises
    InvalidDefinition."""
    highest = max(schema.columns_made, before.columns_made)
    made = completed(replace(schema, version=version, columns_made=highest))
    validate(made)
    made = carried(before, made, ids)
    return replace(made, version=before.version) if same_rows(before, made) else made


def completed(schema: MapSchema) -> MapSchema:
    """Fill what may be left out: ``partition_by`` is the key; key columns are NOT NULL; every
    column has an id."""
    keys = set(schema.key)
    made = max([schema.columns_made, *(column.id for column in schema.columns)])
    columns: list[Column] = []
    for column in schema.columns:
        if column.name in keys and column.nullable:
            column = replace(column, nullable=False)  # noqa: PLW2901
        if not column.id:
            made += 1
            column = replace(column, id=made)  # noqa: PLW2901
        columns.append(column)
    return replace(
        schema,
        columns=tuple(columns),
        partition_by=schema.partition_by or schema.key,
        columns_made=made,
    )


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
    if schema.replicated:
        refuse_for_replicated(schema.options)


def _validate_key(schema: MapSchema, where: str, names: set[str]) -> None:
    if not schema.key:
        raise InvalidDefinition(
            f"{where} has no key", hint="Declare one with PRIMARY KEY (column, ...)."
        )
    for name in schema.key:
        if name not in names:
            raise InvalidDefinition(f'{where}: key column "{name}" is not defined')
        if not is_key_type(schema.column(name).type):
            raise InvalidDefinition(
                f'{where}: key column "{name}" cannot have the type {schema.column(name).type}',
                hint="Types of keys: numbers, text, BOOLEAN, BYTEA, UUID, dates and times.",
            )
    if len(set(schema.key)) != len(schema.key):
        raise InvalidDefinition(f"{where}: a key column is named twice")
    if len(set(schema.partition_by)) != len(schema.partition_by) or not set(
        schema.partition_by
    ) <= set(schema.key):
        raise InvalidDefinition(
            f"{where}: the partition attribute must be a subset of the key columns"
        )
