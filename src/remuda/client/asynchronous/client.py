"""``Client``: a smart client on an event loop, and the logic of the blocking one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from remuda.client import asynchronous
from remuda.client.asynchronous.statements import Statements
from remuda.client.core.core import Core
from remuda.client.network.address import format_address
from remuda.client.requests import requests
from remuda.client.requests.requests import ClusterInfo, JobTask, MapDescription, RunOptions
from remuda.client.values.row import Row
from remuda.client.values.values import timeout_seconds
from remuda.datatypes.map_options import changed
from remuda.datatypes.schema import MapSchema
from remuda.errors import InputError
from remuda.limits import LISTENER_EVENTS
from remuda.transaction.states import State

if TYPE_CHECKING:
    from remuda.client.asynchronous import (
        Activity,
        Cursor,
        Ids,
        Job,
        Listener,
        Map,
        NearMap,
        Snapshots,
        Statement,
        Transaction,
    )
    from remuda.client.operations.near_cache import NearCache
    from remuda.client.requests.feed_events import RowEvent

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Client:
    """Maps and SQL of one cluster, for the tasks of the event loop that it was connected on.

    Connections are opened when they are needed and kept; the requests of many tasks are under way
    on each of them at the same time. After a lost connection the requests that met it fail with an
    error that names the member, and the next one connects again. A task that is cancelled cancels
    its own request, and nothing else.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._statements = Statements(core)

    def with_timeout(self, seconds: float) -> Client:
        """This client with a timeout for everything that one call waits for.

        ``seconds`` hold for each operation of a map, each statement and each step of a transaction
        that begins through the result, with all its tries, connecting included: a member that does
        not answer costs at most one second more. They take the place of ``request_timeout``; a
        ``timeout=`` of ``sql`` goes first. The connections, the session and its transaction are
        those of this client, and closing one closes both. A call that times out raises a
        retryable TransientError if nothing can have changed, else OutcomeUnknown. InputError.
        """
        return Client(self._core.with_timeout(timeout_seconds(seconds)))

    # --- maps and statements ---

    @overload
    def map(
        self,
        name: str,
        value_type: None = None,
        *,
        key_type: None = None,
    ) -> Map[Any, Any]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: None = None,
        *,
        key_type: type[K],
    ) -> Map[K, Any]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: type[V],
        *,
        key_type: None = None,
    ) -> Map[Any, V]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: type[V],
        *,
        key_type: type[K],
    ) -> Map[K, V]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: None = None,
        *,
        key_type: None = None,
        near_cache: NearCache | Literal[True],
    ) -> NearMap[Any, Any]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: None = None,
        *,
        key_type: type[K],
        near_cache: NearCache | Literal[True],
    ) -> NearMap[K, Any]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: type[V],
        *,
        key_type: None = None,
        near_cache: NearCache | Literal[True],
    ) -> NearMap[Any, V]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: type[V],
        *,
        key_type: type[K],
        near_cache: NearCache | Literal[True],
    ) -> NearMap[K, V]: ...

    @overload
    def map(
        self,
        name: str,
        value_type: type | None = None,
        *,
        key_type: type | None = None,
        near_cache: NearCache | bool | None = None,
    ) -> Map[Any, Any]: ...

    def map(
        self,
        name: str,
        value_type: type | None = None,
        *,
        key_type: type | None = None,
        near_cache: NearCache | bool | None = None,
    ) -> Map[Any, Any]:
        """A handle of the map ``name``; see ``Map`` for what the types do. With ``near_cache``, its
        gets look into the memory of this client first, see ``NearMap``; True: one with the options
        of ``NearCache()``."""
        cache = None if near_cache is None else asynchronous.near_cache_of(near_cache)
        if cache is None:
            return asynchronous.Map(self._core, name, value_type, key_type)
        return asynchronous.NearMap(self._core, name, value_type, key_type, cache)

    def ids(self, name: str, *, block: int = 1000) -> Ids:
        """Unique numbers for keys: those of the sequence that a column of the map ``name`` has, or
        of the sequence of this name. One request takes ``block`` of them. See ``Ids``; raises
        InputError."""
        return asynchronous.Ids(asynchronous.Blocks(self.sql, self.describe_map, name, block))

    async def sql(self, text: str, *params: Any, timeout: float | None = None) -> Cursor:
        """Run one statement; ``?`` stands for the parameters, which are given one by one:
        ``sql(text, 1, 2)``. A list is one parameter, an array; a tuple alone stands for the
        parameters that it holds.

        Returns when the first rows are there, or the statement has ended. ``timeout``: seconds
        until the statement is cancelled everywhere with ``QueryTimeout``; None leaves it to the
        member.

        Raises InputError (SqlSyntaxError, UndefinedColumn, ...) for a wrong statement or wrong
        parameters, and TransientError (MemberUnavailable, ConnectionBroken, ...) when the cluster
        could not run it. The cursor raises later errors.
        """
        return asynchronous.Cursor(await self._statements.run(text, params, timeout))

    async def prepare(self, text: str) -> Statement:
        """Parse and plan a statement once; await a call of the result with parameters to run it.

        Raises InputError for a wrong statement.
        """
        return await asynchronous.Statement(self._core, text).prepare()

    async def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run one statement once per row of parameters; the number of rows that were written.

        ``INSERT INTO m (a, b) VALUES (?, ?)``, with nothing but parameters, inserts thousands of
        rows at a time, each of these parts completely or not at all. Other statements run one after
        the other. Rows written before an error stay.
        """
        return await asynchronous.execute_many(self._core, await self.prepare(text), rows)

    async def copy_from(
        self,
        target: str,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """Write the rows of a COPY FROM into a map, all of them or none; their number.

        ``target``: the name of a map, or a statement ``COPY ... FROM STDIN``. ``source``: the path
        of a file, an open file, bytes, or an iterable of texts or bytes, in a format of COPY; or
        rows (an iterable of tuples or lists) and Arrow data for a map. ``columns``: those that the
        data has, of the map; Arrow data has its own. ``options`` are those of COPY:
        ``format="csv"``, ``header=True``, ``delimiter=";"``, ... ``timeout`` as in ``sql``.

        A key that the map has raises UniqueViolation. Errors of the data name line and column
        (``context``). Raises InputError, ObjectMismatch for rows, and the errors of ``sql``.
        """
        return await asynchronous.copy_from(
            self._core, target, source, columns=columns, timeout=timeout, options=options
        )

    async def copy_to(
        self,
        target: str,
        sink: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """Write the rows of a map or a query into a file; the number of rows.

        ``target``: the name of a map, a query, or a statement ``COPY ... TO STDOUT``. ``sink``: the
        path of a file, or an object with ``write``. ``columns`` (of a map), ``options`` and
        ``timeout`` as in ``copy_from``; without ``format`` COPY's text. Raises InputError, and the
        errors of ``sql``.
        """
        return await asynchronous.copy_to(
            self._core, target, sink, columns=columns, timeout=timeout, options=options
        )

    async def watch(
        self, text: str, *params: Any, initial: bool = True, buffer: int = LISTENER_EVENTS
    ) -> Listener[RowEvent]:
        """A SELECT over one map that goes on: its result as it is now, in events INITIAL (unless
        ``initial`` is False), then each change of it; see ``Listener``.

        It may have expressions of the map's columns and a WHERE. A row that ceases to meet the
        condition is told as removed. Raises NotSupported for other queries, and the errors of
        ``sql``.
        """
        return await asynchronous.watch(self._core, text, params, initial, buffer)

    # --- transactions ---

    def transaction(
        self,
        *,
        concurrency: str = "optimistic",
        isolation: str | None = None,
        timeout: float | None = None,
        read_only: bool = False,
        label: str = "",
    ) -> Transaction:
        """A transaction, for ``async with``; it commits at the end of the block.

        ``concurrency``: "optimistic" checks for conflicts at the commit, "pessimistic" locks what
        it writes (and gets) by key, and waits. ``isolation``: "serializable", "repeatable read" or
        "read committed" (``docs/transactions.md``); None: the first, for "pessimistic" the second.
        ``timeout``: seconds after which it is rolled back (None: as the members are configured).
        ``label`` is shown in ``sys.transactions``. InputError.
        """
        options = asynchronous.checked_options(
            concurrency=concurrency,
            isolation=isolation,
            timeout=timeout,
            read_only=read_only,
            label=label,
        )
        return asynchronous.Transaction(self._core, options)

    @property
    def transaction_state(self) -> State | None:
        """Of the transaction that the statement BEGIN has begun: ACTIVE, or MARKED_ROLLBACK when a
        statement has failed in it; None when none is open. (Those of ``transaction`` have states of
        their own.)"""
        held = self._core.shared.held
        if held is None:
            return None
        return State.MARKED_ROLLBACK if held.failed else State.ACTIVE

    async def run_transaction(
        self,
        function: Callable[[Transaction], Awaitable[T]],
        *,
        attempts: int = 10,
        **options: Any,
    ) -> T:
        """Await ``function(transaction)`` and commit; again from the start, after a growing pause,
        when that meets a conflict or loses its member. Returns the value that the function has
        returned. ``options`` are those of ``transaction``. Not repeated when it is unknown whether
        the commit took place."""
        return await asynchronous.run_transaction(
            self._core, lambda: self.transaction(**options), function, attempts
        )

    # --- the cluster and its catalog ---

    @property
    def addresses(self) -> tuple[str, ...]:
        """host:port of every member."""
        return tuple(
            format_address(member.host, member.user_port) for member in self._core.view.members
        )

    async def cluster_info(self, member: int | None = None) -> ClusterInfo:
        """View, maps and clock, as ``member`` (None: any) knows them."""
        return await self._core.call(member, requests.cluster_info(self._core.clock), read=True)

    async def describe(self, name: str) -> MapSchema:
        """The schema of a map; UndefinedMap."""
        return (await self.describe_map(name)).schema

    async def describe_map(self, name: str) -> MapDescription:
        """Schema, and estimates of rows and bytes; UndefinedMap."""
        return await self._core.call(None, requests.describe_map(name), read=True)

    async def create_map(
        self, schema: MapSchema, if_not_exists: bool = False, **options: Any
    ) -> MapSchema:
        """Create a map; the schema as the cluster has it then. DuplicateMap. ``options`` are those
        of ``CREATE TABLE ... WITH``: ``ttl="10 s"``, ``max_idle``, ``eviction``, ...;
        InvalidDefinition if they cannot be."""
        if not isinstance(schema, MapSchema):
            raise InputError(
                f"create_map takes a MapSchema, not {type(schema).__name__}",
                hint="Or say it in SQL: CREATE TABLE name (id BIGINT PRIMARY KEY, ...).",
            )
        if options:
            schema = replace(schema, options=changed(schema.options, options))
        return (await self._core.call(None, requests.create_map(schema, if_not_exists))).schema

    async def drop_map(self, name: str, if_exists: bool = False) -> None:
        """Drop a map with all its entries; UndefinedMap unless ``if_exists``."""
        await self._core.call(None, requests.drop_map(name, if_exists))

    @property
    def activity(self) -> Activity:
        """The work of all clients, and how to end it: ``queries``, ``cancel_query``, ..."""
        return asynchronous.Activity(self._all_rows)

    @property
    def snapshots(self) -> Snapshots:
        """Snapshots of the whole grid: ``create``, ``list``, ``restore``, ..."""
        return asynchronous.Snapshots(self._all_rows)

    async def _all_rows(self, text: str) -> list[Row]:
        cursor = await self.sql(text)
        return await cursor.fetchall()

    # --- for Spark and tools ---

    async def query(
        self,
        sql: str,
        params: Sequence[Any] = (),
        *,
        member: int | None = None,
        partitions: Sequence[int] | None = None,
        at: int | None = None,
        local: bool = False,
        timeout: float | None = None,
        page_rows: int | None = None,
    ) -> Cursor:
        """``sql`` with every choice: which member runs it, over which partitions, at which time.

        ``at`` is a hybrid timestamp (``ClusterInfo.clock``); ``SnapshotTooOld`` when its versions
        have been collected. ``partitions`` and ``local`` restrict the statement to data that
        ``member`` owns itself. ``timeout`` as in ``sql``; ``page_rows`` is rows per message.
        """
        options = RunOptions(
            timeout=None if timeout is None else timeout_seconds(timeout),
            read_timestamp=at,
            partitions=None if partitions is None else tuple(partitions),
            local_only=local,
            page_rows=page_rows,
        )
        return asynchronous.Cursor(await self._statements.run_with(sql, params, options, member))

    async def begin_job(
        self,
        map_name: str,
        overwrite: bool = False,
        label: str = "",
        *,
        insert_only: bool = False,
        job_id: str | None = None,
    ) -> Job:
        """Begin a staged bulk write into a map; see ``remuda.client.blocking.jobs``.

        ``overwrite``: its commit replaces all entries of the map. ``insert_only``: its commit is
        refused with UniqueViolation when the map has one of the keys. ``label`` is for logs.
        ``job_id``: made up by the caller (``N-`` and 24 hexadecimal digits, N a member); the job is
        begun unless it was. Raises UndefinedMap, JobAborted (it has ended), and MemberUnavailable
        when a member is lost.
        """
        return await asynchronous.begin(
            self, self._core, map_name, overwrite, label, insert_only=insert_only, job_id=job_id
        )

    async def commit_job(self, job: str, tasks: Iterable[JobTask]) -> int:
        """Make the rows of the named task attempts visible together; the number of rows.

        Committing again what has been committed gives the same answer. Raises UniqueViolation when
        a key occurs twice, JobAborted when the job has ended, MemberUnavailable when a member with
        rows was lost; nothing is visible then.
        """
        return await asynchronous.commit_job(self._core, job, tasks)

    async def abort_job(self, job: str) -> None:
        """Drop all rows of a job that was not committed."""
        await asynchronous.abort_job(self._core, job)

    # --- ending ---

    async def close(self) -> None:
        """Close all connections; requests in progress fail with ConnectionBroken. A second close
        does nothing."""
        self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Client of {', '.join(self.addresses)}>"
