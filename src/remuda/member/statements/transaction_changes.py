"""INSERT, UPDATE, DELETE and MERGE inside a transaction: their rows go into its write set.

A statement is applied as a whole, when all its rows are there: it does not see its own writes, and
one that fails has written nothing.
"""

from __future__ import annotations

import contextlib
from collections import ChainMap
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import cast

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import arrays_to_rows
from remuda.datatypes.violations import duplicate_key
from remuda.errors import LimitExceeded, SerializationFailure
from remuda.execution.memory import Reservation
from remuda.member.base.core import Core
from remuda.member.commits.writes import SEARCHED_MAX
from remuda.member.sessions.few_rows import FewRows
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.open_transaction import BLIND, OpenTransaction
from remuda.member.sessions.session import TransactionSessions
from remuda.member.sessions.snapshots import changed_by_others
from remuda.member.sessions.statement import Statement
from remuda.member.state.transaction_sets import ReadSet, Write
from remuda.member.statements.changes import (
    ATTEMPTS,
    Answer,
    Changed,
    Chooser,
    Source,
    chosen_rows,
    updated_rows,
)
from remuda.member.statements.checks.cascades import Followed
from remuda.member.statements.checks.checks import Checks
from remuda.member.statements.checks.foreign_keys import Own
from remuda.member.statements.writers import KEYS_MAX as WAITING_KEYS_MAX
from remuda.member.statements.writers import Writers
from remuda.session.planning import PlannedChange
from remuda.sql.trees.session import SetConstraintsTree
from remuda.transaction.isolation import Isolation
from remuda.transaction.own_writes import Key, Row, Written, canonical_key, empty_size, size_of


class ManyRows(Exception):
    """A statement of its own writes so many rows that they are written in bulk. ``pages``: all that
    its query gives, if the rows are not read again."""

    def __init__(self, pages: AsyncGenerator[pa.RecordBatch] | None = None) -> None:
        self.pages = pages


async def refuse_many(pages: AsyncGenerator[pa.RecordBatch]) -> AsyncGenerator[pa.RecordBatch]:
    """The same pages, of a statement of its own that writes to a map with unique indexes. Raises
    ManyRows with them."""
    first: list[pa.RecordBatch] = []
    rows = 0
    try:
        async for page in pages:
            first.append(page)
            rows += page.num_rows
            if rows > SEARCHED_MAX:
                raise ManyRows(resumed(first, pages))
    except BaseException as error:
        if not isinstance(error, ManyRows):
            await pages.aclose()
        raise
    return resumed(first, pages)


async def resumed(
    first: list[pa.RecordBatch], pages: AsyncGenerator[pa.RecordBatch]
) -> AsyncGenerator[pa.RecordBatch]:
    async with contextlib.aclosing(pages):
        for page in first:
            yield page
        async for page in pages:
            yield page


def written_size(schema: MapSchema, page: pa.RecordBatch) -> int:
    """The bytes that these rows take in a write set, at most."""
    keys = sum([page.columns[place].nbytes for place in schema.key_positions])
    values = len(schema.columns) + len(schema.key_positions)
    return int(page.num_rows * empty_size(values) + page.nbytes + keys)


