"""Temporary tables, sequences and views of one session: definitions and rows as one immutable value
(decision 0090).

A statement that writes rows, or defines a table, makes the next value. So a statement that fails, a
ROLLBACK and a ROLLBACK TO a savepoint need no work: the session goes on with an earlier value. Only
the numbers of sequences (``OwnNumbers``) are shared by all values: no rollback takes them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.oids import (
    TEMPORARY_FIRST,
    TEMPORARY_LIMIT,
    TEMPORARY_SCHEMAS,
    Allotment,
)
from remuda.catalog.own.numbers import OwnNumbers
from remuda.datatypes.schema import PG_TEMP, MapSchema, Namespace, ViewDefinition, full_name

PRESERVE: Final = "PRESERVE ROWS"
DELETE: Final = "DELETE ROWS"
DROP: Final = "DROP"


@dataclass(frozen=True, eq=False)
class TemporaryTable:
    """``batches`` hold the rows in engine form, all columns. ``on_commit``: see ``committed``. A
    sequence has ``numbers`` and no batches."""

    schema: MapSchema
    batches: tuple[pa.RecordBatch, ...] = ()
    on_commit: str = PRESERVE
    numbers: OwnNumbers | None = None

    @cached_property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


@dataclass(frozen=True, eq=False)
class TemporaryNames:
    """The definitions alone. Plans depend on them: two of these are equal only if they are the same
    object, so no other session finds a plan that was made by them."""

    maps: tuple[MapSchema, ...]
    views: tuple[ViewDefinition, ...] = ()
    session: int = 0
    """A number from 1 on: that of ``pg_temp_1``, by which the session sees its schema listed."""

    def over(self, catalog: Catalog) -> Catalog:
        """``catalog`` with the temporary relations in a schema of their own."""
        namespaces = (*catalog.namespaces, Namespace(PG_TEMP, oid=TEMPORARY_SCHEMAS + self.session))
        return replace(
            catalog,
            maps=(*catalog.maps, *self.maps),
            views=(*catalog.views, *self.views),
            namespaces=namespaces,
        )

    def listed_over(self, catalog: Catalog) -> Catalog:
        """``over``, as PostgreSQL's catalog lists it."""
        over = self.over(catalog)
        own = own_schema(over.namespaces)
        return replace(
            over,
            maps=tuple(maps_as_listed(over.maps, own)),
            views=tuple(views_as_listed(over.views, own)),
            namespaces=tuple(namespaces_as_listed(over.namespaces, own)),
        )


def own_schema(namespaces: Iterable[Namespace]) -> Namespace | None:
    """The schema of temporary tables among ``namespaces``, if there is one, as it is listed."""
    for namespace in namespaces:
        if namespace.name == PG_TEMP:
            return replace(namespace, name=f"{PG_TEMP}_{namespace.oid - TEMPORARY_SCHEMAS}")
    return None


def maps_as_listed(maps: Sequence[MapSchema], own: Namespace | None) -> Sequence[MapSchema]:
    """As PostgreSQL's catalog lists them: those of ``pg_temp`` in the schema ``own``."""
    if own is None:
        return maps
    return [
        replace(each, namespace=own.name, name=full_name(own.name, each.local))
        if each.temporary
        else each
        for each in maps
    ]


def views_as_listed(
    views: Sequence[ViewDefinition], own: Namespace | None
) -> Sequence[ViewDefinition]:
    """The same of views."""
    if own is None:
        return views
    return [
        replace(each, namespace=own.name, name=full_name(own.name, each.local))
        if each.namespace == PG_TEMP
        else each
        for each in views
    ]


def namespaces_as_listed(
    namespaces: Sequence[Namespace], own: Namespace | None
) -> Sequence[Namespace]:
    """With the schema ``own`` in place of ``pg_temp``."""
    if own is None:
        return namespaces
    return [own if each.name == PG_TEMP else each for each in namespaces]


def in_temporary_schema(relation: MapSchema | ViewDefinition) -> bool:
    """Whether a relation that ``listed_over`` has made is a temporary one."""
    return relation.namespace.startswith(f"{PG_TEMP}_")


