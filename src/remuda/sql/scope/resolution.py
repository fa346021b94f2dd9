"""The one place where the written name of a map, a view or a sequence gets its meaning.

A name without a schema means the first relation of that name along the search path of the session.
As in PostgreSQL, ``pg_catalog`` is searched first unless the path says where it comes. Texts that
the catalog keeps (views, defaults) are read along ``KEPT_PATH``: the binder writes the schema in
front of each name that would mean something else there (``Kept``). So no later map of the same
name, and no setting of a session, changes the meaning of a view.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from remuda.catalog.system_relations import PG_CATALOG, SYSTEM, SystemRelation
from remuda.catalog.temporary import own_schema
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import PG_TEMP, PUBLIC, MapSchema, ViewDefinition, full_name
from remuda.errors import DuplicateMap, InsufficientPrivilege, InvalidDefinition, UndefinedSchema
from remuda.sql.scope.statements import CatalogReader, RoleReader
from remuda.sql.trees.names import Name

DEFAULT_PATH: Final = ("$user", PUBLIC)
KEPT_PATH: Final = (PUBLIC,)
"""Of texts that the catalog keeps."""

_OWN: Final = PG_TEMP + "_"
"""The beginning of the names under which schemas of temporary tables are listed."""

Relation: TypeAlias = MapSchema | ViewDefinition


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new relation is put: its schema and its own name there."""

    namespace: str
    local: str

    @property
    def full(self) -> str:
        return full_name(self.namespace, self.local)


def place_in(relation: Relation) -> Place:
    return Place(relation.namespace, relation.local)


@dataclass(frozen=True, slots=True)
class Reference:
    """A text names the relation ``place`` from ``start`` to ``end``: in a string if it is a
    ``literal``. ``plain``: as it stands it means the same along ``KEPT_PATH``."""

    start: int
    end: int
    place: Place
    plain: bool
    literal: bool = False

    def naming(self, place: Place) -> str:
        """The name there if it means ``place``, however the text is read."""
        text = f"{quoted_name(place.namespace)}.{quoted_name(place.local)}"
        return "'" + text.replace("'", "''") + "'" if self.literal else text


@dataclass(slots=True)
class Kept:
    """The relations that a text names which the catalog is going to keep."""

    references: list[Reference] = field(default_factory=list)

    def text(self, text: str, offset: int) -> str:
        """``text``, which begins at ``offset`` of the statement, as the catalog keeps it."""
        return replaced(text, [(r.start - offset, r.end - offset, r.naming(r.place))
                               for r in self.references if not r.plain])  # fmt: skip


def replaced(text: str, parts: list[tuple[int, int, str]]) -> str:
    """``text`` with other words from each start to each end (of its last character)."""
    for start, end, written in sorted(set(parts), reverse=True):
        text = text[:start] + written + text[end + 1 :]
    return text


# --- schemas -----------------------------------------------------------------------------------


def exists(catalog: CatalogReader, namespace: str) -> bool:
    """Whether there is a schema of this name."""
    return (
        namespace == PUBLIC
        or namespace in SYSTEM
        or any(known.name == namespace for known in catalog.namespaces)
    )


def namespaces(catalog: CatalogReader) -> list[str]:
    """The names of all schemas."""
    return list(dict.fromkeys((PUBLIC, *SYSTEM, *(known.name for known in catalog.namespaces))))


def current(catalog: CatalogReader, path: tuple[str, ...]) -> list[str]:
    """The schemas of a path that exist, each once, without that of temporary tables:
    ``current_schemas(false)``."""
    return [name for name in dict.fromkeys(path) if name != PG_TEMP and exists(catalog, name)]


def searched(path: tuple[str, ...]) -> tuple[str, ...]:
    return path if PG_CATALOG in path else (PG_CATALOG, *path)