class Rows:
    """What one statement writes, row by row."""

    def __init__(self, core: Core, schema: MapSchema, room: int, most: int | None = None) -> None:
        """``room``: bytes that may still be written; ``most``: rows (None: any number)."""
        self._core = core
        self._schema = schema
        self._room = room
        self._most = most
        self.stored: dict[Key, Row] = {}
        self.removed: set[Key] = set()
        self.renamed: dict[Key, Key] = {}
        """The new keys of rows to which an UPDATE gives others."""

    def change(self, written: Sequence[pa.Array], removed: Sequence[pa.Array]) -> None:
        """Whole rows, keys, or both: rows in place of those with the keys ``removed``, one by one.
        Raises as ``store`` and ``remove``."""
        if written and removed:
            self.rename(written, removed)
        elif written:
            self.store(written)
        else:
            self.remove(removed)

    def rename(self, written: Sequence[pa.Array], removed: Sequence[pa.Array]) -> None:
        """See ``change``."""
        keys = self.store(written)  # first: a statement of too many rows goes another way
        self.renamed.update(zip(self.remove(removed), keys, strict=True))

    def store(self, columns: Sequence[pa.Array]) -> list[Key]:
        """Whole rows in engine form: their keys. Raises the errors of ``Constraints.check``,
        UniqueViolation for a key that comes twice, LimitExceeded."""
        schema, constraints = self._schema, self._core.constraints
        if self._most is not None and len(self.stored) + len(columns[0]) > self._most:
            raise ManyRows
        batch = pa.record_batch(list(columns), schema=engine_schema(schema))
        batch = constraints.with_row_ids(batch, schema, self._core.number)
        constraints.check(batch, schema)
        keys = []
        for row in arrays_to_rows(batch.columns, [column.type for column in schema.columns]):
            key = canonical_key(tuple([row[p] for p in schema.key_positions]))
            if key in self.stored:
                raise duplicate_key(schema, key)
            self.stored[key] = row
            keys.append(key)
            self._take(size_of(key, row))
        return keys

    def remove(self, columns: Sequence[pa.Array]) -> list[Key]:
        """Key columns in engine form: the keys."""
        types = [self._schema.columns[p].type for p in self._schema.key_positions]
        keys = [canonical_key(key) for key in arrays_to_rows(columns, types)]
        self.removed.update(keys)
        for key in keys:
            self._take(size_of(key, None))
        return keys

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise LimitExceeded(
                f"the transaction has written more than {self._core.config.transaction_memory} "
                "bytes",
                hint="Commit in smaller parts, or raise transaction_memory of the members.",
            )

    def entries(self) -> dict[Key, Row | None]:
        """A key that is removed and stored is stored."""
        return {**dict.fromkeys(self.removed), **self.stored}


def _apply_chosen(rows: Rows, columns: list[pa.Array], width: int) -> None:
    """Rows of MERGE and of ON CONFLICT. A row that an UPDATE gives another key stays one row."""
    updated, others = updated_rows(columns)
    if len(updated[0]):
        rows.rename(updated[1:width], updated[width:])
    if len(others[0]):
        written, removed = chosen_rows(others, width)
        rows.store(written)
        rows.remove(removed)


class WrittenRows(Mapping[Key, Row | None]):
    """The rows that a transaction has written to a map, without a copy."""

    def __init__(self, written: Mapping[Key, Written]) -> None:
        self._written = written

    def __getitem__(self, key: Key) -> Row | None:
        return self._written[key].row

    def __iter__(self) -> Iterator[Key]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)