@dataclass(frozen=True, eq=False)
class TemporaryTables:
    """``tables``, sequences among them, and ``views`` by full name. ``transaction`` names the open
    transaction that has changed them, which found them as ``before``; "": there is none."""

    tables: Mapping[str, TemporaryTable] = field(default_factory=dict)
    views: Mapping[str, ViewDefinition] = field(default_factory=dict)
    names: TemporaryNames | None = None
    transaction: str = ""
    before: TemporaryTables | None = None
    session: int = 0
    following_oid: int = TEMPORARY_FIRST
    """The next OID that was never allotted."""

    def find(self, name: str) -> TemporaryTable | None:
        return self.tables.get(name)

    def find_id(self, map_id: int) -> TemporaryTable | None:
        return self._by_id.get(map_id)

    @cached_property
    def _by_id(self) -> dict[int, TemporaryTable]:
        return {table.schema.map_id: table for table in self.tables.values()}

    def has(self, name: str) -> bool:
        """Whether it is the full name of one of these relations."""
        return name in self.tables or name in self.views

    def with_table(self, table: TemporaryTable) -> TemporaryTables:
        """With other rows or numbers of a table that is there."""
        return replace(self, tables={**self.tables, table.schema.name: table})

    def defined(
        self,
        tables: Iterable[TemporaryTable],
        views: Iterable[ViewDefinition],
        *,
        session: int = 0,
    ) -> TemporaryTables:
        """With these relations alone; those that have no OIDs get some. ``session``: the number of
        its session, if it had no relations before."""
        allotment = Allotment(self.following_oid, set(), TEMPORARY_FIRST, TEMPORARY_LIMIT)
        numbered = [replace(each, schema=allotment.map(each.schema)) for each in tables]
        shown = [allotment.view(view) for view in views]
        made = replace(
            self,
            tables={each.schema.name: each for each in numbered},
            views={view.name: view for view in shown},
            session=self.session or session,
            following_oid=allotment.following,
        )
        return replace(made, names=made.listed())

    def listed(self) -> TemporaryNames | None:
        """The definitions alone, as a new value that no plan knows."""
        if not (self.tables or self.views):
            return None
        maps = tuple(table.schema for table in self.tables.values())
        return TemporaryNames(maps, tuple(self.views.values()), self.session)

    def within(self, transaction: str) -> TemporaryTables:
        """The value that a statement of a transaction ("": of none) begins to change."""
        if not transaction or self.transaction == transaction:
            return self
        return replace(self, transaction=transaction, before=self)

    def committed(self) -> TemporaryTables:
        """After the end of its transaction: ON COMMIT has done its work. A table that is dropped
        takes the sequences of its columns and the views over it along."""
        over = replace(self, transaction="", before=None)
        gone = {name for name, table in self.tables.items() if table.on_commit == DROP}
        kept = {
            name: replace(table, batches=()) if table.on_commit == DELETE else table
            for name, table in self.tables.items()
            if name not in gone
        }
        if not gone:
            return replace(over, tables=kept)
        links = {
            link for name in gone for c in self.tables[name].schema.columns for link in c.sequences
        }
        kept = {name: table for name, table in kept.items() if not _linked(table.schema, links)}
        over = replace(over, tables=kept, views=_without_users(self.views, gone))
        return replace(over, names=over.listed())

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


def _linked(schema: MapSchema, links: set[int]) -> bool:
    """Whether it is a sequence that one of ``links`` leads to."""
    return schema.sequence is not None and schema.sequence.link in links


def _without_users(
    views: Mapping[str, ViewDefinition], gone: Iterable[str]
) -> Mapping[str, ViewDefinition]:
    """The views that read no relation which is gone, themselves or by other views."""
    lost = set(gone)
    while True:
        more = {name for name, view in views.items() if name not in lost and lost & {*view.uses}}
        if not more:
            return {name: view for name, view in views.items() if name not in lost}
        lost |= more


def bytes_of(values: Iterable[TemporaryTables | None]) -> int:
    """The bytes of all rows, of those that several values share once."""
    sizes = dict(size for value in values if value is not None for size in value.sizes())
    return sum(sizes.values())
