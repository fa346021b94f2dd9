"""Which roles a statement needs, on which maps. Pure: a function of the bound statement.

A view has no rights of its own: its reader needs the roles that its query needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
from remuda.catalog.users import ALL, Role, User, lacking, schema_scope
from remuda.datatypes.schema import PG_TEMP, MapSchema, ViewDefinition, full_name, prefix
from remuda.plan.logical import Logical, Recursion, Scan, Supplied
from remuda.plan.sequence_calls import CURRVAL, SequenceCall
from remuda.plan.uses import operators_of
from remuda.sql.changes.truncate import TRUNCATED
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    BoundQuery,
    BoundStatement,
    CatalogStatement,
    ChangeStatement,
    ClusterStatement,
    CopyStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    ExplainStatement,
    InsertStatement,
    LockStatement,
    PrivilegeStatement,
    ShowStatement,
    SnapshotStatement,
    TruncateStatement,
)
from remuda.sql.trees.syntax import LockMode

_TEMPORARY: Final = prefix(PG_TEMP)
"""How the full names of temporary relations begin: a session may do everything with its own."""


@dataclass(frozen=True, slots=True)
class Need:
    """``role`` on the map (or all maps); None: any role, as it only shows what the map is."""

    role: Role | None
    name: str
    owner: str = ""
    """The map whose column owns the sequence ``name``: the role on that map is enough."""
    other: Role | None = None
    """A role that is enough as well."""


def check_needs(user: User, needs: Iterable[Need]) -> None:
    """Raises InsufficientPrivilege."""
    for need in needs:
        if need.role is not None:
            if not _has(user, need, need.role) and not (
                need.other and _has(user, need, need.other)
            ):
                user.require(need.role, need.name)
        elif not user.sees(need.name) and not (need.owner and user.sees(need.owner)):
            raise lacking(user.name, Role.READ, need.name)


def _has(user: User, need: Need, role: Role) -> bool:
    return user.has(role, need.name) or bool(need.owner and user.has(role, need.owner))


def needs_of(statement: BoundStatement, catalog: Catalog) -> tuple[Need, ...]:
    """Each once."""
    return tuple(
        need
        for need in dict.fromkeys(_needs(statement, catalog))
        if not need.name.startswith(_TEMPORARY)
    )


def _needs(statement: BoundStatement, catalog: Catalog) -> Iterator[Need]:
    match statement:
        case BoundQuery(plan=plan):
            yield from _reads(plan, catalog)
        case InsertStatement(schema=schema, source=source):
            yield Need(Role.WRITE, schema.name)
            yield from _reads(source, catalog, but=schema.map_id)
        case ChangeStatement(schema=schema, source=source):
            yield Need(Role.WRITE, schema.name)
            # What it finds in its own map goes nowhere else, unless RETURNING gives it out.
            but = None if statement.returning else schema.map_id
            yield from _reads(source, catalog, but=but)
            if statement.returning:
                yield Need(Role.READ, schema.name)
            if statement.query is not None:
                yield from _reads(statement.query.plan, catalog)
        case CopyStatement(source=source):
            yield from _needs(source, catalog)
        case TruncateStatement(schema=schema):
            yield Need(Role.WRITE, schema.name)
        case SnapshotStatement() | ClusterStatement() | PrivilegeStatement():
            yield Need(Role.ADMIN, ALL)
        case LockStatement(schemas=schemas, mode=mode):
            role = Role.READ if mode is LockMode.ACCESS_SHARE else Role.WRITE
            yield from (Need(role, schema.name) for schema in schemas)
        case AnalyzeStatement(maps=maps):
            yield from (Need(Role.WRITE, schema.name) for schema in maps)
        case ExplainStatement(statement=inner):
            yield from _needs(inner, catalog)
        case ShowStatement(relation=ViewDefinition() as view):
            yield from (Need(None, name) for name in _maps_of(view, catalog))
        case ShowStatement(relation=relation) if relation is not None:
            yield Need(None, relation.name)
        case _:
            yield from _definition(statement, catalog)


def _definition(statement: BoundStatement, catalog: Catalog) -> Iterator[Need]:
    match statement:
        case CreateMapStatement(schema=schema) | CreateIndexStatement(schema=schema):
            yield Need(Role.ADMIN, schema.name)
        case CreateAsStatement(schema=schema, source=source):
            yield Need(Role.ADMIN, schema.name)
            if source is not None:
                yield from _reads(source, catalog)
        case DropIndexStatement(indexes=indexes):
            for map_id, _ in indexes:
                found = catalog.find_id(map_id)
                if found is not None:
                    yield Need(Role.ADMIN, found.name)
        case CatalogStatement(tag=tag, edits=edits) if tag == TRUNCATED:
            yield from (Need(Role.WRITE, e.schema.name) for e in edits if isinstance(e, PutMap))
        case CatalogStatement(edits=edits, finally_=last):
            owners = _owners(edits, catalog)
            for edit in (*edits, *last):
                for name in _names(edit, catalog):
                    yield Need(Role.ADMIN, name, owners.get(name, ""))
                if isinstance(edit, PutMap):
                    yield from _parents(edit.schema, catalog)


def _parents(schema: MapSchema, catalog: Catalog) -> Iterator[Need]:
    """A new foreign key is a constraint of its parent as well: it refuses deletes there."""
    before = catalog.find_id(schema.map_id)
    known = () if before is None else before.foreign_keys
    for key in schema.foreign_keys:
        if key not in known:
            yield Need(Role.ADMIN, key.parent)


def _owners(edits: Iterable[Edit], catalog: Catalog) -> dict[str, str]:
    """The maps of the columns that own sequences, by the names of these: those that the edits make,
    too."""
    links = {link: schema.name for link, (schema, _) in catalog.owners.items()}
    schemas = [edit.schema for edit in edits if isinstance(edit, PutMap)]
    for schema in schemas:
        links.update((link, schema.name) for c in schema.columns for link in c.sequences)
    return {
        schema.name: links[schema.sequence.link]
        for schema in (*catalog.sequences, *schemas)
        if schema.sequence is not None and schema.sequence.link in links
    }


def need_of_sequence(
    schema: MapSchema, catalog: Catalog, role: Role, other: Role | None = None
) -> Need:
    owner = catalog.owner(schema)
    return Need(role, schema.name, "" if owner is None else owner.name, other)


def need_of_call(call: SequenceCall, schema: MapSchema, catalog: Catalog) -> Need:
    """USAGE, which is the role ``write``, lets users call ``currval`` as SELECT does."""
    if call.function == CURRVAL:
        return need_of_sequence(schema, catalog, Role.READ, Role.WRITE)
    return need_of_sequence(schema, catalog, Role.WRITE)


def _names(edit: Edit, catalog: Catalog) -> Iterator[str]:
    match edit:
        case PutMap(schema=schema):
            before = catalog.find_id(schema.map_id)
            if before is not None:
                yield before.name  # it may get another one
            yield schema.name
        case PutView(view=view):
            yield view.name
        case DropMap(name=name) | DropView(name=name):
            yield name
        case PutNamespace(namespace=namespace):
            yield from (schema_scope(s.name) for s in catalog.namespaces if s.oid == namespace.oid)
            yield schema_scope(namespace.name)
        case DropNamespace(name=name):
            yield schema_scope(name)
        case PutType(enum=enum):
            yield full_name(enum.namespace, enum.local)
        case DropType(oid=oid):
            yield from (full_name(e.namespace, e.local) for e in catalog.types if e.oid == oid)


def _reads(plan: Logical, catalog: Catalog, but: int | None = None) -> Iterator[Need]:
    """Every map that is read, also in subqueries, views and recursive CTEs; every sequence that is
    called."""
    for node in operators_of(plan):
        match node:
            case Scan(schema=schema) if schema.sequence is not None:
                yield need_of_sequence(schema, catalog, Role.READ)
            case Scan(schema=schema) if schema.map_id != but:
                yield Need(Role.READ, schema.name)
            case Supplied(definition=Recursion(base=base, step=step, calls=calls)):
                yield from _reads(base, catalog, but)
                if step is not None:
                    yield from _reads(step, catalog, but)
                for call in calls:
                    found = catalog.find_id(call.map_id) if call.map_id else None
                    if found is not None:
                        yield need_of_call(call, found, catalog)


def _maps_of(view: ViewDefinition, catalog: Catalog) -> Iterator[str]:
    """The maps that a view reads in the end."""
    for name in view.uses:
        inner = catalog.find_view(name)
        if inner is None:
            yield name
        else:
            yield from _maps_of(inner, catalog)


def visible(catalog: Catalog, user: User) -> Catalog:
    """The relations that the user may know of: maps with any role on them, and views over such maps
    alone."""
    maps = tuple(
        schema
        for schema in catalog.maps
        if user.sees(schema.name) or _sees_owner(catalog, user, schema)
    )
    views = tuple(
        view for view in catalog.views if all(user.sees(name) for name in _maps_of(view, catalog))
    )
    if len(maps) == len(catalog.maps) and len(views) == len(catalog.views):
        return catalog
    return replace(catalog, maps=maps, views=views)


def _sees_owner(catalog: Catalog, user: User, schema: MapSchema) -> bool:
    owner = catalog.owner(schema)
    return owner is not None and user.sees(owner.name)
