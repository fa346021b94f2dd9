"""UNIQUE: the entries that a transaction must find, and write, before it stores rows of a map with
unique indexes (decision 0041).

The rows that have the new values already are looked for by a query at the snapshot of the
transaction. That nobody writes the same values between the snapshot and the commit is for the
commit to see: every new value has a *guard*, an entry of a hidden map that is written with it, and
two transactions that write one entry conflict.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from remuda.catalog.unique_guards import (
    GUARD_TTL,
    GUARDS,
    GUARDS_NAME,
    is_guards,
    same_values,
    slot_of,
)
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.violations import duplicate_values
from remuda.member.base.core import Core
from remuda.member.commits.writes import SEARCHED_MAX
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.sessions.unique_reads import keyed_reads
from remuda.member.state.transaction_sets import ReadSet, Write, WriteSet
from remuda.member.statements.checks.stored_rows import StoredRows, equals, in_parts
from remuda.transaction.own_writes import Key, Row, canonical_key

Entries: TypeAlias = Mapping[Key, Row | None]
"""The rows that are written to a map, by canonical key; None: removed."""
Values: TypeAlias = tuple[PhysicalValue, ...]


@dataclass(slots=True)
class _New:
    """The values of one unique index that a transaction writes."""

    schema: MapSchema
    index: IndexDefinition
    by_values: dict[Values, tuple[Key, Values]] = field(default_factory=dict)
    """By ``same_values``: the key of the row, and the values themselves."""
    sought: dict[Values, Values] = field(default_factory=dict)
    """Those of ``by_values`` that rows may get which had others."""

    def add(self, key: Key, row: Row, *, seek: bool) -> None:
        """Raises UniqueViolation for values that another row of the transaction has."""
        values = tuple([row[self.schema.position[name]] for name in self.index.names])
        if self.index.nulls_distinct and None in values:
            return
        same = self.same(values)
        if same in self.by_values:
            raise duplicate_values(self.schema, self.index, values)
        self.by_values[same] = key, values
        if seek:
            self.sought[same] = values

    def same(self, values: Values) -> Values:
        types = tuple([self.schema.column(name).type for name in self.index.names])
        return same_values(values, types)


class UniqueChecks:
    def __init__(
        self, core: Core, membership: Membership, catalog: CatalogService, stored: StoredRows
    ) -> None:
        self._core = core
        self._membership = membership
        self._catalog = catalog
        self._stored = stored

    async def guarded(
        self, writes: WriteSet, reads: ReadSet | None
    ) -> tuple[WriteSet, ReadSet | None]:
        """The writes and reads to commit in place of these, so that no values of unique indexes
        come twice. Raises UniqueViolation, SerializationFailure, SchemaChanged,
        SnapshotTooOld, MemberUnavailable."""
        written: dict[int, dict[Key, Row | None]] = {}
        changed: dict[int, set[Key]] = {}
        versions: dict[int, int] = {}
        for write in writes:
            if self._core.store(write.map_id, write.schema_version).schema.uniques:
                entries = written.setdefault(write.map_id, {})
                key = canonical_key(write.key)
                entries[key] = write.row
                versions[write.map_id] = write.schema_version
                if write.row is not None and not (write.keeps and self._known_since(write, reads)):
                    changed.setdefault(write.map_id, set()).add(key)
        if reads is not None and reads.scans:
            reads = self.by_unique_values(writes, reads)
        if not changed:
            return writes, reads
        reads = reads or ReadSet(await self._now())
        slots: dict[int, None] = {}
        for map_id, keys in changed.items():
            schema, entries = self._core.store(map_id, versions[map_id]).schema, written[map_id]
            for new in _news(schema, entries, keys):
                slots.update(dict.fromkeys(await self._fresh(new, entries, reads.snapshot)))
        if not slots:
            return writes, reads
        guards = await self._guards()
        made = [Write(guards.map_id, guards.version, (slot,), (slot,), GUARD_TTL) for slot in slots]
        return [*writes, *made], reads

    async def check(
        self, schema: MapSchema, entries: Entries, changed: Container[Key], at: int
    ) -> None:
        """Whether a statement that is to be followed by others may leave ``entries``, all that its
        transaction has written to the map; the statement itself has written those of ``changed``.
        The commit will look again. Raises as ``guarded``."""
        for new in _news(schema, entries, changed):
            await self._fresh(new, entries, at)

    def _known_since(self, write: Write, reads: ReadSet | None) -> bool:
        """Whether every transaction has kept all indexes of the map unique since ``reads``."""
        if reads is None or reads.snapshot <= self._catalog.unique_since.get(write.map_id, 0):
            return False
        schema = self._core.store(write.map_id, write.schema_version).schema
        return all(index.ready for index in schema.uniques)

    def by_unique_values(self, writes: WriteSet, reads: ReadSet) -> ReadSet:
        """``reads`` with keys in place of scans for the unique values of rows that are written."""
        scanned = {scan.map_id for scan in reads.scans}
        kept: dict[int, dict[Key, Row]] = {}
        for write in writes:
            if write.map_id not in scanned or not write.keeps or write.row is None:
                continue
            if self._known_since(write, reads):
                kept.setdefault(write.map_id, {})[canonical_key(write.key)] = write.row
        for map_id, rows in kept.items():
            reads = keyed_reads(reads, self._core.store(map_id, 0).schema, rows)
        return reads

    async def _fresh(self, new: _New, entries: Entries, at: int) -> list[int]:
        """The guards of the values that rows get which had others at ``at``."""
        kept = await self._kept(new, entries, at)
        since = self._catalog.unique_since.get(new.schema.map_id, 0)
        if at <= since or not new.index.ready:
            # Who did not know of the index has written no guards; all are over who did not.
            await self._kept(new, entries, await self._now())
        return [slot_of(new.index.index_id, same) for same in new.sought if same not in kept]

    async def _kept(self, new: _New, entries: Entries, at: int) -> set[Values]:
        """The values that rows get which had them at ``at``. Raises UniqueViolation if another row
        had."""
        kept: set[Values] = set()
        width = len(new.schema.key)
        for condition, sought in _searches(new):
            async with contextlib.aclosing(self._rows(new, condition, sought, at)) as rows:
                async for row in rows:
                    key, values = canonical_key(row[:width]), row[width:]
                    same = new.same(values)
                    if same not in new.by_values:
                        continue
                    if key not in entries:
                        raise duplicate_values(new.schema, new.index, values)
                    if new.by_values[same][0] == key:
                        kept.add(same)
        return kept

    async def _now(self) -> int:
        others = tuple(n for n in self._core.live_members() if n != self._core.number)
        if others:
            await self._membership.clocks(others)
        return self._core.timestamp()

    async def _guards(self) -> MapSchema:
        """The hidden map, which the first one who needs it makes."""
        found = self._core.catalog.find(GUARDS_NAME)
        if found is None:
            found = await self._catalog.create(GUARDS, if_not_exists=True)
        assert is_guards(found)
        return found

    # --- the rows that are there ----------------------------------------------------------------

    def _rows(self, new: _New, condition: str, values: Values, at: int) -> AsyncGenerator[Row]:
        """Key and values of the rows at ``at``. Raises what ``StoredRows.rows`` does."""
        schema, index = new.schema, new.index
        each = tuple([schema.column(name).type for name in index.names])
        types = each * (len(values) // len(each))
        sought = f'the values of unique constraint "{index.name}"'
        names = [*schema.key, *index.names]
        return self._stored.rows(schema, names, condition, values, types, at, sought)


def _news(schema: MapSchema, entries: Entries, changed: Container[Key]) -> Iterator[_New]:
    """By index, what is written; the values of ``changed`` are sought. Raises UniqueViolation."""
    for index in schema.uniques:
        new = _New(schema, index)
        for key, row in entries.items():
            if row is not None:
                new.add(key, row, seek=key in changed)
        if new.sought:
            yield new


def _searches(new: _New) -> Iterator[tuple[str, Values]]:
    """Conditions, and their parameters, that find the rows that may have one of the new values."""
    wanted = list(new.sought.values())
    if len(wanted) > SEARCHED_MAX:  # all rows of the map are read
        yield "", ()
        return
    for part in in_parts(wanted):
        yield _condition(new.index, len(part)), tuple([value for each in part for value in each])


def _condition(index: IndexDefinition, size: int) -> str:
    """WHERE for ``size`` values, each of which has a parameter for each column of the index."""
    if index.nulls_distinct:
        return equals(index.names, size)
    one = " AND ".join(f"{quoted_name(name)} IS NOT DISTINCT FROM ?" for name in index.names)
    return f" WHERE {' OR '.join([f'({one})'] * size)}"
