"""``connect`` and ``Connection`` of PEP 249."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from remuda.client.address import Address
from remuda.client.client import Client
from remuda.client.client import connect as connect_client
from remuda.client.ports import REQUEST_TIMEOUT
from remuda.dbapi import exceptions
from remuda.dbapi.cursor import Cursor
from remuda.dbapi.exceptions import InterfaceError, NotSupportedError, translating
from remuda.dbapi.placeholders import check_style
from remuda.limits import CONNECT_TIMEOUT


class Connection:
    """A client of a cluster, as PEP 249 sees it. Threads may share it; each needs a cursor of its
    own.

    Every statement is a transaction of its own and has taken effect when ``execute`` returns:
    ``commit`` has nothing to do, and ``rollback`` is not supported.
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

    def __init__(self, client: Client, paramstyle: str = "qmark") -> None:
        """``client``: closed with this connection."""
        self.client = client
        self.paramstyle = check_style(paramstyle)
        self._closed = False

    @property
    def autocommit(self) -> bool:
        """Always True."""
        return True

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.require_open()
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: every statement has been committed already."""
        self.require_open()

    def rollback(self) -> None:
        """Raises NotSupportedError: every statement has been committed already."""
        self.require_open()
        raise NotSupportedError(
            "there is nothing to roll back: every statement commits by itself", sqlstate="0A000"
        )

    @translating
    def close(self) -> None:
        """Close the connections to the members; cursors are of no use any more. InterfaceError
        when it is closed already."""
        self.require_open()
        self._closed = True
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
    retry_reads: int = 0,
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
    (``%(name)s``).
    """
    check_style(paramstyle)
    client = connect_client(
        addresses,
        retry_reads=retry_reads,
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
    return Connection(client, paramstyle)
