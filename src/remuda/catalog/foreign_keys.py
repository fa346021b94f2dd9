"""Both sides of foreign keys in step: pure functions over the maps of a catalog (decision 0108).

The schema of a child names its parent; the schema of the parent lists its children. An edit that
makes or drops a foreign key changes the version of both maps, so that writes which were checked by
the older version of one of them are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.map_options import Eviction
from remuda.datatypes.schema import ForeignKey, MapSchema, full_name
from remuda.errors import DependentObjects, NotSupported


def linked(before: Mapping[int, MapSchema], after: Mapping[int, MapSchema]) -> dict[int, MapSchema]:
    """``after``, by id the maps that follow ``before``, with foreign keys and children in step:
    names of maps and columns are carried over, and a foreign key goes with a column of the child.
    Raises DependentObjects for one whose parent, or whose key of the parent, is gone, and
    NotSupported for maps that can be no parent or no child."""
    maps = dict(after)
    if not any(schema.foreign_keys or schema.children for schema in maps.values()):
        return maps
    names, columns = _renamed(before, after)
    places = {schema.name: schema.namespace for schema in after.values()}
    for map_id, schema in after.items():
        if schema.foreign_keys:
            keys = tuple(_carried(schema, names, columns, places))
            maps[map_id] = _changed(before, replace(schema, foreign_keys=keys))
    ids = {schema.name: map_id for map_id, schema in maps.items()}
    children: dict[int, set[int]] = {}
    for map_id, schema in maps.items():
        for key in schema.foreign_keys:
            if key.parent not in ids:
                raise _needed(maps, key.parent)
            parent = maps[ids[key.parent]]
            if not is_key(parent, key.parent_columns):
                raise _without_key(before.get(parent.map_id, parent), parent, key, schema)
            refuse(parent, is_parent=True)
            refuse(schema, is_parent=False)
            children.setdefault(parent.map_id, set()).add(map_id)
    for map_id, schema in maps.items():
        found = tuple(sorted(children.get(map_id, ())))
        if schema.children != found:
            maps[map_id] = _changed(before, replace(schema, children=found))
    return maps


def _renamed(
    before: Mapping[int, MapSchema], after: Mapping[int, MapSchema]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The new names of maps by their old ones, and by the new names of maps those of columns."""
    names: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    for map_id, schema in after.items():
        old = before.get(map_id)
        if old is None or old is schema:
            continue
        if old.name != schema.name:
            names[old.name] = schema.name
        known = {column.id: column.name for column in old.columns}
        columns[schema.name] = {
            known[column.id]: column.name
            for column in schema.columns
            if known.get(column.id, column.name) != column.name
        }
    return names, columns


def _carried(
    schema: MapSchema,
    names: Mapping[str, str],
    columns: Mapping[str, Mapping[str, str]],
    places: Mapping[str, str],
) -> Iterator[ForeignKey]:
    own = columns.get(schema.name, {})
    for key in schema.foreign_keys:
        parent = names.get(key.parent, key.parent)
        others = columns.get(parent, {})
        found = replace(
            key,
            parent=parent,
            namespace=places.get(parent, key.namespace),
            columns=tuple(own.get(name, name) for name in key.columns),
            parent_columns=tuple(others.get(name, name) for name in key.parent_columns),
            set_columns=tuple(own.get(name, name) for name in key.set_columns),
        )
        if all(name in schema.position for name in found.columns):
            yield found


def _changed(before: Mapping[int, MapSchema], schema: MapSchema) -> MapSchema:
    """``schema`` as a version of its own, if it differs from the one before."""
    old = before.get(schema.map_id)
    if old is None or old.version != schema.version:
        return schema
    same = old.foreign_keys == schema.foreign_keys and old.children == schema.children
    return schema if same else replace(schema, version=schema.version + 1)


def is_key(schema: MapSchema, columns: tuple[str, ...]) -> bool:
    """Whether the columns, in any order, are the primary key or those of a unique index."""
    wanted = frozenset(columns)
    return wanted == frozenset(schema.key) or index_of(schema, columns) is not None


def index_of(schema: MapSchema, columns: tuple[str, ...]) -> IndexDefinition | None:
    """The unique index over these columns, in any order."""
    wanted = frozenset(columns)
    return next((i for i in schema.uniques if frozenset(i.names) == wanted), None)


def refuse(schema: MapSchema, *, is_parent: bool) -> None:
    """Raises NotSupported for a map that foreign keys cannot name, or that can have none: its
    entries could go, or be lost, without a delete."""
    options, what = schema.options, ""
    if schema.temporary:
        what = "a temporary table"
    elif schema.replicated:
        what = "a REPLICATED map"
    elif options.async_backups:
        what = "a map with async_backups"
    elif is_parent and (options.ttl or options.max_idle):
        what = "a map whose entries end by themselves (ttl, max_idle)"
    elif is_parent and options.eviction is not Eviction.NONE:
        what = "a map with eviction"
    if what:
        side = "a referenced table" if is_parent else "a table with a foreign key"
        raise NotSupported(
            f'table "{schema.local}" cannot be {side}: it is {what}',
            hint="Leave the option out, or keep the tables in step in the application.",
        )


def _needed(maps: Mapping[int, MapSchema], parent: str) -> DependentObjects:
    """The error for a map that is gone, and that rows of others name."""
    named = [(key, child) for child in maps.values() for key in child.foreign_keys]
    lines = [
        f"constraint {quoted_name(key.name)} on table {sql_name(child)} depends on table {parent}"
        for key, child in named
        if key.parent == parent
    ]
    return _depends(f"table {parent}", lines)


def _without_key(
    old: MapSchema, parent: MapSchema, key: ForeignKey, child: MapSchema
) -> DependentObjects:
    """The error for a parent that loses the key which rows of ``child`` name."""
    table = sql_name(parent)
    index = index_of(old, key.parent_columns)
    gone = [name for name in key.parent_columns if name not in parent.position]
    if gone:
        what = on = f"column {quoted_name(gone[0])} of table {table}"
    elif index is not None and index.constraint:
        what = f"constraint {quoted_name(index.name)} on table {table}"
        on = f"index {sql_name(replace(parent, name=full_name(parent.namespace, index.name)))}"
    else:
        name = parent.primary_key if index is None else index.name
        what = on = f"index {quoted_name(name)}"
    constraint = f"constraint {quoted_name(key.name)} on table {sql_name(child)}"
    return _depends(what, [f"{constraint} depends on {on}"])


def _depends(what: str, lines: list[str]) -> DependentObjects:
    return DependentObjects(
        f"cannot drop {what} because other objects depend on it",
        detail="\n".join(lines),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )
