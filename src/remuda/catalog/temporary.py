"""Temporary tables of one session: definitions and rows as one immutable value (decision 0090).

A statement that writes rows, or defines a table, makes the next value. So a statement that fails, a
ROLLBACK and a ROLLBACK TO a savepoint need no work: the session goes on with an earlier value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.oids import (
    TEMPORARY_FIRST,
    TEMPORARY_LIMIT,
    TEMPORARY_SCHEMAS,
    Allotment,
)
from remuda.datatypes.schema import PG_TEMP, MapSchema, Namespace, full_name

PRESERVE: Final = "PRESERVE ROWS"
DELETE: Final = "DELETE ROWS"
DROP: Final = "DROP"


@dataclass(frozen=True, eq=False)
class TemporaryTable:
    """``batches`` hold the rows in engine form, all columns. ``on_commit``: see ``committed``."""

    schema: MapSchema
    batches: tuple[pa.RecordBatch, ...] = ()
    on_commit: str = PRESERVE

    @cached_property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


@dataclass(frozen=True, eq=False)
class TemporaryNames:
    """The definitions alone. Plans depend on them: two of these are equal only if they are the same
    object, so no other session finds a plan that was made by them."""

    maps: tuple[MapSchema, ...]
    session: int = 0
    """A number from 1 on: that of ``pg_temp_1``, by which the session sees its schema listed."""

    def over(self, catalog: Catalog) -> Catalog:
        """``catalog`` with the temporary tables in a schema of their own."""
        namespaces = (*catalog.namespaces, Namespace(PG_TEMP, oid=TEMPORARY_SCHEMAS + self.session))
        return replace(catalog, maps=(*catalog.maps, *self.maps), namespaces=namespaces)

    def listed_over(self, catalog: Catalog) -> Catalog:
        """``over``, as PostgreSQL's catalog lists it."""
        over = self.over(catalog)
        maps, namespaces = as_listed(over.maps, over.namespaces)
        return replace(over, maps=tuple(maps), namespaces=tuple(namespaces))


def own_schema(namespaces: Iterable[Namespace]) -> Namespace | None:
    """The schema of temporary tables among ``namespaces``, if there is one, as it is listed."""
    for namespace in namespaces:
        if namespace.name == PG_TEMP:
            return replace(namespace, name=f"{PG_TEMP}_{namespace.oid - TEMPORARY_SCHEMAS}")
    return None


def as_listed(
    maps: Sequence[MapSchema], namespaces: Sequence[Namespace]
) -> tuple[Sequence[MapSchema], Sequence[Namespace]]:
    """Both as PostgreSQL's catalog lists them: the schema ``pg_temp`` under its own name."""
    own = own_schema(namespaces)
    if own is None:
        return maps, namespaces
    return (
        [
            replace(each, namespace=own.name, name=full_name(own.name, each.local))
            if each.temporary
            else each
            for each in maps
        ],
        [own if each.name == PG_TEMP else each for each in namespaces],
    )


def in_temporary_schema(schema: MapSchema) -> bool:
    """Whether a schema that ``as_listed`` has made is that of a temporary table."""
    return schema.namespace.startswith(f"{PG_TEMP}_")


Tables: TypeAlias = Mapping[str, TemporaryTable]


@dataclass(frozen=True, eq=False)
class TemporaryTables:
    """``tables`` by full name. ``transaction`` names the open transaction that has changed them,
    which found them as ``before``; "": there is none."""

    tables: Tables = field(default_factory=dict)
    names: TemporaryNames | None = None
    transaction: str = ""
    before: TemporaryTables | None = None
    session: int = 0
    following_oid: int = TEMPORARY_FIRST
    """The next OID that was never allotted."""

    def find(self, name: str) -> TemporaryTable | None:
        return self.tables.get(name)

    def with_table(self, table: TemporaryTable) -> TemporaryTables:
        """With a table in place of the one of its name, if there is one."""
        known = self.tables.get(table.schema.name)
        tables = {**self.tables, table.schema.name: table}
        same = known is not None and known.schema is table.schema
        return replace(self, tables=tables, names=self.names if same else self._names(tables))

    def allotted(self, schema: MapSchema, session: int) -> tuple[TemporaryTables, MapSchema]:
        """Before ``with_table`` with a new one: this, with the number of its session, and
        ``schema`` with OIDs."""
        taken = {oid for table in self.tables.values() for oid in _oids(table.schema)}
        allotment = Allotment(self.following_oid, taken, TEMPORARY_FIRST, TEMPORARY_LIMIT)
        made = allotment.map(schema)
        following = allotment.following
        return replace(self, session=session, following_oid=following), made

    def without(self, name: str) -> TemporaryTables:
        tables = {other: table for other, table in self.tables.items() if other != name}
        return replace(self, tables=tables, names=self._names(tables))

    def _names(self, tables: Tables) -> TemporaryNames | None:
        if not tables:
            return None
        return TemporaryNames(tuple(table.schema for table in tables.values()), self.session)

    def within(self, transaction: str) -> TemporaryTables:
        """The value that a statement of a transaction ("": of none) begins to change."""
        if not transaction or self.transaction == transaction:
            return self
        return replace(self, transaction=transaction, before=self)

    def committed(self) -> TemporaryTables:
        """After the end of its transaction: ON COMMIT has done its work."""
        kept: dict[str, TemporaryTable] = {}
        for name, table in self.tables.items():
            if table.on_commit == DELETE:
                kept[name] = replace(table, batches=())
            elif table.on_commit != DROP:
                kept[name] = table
        names = self.names if len(kept) == len(self.tables) else self._names(kept)
        return replace(self, tables=kept, names=names, transaction="", before=None)

    def settled(self, transaction: str) -> TemporaryTables | None:
        """The value for the next statement, which belongs to ``transaction`` ("": to none): the one
        before a transaction that has ended without a commit."""
        if not self.transaction or self.transaction == transaction:
            return self
        return self.before

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Identity and bytes of every batch, those that a rollback brings back included."""
        for table in self.tables.values():
            yield from ((id(batch), batch.nbytes) for batch in table.batches)
        if self.before is not None:
            yield from self.before.sizes()


def bytes_of(values: Iterable[TemporaryTables | None]) -> int:
    """The bytes of all rows, of those that several values share once."""
    sizes = dict(size for value in values if value is not None for size in value.sizes())
    return sum(sizes.values())


def _oids(schema: MapSchema) -> Iterator[int]:
    yield from (schema.oid, schema.key_oid, schema.key_index_oid)
    yield from (column.default_oid for column in schema.columns)
    yield from (check.oid for check in schema.checks)
    for index in schema.indexes:
        yield from (index.oid, index.constraint_oid)
