"""Statements that write, and EXPLAIN ANALYZE of any: queries of the member's own, whose rows go on
to the owners (or, in a transaction, into its write set)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import PG_TEMP, MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.errors import LimitExceeded, RemudaError, ViewChanged
from remuda.execution.context import FragmentProfile
from remuda.execution.memory import Reservation
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import StagedWrite, gathered, through_views
from remuda.member.maps.keyed_writes import KeyedWrites, Outcome
from remuda.member.queries.fragments import statement_account
from remuda.member.queries.queries import Queries
from remuda.member.sequences.drawing import Drawing
from remuda.member.sessions.bulk_write import BulkWrite
from remuda.member.sessions.open_transaction import OpenTransaction
from remuda.member.sessions.statement import Statement, too_late
from remuda.member.statements.changes import Answer as ChangeAnswer
from remuda.member.statements.changes import Changed, Changes, Source
from remuda.member.statements.implicit_transactions import ImplicitTransactions
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.member.statements.temporary_changes import TemporaryChanges
from remuda.member.statements.transaction_changes import (
    ManyRows,
    TransactionChanges,
    refuse_many,
    resumed,
    written_size,
)
from remuda.query.ids import QueryId
from remuda.session.answers import Answer
from remuda.session.explaining import explained
from remuda.session.keyed_writes import KeyedPlan
from remuda.session.parameters import clock_values
from remuda.session.planning import (
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
)
from remuda.transaction.own_writes import Row


class KeyedStatements:
    """Statements that change one entry by its key: the owner of the key does the work
    (``member.maps.keyed_writes``)."""

    def __init__(self, core: Core, writes: KeyedWrites, drawing: Drawing) -> None:
        self._core = core
        self._writes = writes
        self._drawing = drawing

    @staticmethod
    def takes(statement: Statement, found: PlannedInsert | PlannedChange) -> bool:
        """Whether ``statement`` takes the short way. In an open transaction it writes into the
        write set of the transaction. A row that may follow itself is no business of its owner."""
        short = found.keyed is not None and statement.transaction is None
        return short and not found.schema.follows_itself

    async def insert(
        self, statement: Statement, keyed: KeyedPlan, values: tuple[PhysicalValue, ...]
    ) -> int:
        """The number of rows. Raises what the owner refuses, and OutcomeUnknown."""
        return int(await self._run(statement, keyed, values) is not None)

    async def change(
        self,
        statement: Statement,
        found: PlannedChange,
        keyed: KeyedPlan,
        values: tuple[PhysicalValue, ...],
    ) -> Changed:
        """Raises what the owner refuses, and OutcomeUnknown."""
        return changed_by(found, await self._run(statement, keyed, values))

    async def _run(
        self, statement: Statement, keyed: KeyedPlan, values: tuple[PhysicalValue, ...]
    ) -> tuple[PhysicalValue, ...] | None:
        if not self._core.ready:
            await statement.interruptible(self._core.until_ready())
        statement.check()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Outcome] = loop.create_future()

        def answered(outcome: Outcome) -> None:
            if not done.done():
                done.set_result(outcome)

        timer = None
        try:
            self.begin(statement, keyed, values, answered)
            if statement.timeout is not None:
                timer = loop.call_later(statement.timeout, too_late, statement)
            outcome = await done
        finally:
            self.ended(statement)
            if timer is not None:
                timer.cancel()
        if isinstance(outcome, RemudaError):
            raise outcome
        return outcome

    def begin(
        self,
        statement: Statement,
        keyed: KeyedPlan,
        values: tuple[PhysicalValue, ...],
        answered: Callable[[Outcome], None],
    ) -> None:
        """Have the owner carry it out, as this member is ready. ``answered`` hears of the outcome,
        perhaps before this returns; then ``ended`` must be called."""
        if keyed.clock_parameters:
            values += clock_values(keyed.clock_parameters, statement.moment, statement.session)
        if not keyed.draws:
            self._send(statement, keyed, values, answered)
            return

        def drawn(found: tuple[PhysicalValue, ...] | RemudaError) -> None:
            if isinstance(found, RemudaError):
                answered(found)
            elif not self._core.ready:
                answered(ViewChanged("the view has changed while numbers were taken"))
            else:
                self._send(statement, keyed, found, answered)

        self._drawing.begin(statement, keyed.draws, values, drawn)

    def _send(
        self,
        statement: Statement,
        keyed: KeyedPlan,
        values: tuple[PhysicalValue, ...],
        answered: Callable[[Outcome], None],
    ) -> None:
        progress, writes, query = statement.progress, self._writes, statement.query
        clock = self._core.world.clock
        statement.progress.commits()

        def waits() -> None:
            progress.wait_began(clock.monotonic())

        def heard(outcome: Outcome) -> None:
            if isinstance(outcome, RemudaError) and not outcome.may_have_run:
                statement.progress.begins()
            answered(outcome)

        try:
            owner = writes.run(query, keyed.encoded, values, heard, waits)
        except RemudaError as error:
            heard(error)
        else:
            progress.on_error = lambda error: writes.end(owner, query, error)

    def ended(self, statement: Statement) -> None:
        """It waits for no owner any more."""
        progress = statement.progress
        progress.on_error = None
        if progress.waits_since is not None:
            progress.wait_ended(self._core.world.clock.monotonic())


async def _page_of(columns: list[pa.Array]) -> AsyncGenerator[pa.RecordBatch]:
    yield pa.record_batch(columns, names=[str(place) for place in range(len(columns))])


def changed_by(found: PlannedChange, row: Row | None) -> Changed:
    """``row`` is the owner's answer."""
    rows = () if row is None else (row,)
    changed = Changed(len(rows))
    if found.returning:
        columns = [
            values_to_array([row[place] for row in rows], column.type)
            for place, column in enumerate(found.returning)
        ]
        changed.keep(columns, 0)
    return changed


