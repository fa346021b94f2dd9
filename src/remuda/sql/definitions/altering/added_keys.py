"""ALTER TABLE ... ADD PRIMARY KEY, as dumps have it: first the table, then its rows, then the key.

The entries of a map lie where the hash of their key puts them, so a map keeps the key with which it
was made. Of a map without one, whose rows have numbers of their own, the primary key that is added
is a unique index over NOT NULL columns. Statements, catalogs and errors treat it as a primary key;
``get`` and ``put`` know the rows by their numbers still.
"""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.indexes import with_index
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.errors import DuplicateMap, DuplicateObject, InvalidDefinition, RemudaError
from remuda.sql.definitions.index_definitions import index_in
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import known_name, no_repeats
from remuda.sql.trees.names import Name
from remuda.sql.trees.syntax import KeyDefinition


def with_key(context: Context, schema: MapSchema, key: KeyDefinition) -> MapSchema:
    """``schema`` with a primary key; its columns are still as they were. Raises InvalidDefinition,
    UndefinedColumn, DuplicateColumn, DuplicateMap, DuplicateObject."""
    if not schema.has_row_ids or schema.added_key is not None:
        message = f'multiple primary keys for table "{schema.local}" are not allowed'
        raise placed(context, InvalidDefinition(message), Name("", key.position))
    columns = [known_name(context, n, {c.name for c in schema.shown}) for n in key.columns]
    no_repeats(context, key.columns, "primary key")
    name = _name(context, schema, key)
    index = IndexDefinition(
        name,
        IndexKind.SORTED,
        tuple(map(IndexedColumn, columns)),
        unique=True,
        constraint=True,
    )
    try:
        return replace(with_index(schema, index), key_name=name)
    except RemudaError as problem:
        raise placed(context, problem, key.columns[0]) from None


def _name(context: Context, schema: MapSchema, key: KeyDefinition) -> str:
    def taken(name: str) -> bool:
        return index_in(context, schema.namespace, name) is not None

    others = {check.name for check in schema.checks}
    if key.name is None:
        base = name = f"{schema.local}_pkey"
        number = 0
        while taken(name) or name in others:
            number += 1
            name = f"{base}{number}"
        return name
    name = key.name.text
    if taken(name):
        raise placed(context, DuplicateMap(f'relation "{name}" already exists'), key.name)
    if name in others:
        error = DuplicateObject(f'constraint "{name}" for map "{schema.local}" already exists')
        raise placed(context, error, key.name)
    return name
