"""GRANT and REVOKE: the roles on maps that stand for the privileges that a statement names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from remuda.catalog.privileges import DATABASE, SCHEMA, SEQUENCE, TABLE
from remuda.catalog.users import ALL, schema_scope
from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import (
    InvalidGrant,
    SqlSyntaxError,
    UndefinedMap,
    UndefinedSchema,
    WrongObjectType,
)
from remuda.sql.scope.context import Context
from remuda.sql.scope.resolution import exists
from remuda.sql.scope.statements import PrivilegeStatement
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.names import Name
from remuda.sql.trees.privileges import ObjectKind, PrivilegeTree

_PRIVILEGES: Final = {
    ObjectKind.TABLE: TABLE,
    ObjectKind.TABLES_IN_SCHEMA: TABLE,
    ObjectKind.SEQUENCE: SEQUENCE,
    ObjectKind.SEQUENCES_IN_SCHEMA: SEQUENCE,
    ObjectKind.SCHEMA: SCHEMA,
    ObjectKind.DATABASE: DATABASE,
}
_EVERY: Final = frozenset().union(*_PRIVILEGES.values())


def bind_privileges(context: Context, tree: PrivilegeTree) -> PrivilegeStatement:
    """Raises UndefinedMap, UndefinedSchema, WrongObjectType, SqlSyntaxError,
    InvalidGrant for a privilege that objects of the kind do not have."""
    known = _PRIVILEGES[tree.kind]
    for word in tree.privileges:
        if word not in _EVERY:
            raise SqlSyntaxError(f'unrecognized privilege type "{word}"')
        if word not in known:
            raise InvalidGrant(
                f"invalid privilege type {word.upper()} for {tree.kind.value}",
                hint=f"It has {', '.join(each.upper() for each in known)}.",
            )
    roles = dict.fromkeys(known[word] for word in tree.privileges or known)
    asked = [role for role in roles if role is not None]
    scopes = [scope for name in tree.objects for scope in _scopes(context, tree.kind, name)]
    return PrivilegeStatement(
        tree.grants,
        tuple((role, scope) for scope in scopes for role in asked),
        tuple((name.text, name.position) for name in tree.users),
        tree.public,
    )


def _scopes(context: Context, kind: ObjectKind, name: Name) -> Iterator[str]:
    """The maps, or the scope that stands for many."""
    match kind:
        case ObjectKind.TABLE | ObjectKind.SEQUENCE:
            yield from _relation(context, kind, name)
        case ObjectKind.DATABASE:
            yield ALL
        case _:
            if not exists(context.catalog, name.text):
                raise UndefinedSchema(
                    f'schema "{name.text}" does not exist', position=name.position
                )
            yield schema_scope(name.text)


def _relation(context: Context, kind: ObjectKind, name: Name) -> Sequence[str]:
    found = context.relation(name)
    if isinstance(found, ViewDefinition):
        if kind is ObjectKind.SEQUENCE:
            raise WrongObjectType(f'"{name.shown}" is not a sequence', position=name.position)
        return _read_by(context, found)
    if not isinstance(found, MapSchema):
        raise UndefinedMap(
            f'relation "{name.shown}" does not exist',
            position=name.position,
            hint=did_you_mean(name.text, context.catalog.names()),
        )
    if kind is ObjectKind.SEQUENCE and found.sequence is None:
        raise WrongObjectType(f'"{name.shown}" is not a sequence', position=name.position)
    return (found.name,)


def _read_by(context: Context, view: ViewDefinition) -> list[str]:
    """The maps that a view reads in the end: it has no roles of its own."""
    found: list[str] = []
    for name in view.uses:
        inner = context.catalog.find_view(name)
        found += [name] if inner is None else _read_by(context, inner)
    return found