def path_of(value: str) -> tuple[str, ...]:
    """The value of ``search_path`` -> the names in it, folded where they are not quoted. Raises
    ValueError."""
    found: list[str] = []
    rest = value.strip()
    while rest or found:
        part = _NAME.match(rest)
        if part is None:
            raise ValueError(value)
        quoted, plain = part.groups()
        found.append(plain.lower() if quoted is None else quoted.replace('""', '"'))
        rest = rest[part.end() :]
        if not rest:
            break
        rest = rest[1:]
    return tuple(found)


_NAME: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s",]+))\s*(?=,|\Z)')


# --- relations ---------------------------------------------------------------------------------


def found_in(catalog: CatalogReader, namespace: str, local: str) -> Relation | None:
    if namespace.startswith(_OWN):
        own = own_schema(catalog.namespaces)
        if own is not None and own.name == namespace:
            namespace = PG_TEMP
    full = full_name(namespace, local)
    found = catalog.find(full) or catalog.find_view(full)
    return found if found is not None and found.namespace == namespace else None


def refuse_name_of_index(catalog: CatalogReader, place: Place, name: Name) -> None:
    """Raises DuplicateMap where an index has the name that a new relation gets: the relations and
    the indexes of a schema have different names."""
    # Unlike ``names``, the whole catalog leaves it known which maps the statement itself names.
    every = catalog.whole() if isinstance(catalog, RoleReader) else catalog
    for each in every.names():
        schema = every.find(each)
        if schema is None or schema.namespace != place.namespace or schema.sequence is not None:
            continue
        own = [] if schema.has_row_ids else [schema.primary_key]
        if place.local in own or any(index.name == place.local for index in schema.indexes):
            message = f'relation "{place.local}" already exists'
            raise DuplicateMap(message, position=name.position)


def find(catalog: CatalogReader, path: tuple[str, ...], schema: str, local: str) -> Relation | None:
    """A map or view. ``schema`` "": along the path."""
    for namespace in (schema,) if schema else path:
        found = None if namespace in SYSTEM else found_in(catalog, namespace, local)
        if found is not None:
            return found
    return None


def find_any(
    catalog: CatalogReader, path: tuple[str, ...], schema: str, local: str
) -> Relation | SystemRelation | None:
    """A map, a view or a system relation."""
    for namespace in (schema,) if schema else searched(path):
        found: Relation | SystemRelation | None
        if namespace in SYSTEM:
            found = SYSTEM[namespace].get(local)
        else:
            found = found_in(catalog, namespace, local)
        if found is not None:
            return found
    return None


def reference(
    catalog: CatalogReader, found: Relation, schema: str, start: int, end: int
) -> Reference:
    """How a text that the catalog keeps names ``found``, which it names now from ``start`` to
    ``end``, with ``schema`` if it is not ""."""
    plain = bool(schema) or find_any(catalog, KEPT_PATH, "", found.local) is found
    return Reference(start, end, place_in(found), plain)


def temporary_place(name: Name) -> Place:
    """Where a temporary relation is made. Raises InvalidDefinition."""
    if name.schema not in ("", PG_TEMP):
        raise InvalidDefinition(
            "cannot create temporary relation in non-temporary schema",
            position=name.position,
            hint="Write the name of a temporary table, sequence or view without a schema.",
        )
    return Place(PG_TEMP, name.text)


def place_of(catalog: CatalogReader, path: tuple[str, ...], name: Name) -> Place:
    """Where a relation of this name is made. Raises UndefinedSchema, InsufficientPrivilege."""
    namespace = name.schema
    if namespace and not exists(catalog, namespace):
        raise UndefinedSchema(f'schema "{namespace}" does not exist', position=name.position)
    if not namespace:
        known = current(catalog, path)
        if not known:
            raise UndefinedSchema(
                "no schema has been selected to create in",
                position=name.position,
                hint="Write the name with its schema, or set search_path.",
            )
        namespace = known[0]
    if namespace in SYSTEM:
        raise InsufficientPrivilege(
            f'permission denied to create "{namespace}.{name.text}"',
            detail="System catalog modifications are currently disallowed.",
            position=name.position,
        )
    return Place(namespace, name.text)
