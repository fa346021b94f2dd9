"""CREATE, ALTER, DROP and COMMENT ON TYPE: enums (decision 0091)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from remuda.catalog.edits import DropType, Edit, PutType
from remuda.catalog.enums import users_of
from remuda.catalog.system_relations import SYSTEM
from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.schema import MapSchema, full_name
from remuda.datatypes.sql import EnumType
from remuda.errors import (
    DependentObjects,
    DuplicateObject,
    InsufficientPrivilege,
    InvalidName,
    InvalidParameterValue,
    NotSupported,
    RemudaError,
    UndefinedObject,
    WrongObjectType,
)
from remuda.sql.definitions.altering.alter import bind_alter
from remuda.sql.definitions.namespaces import moved, namespace_of, relations
from remuda.sql.queries.views import BindQuery, placed, with_dependents
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import find_enum
from remuda.sql.scope.notices import Notice, not_there
from remuda.sql.scope.resolution import Place, found_in
from remuda.sql.scope.statements import CatalogStatement
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.text.types import is_type_name
from remuda.sql.trees.names import Name
from remuda.sql.trees.syntax import AlterTree, DropColumn
from remuda.sql.trees.types import (
    AddValue,
    AlterTypeTree,
    CommentTypeTree,
    CreateTypeTree,
    DropTypeTree,
    MoveType,
    RenameType,
    RenameValue,
    TypeTree,
)

LABEL_BYTES_MAX: Final = 63
LABELS_MAX: Final = 10_000
"""Each column has the labels of its type, in messages and in the log."""


def bind_type(context: Context, tree: TypeTree, bind: BindQuery) -> CatalogStatement:
    """Raises DuplicateObject, UndefinedObject, DependentObjects, InvalidParameterValue."""
    version = context.catalog.version
    match tree:
        case CreateTypeTree():
            return CatalogStatement("CREATE TYPE", version, (_created(context, tree),))
        case AlterTypeTree():
            return _alter(context, tree, bind)
        case DropTypeTree():
            return _drop(context, tree, bind)
        case CommentTypeTree(name=name, comment=comment):
            edit = PutType(replace(_named(context, name), comment=comment))
            return CatalogStatement("COMMENT", version, (edit,))


def _created(context: Context, tree: CreateTypeTree) -> PutType:
    place = context.place(tree.name)
    _refuse_taken(context, place, tree.name)
    seen: set[str] = set()
    for label in tree.labels:
        _check_label(context, label)
        if label.text in seen:
            raise placed(context, _exists(label.text), label)
        seen.add(label.text)
    _check_number(context, len(tree.labels), tree.name)
    labels = tuple(label.text for label in tree.labels)
    return PutType(EnumType(place.local, labels, place.namespace))


def _refuse_taken(context: Context, place: Place, name: Name) -> None:
    taken = find_enum(context.catalog, (), place.namespace, place.local)
    if taken or found_in(context.catalog, place.namespace, place.local):
        error = DuplicateObject(
            f'type "{place.local}" already exists',
            hint=""
            if taken
            else "A relation has an associated type of the same name, so you must use a name that "
            "doesn't conflict with any existing type.",
        )
        raise placed(context, error, name)


def _check_label(context: Context, label: Name) -> None:
    if not 0 < len(label.text.encode("utf-8", "surrogatepass")) <= LABEL_BYTES_MAX:
        error = InvalidName(
            f'invalid enum label "{label.text}"',
            detail=f"Labels must have 1 to {LABEL_BYTES_MAX} bytes."
            if not label.text
            else f"Labels must be {LABEL_BYTES_MAX} bytes or less.",
        )
        raise placed(context, error, label)


def _check_number(context: Context, labels: int, place: Name) -> None:
    if labels > LABELS_MAX:
        error = NotSupported(
            f"an enum has at most {LABELS_MAX} values", hint="Use a map with a key instead."
        )
        raise placed(context, error, place)


def _exists(label: str) -> DuplicateObject:
    return DuplicateObject(f'enum label "{label}" already exists')


def _named(context: Context, name: Name) -> EnumType:
    """The enum that a statement names. Raises UndefinedObject, WrongObjectType."""
    found = find_enum(context.catalog, context.path, name.schema, name.text)
    if found is not None:
        return found
    if name.schema in ("", "pg_catalog") and is_type_name(name.text):
        error: RemudaError = WrongObjectType(f"{name.text} is not an enum")
    else:
        hint = did_you_mean(name.text, [enum.local for enum in context.catalog.types])
        error = UndefinedObject(f'type "{name.text}" does not exist', hint=hint)
    raise placed(context, error, name)


# --- ALTER -------------------------------------------------------------------------------------


def _alter(context: Context, tree: AlterTypeTree, bind: BindQuery) -> CatalogStatement:
    enum, version = _named(context, tree.name), context.catalog.version
    edits: tuple[Edit, ...] = ()
    notices: tuple[Notice, ...] = ()
    match tree.action:
        case AddValue(label=label, if_not_exists=True) if label.text in enum.labels:
            notice = Notice(f'enum label "{label.text}" already exists, skipping', "42710")
            notices = (notice,)
        case AddValue() as action:
            edits = (PutType(_with_value(context, enum, action)),)
        case RenameValue() as action:
            edits = (PutType(_with_renamed_value(context, enum, action)),)
        case RenameType(new=new):
            place = Place(enum.namespace, new.text)
            _refuse_taken(context, place, new)
            edits = tuple(_placed(context, enum, place, tree.name, bind))
        case MoveType(target=target) if target is not None:
            namespace = namespace_of(context, target)
            if namespace in SYSTEM:
                error = InsufficientPrivilege(
                    f'permission denied to move "{enum.local}" to schema "{namespace}"',
                    detail="System catalog modifications are currently disallowed.",
                )
                raise placed(context, error, target)
            if namespace != enum.namespace:
                place = Place(namespace, enum.local)
                _refuse_taken(context, place, target)
                edits = tuple(_placed(context, enum, place, tree.name, bind))
    return CatalogStatement("ALTER TYPE", version, edits, notices=notices)


def _place_of(context: Context, enum: EnumType, label: Name) -> int:
    if label.text not in enum.labels:
        error = InvalidParameterValue(
            f'"{label.text}" is not an existing enum label',
            hint=did_you_mean(label.text, enum.labels),
        )
        raise placed(context, error, label)
    return enum.labels.index(label.text)


def _with_value(context: Context, enum: EnumType, action: AddValue) -> EnumType:
    _check_label(context, action.label)
    if action.label.text in enum.labels:
        raise placed(context, _exists(action.label.text), action.label)
    _check_number(context, len(enum.labels) + 1, action.label)
    place = len(enum.labels)
    if action.beside is not None:
        place = _place_of(context, enum, action.beside) + (not action.before)
    labels, oids = list(enum.labels), list(enum.label_oids)
    labels.insert(place, action.label.text)
    oids.insert(place, 0)
    return replace(enum, labels=tuple(labels), label_oids=tuple(oids))


def _with_renamed_value(context: Context, enum: EnumType, action: RenameValue) -> EnumType:
    """Rows hold the labels themselves, so no column may have the type."""
    place = _place_of(context, enum, action.old)
    _check_label(context, action.new)
    if action.new.text in enum.labels:
        raise placed(context, _exists(action.new.text), action.new)
    for relation, column in users_of(enum, relations(context.catalog)):
        new, table = action.new.text, sql_name(relation)
        error = NotSupported(
            f'cannot rename a value of type {sql_name(enum)}, because column "{column.name}" of '
            f"{table} has this type",
            detail="Rows hold the labels of enums as they are.",
            hint=f"Add the value '{new}' with ALTER TYPE ... ADD VALUE, and write it into the rows "
            f"with UPDATE {table}.",
        )
        raise placed(context, error, action.old)
    labels = list(enum.labels)
    labels[place] = action.new.text
    return replace(enum, labels=tuple(labels))


def _placed(
    context: Context, enum: EnumType, place: Place, name: Name, bind: BindQuery
) -> Iterator[Edit]:
    """The type under another name, or in another schema. Texts of views follow."""
    edit = PutType(replace(enum, local=place.local, namespace=place.namespace))
    yield from moved(context, {full_name(enum.namespace, enum.local): place}, [edit], name, bind)


# --- DROP --------------------------------------------------------------------------------------


def _drop(context: Context, tree: DropTypeTree, bind: BindQuery) -> CatalogStatement:
    catalog = context.catalog
    notices: list[Notice] = []
    gone: dict[int, tuple[EnumType, Name]] = {}
    for name in tree.names:
        if name.schema in ("", "pg_catalog") and is_type_name(name.text):
            error = DependentObjects(
                f"cannot drop type {name.text} because it is required by the database system"
            )
            raise placed(context, error, name)
        found = find_enum(catalog, context.path, name.schema, name.text)
        if found is None and tree.if_exists:
            notices.append(not_there("type", name.text))
            continue
        enum = _named(context, name)
        gone[enum.oid] = enum, name
    edits: list[Edit] = []
    shown: list[str] = []
    for enum, name in gone.values():
        users = [
            (relation, column)
            for relation, column in users_of(enum, relations(catalog))
            if isinstance(relation, MapSchema)
        ]
        shown += [f"column {c.name} of table {r.local}" for r, c in users]
        if users and not tree.cascade:
            lines = [f"{each} depends on type {sql_name(enum)}" for each in shown]
            error = DependentObjects(
                f"cannot drop type {sql_name(enum)} because other objects depend on it",
                detail="\n".join(lines[:100]),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
            raise placed(context, error, name)
        for table in dict.fromkeys(relation.name for relation, _ in users):
            schema = catalog.find(table)
            assert schema is not None
            drops = tuple(
                DropColumn(Name(column.name, name.position), if_exists=False, cascade=True)
                for relation, column in users
                if relation.name == table
            )
            where = Name(schema.local, name.position, schema=schema.namespace)
            altered = bind_alter(context, AlterTree("TABLE", where, False, drops), bind)
            edits += altered.edits
        edits.append(DropType(enum.oid))
    if edits:
        first = next(iter(gone.values()))
        what = f"drop type {quoted_name(first[0].local)}"
        edits = list(with_dependents(context, edits, what, first[1], bind, cascade=tree.cascade))
    if shown:
        one, many = f"drop cascades to {shown[0]}", f"drop cascades to {len(shown)} other objects"
        notices.append(Notice(one if len(shown) == 1 else many))
    return CatalogStatement("DROP TYPE", catalog.version, tuple(edits), notices=tuple(notices))
