"""Foreign keys: a transaction finds, reads and writes more than its rows (decision 0108).

A transaction that writes a child looks for the parent's row, and reads the *guard* of its key. One
that takes a referenced key away looks for children, reads the condition that finds them, and writes
the guard. Both reads are validated by the commit, at every isolation level.
"""

from __future__ import annotations

import contextlib
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.catalog.own.definitions import is_made
from remuda.catalog.unique_guards import (
    GUARD_TTL,
    KEY_GUARDS,
    KEY_GUARDS_NAME,
    key_slot_of,
    same_values,
)
from remuda.datatypes.schema import ForeignKey, KeyAction, MapSchema
from remuda.datatypes.sql import BOOLEAN, Kind, SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.violations import missing_parent, still_referenced
from remuda.errors import SchemaChanged
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.sessions.keys import KeyReader
from remuda.member.state.lifetimes import refuse_lifetime
from remuda.member.state.transaction_sets import ReadSet, Scan, Write, WriteSet
from remuda.member.statements.checks.stored_rows import StoredRows, equals, in_parts
from remuda.plan.expression import Call, ColumnRef, Expression, Literal, conjunction
from remuda.transaction.own_writes import Key, Row, canonical_key

Entries: TypeAlias = Mapping[Key, Row | None]
"""The rows that a transaction has written to a map, by canonical key; None: removed."""
Values: TypeAlias = tuple[PhysicalValue, ...]

SCANNED_MAX: Final = 256
"""A transaction that takes more keys away than so many counts as one that has read every child."""
SOUGHT_AT_ONCE: Final = 4096
"""So many parents of a bulk write are asked for in one request."""
SOUGHT_BY_KEY: Final = 16 * SOUGHT_AT_ONCE
SOUGHT_BY_VALUE: Final = 512
"""With more, reading all rows of the parent takes less."""
_BITS: Final = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}


def at_once(_child: MapSchema, _key: ForeignKey) -> bool:
    """No foreign key is deferred: it is a commit."""
    return False


@dataclass(slots=True)
class Own:
    """The writes of one transaction to maps with foreign keys, and to their parents."""

    entries: dict[int, MutableMapping[Key, Row | None]] = field(default_factory=dict)
    """By map id: all of them."""
    before: Mapping[int, Entries] = field(default_factory=dict)
    """By map id: those of earlier statements."""
    changed: dict[int, list[Key]] = field(default_factory=dict)
    """By map id: those that are to be checked."""
    moved: Collection[Key] = ()
    """Keys of a map that is its own parent's, which an UPDATE gave to other rows; see ``check``."""
    renamed: dict[int, dict[Key, Key]] = field(default_factory=dict)
    """By map id: the new keys of rows to which an UPDATE gave other ones."""
    rekeyed: Collection[tuple[int, Key]] = ()
    """Removed keys whose rows have got others by an UPDATE, which has followed them."""
    defers: Callable[[MapSchema, ForeignKey], bool] = at_once
    """Whether a foreign key of a map is not to be checked now."""
    catalog: Catalog | None = None
    """With the definitions of the transaction; None: it has none."""

    def of(self, map_id: int) -> Entries:
        return self.entries.get(map_id, {})


@dataclass(slots=True)
class _Named:
    """The rows of a parent that children name: by their values, who names them."""

    parent: MapSchema
    columns: tuple[str, ...]
    by_values: dict[Values, tuple[MapSchema, ForeignKey, Values]] = field(default_factory=dict)
    unknown: bool = False
    """Others who take keys of the parent away do not look for these children, nor write guards: a
    foreign key is new. So nothing of the parent may change until the commit."""

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(self.parent.column(name).type for name in self.columns)

    @property
    def by_key(self) -> bool:
        return frozenset(self.columns) == frozenset(self.parent.key)

    def key(self, values: Values) -> Key:
        """The key of the row with these values, which are those of the primary key."""
        places = [self.columns.index(name) for name in self.parent.key]
        return canonical_key(tuple([values[place] for place in places]))

    def slot(self, values: Values) -> int:
        return _slot(self.parent, self.columns, values)


