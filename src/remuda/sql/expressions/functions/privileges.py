"""``has_table_privilege`` and its kind, and ``pg_has_role``: may a role do that?

The binder collects what the users' file and the catalog say into one constant, ``Privileges``. The
call ``has_privilege`` decides by it when the statement runs, for constants and columns alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.pg_objects import (
    DATABASE_OID,
    LANGUAGES,
    SCHEMAS,
    TABLESPACES,
    Relation,
    indexes,
    relations,
    schemas,
)
from remuda.catalog.privileges import Object, Privileges
from remuda.catalog.roles import Roles
from remuda.catalog.system_relations import DATABASE, PUBLIC
from remuda.catalog.temporary import in_temporary_schema
from remuda.catalog.users import ALL, Role, schema_scope
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.datatypes.sql import BIGINT, BOOLEAN, VARCHAR
from remuda.datatypes.texts.text import type_name
from remuda.errors import UndefinedFunction
from remuda.plan.expression import Call, Case, Expression, Literal
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, register_call
from remuda.sql.scope.context import Context
from remuda.sql.scope.object_names import Holder, as_number, names, number
from remuda.sql.scope.statements import CatalogReader, RoleReader, roles_known
from remuda.sql.trees import ast

_ARGUMENTS: Final = {
    **{f"has_{kind}_privilege": (kind, 2) for kind in (
        "table", "any_column", "sequence", "schema", "database", "function", "type", "language",
        "tablespace", "server", "foreign_data_wrapper",
    )},
    "has_column_privilege": ("column", 3),
    "pg_has_role": ("role", 2),
}  # fmt: skip
"""Functions, the kinds of objects that they ask about, and how many arguments there are behind the
user, who may be left out."""
_RELATIONS: Final = ("table", "any_column", "column", "sequence")
_REGISTERED: Final = {
    **dict.fromkeys(_RELATIONS, "regclass"),
    "function": "regprocedure",
    "type": "regtype",
}
"""Kinds whose names are read as PostgreSQL reads those of ``regclass`` and its kind. The others are
named as they are, without quotes."""


def _call(binder: ExpressionBinder, node: ast.Call) -> Expression:
    name, nodes = str(node.this).lower(), list(node.expressions)
    kind, least = _ARGUMENTS[name]
    bound = [binder.bind(each) for each in nodes]
    if len(nodes) not in (least, least + 1) or not all(map(_is_fitting, bound)):
        types = ["unknown" if is_untyped(each) else type_name(each.type) for each in bound]
        raise binder.context.error(
            UndefinedFunction,
            f"function {name}({', '.join(types)}) does not exist",
            node,
            hint=f"{name} takes a user (or none), {'an object, a column' if least > 2 else kind} "
            "and privileges: names as text, or numbers.",
        )
    context = _of_everything(binder.context)
    roles = roles_known(binder.context.catalog)
    nulls = any(isinstance(each, Literal) and each.value is None for each in bound)
    parts = [
        binder.convert.implicit(each, BIGINT if each.type.is_integer else VARCHAR, part)
        for each, part in zip(bound, nodes, strict=True)
    ]
    if len(parts) == least:
        parts.insert(0, Literal(BIGINT, roles.current_oid))
        nodes.insert(0, node)
    if nulls:
        return Literal(BOOLEAN, None)
    parts[1] = _object(context, kind, parts[1], nodes[1])
    facts = _facts(context, kind, roles)
    return Call(BOOLEAN, "has_privilege", (Literal(VARCHAR, facts.encode()), *parts))


def _is_fitting(argument: Expression) -> bool:
    return is_untyped(argument) or argument.type.is_text or argument.type.is_integer


def _of_everything(context: Context) -> Context:
    """The same statement, bound by all of the catalog: one may ask about what one may not see."""
    whole = context.catalog.whole() if isinstance(context.catalog, RoleReader) else context.catalog
    return Context(context.text, whole, 0, path=context.path)


def _object(context: Context, kind: str, given: Expression, node: ast.Node) -> Expression:
    """The number of an object, or of a kind that is in no schema its name."""
    if kind == "database":
        here = Call(BOOLEAN, "=", (given, Call(VARCHAR, "current_database", ())))
        if given.type.is_text:
            return Case(VARCHAR, ((here, Literal(VARCHAR, DATABASE)),), given)
    if given.type.is_integer or kind not in _REGISTERED:
        return given
    registered = _REGISTERED[kind]
    if isinstance(given, Literal):
        return Literal(BIGINT, number(context, registered, str(given.value), node))
    return as_number(context, registered, given, required=True)


# --- what is known -----------------------------------------------------------------------------


def _facts(context: Context, kind: str, roles: Roles) -> Privileges:
    listed = roles.listed
    users = {role.name: role.oid for role in listed}
    given = {
        role.oid: None if role.user is None or role.user.has(Role.ADMIN, ALL) else role.user.roles
        for role in listed
    }
    found = {oid: (name, each) for oid, name, each in _objects(context, kind)}
    objects = {oid: each for oid, (_, each) in found.items()}
    named = {} if kind in _REGISTERED else {name: oid for oid, (name, _) in found.items()}
    tables = {}
    if kind in ("column", "sequence"):
        tables = {
            each.oid: (each.name, [column.name for column in each.columns])
            for each in relations(Holder(context))
        }
    return Privileges(kind, users, given, objects, named, tables)


_Objects = Iterator[tuple[int, str, Object]]
_EVERYBODY: Final = Object("everybody")
_SUPERUSERS: Final = Object("superusers")


def _objects(context: Context, kind: str) -> _Objects:
    holder = Holder(context)
    if kind in _RELATIONS:
        for relation in relations(holder):
            yield relation.oid, relation.name, _of_relation(context.catalog, holder, relation)
        for index in indexes(holder) if kind != "sequence" else ():
            yield index.oid, index.name, _SUPERUSERS
    elif kind == "schema":
        for name, oid in schemas(holder):
            own = name not in SCHEMAS or name == PUBLIC
            scope = ((schema_scope(name),),) if own else ((ALL,),)
            yield oid, name, Object("schema", scope)
    elif kind == "database":
        yield DATABASE_OID, DATABASE, Object("database", ((ALL,),))
    elif kind in _REGISTERED:
        for oid, name in names(context, _REGISTERED[kind]).items():
            yield oid, name, _EVERYBODY
    elif kind == "language":
        for oid, name in LANGUAGES.items():
            yield oid, name, _EVERYBODY
    elif kind == "tablespace":
        for oid, name in TABLESPACES.items():
            yield oid, name, _SUPERUSERS


def _of_relation(catalog: CatalogReader, holder: Holder, relation: Relation) -> Object:
    match relation.source:
        case MapSchema(sequence=None) as schema:
            return Object("table", () if in_temporary_schema(schema) else ((schema.name,),))
        case MapSchema() as schema:
            return Object("sequence", ((schema.name, *_owners(holder, schema)),))
        case ViewDefinition() as view:
            return Object("table", tuple((name,) for name in _read_by(catalog, view)))
        case _:
            return _EVERYBODY


def _owners(holder: Holder, sequence: MapSchema) -> Iterator[str]:
    """The map whose column owns the sequence, if there is one."""
    assert sequence.sequence is not None
    link = sequence.sequence.link
    for schema in holder.maps:
        if any(link in column.sequences for column in schema.columns):
            yield schema.name


def _read_by(catalog: CatalogReader, view: ViewDefinition) -> Iterator[str]:
    """The maps that a view reads in the end: it has no roles of its own."""
    for name in view.uses:
        inner = catalog.find_view(name)
        if inner is None:
            yield name
        else:
            yield from _read_by(catalog, inner)


for _name in _ARGUMENTS:
    register_call(_name, _call)
