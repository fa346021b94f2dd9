"""Which roles a statement needs, on which maps. Pure: a function of the bound statement.

A view has no rights of its own: its reader needs the roles that its query needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.catalog.users import ALL, Role, User, lacking
from remuda.datatypes.schema import ViewDefinition
from remuda.plan.logical import Logical, Recursion, Scan, Supplied
from remuda.plan.uses import operators_of
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    BoundQuery,
    BoundStatement,
    CatalogStatement,
    ChangeStatement,
    ClusterStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    ExplainStatement,
    InsertStatement,
    ShowStatement,
    SnapshotStatement,
    TruncateStatement,
)


@dataclass(frozen=True, slots=True)
class Need:
    """``role`` on the map (or all maps); None: any role, as it only shows what the map is."""

    role: Role | None
    name: str


def check_needs(user: User, needs: Iterable[Need]) -> None:
    """Raises InsufficientPrivilege."""
    for need in needs:
        if need.role is not None:
            user.require(need.role, need.name)
        elif not user.sees(need.name):
            raise lacking(user.name, Role.READ, need.name)


def needs_of(statement: BoundStatement, catalog: Catalog) -> tuple[Need, ...]:
    """Each once."""
    return tuple(dict.fromkeys(_needs(statement, catalog)))


def _needs(statement: BoundStatement, catalog: Catalog) -> Iterator[Need]:
    match statement:
        case BoundQuery(plan=plan):
            yield from _reads(plan)
        case InsertStatement(schema=schema, source=source):
            yield Need(Role.WRITE, schema.name)
            yield from _reads(source, but=schema.map_id)
        case ChangeStatement(schema=schema, source=source):
            yield Need(Role.WRITE, schema.name)
            # What it finds in its own map goes nowhere else, unless RETURNING gives it out.
            yield from _reads(source, but=None if statement.returning else schema.map_id)
            if statement.returning:
                yield Need(Role.READ, schema.name)
            if statement.query is not None:
                yield from _reads(statement.query.plan)
        case TruncateStatement(schema=schema):
            yield Need(Role.WRITE, schema.name)
        case SnapshotStatement() | ClusterStatement():
            yield Need(Role.ADMIN, ALL)
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
                yield from _reads(source)
        case DropIndexStatement(indexes=indexes):
            for map_id, _ in indexes:
                found = catalog.find_id(map_id)
                if found is not None:
                    yield Need(Role.ADMIN, found.name)
        case CatalogStatement(edits=edits, finally_=last):
            for edit in (*edits, *last):
                yield from (Need(Role.ADMIN, name) for name in _names(edit, catalog))


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


def _reads(plan: Logical, but: int | None = None) -> Iterator[Need]:
    """Every map that is read, also in subqueries, views and recursive CTEs."""
    for node in operators_of(plan):
        match node:
            case Scan(schema=schema) if schema.map_id != but:
                yield Need(Role.READ, schema.name)
            case Supplied(definition=Recursion(base=base, step=step)):
                yield from _reads(base, but)
                if step is not None:
                    yield from _reads(step, but)


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
    maps = tuple(schema for schema in catalog.maps if user.sees(schema.name))
    views = tuple(
        view for view in catalog.views if all(user.sees(name) for name in _maps_of(view, catalog))
    )
    if len(maps) == len(catalog.maps) and len(views) == len(catalog.views):
        return catalog
    return replace(catalog, maps=maps, views=views)
