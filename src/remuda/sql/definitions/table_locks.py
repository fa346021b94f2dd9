"""LOCK TABLE name [, ...] [IN mode MODE] [NOWAIT]"""

from __future__ import annotations

from remuda.datatypes.schema import MapSchema, ViewDefinition
from remuda.errors import NotSupported, UndefinedMap, WrongObjectType
from remuda.sql.definitions.index_definitions import find_index
from remuda.sql.scope.context import Context
from remuda.sql.scope.statements import LockStatement, told
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import LockTree, Name


def bind_lock(context: Context, tree: LockTree) -> LockStatement:
    """Raises UndefinedMap, WrongObjectType, NotSupported."""
    found = {schema.map_id: schema for schema in (_map(context, name) for name in tree.names)}
    return LockStatement(tuple(found.values()), tree.mode, tree.nowait)


def _map(context: Context, name: Name) -> MapSchema:
    known = context.relation(name)
    if isinstance(known, ViewDefinition):
        raise NotSupported(
            f'"{name.text}" is a view',
            position=name.position,
            hint="Lock the maps that it reads.",
        )
    if isinstance(known, MapSchema) and known.sequence is None:
        return known
    if known is None and find_index(context, name) is None:
        raise UndefinedMap(
            f'relation "{name.shown}" does not exist',
            position=name.position,
            hint=did_you_mean(name.text, told(context.catalog).names()),
        )
    raise WrongObjectType(f'cannot lock relation "{name.text}"', position=name.position)
