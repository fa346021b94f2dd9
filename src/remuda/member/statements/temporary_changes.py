"""Statements that define temporary tables or write their rows (decision 0090).

The rows are on the member of the session, in a value of the session (``catalog.temporary``). The
queries of these statements run as others do; the values that they make become those of the session
when the statement has succeeded.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Final

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.catalog.temporary import PRESERVE, TemporaryTable, TemporaryTables
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import PG_TEMP, MapSchema, Namespace, prefix
from remuda.errors import LimitExceeded, NotSupported
from remuda.execution.memory import Reservation
from remuda.member.base.core import Core
from remuda.member.sessions.statement import Statement
from remuda.member.sessions.temporary_rows import changed, with_rows
from remuda.member.statements.changes import Answer, Changed, Chooser, Source, chosen_rows
from remuda.member.statements.transaction_changes import Rows
from remuda.session.planning import Planned, PlannedChange
from remuda.sql.changes.truncate import TRUNCATED
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    CatalogStatement,
    CreateIndexStatement,
    CreateMapStatement,
)

TABLES_MAX: Final = 1000
_NOTHING: Final = Catalog(namespaces=(Namespace(PG_TEMP),))
_numbers = count(1)
SESSIONS_MAX: Final = (1 << 16) - 1
"""Different numbers of the schemas of sessions. Nobody sees the schema of another session, so two
may have one number."""
_sessions = count()


class TemporaryChanges:
    def __init__(self, core: Core) -> None:
        self._core = core

    # --- definitions --------------------------------------------------------------------------

    def concerns(self, statement: Statement, found: Planned) -> bool:
        """Whether ``found`` defines temporary tables. Raises NotSupported for a definition that
        they cannot have."""
        match found:
            case CreateMapStatement(schema=schema):
                return schema.temporary
            case CreateIndexStatement(schema=schema) if schema.temporary:
                raise _refused("indexes on temporary tables", "Declare UNIQUE in CREATE TABLE.")
            case AnalyzeStatement(maps=maps):
                return bool(maps) and all(schema.temporary for schema in maps)
            case CatalogStatement(edits=edits):
                tables = statement.session.temporary
                own = [edit for edit in edits if _is_own(edit, tables)]
                if own and not statement.defines_temporary(found):
                    raise _refused(
                        "this definition of a temporary table",
                        "CREATE TABLE and DROP TABLE of temporary tables alone are supported.",
                    )
                return bool(own)
            case _:
                return False

    def define(self, statement: Statement, found: Planned) -> str:
        """The tag of the statement. Raises NotSupported, and the errors of definitions."""
        match found:
            case CreateMapStatement(schema=schema):
                self.create(statement, schema, found.on_commit)
                statement.progress.notice(*found.notices)
                return "CREATE TABLE"
            case CatalogStatement(edits=edits) if found.tag == TRUNCATED:
                tables = statement.temporary_tables()
                for edit in edits:
                    table = tables.find(edit.name) if isinstance(edit, DropMap) else None
                    if table is not None:
                        tables = tables.with_table(replace(table, batches=()))
                statement.keep_temporary(tables)
                return found.tag
            case CatalogStatement(edits=edits):
                tables = statement.temporary_tables()
                for edit in edits:
                    assert isinstance(edit, DropMap)
                    gone = tables.find(edit.name)
                    if gone is not None:
                        self._core.constraints.forget(gone.schema.map_id)
                    tables = tables.without(edit.name)
                statement.keep_temporary(tables)
                statement.progress.notice(*found.notices)
                return found.tag
        return "ANALYZE"

    def create(self, statement: Statement, schema: MapSchema, on_commit: str) -> MapSchema | None:
        """The schema with an id of its own; None: the table is there already. Raises
        InvalidDefinition, LimitExceeded, NotSupported."""
        tables = statement.temporary_tables()
        if tables.find(schema.name) is not None:
            return None
        if len(tables.tables) >= TABLES_MAX:
            raise LimitExceeded(
                f"a session has at most {TABLES_MAX} temporary tables",
                hint="Drop those that you do not need any more, or DISCARD TEMP.",
            )
        _, made = _NOTHING.with_map(schema, if_not_exists=False)
        made = replace(made, map_id=-next(_numbers))
        tables, made = tables.allotted(made, tables.session or next(_sessions) % SESSIONS_MAX + 1)
        table = TemporaryTable(made, on_commit=on_commit or PRESERVE)
        statement.keep_temporary(tables.with_table(table))
        return made

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


def _is_own(edit: Edit, tables: TemporaryTables | None) -> bool:
    """Whether an edit concerns a temporary table."""
    match edit:
        case PutMap(schema=schema):
            return schema.temporary
        case PutView(view=view):
            own = prefix(PG_TEMP)
            return view.namespace == PG_TEMP or any(name.startswith(own) for name in view.uses)
        case DropMap(name=name) | DropView(name=name):
            return tables is not None and tables.find(name) is not None
        case _:
            return False


def _refused(what: str, hint: str) -> NotSupported:
    return NotSupported(
        f"{what} are not supported" if what.endswith("s") else f"{what} is not supported", hint=hint
    )