@dataclass(slots=True)
class _Checked:
    """The reads that the commit validates besides, and the guards that it writes."""

    reads: dict[int, int] = field(default_factory=dict)
    """Slots of guards, and when the rows that they stand for were found."""
    taken: set[int] = field(default_factory=set)
    scans: list[Scan] = field(default_factory=list)

    def scans_all(self, schema: MapSchema) -> bool:
        return Scan(schema.map_id, schema.version) in self.scans


class ForeignKeyChecks:
    def __init__(
        self,
        core: Core,
        membership: Membership,
        catalog: CatalogService,
        keys: KeyReader,
        stored: StoredRows,
    ) -> None:
        self._core = core
        self._membership = membership
        self._catalog = catalog
        self._keys = keys
        self._stored = stored

    async def guarded(
        self, writes: WriteSet, reads: ReadSet | None, catalog: Catalog | None = None
    ) -> tuple[WriteSet, ReadSet | None]:
        """The writes and reads to commit in place of these, so that each row that a row names is
        there, by the definitions of ``catalog`` if the transaction has some. Raises
        ForeignKeyViolation, SerializationFailure, SchemaChanged, SnapshotTooOld,
        MemberUnavailable."""
        own = Own(catalog=catalog)
        for write in writes:
            schema = self._core.store(write.map_id, write.schema_version).schema
            if catalog is not None:
                schema = self.schema(own, write.map_id)
            if not (schema.foreign_keys or schema.children):
                continue
            refuse_lifetime(schema, write.ttl if write.row is not None else None)
            key = canonical_key(write.key)
            own.entries.setdefault(write.map_id, {})[key] = write.row
            if write.row is None or not write.keeps or reads is None:
                own.changed.setdefault(write.map_id, []).append(key)
        if not self._concerns_others(own):
            return writes, reads
        reads = reads or ReadSet(await self.now())
        checked = await self._checked(own, reads.snapshot)
        if not (checked.reads or checked.taken):
            return writes, reads
        guards = await self._guards()
        keys, since = dict(reads.keys), dict(reads.since)
        if checked.reads:
            keys[guards.map_id] = keys.get(guards.map_id, set()) | {(s,) for s in checked.reads}
            since.update(((guards.map_id, (s,)), at) for s, at in checked.reads.items())
        made = [
            Write(guards.map_id, guards.version, (slot,), (slot,), GUARD_TTL)
            for slot in sorted(checked.taken)
        ]
        more = ReadSet(reads.snapshot, keys, [*reads.scans, *checked.scans], since)
        return [*writes, *made], more

    async def check(self, own: Own, at: int) -> None:
        """Whether a statement that is to be followed by others may leave ``own``, all that its
        transaction has written; ``changed`` are those of the statement, and ``moved`` the keys that
        it took from some rows and gave to others, which ON UPDATE RESTRICT does not excuse. The
        commit will look again. Raises as ``guarded``."""
        if self._concerns_others(own):
            await self._checked(own, at)

    def _concerns_others(self, own: Own) -> bool:
        """Whether a row names a parent, or a key may have been taken away."""
        for map_id, keys in own.changed.items():
            schema = self.schema(own, map_id)
            entries = own.of(map_id)
            rows = [entries[key] for key in keys]
            if schema.children and (
                any(row is None for row in rows)
                or any(
                    set(key.parent_columns) != set(schema.key) for _, key in self.ends(own, schema)
                )
                or any(key in own.moved for key in keys)
            ):
                return True
            for foreign in schema.foreign_keys:
                places = [schema.position[name] for name in foreign.columns]
                some = any if foreign.full else all
                if any(row and some(row[p] is not None for p in places) for row in rows):
                    return True
        return False

    async def _checked(self, own: Own, at: int) -> _Checked:
        """PostgreSQL looks for children first, too."""
        found = _Checked()
        for map_id, keys in own.changed.items():
            schema = self.schema(own, map_id)
            if schema.children:
                await self._find_children(schema, keys, own, at, found)
        for named in self._named(own):
            await self._find_parents(named, own, at, found)
        return found

    # --- parents of rows that are written -------------------------------------------------------

    def _named(self, own: Own) -> Iterable[_Named]:
        found: dict[tuple[str, tuple[str, ...]], _Named] = {}
        for map_id, keys in own.changed.items():
            schema, entries = self.schema(own, map_id), own.of(map_id)
            for foreign in schema.foreign_keys:
                if own.defers(schema, foreign):
                    continue
                place = foreign.parent, foreign.parent_columns
                named = found.get(place)
                if named is None:
                    parent = self._parent(own, schema, foreign)
                    named = found[place] = _Named(parent, foreign.parent_columns)
                named.unknown |= self._is_unknown(own, parent, schema, foreign)
                for values in values_in(schema, foreign.columns, map(entries.__getitem__, keys)):
                    if None not in values:
                        named.by_values.setdefault(values, (schema, foreign, values))
                    elif foreign.full and any(value is not None for value in values):
                        raise missing_parent(schema, foreign, foreign.parent, values)
        return [named for named in found.values() if named.by_values]

    def schema(self, own: Own, map_id: int) -> MapSchema:
        """The schema by which rows of the transaction are checked. Raises SchemaChanged."""
        found = None if own.catalog is None else own.catalog.find_id(map_id)
        return self._core.store(map_id, 0).schema if found is None else found

    def _parent(self, own: Own, child: MapSchema, foreign: ForeignKey) -> MapSchema:
        found = (own.catalog or self._core.catalog).find(foreign.parent)
        if found is None:
            raise SchemaChanged(f'map "{child.name}" has changed')
        return self.schema(own, found.map_id)

    def _is_unknown(
        self, own: Own, parent: MapSchema, child: MapSchema, foreign: ForeignKey
    ) -> bool:
        """Whether nobody else who changes ``parent`` knows of a foreign key that the transaction
        defines."""
        if own.catalog is None or is_made(self._core.store(parent.map_id, 0).schema):
            return False
        known = self._core.store(child.map_id, 0).schema.foreign_keys
        return all(key.name != foreign.name for key in known)

    async def _find_parents(self, named: _Named, own: Own, at: int, found: _Checked) -> None:
        parent, entries, types = named.parent, own.of(named.parent.map_id), named.types
        written = {
            same_values(values, types)
            for values in values_in(parent, named.columns, entries.values())
        }
        sought = [v for v in named.by_values if same_values(v, types) not in written]
        # A snapshot may lie below the clock of another member: a parent that is not there may have
        # been committed before the child was written.
        for last in (False, True):
            if not sought:
                return
            when = await self.now() if last else at
            there = await self._there(named, sought, entries, when)
            for values in sought:
                if values in there:
                    found.reads[named.slot(values)] = when
                    if named.unknown and not found.scans_all(parent):
                        found.scans.append(Scan(parent.map_id, parent.version))
            sought = [values for values in sought if values not in there]
        if sought:
            child, foreign, values = named.by_values[sought[0]]
            raise missing_parent(child, foreign, parent.local, values)

    async def _there(
        self, named: _Named, sought: Sequence[Values], entries: Entries, at: int
    ) -> set[Values]:
        """The values that rows of the parent have at ``at`` which the transaction has not
        written."""
        types = named.types
        sought = [v for v in sought if all(map(fits, types, v))]
        if named.by_key:
            keys = {values: named.key(values) for values in sought}
            asked = [values for values in sought if keys[values] not in entries]
            olds = await self._keys.rows(named.parent, [keys[v] for v in asked], at)
            return {values for values, row in zip(asked, olds, strict=True) if row is not None}
        by_same = {same_values(values, types): values for values in sought}
        there: set[Values] = set()
        what = f'the parents of rows in "{named.parent.local}"'
        rows_ = self.rows(named.parent, named.columns, list(by_same.values()), at, what)
        async with contextlib.aclosing(rows_) as rows:
            async for values, key in rows:
                same = same_values(values, types)
                if key not in entries and same in by_same:
                    there.add(by_same[same])
        return there

    async def require_parents(
        self, child: MapSchema, foreign: ForeignKey, named: Sequence[Values], at: int
    ) -> None:
        """Whether the parent has all rows at ``at`` that rows of a bulk write name. (No key goes
        before the write is decided: the scan of a transaction that takes one away waits behind the
        pending rows.) Raises ForeignKeyViolation, SerializationFailure and the errors of queries.
        """
        parent = self._parent(Own(), child, foreign)
        sought = _Named(parent, foreign.parent_columns)
        many = len(named) > (SOUGHT_BY_KEY if sought.by_key else SOUGHT_BY_VALUE)
        every = await self._every(sought, child, at) if many else frozenset()
        for start in range(0, len(named), SOUGHT_AT_ONCE):
            part = named[start : start + SOUGHT_AT_ONCE]
            if many:
                there = {values for values in part if same_values(values, sought.types) in every}
            else:
                there = await self._there(sought, part, {}, at)
            for values in part:
                if values not in there:
                    raise missing_parent(child, foreign, parent.local, values)

    async def _every(self, named: _Named, child: MapSchema, at: int) -> frozenset[Values]:
        """The values of all rows of a parent."""
        what, types = f'the parents of rows in "{child.local}"', named.types
        rows_ = self._stored.rows(named.parent, named.columns, "", (), (), at, what)
        async with contextlib.aclosing(rows_) as rows:
            return frozenset([same_values(row, types) async for row in rows])

    # --- children of keys that are taken away ---------------------------------------------------

    def ends(self, own: Own, schema: MapSchema) -> list[tuple[MapSchema, ForeignKey]]:
        """The foreign keys that name a map, the oldest first, and the maps that they belong to."""
        children = [self.schema(own, map_id) for map_id in schema.children]
        found = [(c, key) for c in children for key in c.foreign_keys if key.parent == schema.name]
        return sorted(found, key=lambda end: end[1].oid)

    async def _find_children(
        self, schema: MapSchema, keys: Sequence[Key], own: Own, at: int, found: _Checked
    ) -> None:
        entries = own.of(schema.map_id)
        olds: dict[Key, Row | None] = {}
        for child, foreign in self.ends(own, schema):
            deferred = own.defers(child, foreign)
            renamed = own.renamed.get(schema.map_id, {})
            by_key = frozenset(foreign.parent_columns) == frozenset(schema.key)
            if not by_key and not olds:
                rows = await self._keys.rows(schema, keys, at)
                olds = dict(zip(keys, rows, strict=True))
            types = tuple(schema.column(name).type for name in foreign.parent_columns)
            kept = {
                same_values(values, types)
                for values in values_in(schema, foreign.parent_columns, entries.values())
            }
            taken: dict[Values, Values] = {}
            for key in keys:
                values = _taken(schema, foreign, key, olds.get(key), by_key=by_key)
                if values is None or None in values:
                    continue
                goes = entries[key] is None and key not in renamed
                action = foreign.on_delete if goes else foreign.on_update
                if deferred and action is not KeyAction.RESTRICT:
                    continue
                same = same_values(values, types)
                restricted = foreign.on_update is KeyAction.RESTRICT
                moved = restricted and key in own.moved
                if same not in kept or moved:
                    taken[same] = values
            if not taken:
                continue
            await self.refuse_children(schema, child, foreign, taken, own.of(child.map_id), at)
            found.taken.update(_slot(schema, foreign.parent_columns, v) for v in taken.values())
            found.scans += _scans(child, foreign, taken.values())

    async def refuse_children(  # noqa: PLR0917 (both sides of a foreign key)
        self,
        parent: MapSchema,
        child: MapSchema,
        foreign: ForeignKey,
        taken: Mapping[Values, Values],
        entries: Entries,
        at: int,
    ) -> None:
        """Raises ForeignKeyViolation for a row of ``child`` that has one of the values."""
        types = tuple(parent.column(name).type for name in foreign.parent_columns)
        for values in values_in(child, foreign.columns, entries.values()):
            if None not in values and same_values(values, types) in taken:
                raise still_referenced(parent, child, foreign, values)
        own = [child.column(name).type for name in foreign.columns]
        sought = [values for values in taken.values() if all(map(fits, own, values))]
        what = f'rows of "{child.local}" that reference "{parent.local}"'
        rows_ = self.rows(child, foreign.columns, sought, at, what)
        async with contextlib.aclosing(rows_) as rows:
            async for values, key in rows:
                if key not in entries and same_values(values, types) in taken:
                    raise still_referenced(parent, child, foreign, values)

    # --- shared ---------------------------------------------------------------------------------

    async def rows(
        self,
        schema: MapSchema,
        columns: Sequence[str],
        wanted: Sequence[Values],
        at: int,
        what: str,
    ) -> AsyncGenerator[tuple[Values, Key]]:
        """Of the rows at ``at`` with one of the ``wanted`` values in ``columns``: these values, and
        the key."""
        each = tuple([schema.column(name).type for name in columns])
        names, width = [*columns, *schema.key], len(columns)
        for part in in_parts(wanted):
            condition, values = equals(columns, len(part)), tuple([v for row in part for v in row])
            rows_ = self._stored.rows(schema, names, condition, values, each * len(part), at, what)
            async with contextlib.aclosing(rows_) as rows:
                async for row in rows:
                    yield row[:width], canonical_key(row[width:])

    async def now(self) -> int:
        others = tuple(n for n in self._core.live_members() if n != self._core.number)
        if others:
            await self._membership.clocks(others)
        return self._core.timestamp()

    async def _guards(self) -> MapSchema:
        """The hidden map, which the first one who needs it makes."""
        found = self._core.catalog.find(KEY_GUARDS_NAME)
        return found or await self._catalog.create(KEY_GUARDS, if_not_exists=True)


