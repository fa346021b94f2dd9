"""ON DELETE and ON UPDATE with CASCADE, SET NULL and SET DEFAULT: rows follow a key that is taken
away (decision 0108).

A statement in a transaction changes them at once, so that its transaction sees them changed. The
commit does it for keys that no statement has followed: those of ``map.remove`` and of statements
that commit by themselves.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.catalog.unique_guards import same_values
from remuda.datatypes.schema import Column, ForeignKey, KeyAction, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.violations import duplicate_key
from remuda.errors import LimitExceeded, NotSupported, SerializationFailure
from remuda.member.base.core import Core
from remuda.member.sessions.keys import KeyReader
from remuda.member.state.transaction_sets import ReadSet, Write, WriteSet
from remuda.member.statements.checks.foreign_keys import (
    Entries,
    ForeignKeyChecks,
    Own,
    Values,
    fits,
    values_in,
)
from remuda.plan.sequence_calls import has_calls
from remuda.session.definitions import default_value
from remuda.sql.definitions.constraints import default_of
from remuda.transaction.own_writes import Key, Row, canonical_key, size_of


class Change(NamedTuple):
    """A referenced key that is taken away."""

    values: Values
    now: Values | None
    """Those of its row now; None: the row is removed."""
    action: KeyAction
    followed: bool
    """A statement has changed the key, and the rows that it saw have followed."""


Changes: TypeAlias = dict[Values, Change]
"""By ``same_values``."""


class Reference(NamedTuple):
    """A foreign key with the maps at both of its ends."""

    parent: MapSchema
    child: MapSchema
    foreign: ForeignKey

    @property
    def types(self) -> tuple[SqlType, ...]:
        """Those of the referenced columns."""
        return tuple(self.parent.column(name).type for name in self.foreign.parent_columns)


@dataclass(slots=True)
class Followed:
    """The rows that have followed, by map id and key; None: removed."""

    entries: dict[int, dict[Key, Row | None]] = field(default_factory=dict)
    size: int = 0
    olds: dict[int, dict[Key, Row | None]] = field(default_factory=dict)
    """The rows as they were before, by map id and key."""
    done: set[tuple[int, str, Key]] = field(default_factory=set)
    """Map id, foreign key and key of the rows that need not follow again."""


class Cascades:
    def __init__(self, core: Core, keys: KeyReader, foreign_keys: ForeignKeyChecks) -> None:
        self._core = core
        self._keys = keys
        self._foreign_keys = foreign_keys

    def follows(self, own: Own, schema: MapSchema) -> bool:
        """Whether rows of other maps follow the keys of this one, or rows of its own."""
        return any(
            not (key.on_delete.refuses and key.on_update.refuses)
            for _, key in self._foreign_keys.ends(own, schema)
        )

    async def extended(
        self, writes: WriteSet, reads: ReadSet | None, catalog: Catalog | None = None
    ) -> tuple[WriteSet, ReadSet | None]:
        """``writes`` with those of the rows that follow, and the reads that validate them. Raises
        as ``follow``, and SerializationFailure for a row that has come since a statement looked."""
        rekeyed = {(w.map_id, w.key) for w in writes if w.row is None and w.keeps}
        own = Own(rekeyed=rekeyed, catalog=catalog)
        for write in writes:
            key = canonical_key(write.key)
            own.entries.setdefault(write.map_id, {})[key] = write.row
            if write.row is None or not write.keeps:
                own.changed.setdefault(write.map_id, []).append(key)
        schema = partial(self._foreign_keys.schema, own)
        if not any(self.follows(own, schema(map_id)) for map_id in own.changed):
            return writes, reads
        reads = reads or ReadSet(await self._foreign_keys.now())
        followed = await self.follow(own, reads.snapshot, statement=False)
        made: dict[tuple[int, Key], Write] = {}
        for map_id, entries in followed.entries.items():
            version = schema(map_id).version
            for key, row in entries.items():
                made[map_id, key] = Write(map_id, version, key, row)
        kept = [w for w in writes if (w.map_id, canonical_key(w.key)) not in made]
        return [*kept, *made.values()], reads

    async def follow(self, own: Own, at: int, *, statement: bool) -> Followed:
        """Adds to ``own`` the rows at ``at`` that follow its changed keys. ``statement``: they are
        those of one statement, of which ``own.before`` knows nothing. Raises ForeignKeyViolation
        for rows that refuse it, in PostgreSQL's order of foreign keys, UniqueViolation for a key
        that is taken, the errors of the constraints of a child, LimitExceeded."""
        found = Followed()
        waiting = deque((map_id, list(keys)) for map_id, keys in own.changed.items())
        while waiting:
            map_id, keys = waiting.popleft()
            schema = self._foreign_keys.schema(own, map_id)
            if not schema.children or not self.follows(own, schema):
                continue
            olds = await self._olds(schema, keys, own, at, found)
            for child, foreign in self._foreign_keys.ends(own, schema):
                changes = self._changes(schema, foreign, olds, own, statement=statement)
                deferred = own.defers(child, foreign)
                refused = {
                    same: change.values
                    for same, change in changes.items()
                    if change.action.refuses
                    and not (deferred and change.action is KeyAction.NO_ACTION)
                }
                if refused:
                    await self._foreign_keys.refuse_children(
                        schema, child, foreign, refused, own.of(child.map_id), at
                    )
                moving = {
                    same: change for same, change in changes.items() if not change.action.refuses
                }
                if moving:
                    reference = Reference(schema, child, foreign)
                    touched = await self._move(
                        reference, moving, own, at, found, statement=statement
                    )
                    if touched:
                        waiting.append((child.map_id, touched))
        return found

    async def _olds(
        self, schema: MapSchema, keys: Sequence[Key], own: Own, at: int, found: Followed
    ) -> dict[Key, Row | None]:
        """The rows of these keys before they were changed."""
        known = found.olds.setdefault(schema.map_id, {})
        before = own.before.get(schema.map_id, {})
        unknown = [key for key in keys if key not in known and key not in before]
        rows = await self._keys.rows(schema, unknown, at)
        known.update(zip(unknown, rows, strict=True))
        return {key: known[key] if key in known else before[key] for key in keys}

    def _changes(
        self,
        schema: MapSchema,
        foreign: ForeignKey,
        olds: Mapping[Key, Row | None],
        own: Own,
        *,
        statement: bool,
    ) -> Changes:
        types = tuple(schema.column(name).type for name in foreign.parent_columns)
        entries, renamed = own.of(schema.map_id), own.renamed.get(schema.map_id, {})
        kept = {
            same_values(values, types)
            for values in values_in(schema, foreign.parent_columns, entries.values())
        }
        changes: Changes = {}
        for key, old in olds.items():
            if old is None:
                continue
            (values,) = values_in(schema, foreign.parent_columns, [old])
            same = same_values(values, types)
            if None in values:
                continue
            row = entries[renamed[key]] if key in renamed else entries[key]
            if row is None:
                followed = (schema.map_id, key) in own.rekeyed
                action = foreign.on_update if followed else foreign.on_delete
                change = Change(values, None, action, followed)
            else:
                (now,) = values_in(schema, foreign.parent_columns, [row])
                if same_values(now, types) == same:
                    continue
                change = Change(values, now, foreign.on_update, followed=False)
            excused = change.action is KeyAction.NO_ACTION or not statement
            if not (same in kept and excused):
                changes[same] = change
        return changes

    async def _move(
        self,
        reference: Reference,
        moving: Changes,
        own: Own,
        at: int,
        found: Followed,
        *,
        statement: bool,
    ) -> list[Key]:
        """The keys of the children that have followed."""
        parent, child, foreign = reference
        types = reference.types
        written = (own if statement else found).entries.get(child.map_id, {})
        rows = await self._children(reference, moving, own, at, written)
        gone: list[Key] = []
        changed: list[tuple[Key, Row]] = []
        olds = found.olds.setdefault(child.map_id, {})
        for key, row in rows.items():
            if (child.map_id, foreign.name, key) in found.done:
                continue
            (values,) = values_in(child, foreign.columns, [row])
            change = moving[same_values(values, types)]
            if change.followed:
                raise SerializationFailure(
                    f'rows of "{child.local}" that reference "{parent.local}" were committed since '
                    "a statement of the transaction changed the key that they name",
                    hint="Run the transaction again.",
                )
            olds.setdefault(key, row)
            if change.now is None and change.action is KeyAction.CASCADE:
                gone.append(key)
            else:
                changed.append((key, self._changed(child, foreign, row, change)))
        conditions = self._core.constraints.of(child)
        made = conditions.entered_rows([row for _, row in changed]) if changed else []
        stored: dict[Key, Row] = {}
        for (key, _), row in zip(changed, made, strict=True):
            new = canonical_key(tuple([row[place] for place in child.key_positions]))
            if new in stored:
                raise duplicate_key(child, new)
            stored[new] = row
            found.done.add((child.map_id, foreign.name, new))
            if new != key:
                gone.append(key)
                own.renamed.setdefault(child.map_id, {})[key] = new
        await self._refuse_taken(child, stored, {key for key, _ in changed}, own, at)
        entries: dict[Key, Row | None] = {**dict.fromkeys(gone), **stored}
        self._charge(found, entries)
        found.entries.setdefault(child.map_id, {}).update(entries)
        own.entries.setdefault(child.map_id, {}).update(entries)
        known = own.changed.setdefault(child.map_id, [])
        known += [key for key in entries if key not in known]
        return list(entries)

    async def _children(
        self,
        reference: Reference,
        moving: Changes,
        own: Own,
        at: int,
        written: Mapping[Key, Row | None],
    ) -> dict[Key, Row]:
        """The rows that name one of the keys. Of those that the transaction has written only those
        of ``written``: statements move the rows that it wrote before its commit, but a row that has
        just followed by one foreign key may follow by another one as well."""
        parent, child, foreign = reference
        types = reference.types
        places = [child.position[name] for name in foreign.columns]
        entries = own.of(child.map_id)
        found: dict[Key, Row] = {}
        for key, row in written.items():
            if row is not None:
                values = tuple([row[place] for place in places])
                if None not in values and same_values(values, types) in moving:
                    found[key] = row
        each = [child.column(name).type for name in foreign.columns]
        sought = [c.values for c in moving.values() if all(map(fits, each, c.values))]
        what = f'rows of "{child.local}" that reference "{parent.local}"'
        keys: dict[Key, None] = {}
        rows_ = self._foreign_keys.rows(child, foreign.columns, sought, at, what)
        async with contextlib.aclosing(rows_) as rows:
            async for values, key in rows:
                if key not in entries and same_values(values, types) in moving:
                    keys[key] = None
        there = zip(keys, await self._keys.rows(child, list(keys), at), strict=True)
        return found | {key: row for key, row in there if row is not None}

    def _changed(self, child: MapSchema, foreign: ForeignKey, row: Row, change: Change) -> Row:
        made, now = list(row), change.now
        if change.action is KeyAction.CASCADE:
            assert now is not None
            for name, value in zip(foreign.columns, now, strict=True):
                made[child.position[name]] = value
            return tuple(made)
        names = foreign.set_columns if now is None and foreign.set_columns else foreign.columns
        for name in names:
            made[child.position[name]] = (
                self._default(child.column(name))
                if change.action is KeyAction.SET_DEFAULT
                else None
            )
        return tuple(made)

    def _default(self, column: Column) -> PhysicalValue:
        if has_calls(default_of(column)):
            raise NotSupported(
                f'SET DEFAULT of column "{column.name}", whose default takes numbers of a sequence',
                hint="Use SET NULL, or a default that is a value.",
            )
        return default_value(column, self._core.world.clock.wall_micros())

    async def _refuse_taken(
        self,
        child: MapSchema,
        stored: Mapping[Key, Row],
        moved: Iterable[Key],
        own: Own,
        at: int,
    ) -> None:
        """Raises UniqueViolation for rows that get a key which another row has."""
        freed = set(moved)
        entries = own.of(child.map_id)
        new = [key for key in stored if key not in freed]
        for key in new:
            if entries.get(key) is not None:
                raise duplicate_key(child, key)
        unknown = [key for key in new if key not in entries]
        for key, row in zip(unknown, await self._keys.rows(child, unknown, at), strict=True):
            if row is not None:
                raise duplicate_key(child, key)

    def _charge(self, found: Followed, entries: Entries) -> None:
        most = self._core.config.transaction_memory
        found.size += sum(size_of(key, row) for key, row in entries.items())
        if found.size > most:
            raise LimitExceeded(
                f"the rows that follow a referenced key take more than {most} bytes",
                hint="Remove referencing rows in smaller parts first, or raise transaction_memory "
                "of the members.",
            )
