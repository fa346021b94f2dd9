"""CREATE, ALTER, DROP and COMMENT ON SCHEMA, and the moves of relations from schema to schema.

Relations have the name of their schema in their full names, so a schema that is renamed gives each
of its relations another full name, in the same edit of the catalog. Views and defaults name them in
their texts: these are written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

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
from remuda.catalog.pg_objects import SCHEMAS
from remuda.catalog.system_relations import OWNER, SYSTEM
from remuda.datatypes.identifiers import sql_name
from remuda.datatypes.schema import PG_TEMP, PUBLIC, MapSchema, Namespace, ViewDefinition, full_name
from remuda.datatypes.sql import EnumType
from remuda.errors import (
    DependentObjects,
    DuplicateMap,
    DuplicateSchema,
    InsufficientPrivilege,
    InvalidSchemaName,
    NotSupported,
    RemudaError,
    UndefinedObject,
    UndefinedSchema,
)
from remuda.sql.definitions.foreign_keys import without_children
from remuda.sql.definitions.index_definitions import index_in
from remuda.sql.definitions.schemas import kind_of, missing, wrong_kind
from remuda.sql.definitions.sequences import owned_by, with_renamed_sequence, without_sequence
from remuda.sql.parsing.snippets import parse_query
from remuda.sql.queries.views import BindQuery, placed, with_dependents, works
from remuda.sql.scope.context import Context
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.overlay import Overlay
from remuda.sql.scope.resolution import (
    Kept,
    Place,
    Relation,
    exists,
    found_in,
    namespaces,
    replaced,
)
from remuda.sql.scope.statements import CatalogReader, CatalogStatement, roles_known
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.names import Name
from remuda.sql.trees.namespaces import AlterSchemaTree, CommentSchemaTree, DropSchemaTree
from remuda.sql.trees.syntax import AlterTree, CreateSchemaTree, SchemaTree, SetOwner, SetSchema


def bind_schema(context: Context, tree: SchemaTree, bind: BindQuery) -> CatalogStatement:
    """Raises DuplicateSchema, InvalidSchemaName, UndefinedSchema, DependentObjects."""
    match tree:
        case CreateSchemaTree():
            return _create(context, tree, tree.name)
        case DropSchemaTree():
            return _drop(context, tree, bind)
        case AlterSchemaTree():
            return _alter(context, tree, bind)
        case CommentSchemaTree(name=name, comment=comment):
            edit = PutNamespace(replace(_changed(context, name), comment=comment))
            return CatalogStatement("COMMENT", context.catalog.version, (edit,))


def _create(context: Context, tree: CreateSchemaTree, name: Name) -> CatalogStatement:
    catalog, tag, roles = context.catalog, "CREATE SCHEMA", roles_known(context.catalog)
    if tree.of_user:
        user = roles.current
        name = Name(OWNER if user is None else user.name, name.position)
    _check_name(context, name)
    # Where members know no users, everybody may log in by any name.
    known = [role.name for role in roles.listed] if roles.users else []
    if known and tree.user is not None and tree.user.text not in known:
        lacking = UndefinedObject(f'role "{tree.user.text}" does not exist')
        raise placed(context, lacking, tree.user)
    if exists(catalog, name.text):
        if tree.if_not_exists:
            notice = Notice(f'schema "{name.text}" already exists, skipping', "42P06")
            return CatalogStatement(tag, catalog.version, (), notices=(notice,))
        error = DuplicateSchema(
            f'schema "{name.text}" already exists',
            hint="CREATE SCHEMA IF NOT EXISTS keeps the existing schema.",
        )
        raise placed(context, error, name)
    return CatalogStatement(tag, catalog.version, (PutNamespace(Namespace(name.text)),))


def _check_name(context: Context, name: Name) -> None:
    if name.text.startswith("pg_"):
        error = InvalidSchemaName(
            f'unacceptable schema name "{name.text}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
        raise placed(context, error, name)


def namespace_of(context: Context, name: Name) -> str:
    """The schema that a statement names. Raises UndefinedSchema."""
    if not exists(context.catalog, name.text):
        hint = did_you_mean(name.text, namespaces(context.catalog))
        error = UndefinedSchema(f'schema "{name.text}" does not exist', hint=hint)
        raise placed(context, error, name)
    return name.text


def _changed(context: Context, name: Name) -> Namespace:
    """The schema that a statement changes. Raises UndefinedSchema, InsufficientPrivilege."""
    text = namespace_of(context, name)
    if text in SYSTEM:
        error = InsufficientPrivilege(f'schema "{text}" belongs to the system')
        raise placed(context, error, name)
    known = (each for each in context.catalog.namespaces if each.name == text)
    return next(known, Namespace(PUBLIC, oid=SCHEMAS[PUBLIC]))


# --- DROP --------------------------------------------------------------------------------------


def _drop(context: Context, tree: DropSchemaTree, bind: BindQuery) -> CatalogStatement:
    catalog, tag = context.catalog, "DROP SCHEMA"
    notices: list[Notice] = []
    gone: list[str] = []
    for name in tree.names:
        if tree.if_exists and not exists(catalog, name.text):
            notices.append(Notice(f'schema "{name.text}" does not exist, skipping'))
            continue
        text = namespace_of(context, name)
        if text == PUBLIC or text in SYSTEM:
            error = DependentObjects(
                f"cannot drop schema {text} because it is required by the database system"
            )
            raise placed(context, error, name)
        if text not in gone:
            gone.append(text)
    if not gone:
        return CatalogStatement(tag, catalog.version, (), notices=tuple(notices))
    inside = [each for each in relations(catalog) if each.namespace in gone]
    tables = [each for each in inside if isinstance(each, MapSchema)]
    columns = [column for table in tables for column in table.columns]
    owned = owned_by(catalog, columns)  # they go with their columns
    named: list[Relation | EnumType] = [each for each in inside if each not in owned]
    shown = [f"{_kind(each)} {sql_name(each)}" for each in inside if each not in owned]
    types = [enum for enum in catalog.types if enum.namespace in gone]
    named += types
    shown += [f"type {sql_name(enum)}" for enum in types]
    if (inside or types) and not tree.cascade:
        raise placed(context, _needed(gone, named, shown), tree.names[0])
    edits: list[Edit] = list(_without(catalog, inside))
    edits += [DropType(enum.oid) for enum in types]
    edits = list(without_children(catalog, edits))
    if edits:
        what = f"drop schema {gone[0]}"
        edits = list(with_dependents(context, edits, what, tree.names[0], bind, cascade=True))
        shown += [
            f"view {edit.name}"
            for edit in edits
            if isinstance(edit, DropView) and edit.name not in {each.name for each in inside}
        ]
        one = f"drop cascades to {shown[0]}"
        many = f"drop cascades to {len(shown)} other objects"
        notices.append(Notice(one if len(shown) == 1 else many))
    edits += [DropNamespace(text) for text in gone]
    return CatalogStatement(tag, catalog.version, tuple(edits), notices=tuple(notices))


def _needed(
    gone: list[str], inside: list[Relation | EnumType], shown: list[str]
) -> DependentObjects:
    lines = [
        f"{text} depends on schema {each.namespace}"
        for each, text in zip(inside, shown, strict=True)
    ]
    what = f"schema {gone[0]}" if len(gone) == 1 else "desired object(s)"
    return DependentObjects(
        f"cannot drop {what} because other objects depend on it",
        detail="\n".join(lines[:100]),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def _without(catalog: CatalogReader, inside: Iterable[Relation]) -> Iterable[Edit]:
    """The removal of relations: with the sequences that their columns own, and without the defaults
    elsewhere that take numbers of sequences which go."""
    gone = {each.name: each for each in inside if isinstance(each, MapSchema)}
    for each in list(gone.values()):
        gone.update((owned.name, owned) for owned in owned_by(catalog, each.columns))
    sequences = [each for each in gone.values() if each.sequence is not None]
    for schema in maps(catalog):
        left = schema
        for sequence in sequences:
            left = without_sequence(left, sequence)
        if left is not schema and schema.name not in gone:
            yield PutMap(left)
    yield from (DropMap(name) for name in gone)
    yield from (DropView(each.name) for each in inside if isinstance(each, ViewDefinition))


def _kind(relation: Relation) -> str:
    if isinstance(relation, ViewDefinition):
        return "view"
    return "table" if relation.sequence is None else "sequence"


def maps(catalog: CatalogReader) -> list[MapSchema]:
    found = (catalog.find(name) for name in catalog.names())
    return [schema for schema in found if schema is not None]


def views(catalog: CatalogReader) -> list[ViewDefinition]:
    found = (catalog.find_view(name) for name in catalog.view_names())
    return [view for view in found if view is not None]


def relations(catalog: CatalogReader) -> list[Relation]:
    return [*maps(catalog), *views(catalog)]


# --- ALTER -------------------------------------------------------------------------------------


def _alter(context: Context, tree: AlterSchemaTree, bind: BindQuery) -> CatalogStatement:
    catalog, tag = context.catalog, "ALTER SCHEMA"
    known = _changed(context, tree.name)
    if tree.new is None:
        return CatalogStatement(tag, catalog.version, ())
    new = tree.new.text
    _check_name(context, tree.new)
    if exists(catalog, new):
        error: RemudaError = DuplicateSchema(f'schema "{new}" already exists')
        raise placed(context, error, tree.new)
    if known.name == PUBLIC:
        error = DependentObjects(
            "cannot rename schema public because it is required by the database system"
        )
        raise placed(context, error, tree.name)
    moves = {
        each.name: Place(new, each.local)
        for each in relations(catalog)
        if each.namespace == known.name
    }
    types = [enum for enum in catalog.types if enum.namespace == known.name]
    for enum in types:
        moves[full_name(enum.namespace, enum.local)] = Place(new, enum.local)
    renamed = PutNamespace(replace(known, name=new))
    placed_types = [PutType(replace(enum, namespace=new)) for enum in types]
    edits = moved(context, moves, [renamed, *placed_types], tree.name, bind)
    return CatalogStatement(tag, catalog.version, tuple(edits))


def bind_place(
    context: Context, tree: AlterTree, action: SetSchema | SetOwner, bind: BindQuery
) -> tuple[Edit, ...]:
    """ALTER TABLE, VIEW or SEQUENCE ... SET SCHEMA: the relation, and the sequences that its
    columns own, in another schema. OWNER TO changes nothing. As PostgreSQL's ALTER TABLE, this one
    takes views and sequences, too."""
    relation = context.relation(tree.name)
    if relation is None:
        raise missing(context, tree.name, tree.kind)
    if tree.kind not in ("TABLE", kind_of(relation)):
        raise placed(context, wrong_kind(relation, tree.kind), tree.name)
    if isinstance(action, SetOwner):
        return ()
    target = namespace_of(context, action.target)
    if target in SYSTEM:
        error = InsufficientPrivilege(
            f'permission denied to move "{relation.local}" to schema "{target}"',
            detail="System catalog modifications are currently disallowed.",
        )
        raise placed(context, error, action.target)
    if target == relation.namespace:
        return ()
    if PG_TEMP in (target, relation.namespace):
        apart = NotSupported(
            "cannot move objects into or out of temporary schemas",
            hint="CREATE TABLE AS copies the rows of a table into another schema.",
        )
        raise placed(context, apart, action.target)
    moving: list[Relation] = [relation]
    if isinstance(relation, MapSchema):
        moving += owned_by(context.catalog, relation.columns)
    for each in moving:
        indexes = each.indexes if isinstance(each, MapSchema) else ()
        taken = [i.name for i in indexes if index_in(context, target, i.name) is not None]
        if found_in(context.catalog, target, each.local) is not None:
            taken.append(each.local)
        if taken:
            duplicate = DuplicateMap(f'relation "{taken[0]}" already exists in schema "{target}"')
            raise placed(context, duplicate, tree.name)
    moves = {each.name: Place(target, each.local) for each in moving}
    return tuple(moved(context, moves, [], tree.name, bind))


def moved(
    context: Context,
    moves: Mapping[str, Place],
    first: Iterable[Edit],
    place: Name,
    bind: BindQuery,
) -> list[Edit]:
    """``first``, and the entries that give relations (by their full names) other places. Raises
    DependentObjects for a view whose text cannot follow."""
    catalog = context.catalog
    edits = list(first)
    for schema in maps(catalog):
        changed = _placed_map(schema, moves)
        for old, new in moves.items():
            changed = with_renamed_sequence(changed, old, new)
        if changed is not schema:
            edits.append(PutMap(changed))
    followed = {view.name: _followed(catalog, view, moves, bind) for view in views(catalog)}
    edits += [PutView(view) for old, view in followed.items() if view is not catalog.find_view(old)]
    after = Overlay(catalog, edits)
    for old, view in followed.items():
        before = catalog.find_view(old)
        assert before is not None
        now = after.find_view(view.name)
        assert now is not None
        if works(catalog, before, bind) and not works(after, now, bind):
            error = DependentObjects(
                f'view "{old}" names what is moved in a way that cannot follow',
                hint="Drop the view first, and create it again afterwards.",
            )
            raise placed(context, error, place)
    return edits


def _placed_map(schema: MapSchema, moves: Mapping[str, Place]) -> MapSchema:
    place = moves.get(schema.name)
    if place is None:
        return schema
    return replace(schema, name=place.full, namespace=place.namespace)


def _followed(
    catalog: CatalogReader, view: ViewDefinition, moves: Mapping[str, Place], bind: BindQuery
) -> ViewDefinition:
    """The view with another place, and with the other places in its text."""
    text = view.text
    types = {full_name(enum.namespace, enum.local) for enum in catalog.types}
    if any(name in moves for name in (*view.uses, *types)):
        context = Context(view.text, catalog, 0)
        context.kept = Kept()
        bind(context, parse_query(view.text))
        text = replaced(
            text,
            [
                (each.start, each.end, each.naming(moves[each.place.full]))
                for each in context.kept.references
                if each.place.full in moves
            ],
        )
    place = moves.get(view.name)
    if place is None and text == view.text:
        return view
    uses = tuple(sorted(moves[name].full if name in moves else name for name in view.uses))
    if place is None:
        return replace(view, text=text, uses=uses)
    return replace(view, name=place.full, namespace=place.namespace, text=text, uses=uses)