def values_in(
    schema: MapSchema, columns: Sequence[str], rows: Iterable[Row | None]
) -> Iterator[Values]:
    """Of the rows that are not removed."""
    places = [schema.position[name] for name in columns]
    for row in rows:
        if row is not None:
            yield tuple([row[place] for place in places])


def _taken(
    schema: MapSchema, foreign: ForeignKey, key: Key, old: Row | None, *, by_key: bool
) -> Values | None:
    """The values that a row had before it was removed or changed; None: it was not there."""
    if by_key:
        return tuple([key[schema.key.index(name)] for name in foreign.parent_columns])
    return None if old is None else next(values_in(schema, foreign.parent_columns, [old]))


def _slot(parent: MapSchema, columns: Sequence[str], values: Values) -> int:
    """The key of the guard of some values of a parent's key. The order of its columns does not
    matter, nor do their names."""
    types = tuple(parent.column(name).type for name in columns)
    same = same_values(values, types)
    ids = [parent.column(name).id for name in columns]
    pairs = sorted(zip(ids, same, strict=True), key=lambda pair: pair[0])
    return key_slot_of(parent.map_id, pairs)


def _scans(child: MapSchema, foreign: ForeignKey, taken: Collection[Values]) -> list[Scan]:
    """The conditions that find the children of some keys."""
    columns = [child.column(name) for name in foreign.columns]
    wanted = [v for v in taken if all(fits(c.type, v[i]) for i, c in enumerate(columns))]
    if len(wanted) > SCANNED_MAX:
        return [Scan(child.map_id, child.version)]
    places = tuple((i, child.position[column.name]) for i, column in enumerate(columns))
    refs = [ColumnRef(column.type, i, column.name) for i, column in enumerate(columns)]

    def one(values: Values) -> Expression:
        pairs = zip(refs, values, strict=True)
        equal = [Call(BOOLEAN, "=", (ref, Literal(ref.type, value))) for ref, value in pairs]
        return conjunction(tuple(equal)) or equal[0]

    either = [one(values) for values in wanted]
    if not either:
        return []
    predicate = either[0] if len(either) == 1 else Call(BOOLEAN, "or", tuple(either))
    return [Scan(child.map_id, child.version, predicate, places)]


def fits(sql_type: SqlType, value: PhysicalValue) -> bool:
    """Whether a column of the type can hold the value, which is one of another integer type."""
    bits = _BITS.get(sql_type.kind)
    return bits is None or not isinstance(value, int) or -(1 << bits - 1) <= value < 1 << bits - 1
