"""The definitions of one open transaction (decision 0109). Pure.

``base`` is the catalog that they were bound to, ``own`` the same with their edits. The catalog that
the transaction reads is a merge of three: an object that it has not touched is as others have made
it since, and one that it has touched must be as it was. New maps are in the catalog of all already,
under names that nobody sees; the edit that commits gives them their names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import (
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
from remuda.catalog.foreign_keys import linked
from remuda.datatypes.schema import MADE_MARK, ForeignKey, MapSchema, Namespace, ViewDefinition
from remuda.errors import (
    DependentObjects,
    DuplicateMap,
    DuplicateObject,
    SerializationFailure,
)

_HINT: Final = "Run the transaction again."
_HIDDEN: Final = re.compile(re.escape(MADE_MARK) + r" \d+ \d+ \d+ ")
_OWN_VIEWS: Final = -(1 << 40)
"""Ids of views that a transaction has made begin below: no other view has such a one."""


def made_name(member: int, began: int, number: int, local: str) -> str:
    """The name of a map until its transaction commits: of ``member``, begun at ``began``."""
    return f"{MADE_MARK} {member} {began} {number} {local}"


def is_made(schema: MapSchema) -> bool:
    """Whether an open transaction has made the map."""
    return schema.name.startswith(MADE_MARK)


def as_named(text: str) -> str:
    """A message, with the names of its maps as their transactions know them."""
    return _HIDDEN.sub("", text)


def maker_of(schema: MapSchema) -> tuple[int, int]:
    """The near member of the transaction that has made a map, and when that began."""
    _, member, began, _, _ = schema.name.split(" ", 4)
    return int(member), int(began)


@dataclass(frozen=True, eq=False)
class OwnDefinitions:
    """Two of these are equal only if they are the same object: plans depend on them."""

    base: Catalog
    own: Catalog
    maps: frozenset[int] = frozenset()
    """The ids of maps that the edits have made, changed or dropped."""
    views: frozenset[int] = frozenset()
    namespaces: frozenset[str] = frozenset()
    made: frozenset[int] = frozenset()
    """Of ``maps``, those that the transaction has made."""
    altered: frozenset[int] = frozenset()
    """Of the others, those whose rows have another form now: before COMMIT they can be neither read
    nor written."""
    constrained: frozenset[int] = frozenset()
    """Of the others, those whose rows must fulfil other conditions now: they can be read."""
    first_oid: int = 0
    """OIDs from here on were allotted to objects of the transaction, and to others by others."""
    _merged: dict[int, Catalog] = field(default_factory=dict, repr=False)

    @classmethod
    def over_catalog(cls, catalog: Catalog) -> OwnDefinitions:
        """None yet."""
        return cls(catalog, catalog, first_oid=catalog.following_oid)

    # --- what the transaction reads -------------------------------------------------------------

    def over(self, now: Catalog) -> Catalog:
        """The catalog of the transaction, when that of all is ``now``. Raises SerializationFailure
        for an object that others have changed since, DuplicateMap and DuplicateObject for a name
        that they have taken."""
        if now.version == self.base.version:
            return self.own
        found = self._merged.get(now.version)
        if found is None:
            self._require_unchanged(now)
            found = self._merge(now)
            self._merged.clear()
            self._merged[now.version] = found
        return found

    def _require_unchanged(self, now: Catalog) -> None:
        base, own = self.base, self.own
        for map_id in self.maps:
            before = base.find_id(map_id)
            if before != now.find_id(map_id):
                schema = own.find_id(map_id) or before
                raise _changed("map", schema.local if schema is not None else str(map_id))
        before_views, now_views = _views(base), _views(now)
        for view_id in self.views:
            if view_id > 0 and before_views.get(view_id) != now_views.get(view_id):
                raise _changed("view", before_views[view_id].local)
        for view in own.views:
            if view.view_id in self.views:
                self._require_used(view, now)
        touched = {s.name for s in base.maps if s.map_id in self.maps}
        touched |= {view.name for view in base.views if view.view_id in self.views}
        for view in now.views:
            new = before_views.get(view.view_id) != view
            if new and view.view_id not in self.views and touched.intersection(view.uses):
                raise _changed("relation", min(touched.intersection(view.uses)))
        for name in self.namespaces:
            if _namespace(base, name) != _namespace(now, name):
                raise _changed("schema", name)

    def _require_used(self, view: ViewDefinition, now: Catalog) -> None:
        """The relations that a view of the transaction reads are as they were."""
        for name in view.uses:
            schema, inner = self.own.find(name), self.own.find_view(name)
            if schema is not None and schema.map_id in self.maps:
                continue
            if inner is not None and inner.view_id in self.views:
                continue
            if self.base.find(name) != now.find(name) or inner != now.find_view(name):
                raise _changed("relation", name)

    def _merge(self, now: Catalog) -> Catalog:
        own = self.own
        maps = [schema for schema in now.maps if schema.map_id not in self.maps]
        maps += [
            replace(schema, foreign_keys=_as_now(schema, own, now))
            for schema in own.maps
            if schema.map_id in self.maps
        ]
        maps = _linked(now, maps)
        views = [view for view in now.views if view.view_id not in self.views]
        views += [view for view in own.views if view.view_id in self.views]
        namespaces = [each for each in now.namespaces if each.name not in self.namespaces]
        namespaces += [each for each in own.namespaces if each.name in self.namespaces]
        taken: set[str] = set()
        relations: list[MapSchema | ViewDefinition] = [*maps, *views]
        for relation in relations:
            if relation.name in taken:
                raise DuplicateMap(f'relation "{relation.local}" already exists')
            taken.add(relation.name)
        found = replace(
            now,
            maps=tuple(maps),
            views=tuple(views),
            namespaces=tuple(namespaces),
            following_oid=max(now.following_oid, own.following_oid),
        )
        for schema in found.maps:
            found.check_namespace(schema.namespace)
        _require_index_names([schema for schema in maps if not schema.internal], self.maps)
        return found

    def checking(self, now: Catalog) -> Catalog:
        """``over(now)`` for checks of rows in the form in which they are stored: altered maps have
        the columns, and the names of columns, that they had before. Raises as ``over``."""
        merged = self.over(now)
        if not self.altered:
            return merged
        maps: list[MapSchema] = []
        for schema in merged.maps:
            stored = now.find_id(schema.map_id) if schema.map_id in self.altered else None
            form = schema if stored is None else stored
            keys = [self._in_form(schema, key, merged, now) for key in schema.foreign_keys]
            maps.append(
                replace(
                    form,
                    name=schema.name,
                    namespace=schema.namespace,
                    foreign_keys=tuple(
                        key for key in keys if all(n in form.position for n in key.columns)
                    ),
                    children=schema.children,
                )
            )
        return replace(merged, maps=tuple(maps))

    def _in_form(
        self, schema: MapSchema, key: ForeignKey, merged: Catalog, now: Catalog
    ) -> ForeignKey:
        parent = merged.get(key.parent)
        altered = self.altered
        mine = _names_before(schema, now.find_id(schema.map_id)) if schema.map_id in altered else {}
        known = now.find_id(parent.map_id)
        others = _names_before(parent, known) if parent.map_id in altered else {}
        return _renamed(key, key.parent, mine, others)

    # --- definitions ----------------------------------------------------------------------------

    def with_edits(
        self, now: Catalog, edits: Sequence[Edit], made: Collection[int] = ()
    ) -> OwnDefinitions:
        """The next value, of ``edits`` that were bound to ``over(now)``. Those of ``made`` are new
        maps, which ``now`` has under their hidden names. Raises what ``Catalog.edited`` raises."""
        before = self.over(now)
        edited = before.edited(edits)
        known = {view.view_id for view in before.views}
        numbers = iter(range(min([_OWN_VIEWS, *known]) - 1, _OWN_VIEWS * 2, -1))
        views = tuple(
            view if view.view_id in known else replace(view, view_id=next(numbers))
            for view in edited.views
        )
        maps = self.maps | _maps_of(before, edits) | frozenset(made)
        mine = self.made | frozenset(made)
        kept: list[MapSchema] = []
        altered, constrained = set(self.altered), set(self.constrained)
        for schema in edited.maps:
            stored = now.find_id(schema.map_id)
            if stored is not None and schema.map_id in maps:
                same = same_form(stored, schema) or schema.sequence is not None
                if same or same_columns(stored, schema):
                    schema = replace(schema, version=stored.version)  # noqa: PLW2901
                    altered.discard(schema.map_id)
                else:
                    altered.add(schema.map_id)
                (constrained.discard if same else constrained.add)(schema.map_id)
            elif stored is not None and schema.version != stored.version:
                # A parent, or a child, of a map that the transaction has defined.
                schema = replace(schema, version=stored.version)  # noqa: PLW2901
            kept.append(schema)
        return replace(
            self,
            base=now,
            own=replace(edited, version=now.version, maps=tuple(kept), views=views),
            maps=maps,
            views=self.views
            | _views_of(before, edits)
            | frozenset(view.view_id for view in views if view.view_id not in known),
            namespaces=self.namespaces | _namespaces_of(before, edits),
            made=mine,
            altered=frozenset(altered - mine),
            constrained=frozenset(constrained - altered - mine),
            _merged={},
        )

    # --- COMMIT ---------------------------------------------------------------------------------

    def decision(self, now: Catalog) -> tuple[Edit, ...]:
        """The edits of ``now`` that make all definitions. Raises as ``over``."""
        merged = self.over(now)
        edits: list[Edit] = []
        for map_id in sorted(self.maps):
            before, after = now.find_id(map_id), merged.find_id(map_id)
            if after is not None:
                keys = _as_now(after, merged, now)
                edits.append(PutMap(self._published(before, replace(after, foreign_keys=keys))))
            elif before is not None:
                edits.append(DropMap(before.name))
        known, merged_views = _views(now), _views(merged)
        for view_id in sorted(self.views):
            view, was = merged_views.get(view_id), known.get(view_id)
            if view is None:
                edits += [] if was is None else [DropView(was.name)]
            elif was is None:
                edits.append(PutView(replace(view, view_id=0, oid=self._old(view.oid))))
            else:
                edits.append(PutView(view))
        oids = {each.oid for each in now.namespaces}
        left = {each.oid for each in merged.namespaces}
        for namespace in now.namespaces:
            if namespace.name in self.namespaces and namespace.oid not in left:
                edits.append(DropNamespace(namespace.name))
        for namespace in merged.namespaces:
            if namespace.name in self.namespaces:
                oid = namespace.oid if namespace.oid in oids else 0
                edits.append(PutNamespace(replace(namespace, oid=oid)))
        return tuple(edits)

    def _old(self, oid: int) -> int:
        """An OID that the catalog has allotted, 0 for one that it must allot yet."""
        return oid if oid < self.first_oid else 0

    def _published(self, before: MapSchema | None, after: MapSchema) -> MapSchema:
        """The schema of a map for the catalog of all."""
        oids = set() if before is None else set(_oids(before))

        def kept(oid: int) -> int:
            return oid if oid in oids else self._old(oid)

        indexes = set() if before is None else {index.index_id for index in before.indexes}
        names = _names_before(after, before)  # which the edit carries over to the new ones
        return replace(
            after,
            oid=kept(after.oid),
            key_oid=kept(after.key_oid),
            key_index_oid=kept(after.key_index_oid),
            columns=tuple(replace(c, default_oid=kept(c.default_oid)) for c in after.columns),
            checks=tuple(replace(check, oid=kept(check.oid)) for check in after.checks),
            foreign_keys=tuple(replace(key, oid=kept(key.oid)) for key in after.foreign_keys),
            indexes=tuple(
                replace(
                    index,
                    oid=kept(index.oid),
                    constraint_oid=kept(index.constraint_oid),
                    index_id=index.index_id if index.index_id in indexes else 0,
                    columns=tuple(
                        replace(c, name=names.get(c.name, c.name))
                        if index.index_id in indexes
                        else c
                        for c in index.columns
                    ),
                )
                for index in after.indexes
            ),
        )

    def gives_up(self, map_id: int) -> bool:
        """Whether the transaction has dropped or replaced a map: nobody wants its rows."""
        return map_id in self.maps and self.own.find_id(map_id) is None


def under_name(catalog: Catalog, map_id: int, name: str) -> OwnDefinitions:
    """A map that a transaction has made, under a name for queries of the member itself."""
    maps = tuple(
        replace(each, name=name) if each.map_id == map_id else each for each in catalog.maps
    )
    own = frozenset({map_id})
    return OwnDefinitions(catalog, replace(catalog, maps=maps), maps=own, made=own)


def same_form(before: MapSchema, after: MapSchema) -> bool:
    """Whether two schemas of a map differ in nothing that its rows, and plans over them, depend
    on."""
    return (
        [(c.id, c.name, str(c.type), c.nullable) for c in before.columns]
        == [(c.id, c.name, str(c.type), c.nullable) for c in after.columns]
        and [c.generated for c in before.columns] == [c.generated for c in after.columns]
        and before.checks == after.checks
        and [i.index_id for i in before.uniques] == [i.index_id for i in after.uniques]
    )


def same_columns(before: MapSchema, after: MapSchema) -> bool:
    """Whether rows of two schemas of a map have the same values in the same places."""
    return [(c.id, c.name, str(c.type), c.generated) for c in before.columns] == [
        (c.id, c.name, str(c.type), c.generated) for c in after.columns
    ]


def _changed(kind: str, name: str) -> SerializationFailure:
    return SerializationFailure(
        f'{kind} "{name}" was changed by others since the transaction has defined it or made use '
        "of it",
        hint=_HINT,
    )


def _as_now(schema: MapSchema, own: Catalog, now: Catalog) -> tuple[ForeignKey, ...]:
    """The foreign keys of a map of ``own``, with the names of parents and columns in ``now``: an
    edit of ``now`` carries them over to the new ones. Raises SerializationFailure."""
    found: list[ForeignKey] = []
    for key in schema.foreign_keys:
        parent = own.get(key.parent)
        known = now.find_id(parent.map_id)
        if known is None:
            raise _changed("map", parent.local)
        others = _names_before(parent, known)
        mine = _names_before(schema, now.find_id(schema.map_id))
        found.append(_renamed(key, known.name, mine, others))
    return tuple(found)


def _renamed(
    key: ForeignKey, parent: str, mine: Mapping[str, str], others: Mapping[str, str]
) -> ForeignKey:
    return replace(
        key,
        parent=parent,
        columns=tuple(mine.get(name, name) for name in key.columns),
        set_columns=tuple(mine.get(name, name) for name in key.set_columns),
        parent_columns=tuple(others.get(name, name) for name in key.parent_columns),
    )


def _names_before(schema: MapSchema, known: MapSchema | None) -> dict[str, str]:
    names = {} if known is None else {column.id: column.name for column in known.columns}
    return {column.name: names.get(column.id, column.name) for column in schema.columns}


def _linked(now: Catalog, maps: Sequence[MapSchema]) -> list[MapSchema]:
    """``maps``, which follow those of ``now``, with foreign keys and children in step. A version
    stands for the form of rows, which stays. Raises SerializationFailure."""
    if not any(schema.foreign_keys or schema.children for schema in maps):
        return list(maps)
    versions = {schema.map_id: schema.version for schema in maps}
    before = {schema.map_id: schema for schema in now.maps}
    try:
        found = linked(before, {schema.map_id: schema for schema in maps})
    except DependentObjects as error:
        raise SerializationFailure(error.message, detail=error.detail, hint=_HINT) from error
    return [
        schema if schema.version == versions[map_id] else replace(schema, version=versions[map_id])
        for map_id, schema in found.items()
    ]


def _views(catalog: Catalog) -> dict[int, ViewDefinition]:
    return {view.view_id: view for view in catalog.views}


def _namespace(catalog: Catalog, name: str) -> Namespace | None:
    return next((each for each in catalog.namespaces if each.name == name), None)


def _require_index_names(maps: Iterable[MapSchema], own: Collection[int]) -> None:
    """Raises DuplicateObject for an index of ``own`` maps with the name of another one."""
    named: dict[tuple[str, str], int] = {}
    for schema in maps:
        for index in schema.indexes:
            place = (schema.namespace, index.name)
            other = named.setdefault(place, schema.map_id)
            if other != schema.map_id and (other in own or schema.map_id in own):
                raise DuplicateObject(f'relation "{index.name}" already exists')


def _maps_of(catalog: Catalog, edits: Iterable[Edit]) -> frozenset[int]:
    found: set[int] = set()
    for edit in edits:
        match edit:
            case PutMap(schema=schema) if schema.map_id:
                found.add(schema.map_id)
            case DropMap(name=name):
                found.add(catalog.get(name).map_id)
            case _:
                continue
    return frozenset(found)


def _views_of(catalog: Catalog, edits: Iterable[Edit]) -> frozenset[int]:
    found: set[int] = set()
    for edit in edits:
        match edit:
            case PutView(view=view) if view.view_id:
                found.add(view.view_id)
            case DropView(name=name):
                known = catalog.find_view(name)
                found |= set() if known is None else {known.view_id}
            case _:
                continue
    return frozenset(found)


def _namespaces_of(catalog: Catalog, edits: Iterable[Edit]) -> frozenset[str]:
    found: set[str] = set()
    for edit in edits:
        match edit:
            case PutNamespace(namespace=namespace):
                found.add(namespace.name)
                found |= {n.name for n in catalog.namespaces if n.oid == namespace.oid}
            case DropNamespace(name=name):
                found.add(name)
            case _:
                continue
    return frozenset(found)


def defines_types(edits: Iterable[Edit]) -> bool:
    return any(isinstance(edit, PutType | DropType) for edit in edits)


def _oids(schema: MapSchema) -> Iterable[int]:
    yield from (schema.oid, schema.key_oid, schema.key_index_oid)
    yield from (column.default_oid for column in schema.columns)
    yield from (check.oid for check in schema.checks)
    yield from (key.oid for key in schema.foreign_keys)
    for index in schema.indexes:
        yield from (index.oid, index.constraint_oid)