async def _each(pages: Sequence[pa.RecordBatch]) -> AsyncGenerator[pa.RecordBatch]:
    for page in pages:
        yield page


def _concerns_others(found: PlannedChange) -> bool:
    """Whether rows of other keys or maps have a say: see ``MapSchema.concerns_others``. (A row that
    is removed gives its values free.)"""
    schema = found.schema
    if found.written and (schema.uniques or (schema.foreign_keys and not found.keeps_uniques)):
        return True
    return bool(schema.children and found.removed)


SMALLER_COPY: Final = (
    "Copy in smaller parts, raise transaction_memory of the members, or add the foreign keys when "
    "the rows are there."
)


def _is_own(found: PlannedInsert | PlannedChange) -> bool:
    """Whether it writes a temporary table."""
    return found.schema.temporary


class WriteStatements:
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        queries: Queries,
        runs: Runs,
        own: TransactionChanges,
        implicit: ImplicitTransactions,
        keyed: KeyedStatements,
    ) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits
        self._queries = queries
        self._runs = runs
        self._own = own
        self._implicit = implicit
        self._keyed = keyed
        self.changes = Changes(core, peers, commits)
        self.temporary = TemporaryChanges(core)
        self.reading: dict[QueryId, int] = {}
        """Read timestamps of statements that change what they have read."""

    async def insert(
        self,
        statement: Statement,
        found: PlannedInsert,
        values: tuple[PhysicalValue, ...],
        profiles: list[FragmentProfile] | None = None,
    ) -> int:
        """Rows of the source go staged to their owners and are committed together; one row goes to
        the owner of its key. With ``profiles`` in the former way, whose operators have figures."""
        if profiles is None and found.keyed is not None and self._keyed.takes(statement, found):
            return await self._keyed.insert(statement, found.keyed, values)
        read: AsyncGenerator[pa.RecordBatch] | None = None
        schema = found.schema
        guarded = (schema.uniques or schema.foreign_keys) and not _is_own(found)
        if guarded and statement.transaction is None:
            try:
                return await self._implicit.run(
                    statement, lambda run: self._insert(run, found, values, profiles)
                )
            except ManyRows as many:
                read = many.pages
                assert read is not None, "nothing of an INSERT is read twice"

        async def again(attempt: int) -> int:
            if read is not None and not attempt:
                return await self.insert_pages(
                    statement, found.schema, read, insert_only=found.insert_only
                )
            # A query id serves once; the first one is what the client may cancel.
            run = replace(statement, query=self._queries.new_id()) if attempt else statement
            statement.attempt = run.query
            return await self._insert(run, found, values, profiles)

        return await through_views(again)

    async def _insert(
        self,
        statement: Statement,
        found: PlannedInsert,
        values: tuple[PhysicalValue, ...],
        profiles: list[FragmentProfile] | None,
    ) -> int:
        statement.progress.begins()
        statement.progress.attempts()
        if profiles is not None:
            profiles.clear()
        pages = await self._short(statement, found.source, values, profiles)
        if pages is None:
            start = await self._runs.start(statement, found.source, values, INTERNAL_PAGE_ROWS)
            start = replace(start, analyze=profiles is not None)
            pages = gathered(
                self._runs.pages(statement, start, profiles if profiles is not None else [])
            )
        own = statement.transaction
        if own is not None and own.implicit and found.schema.takes_bulk:
            pages = await refuse_many(pages)
        return await self.insert_pages(
            statement, found.schema, pages, insert_only=found.insert_only
        )

    async def _short(
        self,
        statement: Statement,
        source: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        profiles: list[FragmentProfile] | None,
    ) -> AsyncGenerator[pa.RecordBatch] | None:
        """The rows of ``source``, if a transaction reads them in the short way; None: not so. With
        ``profiles`` in the general way, whose operators have figures."""
        if profiles is not None or not self._own.few.takes(statement, source):
            return None
        columns = await self._own.few.columns(statement, source, values)
        return None if columns is None else _page_of(columns)

    async def insert_pages(
        self,
        statement: Statement,
        schema: MapSchema,
        pages: AsyncGenerator[pa.RecordBatch],
        *,
        insert_only: bool,
    ) -> int:
        """Whole rows, in a commit of their own, into the write set of the transaction, or into a
        temporary table."""
        if schema.namespace == PG_TEMP:
            return await self.temporary.insert(statement, schema, pages)
        if statement.transaction is not None:
            own = statement.transaction
            return await self._own.insert(statement, own, schema, pages, insert_only=insert_only)
        arrow = engine_schema(schema)
        write = StagedWrite(self._core, self._peers, self._commits, schema)
        try:
            async with contextlib.aclosing(pages):
                async for page in pages:
                    await write.add(pa.record_batch(page.columns, schema=arrow))
            statement.check()
            if write.empty:
                return 0
            turn = partial(self._take_turn, statement)
            return await self.changes.in_turn(
                write, turn, statement.commits_rows, insert_only=insert_only
            )
        except BaseException:
            write.abort()
            raise

    async def copied(
        self, statement: Statement, schema: MapSchema, pages: AsyncGenerator[pa.RecordBatch]
    ) -> int:
        """The rows of a COPY, as ``insert_pages``. Rows that are too many for the write set of a
        transaction that does nothing else are staged until its commit."""
        own = statement.transaction
        checked = not (schema.takes_bulk or schema.temporary)
        if checked and own is None:
            return await self._copied_alone(statement, schema, pages)
        if own is None or checked or schema.temporary or not own.bare:
            return await self.insert_pages(statement, schema, pages, insert_only=True)
        first: list[pa.RecordBatch] = []
        size, room = 0, self._core.config.transaction_memory
        async with contextlib.aclosing(pages):
            async for page in pages:
                first.append(page)
                size += written_size(schema, page)
                if size > room:
                    return await self._stage(statement, own, schema, resumed(first, pages))
        return await self.insert_pages(statement, schema, resumed(first, pages), insert_only=True)

    async def _copied_alone(
        self, statement: Statement, schema: MapSchema, pages: AsyncGenerator[pa.RecordBatch]
    ) -> int:
        """The rows of a COPY into a map whose rows are looked at one by one, in a transaction that
        may run again."""
        room = self._core.config.transaction_memory
        kept: list[pa.RecordBatch] = []
        async with contextlib.aclosing(pages):
            async for page in pages:
                kept.append(page)
                room -= written_size(schema, page)
                if room < 0:
                    raise LimitExceeded(
                        f'a COPY into table "{schema.local}", which references itself or is '
                        "referenced by unique values, takes at most "
                        f"{self._core.config.transaction_memory} bytes",
                        hint=SMALLER_COPY,
                    )
        return await self._implicit.run(
            statement,
            lambda run: self.insert_pages(run, schema, _each(kept), insert_only=True),
        )

    async def _stage(
        self,
        statement: Statement,
        own: OpenTransaction,
        schema: MapSchema,
        pages: AsyncGenerator[pa.RecordBatch],
    ) -> int:
        arrow, count = engine_schema(schema), 0
        write = StagedWrite(self._core, self._peers, self._commits, schema)
        try:
            async with contextlib.aclosing(pages):
                async for page in pages:
                    await write.add(pa.record_batch(page.columns, schema=arrow))
                    count += page.num_rows
            statement.check()
            own.writes_in_bulk(BulkWrite(self._core, self._commits, write))
        except BaseException:
            write.abort()
            raise
        return count

    async def truncate(self, statement: Statement, schema: MapSchema) -> None:
        if schema.temporary:
            self.temporary.truncate(statement, schema)
            return
        turn = partial(self._take_turn, statement)
        await self.changes.truncate(schema, turn, statement.commits_rows)

    async def _take_turn(self, statement: Statement, map_id: int, job: str) -> None:
        """An attempt before this one, if there was one, was undone."""
        statement.progress.begins()
        progress, clock = statement.progress, self._core.world.clock
        progress.job = job
        progress.wait_began(clock.monotonic())
        try:
            await statement.interruptible(self._commits.turn(map_id, job))
        except BaseException:
            self._commits.end_turn(map_id, job)  # it may have come in the same moment
            raise
        finally:
            progress.wait_ended(clock.monotonic())

    async def change(
        self,
        statement: Statement,
        found: PlannedChange,
        values: tuple[PhysicalValue, ...],
        profiles: list[FragmentProfile] | None = None,
    ) -> Changed:
        """Each attempt reads at its own timestamp, whose versions are kept until it is through. An
        entry whose key the statement names is changed by its owner, unless there are ``profiles``.
        """
        if profiles is None and found.keyed is not None and self._keyed.takes(statement, found):
            return await self._keyed.change(statement, found, found.keyed, values)
        begun = 0
        if statement.transaction is None and _concerns_others(found) and not _is_own(found):
            with contextlib.suppress(ManyRows):
                return await self._implicit.run(
                    statement, lambda run: self.change(run, found, values, profiles)
                )
            begun = 1

        async def source(attempt: int) -> Source:
            attempt += begun
            # A query id serves once; the first one is what the client may cancel.
            run = replace(statement, query=self._queries.new_id()) if attempt else statement
            statement.attempt = run.query
            statement.progress.begins()
            statement.progress.attempts()
            few = await self._short(run, found.source, values, profiles)
            if few is not None:
                assert run.read_timestamp is not None
                return run.read_timestamp, few
            start = await self._runs.start(run, found.source, values, INTERNAL_PAGE_ROWS)
            statement.check()
            start = replace(start, analyze=profiles is not None)
            self.reading[statement.query] = start.read_timestamp
            if profiles is not None:
                profiles.clear()
            pages = self._runs.pages(run, start, profiles if profiles is not None else [])
            return start.read_timestamp, gathered(pages)

        if profiles is not None or not self._own.few.takes(statement, found.source):
            await self._runs.admit(statement, found.source, values)
        held = Reservation(statement_account(self._core), found.verb)
        statement.progress.on_closed.append(held.clear)  # rows of RETURNING go to the client first
        try:
            answer = answer_of(self._runs, self._queries.new_id, statement, found, values)
            if found.schema.namespace == PG_TEMP:
                return await self.temporary.change(statement, found, source, answer, held)
            if statement.transaction is not None:
                own = statement.transaction
                return await self._own.change(statement, own, found, source, answer, held)
            return await self.changes.run(
                found,
                source,
                partial(self._take_turn, statement),
                statement.check,
                statement.commits_rows,
                answer,
                held,
            )
        except BaseException:
            held.clear()  # the statement may be planned and run again
            raise
        finally:
            self.reading.pop(statement.query, None)

    async def explain(
        self, statement: Statement, found: PlannedExplain, values: tuple[PhysicalValue, ...]
    ) -> Answer:
        if not found.options.analyze:
            return explained(found)
        profiles: list[FragmentProfile] = []
        clock = self._core.world.clock
        began = clock.monotonic()
        if isinstance(found.statement, PlannedInsert):
            await self.insert(statement, found.statement, values, profiles)
        elif isinstance(found.statement, PlannedChange):
            await self.change(statement, found.statement, values, profiles)
        else:
            start = await self._runs.start(statement, found.statement, values, INTERNAL_PAGE_ROWS)
            start = replace(start, analyze=True)
            async for _ in self._runs.pages(statement, start, profiles):
                pass
        return explained(found, profiles, clock.monotonic() - began)


def answer_of(
    runs: Runs,
    new_id: Callable[[], QueryId],
    statement: Statement,
    found: PlannedChange,
    values: tuple[PhysicalValue, ...],
) -> ChangeAnswer | None:
    """The answer of a statement that reads the rows of its own change: ``WITH x AS (DELETE ...
    RETURNING ...) SELECT ... FROM x``. It is computed before the commit, at the timestamp of the
    change. None: the statement answers with RETURNING."""
    query = found.answer
    if query is None:
        return None

    async def answered(at: int, changed: Changed) -> Changed:
        pages = [
            pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
            for columns in changed.returned
        ]
        run = replace(statement, query=new_id(), read_timestamp=at)
        statement.attempt = run.query
        start = await runs.start(run, query, values, INTERNAL_PAGE_ROWS, {found.relation: pages})
        made, size = Changed(), 0
        async for page in runs.pages(run, start, []):
            made.rows += page.num_rows
            size = made.keep(list(page.columns), size)
        return made

    return answered
