"""CREATE, DROP, SHOW: parsed trees -> statements checked against the catalog."""

from __future__ import annotations

from remuda.datatypes.schema import KEY_COLUMN, VALUE_COLUMN, Column, MapSchema, ValueShape
from remuda.errors import (
    DuplicateColumn,
    DuplicateMap,
    InvalidDefinition,
    UndefinedColumn,
    UndefinedMap,
)
from remuda.sql.context import Context
from remuda.sql.relations import undefined_map
from remuda.sql.statements import (
    CreateMapStatement,
    DropMapStatement,
    ShowKind,
    ShowStatement,
)
from remuda.sql.suggest import did_you_mean
from remuda.sql.syntax import CreateTree, DropTree, Name, ShowTree


def bind_create(context: Context, tree: CreateTree) -> CreateMapStatement:
    """The schema of a new map. Key columns become NOT NULL; a column ``__key`` is the key alone."""
    if context.catalog.find(tree.name.text) is not None and not tree.if_not_exists:
        raise DuplicateMap(
            f'map "{tree.name.text}" already exists',
            position=tree.name.position,
            statement=context.text,
            hint="CREATE TABLE IF NOT EXISTS keeps the existing map.",
        )
    names: set[str] = set()
    for definition in tree.columns:
        if definition.name.text in names:
            raise DuplicateColumn(
                f'column "{definition.name.text}" specified more than once',
                position=definition.name.position,
                statement=context.text,
            )
        names.add(definition.name.text)
    key = tuple(_known(context, name, names) for name in tree.key)
    if not key and KEY_COLUMN in names:
        key = (KEY_COLUMN,)
    if not key:
        raise InvalidDefinition(
            f'map "{tree.name.text}" needs a primary key',
            position=tree.name.position,
            statement=context.text,
            hint="Add PRIMARY KEY behind a column, or PRIMARY KEY (column, ...).",
        )
    _no_repeats(context, tree.key, "primary key")
    columns = tuple(
        Column(d.name.text, d.type, d.nullable and d.name.text not in key) for d in tree.columns
    )
    shape = ValueShape.SCALAR if names - set(key) == {VALUE_COLUMN} else ValueShape.ROW
    schema = MapSchema(
        name=tree.name.text,
        columns=columns,
        key=key,
        partition_by=_partition_by(context, tree, key, names),
        replicated=tree.replicated,
        value_shape=shape,
    )
    return CreateMapStatement(schema, tree.if_not_exists)


def _known(context: Context, name: Name, names: set[str]) -> str:
    if name.text not in names:
        raise UndefinedColumn(
            f'column "{name.text}" does not exist',
            position=name.position,
            statement=context.text,
            hint=did_you_mean(name.text, names),
        )
    return name.text


def _no_repeats(context: Context, names: tuple[Name, ...], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise DuplicateColumn(
                f'column "{name.text}" appears twice in {what}',
                position=name.position,
                statement=context.text,
            )
        seen.add(name.text)


def _partition_by(
    context: Context, tree: CreateTree, key: tuple[str, ...], names: set[str]
) -> tuple[str, ...]:
    """The partition attribute: some of the key columns, hashed in the order of their naming."""
    if tree.partition_by is None:
        return key
    _no_repeats(context, tree.partition_by, "partition_by")
    for name in tree.partition_by:
        if _known(context, name, names) not in key:
            raise InvalidDefinition(
                f'partition_by column "{name.text}" is not part of the primary key',
                position=name.position,
                statement=context.text,
                hint="A row must be found by its key alone: partition_by takes key columns only.",
            )
    return tuple(name.text for name in tree.partition_by)


def bind_drop(context: Context, tree: DropTree) -> DropMapStatement:
    schema = context.catalog.find(tree.name.text)
    if schema is None and not tree.if_exists:
        raise _missing(context, tree.name)
    return DropMapStatement(tree.name.text, schema, tree.if_exists)


def bind_show(context: Context, tree: ShowTree) -> ShowStatement:
    if tree.name is None:
        return ShowStatement(ShowKind.MAPS)
    schema = context.catalog.find(tree.name.text)
    if schema is None:
        raise _missing(context, tree.name)
    return ShowStatement(ShowKind.COLUMNS, schema)


def _missing(context: Context, name: Name) -> UndefinedMap:
    error = undefined_map(context, name.text, None)
    error.position = name.position
    return error
