"""``Client``: a smart client. It knows who owns which key and asks the owner directly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from remuda.client import requests
from remuda.client.address import Address, format_address, parse_addresses
from remuda.client.commit import abort_job, commit_job
from remuda.client.connections import REQUEST_TIMEOUT
from remuda.client.core import Core, Settings
from remuda.client.cursor import Cursor
from remuda.client.job_writer import JobTarget
from remuda.client.jobs import Job
from remuda.client.known_headers import KnownHeaders
from remuda.client.map import Map
from remuda.client.prepared import Statement
from remuda.client.requests import NO_OPTIONS, ClusterInfo, JobTask, MapDescription, RunOptions
from remuda.client.values import one_sequence, parameters_of, statement_text, timeout_seconds
from remuda.datatypes.schema import MapSchema
from remuda.limits import CONNECT_TIMEOUT


class Client:
    """Maps and SQL of one cluster. Thread-safe: share one client among the threads of a process.

    Connections are opened when they are needed and kept. After a lost connection the request that
    met it fails with an error that names the member, and the next one connects again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._headers = KnownHeaders()

    # --- maps and statements ---

    def map(
        self, name: str, value_type: type | None = None, *, key_type: type | None = None
    ) -> Map:
        """A handle of the map ``name``; see ``Map`` for what the types do."""
        return Map(self._core, name, value_type, key_type)

    def sql(self, text: str, *params: Any, timeout: float | None = None) -> Cursor:
        """Run one statement; ``?`` stands for the parameters, given one by one or as one sequence.

        Returns when the first rows are there, or the statement has ended. ``timeout``: seconds
        until the statement is cancelled everywhere with ``QueryTimeout``; None leaves it to the
        member.

        Raises InputError (SqlSyntaxError, UndefinedColumn, ...) for a wrong statement or wrong
        parameters, and TransientError (MemberUnavailable, ConnectionBroken, ...) when the cluster
        could not run it. What goes wrong later is raised by the cursor.
        """
        text = statement_text(text)
        values = one_sequence(params)
        physical, types = parameters_of(values)
        options = NO_OPTIONS if timeout is None else RunOptions(timeout=timeout_seconds(timeout))
        header = self._headers.get(text)
        member = None
        if header is not None and header.route is not None:
            member = self._core.owner(header.route, values)
        cursor = self._core.execute(text, physical, types, options, header=header, member=member)
        self._headers.learn(text, cursor.header)
        return cursor

    def prepare(self, text: str) -> Statement:
        """Parse and plan a statement once; call the result with parameters to run it.

        Raises InputError for a wrong statement.
        """
        return Statement(self._core, text)

    # --- the cluster and its catalog ---

    @property
    def addresses(self) -> tuple[str, ...]:
        """host:port of every member."""
        return tuple(
            format_address(member.host, member.user_port) for member in self._core.view.members
        )

    def cluster_info(self, member: int | None = None) -> ClusterInfo:
        """View, maps and clock, as ``member`` (None: any) knows them."""
        return self._core.call(member, requests.cluster_info(self._core.clock), read=True)

    def describe(self, name: str) -> MapSchema:
        """The schema of a map; UndefinedMap."""
        return self.describe_map(name).schema

    def describe_map(self, name: str) -> MapDescription:
        """Schema, and estimates of rows and bytes; UndefinedMap."""
        return self._core.call(None, requests.describe_map(name), read=True)

    def create_map(self, schema: MapSchema, if_not_exists: bool = False) -> MapSchema:
        """Create a map; the schema as the cluster has it then. DuplicateMap."""
        return self._core.call(None, requests.create_map(schema, if_not_exists)).schema

    def drop_map(self, name: str, if_exists: bool = False) -> None:
        """Drop a map with all its entries; UndefinedMap unless ``if_exists``."""
        self._core.call(None, requests.drop_map(name, if_exists))

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
        physical, types = parameters_of(params)
        return self._core.execute(statement_text(sql), physical, types, options, member=member)

    def begin_job(self, map_name: str, overwrite: bool = False, label: str = "") -> Job:
        """Begin a staged bulk write into a map; see ``remuda.client.jobs``.

        ``overwrite``: its commit replaces all entries of the map. ``label`` is for logs. Raises
        UndefinedMap, and MemberUnavailable when a member is lost.
        """
        job, schema = self._core.call(None, requests.job_begin(map_name, overwrite, label))
        return Job(self, job, schema, JobTarget(job, schema, self._core.view))

    def commit_job(self, job: str, tasks: Iterable[JobTask]) -> int:
        """Make the rows of the named task attempts visible together; the number of rows.

        Committing again what has been committed gives the same answer. Raises UniqueViolation when
        a key occurs twice, JobAborted when the job has ended, MemberUnavailable when a member with
        rows was lost; nothing is visible then.
        """
        return commit_job(self._core, job, tasks)

    def abort_job(self, job: str) -> None:
        """Drop all rows of a job that was not committed."""
        abort_job(self._core, job)

    # --- ending ---

    def close(self) -> None:
        """Close all connections. Closing twice does nothing."""
        self._core.close()

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
    connect_timeout: float = CONNECT_TIMEOUT,
    request_timeout: float = REQUEST_TIMEOUT,
    application: str = "python",
) -> Client:
    """Connect to a cluster through any of its members: ``"host:port"`` or a list of them.

    ``retry_reads``: how often a read (``get``, ``size``, SELECT, ...) is repeated after a lost
    connection; writes are never repeated. ``connect_timeout`` and ``request_timeout`` are seconds;
    the latter bounds requests other than statements. ``application`` is shown in the members' logs.

    Raises InputError for an address that is none, MemberUnavailable when no member answers.
    """
    settings = Settings(application, retry_reads, connect_timeout, request_timeout)
    return Client(Core(parse_addresses(addresses), settings))
