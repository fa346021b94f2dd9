"""``connect`` and ``Connection`` of PEP 249."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from remuda.client.blocking.client import Client
from remuda.client.blocking.client import connect as connect_client
from remuda.client.blocking.tool_access import outside
from remuda.client.network.address import Address
from remuda.client.network.ports import REQUEST_TIMEOUT
from remuda.dbapi import exceptions
from remuda.dbapi.cursor import Cursor
from remuda.dbapi.exceptions import InterfaceError, translating
from remuda.dbapi.placeholders import check_style
from remuda.dbapi.statement_kinds import DEFINITIONS, OUTSIDE, first_word
from remuda.errors import FailedTransaction, InputError, RemudaError
from remuda.limits import CONNECT_TIMEOUT


class Connection:
    """A client of a cluster, as PEP 249 sees it. Threads may share it; each needs a cursor of its
    own.

    A transaction begins with the first statement and ends by ``commit`` or ``rollback``; closing
    rolls back. Definitions (CREATE, ALTER, DROP, TRUNCATE ...) take effect at once, whatever
    transaction is open. With ``autocommit`` every statement is a transaction of its own.
    """

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(
        self,
        client: Client,
        paramstyle: str = "qmark",
        *,
        autocommit: bool = False,
        timeout: float | None = None,
    ) -> None:
        """``client``: closed with this connection."""
        self._unlimited = client
        self.timeout = timeout
        self.paramstyle = check_style(paramstyle)
        self._autocommit = bool(autocommit)
        self._closed = False

    @property
    def timeout(self) -> float | None:
        """Seconds that each statement, commit and rollback may take, with everything that it waits
        for (``Client.with_timeout``); None: as long as the members allow. It holds for what begins
        after it was set. InterfaceError for what is no number above 0."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        client = self._unlimited
        try:
            self.client = client if seconds is None else client.with_timeout(seconds)
        except InputError as error:
            raise InterfaceError(error.message) from error
        self._timeout = seconds

    @property
    def autocommit(self) -> bool:
        """Whether every statement commits by itself. To set it commits what is open."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self.commit()
        self._autocommit = bool(value)

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.require_open()
        return Cursor(self)

    @translating
    def commit(self) -> None:
        """Make visible what was written since the last commit; nothing without a transaction.

        OperationalError for a conflict (``sqlstate`` 40001: roll back is done, run it again);
        ProgrammingError when a statement had failed: everything was rolled back then."""
        self.require_open()
        if self.client.transaction_state is None:
            return
        with self.client.sql("COMMIT") as cursor:
            if cursor.tag == "ROLLBACK":
                raise FailedTransaction(
                    "a statement of the transaction had failed: everything was rolled back",
                    hint="Call rollback() after an error.",
                )

    @translating
    def rollback(self) -> None:
        """Give up what was written since the last commit; nothing without a transaction."""
        self.require_open()
        if self.client.transaction_state is not None:
            self.client.sql("ROLLBACK").close()

    def client_for(self, operation: str) -> Client:
        """The client or transaction that runs a statement; begins a transaction if one is
        needed."""
        word = first_word(operation)
        if word in DEFINITIONS:
            return outside(self.client)
        begins = not self._autocommit and word not in OUTSIDE
        if begins and self.client.transaction_state is None:
            self.client.sql("BEGIN").close()
        return self.client

    @translating
    def close(self) -> None:
        """Close the connections to the members; cursors are of no use any more. InterfaceError
        when it is closed already."""
        self.require_open()
        self._closed = True
        try:
            if self.client.transaction_state is not None:
                with contextlib.suppress(RemudaError):  # it ends with the connection anyway
                    self.client.sql("ROLLBACK").close()
        finally:
            self.client.close()

    def require_open(self) -> None:
        """InterfaceError when the connection is closed."""
        if self._closed:
            raise InterfaceError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._closed:
            self.close()


@translating
def connect(
    addresses: str | Address | Iterable[str | Address] = "127.0.0.1",
    *,
    paramstyle: str = "qmark",
    autocommit: bool = False,
    timeout: float | None = None,
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
) -> Connection:
    """Connect to a cluster; the options are those of ``remuda.connect``.

    ``paramstyle`` is how the statements of this connection mark their parameters: "qmark" (``?``,
    the members' own), "numeric" (``:1``), "named" (``:name``), "format" (``%s``) or "pyformat"
    (``%(name)s``). ``autocommit``: every statement is a transaction of its own.
    ``timeout``: see ``Connection.timeout``, which can be set later.
    """
    check_style(paramstyle)
    client = connect_client(
        addresses,
        retry_reads=retry_reads,
        retry_writes=retry_writes,
        connect_timeout=connect_timeout,
        request_timeout=request_timeout,
        max_connections=max_connections,
        application=application,
        tls=tls,
        ca=ca,
        certificate=certificate,
        key=key,
        server_name=server_name,
        user=user,
        password=password,
    )
    try:
        return Connection(client, paramstyle, autocommit=autocommit, timeout=timeout)
    except InterfaceError:
        client.close()
        raise
