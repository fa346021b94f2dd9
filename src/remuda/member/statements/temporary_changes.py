"""Statements that define temporary tables or write their rows (decision 0090).

The rows are on the member of the session, in a value of the session (``catalog.temporary``). The
queries of these statements run as others do; the values that they make become those of the session
when the statement has succeeded.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

import pyarrow as pa

from remuda.catalog.edits import DropMap, Edit, PutMap
from remuda.catalog.indexes import continued
from remuda.catalog.temporary import TemporaryTable, TemporaryTables
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.errors import NotSupported
from remuda.execution.memory import Reservation
from remuda.member.base.core import Core
from remuda.member.sessions.statement import Statement
from remuda.member.sessions.temporary.definitions import (
    defined,
    is_own,
    with_numbers,
)
from remuda.member.sessions.temporary.rows import changed, with_rows
from remuda.member.statements.changes import Answer, Changed, Chooser, Source, chosen_rows
from remuda.member.statements.transaction_changes import Rows
from remuda.session.definitions import settled_edits
from remuda.session.planning import PlannedChange
from remuda.session.settings import Meaning
from remuda.sql.changes.truncate import TRUNCATED
from remuda.sql.scope.statements import CatalogStatement, NumbersFrom

_numbers = count(1)
"""Numbers of temporary relations, of their indexes and of their versions."""
SESSIONS_MAX: Final = (1 << 16) - 1
"""Different numbers of the schemas of sessions. Nobody sees the schema of another session, so two
may have one number."""
_sessions = count()


class TemporaryChanges:
    def __init__(self, core: Core) -> None:
        self._core = core

    # --- definitions --------------------------------------------------------------------------

    @staticmethod
    def divided(
        statement: Statement, found: CatalogStatement
    ) -> tuple[CatalogStatement | None, CatalogStatement]:
        """``found`` as far as it concerns temporary relations (None: not at all), and the rest of
        it. Raises NotSupported for TRUNCATE of both kinds of tables."""
        tables = statement.session.temporary
        own = [edit for edit in found.edits if is_own(edit, tables)]
        if not own:
            return None, found
        if len(own) == len(found.edits):
            return found, replace(
                found, edits=(), verify=(), fill=(), filled=(), finally_=(), numbers=()
            )
        if found.tag == TRUNCATED:
            raise NotSupported(
                "TRUNCATE of temporary tables together with others is not supported",
                hint="Write a TRUNCATE for each kind.",
            )
        rest = tuple(edit for edit in found.edits if not is_own(edit, tables))
        return CatalogStatement(found.tag, found.version, tuple(own)), replace(found, edits=rest)

    def truncated(self, statement: Statement, found: CatalogStatement) -> None:
        """TRUNCATE of several tables."""
        tables = statement.temporary_tables()
        for edit in found.edits:
            table = tables.find(edit.name) if isinstance(edit, DropMap) else None
            if table is not None:
                tables = tables.with_table(replace(table, batches=()))
        statement.keep_temporary(with_numbers(tables, found.numbers))

    def define(
        self,
        statement: Statement,
        edits: Sequence[Edit],
        numbers: Sequence[NumbersFrom] = (),
        on_commit: str = "",
    ) -> None:
        """Edits that ``divided`` has chosen, and the sequences that go on elsewhere. Raises the
        errors of definitions, LimitExceeded, NotSupported and OutOfMemory."""
        before = statement.temporary_tables()
        after = defined(
            before,
            settled_edits(edits, statement.started),
            session=before.session or next(_sessions) % SESSIONS_MAX + 1,
            fresh=lambda: next(_numbers),
            on_commit=on_commit,
        )
        for table in before.tables.values():
            if after.find_id(table.schema.map_id) is None:
                self._core.constraints.forget(table.schema.map_id)
        statement.keep_temporary(with_numbers(after, numbers))

    def follow(self, statement: Statement, edits: Sequence[Edit]) -> None:
        """The next step of a definition, after rows were filled or verified."""
        tables = statement.temporary_tables()
        edits = [
            PutMap(continued(known.schema, edit.schema))
            for edit in edits
            if isinstance(edit, PutMap) and (known := tables.find_id(edit.schema.map_id))
        ]
        self.define(statement, edits)

    @staticmethod
    def meaning(statement: Statement) -> Meaning:
        """That of the session with what the statement has defined."""
        tables = statement.temporary_tables()
        return statement.session.with_temporary(tables).meaning.of(statement.session.user)

    def create(self, statement: Statement, schema: MapSchema, on_commit: str) -> MapSchema | None:
        """The schema with an id of its own; None: the table is there already. Raises
        InvalidDefinition, LimitExceeded, NotSupported."""
        tables = statement.temporary_tables()
        if tables.find(schema.name) is not None:
            return None
        self.define(statement, [PutMap(schema)], on_commit=on_commit)
        made = statement.temporary_tables().find(schema.name)
        assert made is not None, "it was just made"
        return made.schema

    # --- rows ---------------------------------------------------------------------------------

    async def insert(
        self, statement: Statement, schema: MapSchema, pages: AsyncGenerator[pa.RecordBatch]
    ) -> int:
        """The number of rows. Raises the errors of ``Constraints.check``, UniqueViolation,
        OutOfMemory."""
        core, room = self._core, statement.room
        tables, table = _table(statement, schema)
        batches: list[pa.RecordBatch] = []
        arrow = engine_schema(table.schema)
        async with contextlib.aclosing(pages):
            async for page in pages:
                batch = pa.record_batch(page.columns, schema=arrow)
                batch = core.constraints.with_row_ids(batch, table.schema, core.number)
                core.constraints.check(batch, table.schema)
                assert room is not None, "a session with temporary tables has room"
                room.grow(batch.nbytes)
                batches.append(batch)
        statement.check()
        statement.keep_temporary(tables.with_table(with_rows(table, batches)))
        return sum(batch.num_rows for batch in batches)

    async def change(
        self,
        statement: Statement,
        change: PlannedChange,
        source: Callable[[int], Awaitable[Source]],
        answer: Answer | None,
        held: Reservation,
    ) -> Changed:
        """UPDATE, DELETE, MERGE, and INSERT with ON CONFLICT or RETURNING."""
        width, keys = change.written, change.written + change.removed
        at, pages = await source(0)
        tables, table = _table(statement, change.schema)
        rows = Rows(self._core, table.schema, self._core.config.transaction_memory)
        chosen = Chooser(table.schema, change)
        done = Changed()
        size = 0
        async with contextlib.aclosing(pages):
            async for page in pages:
                columns = chosen.of(page)
                done.rows += len(columns[0])
                if not len(columns[0]):
                    continue
                written, removed = columns[:width], columns[width:keys]
                if change.chooses:
                    written, removed = chosen_rows(columns[:keys], width)
                if written:
                    rows.store(written)
                if removed:
                    rows.remove(removed)
                if change.returning:
                    size = done.keep(columns[keys:], size)
                held.resize(size + chosen.bytes)
        statement.check()
        new = changed(table, rows.stored, rows.removed, insert_only=change.insert_only)
        if answer is not None:
            done = await answer(at, done)
        statement.check()
        statement.keep_temporary(tables.with_table(new))
        return done

    def truncate(self, statement: Statement, schema: MapSchema) -> None:
        tables, table = _table(statement, schema)
        statement.keep_temporary(tables.with_table(replace(table, batches=())))


def _table(statement: Statement, schema: MapSchema) -> tuple[TemporaryTables, TemporaryTable]:
    tables = statement.temporary_tables()
    found = tables.find(schema.name)
    assert found is not None, "a plan names the tables of its session"
    return tables, found