class TransactionChanges:
    def __init__(
        self,
        core: Core,
        sessions: TransactionSessions,
        keys: KeyReader,
        checks: Checks,
        few: FewRows,
    ) -> None:
        """``few`` gives the rows of the statements that read few."""
        self.few = few
        self._core = core
        self._sessions = sessions
        self._keys = keys
        self._uniques = checks.uniques
        self._foreign_keys = checks.foreign_keys
        self._cascades = checks.cascades
        self._writers = Writers(core.world.clock)

    async def insert(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        schema: MapSchema,
        pages: AsyncGenerator[pa.RecordBatch],
        *,
        insert_only: bool,
    ) -> int:
        at = _read_at(statement)
        async with self._turn(statement, transaction):
            rows = self._rows(transaction, schema)
            async with contextlib.aclosing(pages):
                async for page in pages:
                    rows.store(page.columns)
            statement.check()
            if transaction.pessimistic:
                await self._lock(statement, transaction, schema, rows.stored)
                at = await self._sessions.snapshots.now()
            if insert_only:
                await self.refuse_existing(transaction, schema, list(rows.stored), at)
            await self._refuse_equals(transaction, schema, rows.entries(), at)
            followed = await self._keep_references(statement, transaction, schema, rows, at)
            since = at if insert_only else BLIND
            self._apply_all(transaction, schema, rows, followed, since, at, keeps=False)
        return len(rows.stored)

    async def change(  # noqa: PLR0917 (what a change consists of)
        self,
        statement: Statement,
        transaction: OpenTransaction,
        change: PlannedChange,
        source: Callable[[int], Awaitable[Source]],
        answer: Answer | None,
        held: Reservation,
    ) -> Changed:
        async with self._turn(statement, transaction):
            for attempt in range(ATTEMPTS):
                transaction.reads.begin()
                changed = await self._attempt(
                    statement, transaction, change, await source(attempt), answer, held
                )
                if changed is not None:
                    return changed
        raise SerializationFailure(
            f'rows of map "{change.schema.name}" were changed by others again and again while the '
            "statement was about to lock them",
            hint="Run the transaction again.",
        )

    async def _attempt(  # noqa: PLR0917 (see change)
        self,
        statement: Statement,
        transaction: OpenTransaction,
        change: PlannedChange,
        source: Source,
        answer: Answer | None,
        held: Reservation,
    ) -> Changed | None:
        """None: rows were changed by others before they could be locked; it is run again."""
        schema = change.schema
        width, keys = change.written, change.written + change.removed
        at, pages = source
        rows = self._rows(transaction, schema, removes=bool(change.removed))
        chosen = Chooser(schema, change)
        changed = Changed()
        size = 0
        async with contextlib.aclosing(pages):
            async for page in pages:
                columns = chosen.of(page)
                changed.rows += len(columns[0])
                if not len(columns[0]):
                    continue
                if change.chooses:
                    _apply_chosen(rows, columns[:keys], width)
                else:
                    rows.change(columns[:width], columns[width:keys])
                if change.returning:
                    size = changed.keep(columns[keys:], size)
                held.resize(size + chosen.bytes)
        statement.check()
        if transaction.pessimistic:
            entries = list(rows.entries())
            await self._lock(statement, transaction, schema, entries)
            now = await self._sessions.snapshots.now()
            if not await self._sessions.snapshots.unchanged(schema, entries, at, now):
                statement.read_timestamp = now
                return None
            at = now
        elif not await self._queued(statement, transaction, schema, rows, at):
            return None
        if change.insert_only:
            new = [key for key in rows.stored if key not in rows.removed]
            await self.refuse_existing(transaction, schema, new, at)
        followed = Followed()
        if not change.keeps_uniques:
            await self._refuse_equals(transaction, schema, rows.entries(), at)
            followed = await self._keep_references(statement, transaction, schema, rows, at)
        if answer is not None:
            changed = await answer(at, changed)
        statement.check()
        since = at if change.reads_target or change.insert_only else BLIND
        keeps = change.keeps_uniques
        self._apply_all(transaction, schema, rows, followed, since, at, keeps=keeps)
        return changed

    async def _queued(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        schema: MapSchema,
        rows: Rows,
        at: int,
    ) -> bool:
        """Wait for other transactions of this member that are about to write the same entries.
        False: they have changed some, and the statement reads again. Raises SerializationFailure if
        its transaction would fail with it at its commit."""
        keys = list(rows.entries())
        if len(keys) > WAITING_KEYS_MAX:
            return True
        others = self._writers.take(transaction, schema.map_id, keys)
        if not others:
            return True
        with statement.progress.waiting(self._core.world.clock):
            if not await statement.interruptible(self._writers.wait(transaction, others)):
                return True
        snapshots = self._sessions.snapshots
        now = await snapshots.now()
        if await snapshots.unchanged(schema, keys, at, now):
            return True
        if transaction.isolation.moves_on:
            statement.read_timestamp = now
            return False
        reads = self._reads_before(statement, transaction)
        if reads is None:
            raise changed_by_others(schema)
        await snapshots.move(transaction, reads)
        statement.read_timestamp = transaction.snapshot
        return False

    def _reads_before(self, statement: Statement, transaction: OpenTransaction) -> ReadSet | None:
        """The keys that all earlier statements of the transaction have read; None: that is not all
        that they have read, or more may be read at its snapshot just now."""
        if transaction.isolation is not Isolation.SERIALIZABLE:
            return None  # nothing is noted
        if not statement.unaided or len(transaction.running) > 1:
            return None
        if not transaction.reads.take_back():
            return None
        reads = transaction.reads.as_set(transaction.snapshot)
        if reads.scans:
            writes = [
                Write(map_id, version, key, written.row, None, written.keeps)
                for map_id, version, key, written in transaction.writes.entries()
            ]
            reads = self._uniques.by_unique_values(writes, reads)
        return None if reads.scans else reads

    def _definitions(self, transaction: OpenTransaction) -> Catalog | None:
        """The catalog with those of the transaction; None: it has none. Raises
        SerializationFailure."""
        own = transaction.definitions
        return None if own is None else own.checking(self._core.catalog)

    @contextlib.asynccontextmanager
    async def _turn(
        self, statement: Statement, transaction: OpenTransaction
    ) -> AsyncIterator[None]:
        """While no other request of the transaction writes."""
        with statement.progress.waiting(self._core.world.clock):
            await transaction.turn.acquire()
        try:
            yield
        finally:
            transaction.turn.release()

    async def _lock(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        schema: MapSchema,
        keys: Iterable[Key],
    ) -> None:
        with statement.progress.waiting(self._core.world.clock):
            await self._sessions.lock(transaction, schema, keys)

    def _rows(
        self, transaction: OpenTransaction, schema: MapSchema, *, removes: bool = False
    ) -> Rows:
        room = self._core.config.transaction_memory - transaction.writes.bytes
        checked = bool(schema.uniques or schema.foreign_keys)
        bulk = transaction.implicit and checked and schema.takes_bulk
        bulk = bulk and not (removes and schema.children)  # they go one by one
        return Rows(self._core, schema, room, SEARCHED_MAX if bulk else None)

    def _apply(
        self,
        transaction: OpenTransaction,
        schema: MapSchema,
        entries: dict[Key, Row | None],
        since: int,
        keeps: bool = False,
    ) -> None:
        self._core.store(schema.map_id, schema.version)  # altered meanwhile?
        transaction.write(schema.map_id, schema.version, entries, since, keeps)

    async def _refuse_equals(
        self,
        transaction: OpenTransaction,
        schema: MapSchema,
        entries: dict[Key, Row | None],
        at: int,
    ) -> None:
        """Raises UniqueViolation for values of a unique index that another row has, as the
        transaction sees it. (The commit looks again, for others; it is enough where it follows.)"""
        if transaction.implicit or not schema.uniques:
            return
        before = transaction.writes.of(schema.map_id)
        own = {key: written.row for key, written in before.items()}
        await self._uniques.check(schema, {**own, **entries}, entries, at)

    async def _keep_references(
        self,
        statement: Statement,
        transaction: OpenTransaction,
        schema: MapSchema,
        rows: Rows,
        at: int,
    ) -> Followed:
        """The rows that follow referenced keys (CASCADE and its kind). Raises ForeignKeyViolation
        for rows that name no parent, and for children whose parent goes, as the transaction sees
        them, and as ``Cascades.follow``. (The commit looks again, for others; it is enough where
        it follows, but for keys that an UPDATE changes.)"""
        nothing = Followed()
        if not (schema.foreign_keys or schema.children):
            return nothing
        entries = rows.entries()
        renamed = {old: new for old, new in rows.renamed.items() if old != new}
        if transaction.implicit and not (schema.children and (renamed or schema.follows_itself)):
            return nothing
        maps = transaction.writes.maps
        before = {map_id: WrittenRows(written.written) for map_id, written in maps.items()}
        own = Own(
            changed={schema.map_id: list(entries)},
            moved=renamed.keys() & rows.stored.keys(),
            before=before,
            renamed={schema.map_id: renamed},
            defers=transaction.deferral.defers,
            catalog=self._definitions(transaction),
        )
        own.entries.update(
            {
                map_id: ChainMap({}, cast("MutableMapping[Key, Row | None]", each))
                for map_id, each in before.items()
            }
        )
        own.entries.setdefault(schema.map_id, {}).update(entries)
        found = nothing
        if schema.children and self._cascades.follows(own, schema):
            found = await self._cascades.follow(own, at, statement=True)
            await self._hold(statement, transaction, found, at)
        await self._foreign_keys.check(own, at)
        return found

    async def defer(self, transaction: OpenTransaction, tree: SetConstraintsTree) -> None:
        """SET CONSTRAINTS. Raises ForeignKeyViolation for what the transaction has written so far,
        if the keys that it breaks are to be checked at once."""
        known = transaction.deferral
        if tree.names is None:
            deferral = known.of_all(tree.deferred)
        else:
            deferral = known.of(tree.keys, tree.deferred)
        if not tree.deferred:
            own = Own(defers=deferral.defers, catalog=self._definitions(transaction))
            given_up = _given_up(transaction)
            for map_id, _, key, written in transaction.writes.entries():
                if given_up(map_id):
                    continue
                schema = self._foreign_keys.schema(own, map_id)
                if schema.foreign_keys or schema.children:
                    own.entries.setdefault(map_id, {})[key] = written.row
                    if written.row is None or not written.keeps:
                        own.changed.setdefault(map_id, []).append(key)
            if own.changed:
                at = await self._sessions.read_at(transaction)
                await self._foreign_keys.check(own, at)
        transaction.defers(deferral)

    async def _hold(
        self, statement: Statement, transaction: OpenTransaction, found: Followed, at: int
    ) -> None:
        """Lock the rows that follow, in a pessimistic transaction. Raises SerializationFailure for
        those that others have changed meanwhile."""
        if not transaction.pessimistic:
            return
        for map_id, entries in found.entries.items():
            schema = self._core.store(map_id, 0).schema
            await self._lock(statement, transaction, schema, list(entries))
            now = await self._sessions.snapshots.now()
            if not await self._sessions.snapshots.unchanged(schema, list(entries), at, now):
                raise SerializationFailure(
                    f'rows of map "{schema.name}" that follow a referenced key were changed by '
                    "others before they could be locked",
                    hint="Run the transaction again.",
                )

    def _apply_all(  # noqa: PLR0917 (what a statement has written)
        self,
        transaction: OpenTransaction,
        schema: MapSchema,
        rows: Rows,
        followed: Followed,
        since: int,
        at: int,
        keeps: bool,
    ) -> None:
        """The rows of a statement, and those that follow them: all or none. Removed keys whose rows
        have got others are marked, for the commit (see ``Own.rekeyed``)."""
        mark = transaction.writes.mark
        try:
            entries = rows.entries()
            self._apply(transaction, schema, entries, since, keeps)
            if schema.children:
                old = [key for key in rows.renamed if entries[key] is None]
                self._apply(transaction, schema, dict.fromkeys(old), since, keeps=True)
            for map_id, more in followed.entries.items():
                self._apply(transaction, self._core.store(map_id, 0).schema, more, at)
        except BaseException:
            transaction.writes.undo(mark)
            raise

    async def refuse_existing(
        self, transaction: OpenTransaction, schema: MapSchema, keys: list[Key], at: int
    ) -> None:
        """Raises UniqueViolation for a key that the transaction sees."""
        for key in keys:
            written, row = transaction.own(schema.map_id, key)
            if written and row is not None:
                raise duplicate_key(schema, key)
        unknown = [key for key in keys if not transaction.own(schema.map_id, key)[0]]
        found = await self._keys.rows(schema, unknown, at)
        for key, row in zip(unknown, found, strict=True):
            if row is not None:
                raise duplicate_key(schema, key)


def _given_up(transaction: OpenTransaction) -> Callable[[int], bool]:
    """Whether the transaction has dropped or replaced a map."""
    own = transaction.definitions
    return (lambda _: False) if own is None else own.gives_up


def _read_at(statement: Statement) -> int:
    at = statement.read_timestamp
    assert at is not None, "a statement of a transaction has a read timestamp"
    return at
