"""How the Spark side reaches the grid: always as a client, anew in each process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from remuda.client.blocking.client import Client
from remuda.client.blocking.client import connect as client_connect
from remuda.client.network.login import NO_SECURITY, Security
from remuda.datatypes.schema import Column


def connect(address: str, security: Security = NO_SECURITY) -> Client:
    """A client of the grid at ``address`` (one ``host:port`` or several with commas)."""
    return client_connect(address, application="spark", **security.options())


def connecting(security: Security) -> Callable[[str], Client]:
    """``connect`` as this user; it can be pickled."""
    return partial(connect, security=security)


def query_columns(client: Client, query: str) -> tuple[Column, ...]:
    """The columns of a query's result, all nullable; the query is bound but not run to its end."""
    with client.query(query) as cursor:
        return tuple(Column(column.name, column.type) for column in cursor.columns)
