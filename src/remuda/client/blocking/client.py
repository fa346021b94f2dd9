"""``Client``: a smart client. It knows who owns which key and asks the owner directly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from remuda.client import asynchronous, blocking
from remuda.client.asynchronous.client import Client as AsyncClient
from remuda.client.asynchronous.statements import Statements
from remuda.client.blocking.cursor import Cursor
from remuda.client.core.core import Core
from remuda.client.network.address import Address, parse_addresses
from remuda.client.network.connections import BlockingPorts
from remuda.client.network.driving import finish
from remuda.client.network.login import security
from remuda.client.network.ports import REQUEST_TIMEOUT, checked_settings
from remuda.client.requests.requests import ClusterInfo, JobTask, MapDescription, RunOptions
from remuda.client.values.values import timeout_seconds
from remuda.datatypes.schema import MapSchema
from remuda.limits import CONNECT_TIMEOUT, LISTENER_EVENTS
from remuda.transaction.states import State

if TYPE_CHECKING:
    from remuda.client.blocking import (
        Activity,
        Ids,
        Job,
        Listener,
        Map,
        NearMap,
        Pipeline,
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
    """Maps and SQL of one cluster. Thread-safe: share one client among the threads of a process.

    Connections are opened when they are needed and kept. After a lost connection the request that
    met it fails with an error that names the member, and the next one connects again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._client = AsyncClient(core)
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
            return blocking.Map(self._core, name, value_type, key_type)
        return blocking.NearMap(self._core, name, value_type, key_type, cache)

    def pipeline(self, *, in_flight: int = 256) -> Pipeline:
        """Requests of maps that do not wait for the answers of those before, over connections of
        their own; for a ``with`` statement, see ``Pipeline``. While ``in_flight`` requests have not
        ended, the next one waits. Raises InputError in a transaction, and the errors of
        ``connect``.
        """
        return blocking.Pipeline(self._core, in_flight)

    def ids(self, name: str, *, block: int = 1000) -> Ids:
        """Unique numbers for keys: those of the sequence that a column of the map ``name`` has, or
        of the sequence of this name. One request takes ``block`` of them. See ``Ids``; raises
        InputError."""
        client = self._client
        return blocking.Ids(asynchronous.Blocks(client.sql, client.describe_map, name, block))

    def sql(self, text: str, *params: Any, timeout: float | None = None) -> Cursor:
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
        return Cursor(finish(self._statements.run(text, params, timeout)))

    def prepare(self, text: str) -> Statement:
        """Parse and plan a statement once; call the result with parameters to run it.

        Raises InputError for a wrong statement.
        """
        return blocking.Statement(self._core, text)

    def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run one statement once per row of parameters; the number of rows that were written.

        ``INSERT INTO m (a, b) VALUES (?, ?)``, with nothing but parameters, inserts thousands of
        rows at a time, each of these parts completely or not at all. Other statements run one after
        the other. Rows written before an error stay.
        """
        return finish(self._client.execute_many(text, rows))

    def copy_from(
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
        return finish(
            self._client.copy_from(target, source, columns=columns, timeout=timeout, **options)
        )

    def copy_to(
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
        return finish(
            self._client.copy_to(target, sink, columns=columns, timeout=timeout, **options)
        )

    def watch(
        self,
        text: str,
        *params: Any,
        callback: Callable[[RowEvent], object] | None = None,
        initial: bool = True,
        buffer: int = LISTENER_EVENTS,
    ) -> Listener[RowEvent]:
        """A SELECT over one map that goes on: its result as it is now, in events INITIAL (unless
        ``initial`` is False), then each change of it. Iterate over the result, or give a
        ``callback``; see ``Listener``.

        It may have expressions of the map's columns and a WHERE. A row that ceases to meet the
        condition is told as removed. Raises NotSupported for other queries, and the errors of
        ``sql``.
        """
        return blocking.Listener(
            self._core,
            lambda core: asynchronous.watch(core, text, params, initial, buffer),
            callback,
        )

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
        """A transaction, for ``with``; it commits at the end of the block.

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
        return blocking.Transaction(self._core, options)

    @property
    def transaction_state(self) -> State | None:
        """Of the transaction that the statement BEGIN has begun: ACTIVE, or MARKED_ROLLBACK when a
        statement has failed in it; None when none is open. (Those of ``transaction`` have states of
        their own.)"""
        return self._client.transaction_state

    def run_transaction(
        self,
        function: Callable[[Transaction], T],
        *,
        attempts: int = 10,
        **options: Any,
    ) -> T:
        """Call ``function(transaction)`` and commit; again from the start, after a growing pause,
        when that meets a conflict or loses its member. Returns the value that the function has
        returned. ``options`` are those of ``transaction``. Not repeated when it is unknown whether
        the commit took place."""
        return blocking.run_transaction(
            self._core, lambda: self.transaction(**options), function, attempts
        )

    # --- the cluster and its catalog ---

    @property
    def addresses(self) -> tuple[str, ...]:
        """host:port of every member."""
        return self._client.addresses

    def cluster_info(self, member: int | None = None) -> ClusterInfo:
        """View, maps and clock, as ``member`` (None: any) knows them."""
        return finish(self._client.cluster_info(member))

    def describe(self, name: str) -> MapSchema:
        """The schema of a map; UndefinedMap."""
        return finish(self._client.describe(name))

    def describe_map(self, name: str) -> MapDescription:
        """Schema, and estimates of rows and bytes; UndefinedMap."""
        return finish(self._client.describe_map(name))

    def create_map(
        self, schema: MapSchema, if_not_exists: bool = False, **options: Any
    ) -> MapSchema:
        """Create a map; the schema as the cluster has it then. DuplicateMap. ``options`` are those
        of ``CREATE TABLE ... WITH``: ``ttl="10 s"``, ``max_idle``, ``eviction``, ...;
        InvalidDefinition if they cannot be."""
        return finish(self._client.create_map(schema, if_not_exists, **options))

    def drop_map(self, name: str, if_exists: bool = False) -> None:
        """Drop a map with all its entries; UndefinedMap unless ``if_exists``."""
        finish(self._client.drop_map(name, if_exists))

    @property
    def activity(self) -> Activity:
        """The work of all clients, and how to end it: ``queries``, ``cancel_query``, ..."""
        return blocking.Activity(lambda text: self.sql(text).fetchall())

    @property
    def snapshots(self) -> Snapshots:
        """Snapshots of the whole grid: ``create``, ``list``, ``restore``, ..."""
        return blocking.Snapshots(lambda text: self.sql(text).fetchall())

    # --- for Spark and tools ---

    def query(
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
        return Cursor(finish(self._statements.run_with(sql, params, options, member)))

    def begin_job(
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
        begun = self._client.begin_job(
            map_name, overwrite, label, insert_only=insert_only, job_id=job_id
        )
        job = finish(begun)
        return blocking.Job(self, job.id, job.schema, job.target)

    def commit_job(self, job: str, tasks: Iterable[JobTask]) -> int:
        """Make the rows of the named task attempts visible together; the number of rows.

        Committing again what has been committed gives the same answer. Raises UniqueViolation when
        a key occurs twice, JobAborted when the job has ended, MemberUnavailable when a member with
        rows was lost; nothing is visible then.
        """
        return finish(self._client.commit_job(job, tasks))

    def abort_job(self, job: str) -> None:
        """Drop all rows of a job that was not committed."""
        finish(self._client.abort_job(job))

    # --- ending ---

    def close(self) -> None:
        """Close all connections. Closing twice does nothing."""
        finish(self._client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {', '.join(self.addresses)}>"


def connect(
    addresses: str | Address | Iterable[str | Address] = "127.0.0.1",
    *,
    retry_reads: int = 0,
    retry_writes: int = 0,
    connect_timeout: float = CONNECT_TIMEOUT,
    request_timeout: float = REQUEST_TIMEOUT,
    max_connections: int | None = None,
    application: str = "python",
    tls: bool | None = None,
    ca: str = "",
    certificate: str = "",
    key: str = "",
    server_name: str = "",
    user: str = "",
    password: str = "",
) -> Client:
    """Connect to a cluster through any of its members: ``"host:port"`` or a list of them.

    ``retry_reads``: how often a read (``get``, ``size``, SELECT, ...) is repeated after a lost
    connection, ``retry_writes`` the same of a ``put`` or ``put_all``, which may then be carried out
    twice; other writes never are. ``connect_timeout`` and ``request_timeout`` are seconds;
    the latter bounds requests other than statements. ``max_connections`` bounds the connections to
    one member (None: 256; each waiting thread and each cursor that is not read to its end has one
    to itself). ``application`` is shown in the members' logs.

    ``tls`` switches encryption on (so does naming a file): ``ca`` is the PEM file of the
    certificates to trust (without it, the system's), ``certificate`` and ``key`` what this client
    shows, ``server_name`` what the members' certificates name if not their hosts. ``user`` and
    ``password`` are for clusters that have users.

    Raises InputError for an address that is none, MemberUnavailable when no member answers,
    TlsFailed, AuthenticationFailed.
    """
    protection = security(
        tls=tls,
        ca=ca,
        certificate=certificate,
        key=key,
        server_name=server_name,
        user=user,
        password=password,
    )
    settings = checked_settings(
        application=application,
        retry_reads=retry_reads,
        retry_writes=retry_writes,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
        security=protection,
    )
    core = Core(parse_addresses(addresses), settings, BlockingPorts())
    finish(core.open())
    return Client(core)
