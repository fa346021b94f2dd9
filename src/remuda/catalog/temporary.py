"""Temporary tables of one session: definitions and rows as one immutable value (decision 0090).

A statement that writes rows, or defines a table, makes the next value. So a statement that fails, a
ROLLBACK and a ROLLBACK TO a savepoint need no work: the session goes on with an earlier value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import PG_TEMP, MapSchema, Namespace

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

    def over(self, catalog: Catalog) -> Catalog:
        """``catalog`` with the temporary tables in a schema of their own."""
        namespaces = (*catalog.namespaces, Namespace(PG_TEMP))
        return replace(catalog, maps=(*catalog.maps, *self.maps), namespaces=namespaces)


Tables: TypeAlias = Mapping[str, TemporaryTable]


@dataclass(frozen=True, eq=False)
class TemporaryTables:
    """``tables`` by full name. ``transaction`` names the open transaction that has changed them,
    which found them as ``before``; "": there is none."""

    tables: Tables = field(default_factory=dict)
    names: TemporaryNames | None = None
    transaction: str = ""
    before: TemporaryTables | None = None

    def find(self, name: str) -> TemporaryTable | None:
        return self.tables.get(name)

    def with_table(self, table: TemporaryTable) -> TemporaryTables:
        """With a table in place of the one of its name, if there is one."""
        known = self.tables.get(table.schema.name)
        tables = {**self.tables, table.schema.name: table}
        same = known is not None and known.schema is table.schema
        return replace(self, tables=tables, names=self.names if same else _names(tables))

    def without(self, name: str) -> TemporaryTables:
        tables = {other: table for other, table in self.tables.items() if other != name}
        return replace(self, tables=tables, names=_names(tables))

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
        names = self.names if len(kept) == len(self.tables) else _names(kept)
        return TemporaryTables(kept, names)

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


def _names(tables: Tables) -> TemporaryNames | None:
    if not tables:
        return None
    return TemporaryNames(tuple(table.schema for table in tables.values()))
