"""COPY: rows of a client on their way into a map, and rows of a query on their way to a client.

The rows of COPY FROM are read piece by piece, off the loop, while the rows before them are staged.
They are one atomic write, or part of the write set of a transaction. Defaults, numbers of sequences
and WHERE are computed by the plan of an INSERT, once for each piece; rows that need nothing of that
go to their owners as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from remuda.copying.binary_reading import BinaryReader
from remuda.copying.encodings import known_encoding
from remuda.copying.options import CopyOptions, Format
from remuda.copying.reading import PIECE_SIZE, Target, TextReader
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.values import values_to_array
from remuda.errors import LimitExceeded, NotSupported, RemudaError
from remuda.member.base.offload import Offload
from remuda.member.queries.copy_port import CopyInput, CopyPort
from remuda.member.queries.queries import Queries
from remuda.member.sessions.statement import Statement, too_late
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.member.statements.plans import Plans
from remuda.member.statements.write_statements import SMALLER_COPY, WriteStatements
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery
from remuda.session.settings import SETTINGS
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.statements import CopyStatement, InsertStatement

OUTGOING_PAGE_ROWS: Final = 16 * 1024

Columns = list[pa.Array]


def port_of(statement: Statement) -> CopyPort:
    """Raises NotSupported for a client whose channel carries no COPY."""
    if statement.copies is None:
        raise NotSupported(
            "COPY FROM STDIN and COPY TO STDOUT need a client that carries their data",
            hint="Call copy_from() and copy_to() of Remuda's Python clients, use \\copy of the "
            "shell, or connect with a client of PostgreSQL, such as psql or psycopg.",
        )
    return statement.copies


class Copying:
    def __init__(
        self, plans: Plans, runs: Runs, queries: Queries, writes: WriteStatements, offload: Offload
    ) -> None:
        """``offload`` is where rows are read."""
        self._plans = plans
        self._runs = runs
        self._queries = queries
        self._writes = writes
        self._offload = offload

    # --- out ----------------------------------------------------------------------------------

    async def outgoing(
        self, statement: Statement, found: CopyStatement
    ) -> tuple[Statement, PlannedQuery | PlannedChange]:
        """The statement that takes the rows of a COPY TO to the client, and their source."""
        port = port_of(statement)
        inner = await self._plans.of(found.source, statement.text)
        assert isinstance(inner, PlannedQuery | PlannedChange)
        names = [column.name for column in inner.columns]
        wire = port.outgoing(_as_client(statement, found.options), names, statement.session.zone)
        return replace(statement, wire=wire, page_rows=OUTGOING_PAGE_ROWS), inner

    # --- in -----------------------------------------------------------------------------------

    async def incoming(self, statement: Statement, found: CopyStatement) -> int:
        """The number of rows of a COPY FROM that were written. Raises the errors of the data, those
        of INSERT, and QueryCanceled if the client gives up."""
        port, source = port_of(statement), found.source
        assert isinstance(source, InsertStatement)
        planned = None
        if found.direct is None:
            inner = await self._plans.of(source, statement.text)
            assert isinstance(inner, PlannedInsert)
            planned = inner.source
        statement.progress.begins()
        statement.check()
        given = port.begin(found.options, found.columns)
        statement.progress.told = True
        timer = None
        if statement.timeout is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(statement.timeout, too_late, statement)
        try:
            pages = self._pages(statement, found, planned, given)
            return await self._writes.copied(statement, source.schema, pages)
        except LimitExceeded as error:
            if statement.transaction is None:
                raise
            if not source.schema.takes_bulk:
                raise error.advising(SMALLER_COPY) from error.__cause__
            raise error.advising(
                "A COPY may be of any size outside of a transaction, where it is all or nothing as "
                "well, and in one that does nothing else. Or raise transaction_memory of the "
                "members."
            ) from error.__cause__
        finally:
            given.end()
            if timer is not None:
                timer.cancel()

    async def _pages(
        self,
        statement: Statement,
        found: CopyStatement,
        planned: PlannedQuery | None,
        given: CopyInput,
    ) -> AsyncGenerator[pa.RecordBatch]:
        """The rows with all columns of the map."""
        assert isinstance(found.source, InsertStatement)
        schema = found.source.schema
        arrow = engine_schema(schema)
        target = Target(schema.name, found.columns, statement.session.zone)
        async with contextlib.aclosing(
            self._read(statement, target, _as_client(statement, found.options), given)
        ) as read:
            async for columns in read:
                if planned is None:
                    yield pa.record_batch(_all_columns(found, columns), schema=arrow)
                    continue
                async for page in self._computed(statement, found.relation, planned, columns):
                    yield page

    async def _computed(
        self, statement: Statement, relation: str, planned: PlannedQuery, columns: Columns
    ) -> AsyncGenerator[pa.RecordBatch]:
        """The rows that the plan of the INSERT computes from some rows of the client."""
        names = [str(place) for place in range(len(columns))]
        rows = pa.record_batch(columns, names=names)
        run = replace(statement, query=self._queries.new_id())
        statement.attempt = run.query
        start = await self._runs.start(run, planned, (), INTERNAL_PAGE_ROWS, {relation: [rows]})
        async with contextlib.aclosing(self._runs.pages(run, start, [])) as pages:
            async for page in pages:
                yield page

    async def _read(
        self, statement: Statement, target: Target, options: CopyOptions, given: CopyInput
    ) -> AsyncGenerator[Columns]:
        """The columns that the client has sent, while the next ones are read."""
        skipped: list[str] = []
        reader: TextReader | BinaryReader = (
            BinaryReader(target)
            if options.format is Format.BINARY
            else TextReader(target, options, skipped.append)
        )
        ended = False
        ahead: asyncio.Task[tuple[list[Columns], RemudaError | None]] | None = None
        try:
            while not ended or ahead is not None:
                waiting, ahead = ahead, None
                if not ended:
                    data, ended = await self._gathered(statement, given)
                    work = _Work(reader, data, ended=ended)
                    if waiting is not None:
                        await asyncio.wait([waiting])
                    ahead = asyncio.ensure_future(self._offload.result(work))
                if waiting is None:
                    continue
                batches, error = await waiting
                for columns in batches:
                    yield columns
                told, skipped[:] = skipped[:], []
                if options.verbose:
                    statement.progress.notice(*map(Notice, told))
                if error is not None:
                    raise error
        finally:
            if ahead is not None:
                ahead.cancel()
        if reader.left_out:
            rows = "row was" if reader.left_out == 1 else "rows were"
            statement.progress.notice(
                Notice(f"{reader.left_out} {rows} skipped due to data type incompatibility")
            )

    @staticmethod
    async def _gathered(statement: Statement, given: CopyInput) -> tuple[bytes, bool]:
        """Enough bytes to be worth a turn of the thread, and whether they are the last ones."""
        pieces: list[bytes] = []
        size = 0
        while size < PIECE_SIZE:
            data = await statement.interruptible(given.read())
            if not data:
                return b"".join(pieces), True
            pieces.append(data)
            size += len(data)
        return b"".join(pieces), False


class _Work:
    """One piece of input, read on a thread."""

    def __init__(self, reader: TextReader | BinaryReader, data: bytes, *, ended: bool) -> None:
        self._reader = reader
        self._data = data
        self._ended = ended

    def __call__(self) -> tuple[list[Columns], RemudaError | None]:
        """The rows in front of an error, and the error."""
        found: list[Columns] = []
        try:
            self._add(found, self._reader.feed(self._data))
            if self._ended:
                self._add(found, self._reader.end())
        except RemudaError as error:
            return found, error
        return found, None

    @staticmethod
    def _add(found: list[Columns], batches: Iterable[Columns]) -> None:
        for columns in batches:
            found.append(columns)  # noqa: PERF402 (those in front of an error are kept)


def _all_columns(found: CopyStatement, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns of the map: those that were given, and constants."""
    assert found.direct is not None
    rows = len(columns[0])
    result: list[pa.Array] = []
    for each in found.direct:
        if isinstance(each, int):
            result.append(columns[each])
        else:
            one = values_to_array([each.value], each.type)
            result.append(one.take(pa.array([0] * rows, pa.int32())))
    return result


def _as_client(statement: Statement, options: CopyOptions) -> CopyOptions:
    """``options`` with the client's encoding, unless they name one."""
    encoding = known_encoding(statement.session.value(SETTINGS["client_encoding"]))
    if options.encoding or options.format is Format.BINARY or not encoding:
        return options
    return replace(options, encoding=encoding)
