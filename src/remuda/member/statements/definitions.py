"""Statements that change the catalog: ALTER, DROP, CREATE VIEW, COMMENT, CREATE TABLE AS."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final, TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, Edit, PutMap
from remuda.catalog.indexes import continued, with_index, without_index
from remuda.catalog.own.definitions import is_made
from remuda.datatypes.schema import PG_TEMP, MapSchema, prefix
from remuda.datatypes.values import PhysicalValue, arrays_to_rows
from remuda.errors import DuplicateMap, RemudaError, SchemaChanged
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.queries.queries import Queries
from remuda.member.sequences.states import NewState, Sequences
from remuda.member.sessions.statement import Statement
from remuda.member.sessions.statements import Rewrite
from remuda.member.sessions.transaction_definitions import (
    TransactionDefinitions,
    are_transactional,
    refused,
)
from remuda.member.state.log import fields
from remuda.member.statements.index_service import IndexService
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.member.statements.plans import Plans
from remuda.member.statements.temporary_changes import TemporaryChanges
from remuda.session.definitions import settled_edits
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery, maps_read
from remuda.session.settings import PLAIN, Meaning
from remuda.sql.changes.truncate import TRUNCATED
from remuda.sql.definitions.unique_constraints import verification
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    CatalogStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    InsertStatement,
    NumbersFrom,
    TruncateStatement,
    Verification,
)

log = logging.getLogger(__name__)

UNDO_ATTEMPTS: Final = 20
FOLLOW_ATTEMPTS: Final = 20
"""Other statements, and indexes that become ready, change the catalog between two attempts."""
_OWN: Final = prefix(PG_TEMP)
"""How the full names of temporary relations begin."""

DEFINITIONS: Final = (
    CreateMapStatement, CreateAsStatement, CatalogStatement, CreateIndexStatement,
    DropIndexStatement, AnalyzeStatement,
)  # fmt: skip
Definition: TypeAlias = (
    CreateMapStatement
    | CreateAsStatement
    | CatalogStatement
    | CreateIndexStatement
    | DropIndexStatement
    | AnalyzeStatement
)

Change: TypeAlias = Callable[[Statement, PlannedChange, tuple[PhysicalValue, ...]], Awaitable[Any]]
Insert: TypeAlias = Callable[[Statement, PlannedInsert, tuple[PhysicalValue, ...]], Awaitable[int]]


class Definitions:
    def __init__(
        self,
        core: Core,
        queries: Queries,
        *,
        catalog: CatalogService,
        plans: Plans,
        runs: Runs,
        indexes: IndexService,
        sequences: Sequences,
        insert: Insert,
        change: Change,
        temporary: TemporaryChanges,
        in_transactions: TransactionDefinitions,
        truncate: Callable[[Statement, MapSchema], Awaitable[object]],
        rewrite: Rewrite,
    ) -> None:
        self._truncate = truncate
        self._rewrite = rewrite
        self._in_transactions = in_transactions
        self._sequences = sequences
        self._core = core
        self._queries = queries
        self._catalog = catalog
        self._plans = plans
        self._runs = runs
        self._indexes = indexes
        self._insert = insert
        self._write = change
        self._temporary = temporary

    async def run(self, found: Definition, statement: Statement) -> tuple[str, int]:
        """The tag of its answer, and the number of rows that it counts."""
        tag = ""
        rows: int | None = 0
        match found:
            case AnalyzeStatement(maps, tag):
                await self._plans.analyze([schema for schema in maps if not schema.temporary])
                return tag, 0
            case CreateMapStatement(schema) if schema.temporary:
                self._temporary.create(statement, schema, found.on_commit)
                tag = "CREATE TABLE"
            case CreateMapStatement(schema, if_not_exists) if _own(statement):
                if not (if_not_exists and self._exists(statement, schema)):
                    await self._define(statement, [PutMap(schema)])
                tag = "CREATE TABLE"
            case CreateMapStatement(schema, if_not_exists):
                await self._catalog.create(schema, if_not_exists=if_not_exists)
                tag = "CREATE TABLE"
            case CreateAsStatement():
                rows = await self.create_as(found, statement)
                tag = "CREATE TABLE AS" if rows is None else "SELECT"
            case CatalogStatement():
                own, others = self._temporary.divided(statement, found)
                await self.change(others, statement)
                if own is not None:
                    await self._define_own(own, statement)
                tag = found.tag
            case CreateIndexStatement(schema) if schema.temporary:
                await self._define_own(_with_index(found), statement)
                tag = "CREATE INDEX"
            case CreateIndexStatement() if _own(statement):
                await self._index_own(found, statement)
                tag = "CREATE INDEX"
            case CreateIndexStatement():
                await self.create_index(found, statement)
                tag = "CREATE INDEX"
            case DropIndexStatement():
                await self._drop_indexes(found, statement)
                tag = "DROP INDEX"
        statement.progress.notice(*found.notices)
        return tag, rows or 0

    async def change(self, found: CatalogStatement, statement: Statement) -> None:
        """Raises SchemaChanged when the statement was bound to an older catalog, and what its
        verification finds: then the catalog is as it was."""
        if not found.edits:
            return
        for grant in found.grants:
            self._core.access.compare(statement.user, grant)
        if _own(statement):
            await self._change_own(found, statement)
            return
        begun = await self._changed(found, statement)
        await self.set_numbers([each for each in found.numbers if each not in begun])

    # --- in a transaction, which makes them when it commits (decision 0109) -------------------

    def _seen(self, statement: Statement) -> Catalog:
        """The catalog of its transaction."""
        transaction, catalog = statement.transaction, self._core.catalog
        own = None if transaction is None else transaction.definitions
        return catalog if own is None else own.over(catalog)

    def _exists(self, statement: Statement, schema: MapSchema) -> bool:
        return self._seen(statement).find(schema.name) is not None

    async def _define(
        self, statement: Statement, edits: Sequence[Edit], version: int | None = None
    ) -> None:
        transaction = statement.transaction
        assert transaction is not None
        if version is None:
            version = self._core.catalog.version
        settled = settled_edits(edits, statement.started)
        await self._in_transactions.define(transaction, settled, version)

    async def _change_own(self, found: CatalogStatement, statement: Statement) -> None:
        """Nobody else may write the rows that it looks at, from now on to the COMMIT. Raises
        ActiveTransaction for a pessimistic transaction, which cannot see to that."""
        transaction = statement.transaction
        assert transaction is not None
        before = self._seen(statement)
        made = transaction.definitions.made if transaction.definitions is not None else ()
        changed = {edit.schema.map_id for edit in found.edits if isinstance(edit, PutMap)}
        others = {each for each in changed if before.find_id(each) and each not in made}
        if transaction.pessimistic and others and (found.verify or found.fill or found.finally_):
            raise refused(f"{found.tag} that looks at the rows of a table")
        await self._define(statement, _with_own_sequences(found, before, made), found.version)
        await self._set_own_numbers(found.numbers, statement)
        own = transaction.definitions
        assert own is not None
        rewritten = others & own.altered if found.verify or found.fill else set()
        rewritten |= others & own.constrained if found.fill else set()
        if rewritten:
            await self._rewrite(transaction, rewritten, _read_at(statement))
        for text in found.fill:
            meaning = transaction.session(statement.sent).meaning
            await self._fill_columns(text, statement, meaning)
        await self._follow_own(found.filled, statement)
        for each in found.verify:
            meaning = transaction.session(statement.sent).meaning
            await self._verify(each, statement, meaning)
        await self._follow_own(found.finally_, statement)

    async def _follow_own(self, edits: Sequence[Edit], statement: Statement) -> None:
        """The next step of a definition. A map of the transaction may have another number since the
        first step."""
        following: list[Edit] = []
        for edit in edits:
            assert isinstance(edit, PutMap), "the first edits do everything else"
            now = self._seen(statement).get(edit.schema.name)
            wanted = replace(edit.schema, map_id=now.map_id)
            following.append(PutMap(continued(now, wanted)))
        if following:
            await self._define(statement, following)

    async def _set_own_numbers(self, numbers: Sequence[NumbersFrom], statement: Statement) -> None:
        for each in numbers:
            schema = self._seen(statement).find(each.name)
            if schema is not None:
                await self._sequences.set(schema.map_id, NewState(each.value, each.is_called))

    async def truncate(self, found: TruncateStatement, statement: Statement) -> None:
        """TRUNCATE of one table. In a transaction that makes it with its commit, a new map comes in
        its place."""
        if found.schema.temporary or not _own(statement):
            await self._truncate(statement, found.schema)
            await self.set_numbers(found.numbers, statement)
            return
        edits = DropMap(found.schema.name), PutMap(replace(found.schema, map_id=0))
        version = self._core.catalog.version
        if self._seen(statement).find(found.schema.name) != found.schema:
            raise SchemaChanged("the catalog was changed by another statement meanwhile")
        whole = CatalogStatement(TRUNCATED, version, edits, numbers=found.numbers)
        await self._change_own(whole, statement)

    async def _index_own(self, found: CreateIndexStatement, statement: Statement) -> None:
        transaction = statement.transaction
        assert transaction is not None
        if found.exists:
            return
        if self._seen(statement).find_id(found.schema.map_id) != found.schema:
            raise SchemaChanged("the catalog was changed by another statement meanwhile")
        edits = replace(_with_index(found), version=self._core.catalog.version)
        if self._core.catalog.find_id(found.schema.map_id) == found.schema:
            await self._indexes.admit(with_index(found.schema, found.definition))
        await self._change_own(edits, statement)

    async def _drop_own_indexes(self, found: DropIndexStatement, statement: Statement) -> None:
        for map_id, name in found.indexes:
            schema = self._seen(statement).find_id(map_id) if map_id > 0 else None
            if schema is not None:
                await self._define(statement, [PutMap(without_index(schema, name))])

    async def _define_own(self, found: CatalogStatement, statement: Statement) -> None:
        """Of temporary relations. The session gets what it makes when it has succeeded, so nothing
        is undone."""
        if found.tag == TRUNCATED:
            self._temporary.truncated(statement, found)
            return
        before = statement.progress.temporary
        self._temporary.define(statement, found.edits, found.numbers, found.on_commit)
        if not (found.verify or found.fill):
            return
        meaning = self._temporary.meaning(statement)
        try:
            for text in found.fill:
                await self._fill_columns(text, statement, meaning)
            if found.filled:
                self._temporary.follow(statement, found.filled)
                meaning = self._temporary.meaning(statement)
            for each in found.verify:
                await self._verify(each, statement, meaning)
        except BaseException:
            statement.progress.change_temporary(before)
            raise
        self._temporary.follow(statement, found.finally_)

    async def _drop_indexes(self, found: DropIndexStatement, statement: Statement) -> None:
        others = tuple(each for each in found.indexes if each[0] > 0)
        if _own(statement):
            await self._drop_own_indexes(found, statement)
        elif others or not found.indexes:
            await self._indexes.drop(replace(found, indexes=others))
        for map_id, name in found.indexes:
            table = statement.temporary_tables().find_id(map_id) if map_id < 0 else None
            if table is not None:
                left = PutMap(without_index(table.schema, name))
                self._temporary.define(statement, [left])

    async def set_numbers(
        self, numbers: Sequence[NumbersFrom], statement: Statement | None = None
    ) -> None:
        """``statement``: the sequences may be temporary ones of its session. Raises
        OutcomeUnknown."""
        own = [each for each in numbers if each.name.startswith(_OWN)]
        if own and statement is not None:
            self._temporary.define(statement, (), own)
        for each in numbers:
            schema = self._core.catalog.find(each.name)
            if schema is not None:  # else somebody has dropped or renamed it already
                await self._sequences.set(schema.map_id, NewState(each.value, each.is_called))

    async def _changed(
        self, found: CatalogStatement, statement: Statement
    ) -> Sequence[NumbersFrom]:
        """The new sequences that have begun already, for columns that take numbers from them."""
        for edit in found.edits:
            if isinstance(edit, PutMap):
                await self._indexes.admit(edit.schema)
        edits = settled_edits(found.edits, statement.started)
        await self._catalog.edit(edits, found.version)
        if not (found.verify or found.fill):
            return ()
        made = self._core.catalog
        begun = _new_sequences(found) if found.fill else []
        try:
            await self.set_numbers(begun)
            for text in found.fill:
                await self._fill_columns(text, statement)
            if found.filled:
                made = await self._follow(found.filled, made, statement)
            for verification in found.verify:
                await self._verify(verification, statement)
            if found.finally_:
                await self._follow(found.finally_, made, statement)
            for edit in found.edits:
                if isinstance(edit, PutMap):
                    await self._indexes.make_ready(edit.schema.map_id, statement.check)
        except BaseException:
            await self._undo(found, made.version)
            raise
        return begun

    async def _follow(self, edits: Sequence[Edit], made: Catalog, statement: Statement) -> Catalog:
        """Make the next edits of a statement that has made ``made``. Others may have changed other
        maps since. Raises SchemaChanged if these were changed."""
        for attempt in count(1):
            before = self._core.catalog
            following = [_following(edit, made, before) for edit in edits]
            settled = settled_edits(following, statement.started)
            try:
                await self._catalog.edit(settled, before.version)
            except SchemaChanged:
                if attempt == FOLLOW_ATTEMPTS:
                    raise
            else:
                break
        return self._core.catalog

    async def create_index(self, found: CreateIndexStatement, statement: Statement) -> None:
        """Of a unique one: from now on new rows are checked; then those that are there, and if some
        have the same values it is dropped again."""

        async def verify() -> None:
            if found.definition.unique:
                await self._verify(verification(found.schema, found.definition), statement)

        await self._indexes.create(found, statement.check, verify)

    async def _verify(
        self, verification: Verification, statement: Statement, meaning: Meaning = PLAIN
    ) -> None:
        statement.check()
        planned = await self._plans.plan(verification.query, (), local=False, meaning=meaning)
        assert isinstance(planned, PlannedQuery)
        run = replace(
            statement, query=self._queries.new_id(), partitions=None, values=(),
            **_alone(statement),
        )  # fmt: skip
        statement.attempt = run.query
        if _own(statement):
            self._keep_unchanged(statement, planned)
        start = await self._runs.start(run, planned, (), INTERNAL_PAGE_ROWS)
        pages = self._runs.pages(run, start, [])
        async with contextlib.aclosing(pages):
            async for page in pages:
                if page.num_rows:
                    first = page.slice(0, 1).columns[: len(verification.shown)]
                    rows = arrays_to_rows(first, verification.shown)
                    raise verification.refusal(rows[0] if rows else ())

    def _keep_unchanged(self, statement: Statement, planned: PlannedQuery) -> None:
        """Maps of others that a definition looks at stay as they are, or the commit fails."""
        transaction = statement.transaction
        assert transaction is not None
        for map_id in sorted(maps_read(planned)):
            schema = self._core.store(map_id, 0).schema if map_id > 0 else None
            if schema is not None and not is_made(schema):
                transaction.note_table(schema, _read_at(statement))

    async def _fill_columns(
        self, text: str, statement: Statement, meaning: Meaning = PLAIN
    ) -> None:
        """Run an UPDATE of all rows. New rows have the values already."""
        statement.check()
        planned = await self._plans.plan(text, (), local=False, meaning=meaning)
        assert isinstance(planned, PlannedChange)
        run = replace(
            statement, query=self._queries.new_id(), partitions=None, values=(),
            **_alone(statement),
        )  # fmt: skip
        statement.attempt = run.query
        await self._write(run, planned, ())

    async def _undo(self, found: CatalogStatement, installed: int) -> None:
        """Take the edits back. What others have done to other maps and views since is kept."""
        for _ in range(UNDO_ATTEMPTS):
            try:
                await self._catalog.edit(found.undo, installed)
            except SchemaChanged:
                installed = self._core.catalog.version
            except RemudaError as error:
                log.warning("definition not undone", extra=fields(error=error.message))
                return
            else:
                return

    # --- CREATE TABLE AS ----------------------------------------------------------------------

    async def create_as(self, found: CreateAsStatement, statement: Statement) -> int | None:
        """The number of rows of the new map; None: its query does not run. If the query fails, the
        map is dropped again."""
        if found.schema.temporary:
            own = self._temporary.create(statement, found.schema, found.on_commit)
            if own is None or found.source is None:
                return None
            return await self._fill(found, own, statement)
        before = self._seen(statement).find(found.schema.name)
        if before is not None:
            if found.if_not_exists:
                return None
            raise DuplicateMap(f'map "{found.schema.name}" already exists')
        if _own(statement):
            await self._define(statement, [PutMap(found.schema)])
            if found.source is None:
                return None
            return await self._fill(found, self._seen(statement).get(found.schema.name), statement)
        made = await self._catalog.create(found.schema, if_not_exists=False)
        if found.source is None:
            return None
        try:
            return await self._fill(found, made, statement)
        except BaseException:
            await self._catalog.drop(made.name, if_exists=True)
            raise

    async def _fill(self, found: CreateAsStatement, made: MapSchema, statement: Statement) -> int:
        assert found.source is not None
        insert = InsertStatement(made, found.source, "insert")
        planned = await self._plans.of(insert, statement.text)
        assert isinstance(planned, PlannedInsert)
        if not (
            made.temporary or _own(statement)
        ):  # nor are its rows in a transaction that the table is not in
            statement = replace(statement, transaction=None)
        return await self._insert(statement, planned, ())


def _following(edit: Edit, made: Catalog, before: Catalog) -> PutMap:
    """The edit of a statement that has made ``made``, for the catalog ``before``. Raises
    SchemaChanged."""
    assert isinstance(edit, PutMap), "the first edits do everything else"
    was, now = (catalog.find_id(edit.schema.map_id) for catalog in (made, before))
    if was is None or now is None or was.version != now.version:
        raise SchemaChanged(
            f'map "{edit.schema.name}" was changed by another statement meanwhile',
            hint="Run the statement again.",
        )
    return PutMap(continued(now, edit.schema))


def _new_sequences(found: CatalogStatement) -> list[NumbersFrom]:
    made = {
        edit.schema.name
        for edit in found.edits
        if isinstance(edit, PutMap) and edit.schema.sequence is not None and not edit.schema.map_id
    }
    return [each for each in found.numbers if each.name in made]


def _with_own_sequences(
    found: CatalogStatement, before: Catalog, made: Collection[int]
) -> Sequence[Edit]:
    """The edits of a statement. A sequence that it sets, and that others use until the COMMIT, gets
    a new one in its place."""
    edits = list(found.edits)
    for name in {number.name for number in found.numbers}:
        known = before.find(name)
        if known is None or known.map_id in made or DropMap(name) in edits:
            continue
        wanted = known
        for edit in found.edits:
            if isinstance(edit, PutMap) and edit.schema.map_id == known.map_id:
                edits.remove(edit)
                wanted = edit.schema
        edits += [DropMap(name), PutMap(replace(wanted, map_id=0))]
    return edits


def _own(statement: Statement) -> bool:
    """Whether its definitions become a part of its transaction."""
    return statement.transaction is not None and are_transactional(statement.session)


def _read_at(statement: Statement) -> int:
    at = statement.read_timestamp
    assert at is not None, "a definition of a transaction has a read timestamp"
    return at


def _alone(statement: Statement) -> dict[str, Any]:
    """Fields that a query of a definition does not take from its statement: outside of a
    transaction that makes its definitions, it reads the rows that all see."""
    return {} if _own(statement) else {"transaction": None, "read_timestamp": None}


def _with_index(found: CreateIndexStatement) -> CatalogStatement:
    """The index of a temporary table as an edit."""
    schema, index = found.schema, found.definition
    if found.exists:
        return CatalogStatement("CREATE INDEX", 0, ())
    verify = (verification(schema, index),) if index.unique else ()
    return CatalogStatement("CREATE INDEX", 0, (PutMap(with_index(schema, index)),), verify)
