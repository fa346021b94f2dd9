"""Remuda: an in-memory data grid with distributed SQL, for Python and Spark.

    import remuda

    with remuda.start(members=3) as cluster, cluster.connect() as client:
        flights = client.map("flights")
        flights.put(1, Flight(carrier="UA", delay=2.0))
        for row in client.sql("SELECT carrier, avg(delay) AS late FROM flights GROUP BY carrier"):
            print(row.carrier, row.late)

The names below are loaded when they are first used: a member process, which imports this package as
well, does not load the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remuda.client.client import Client, connect
    from remuda.client.cursor import Cursor
    from remuda.client.embedded import Cluster, start
    from remuda.client.feed_events import EntryEvent, EventKind, RowEvent
    from remuda.client.job_writer import JobTarget, JobWriter
    from remuda.client.jobs import Job
    from remuda.client.listener import Listener
    from remuda.client.map import Map
    from remuda.client.near_cache import NearCache, NearCacheStatistics
    from remuda.client.near_map import NearMap
    from remuda.client.predicate import Condition, col
    from remuda.client.prepared import Statement
    from remuda.client.requests import ClusterInfo, JobTask, MapDescription
    from remuda.client.row import Row
    from remuda.client.transaction import Transaction
    from remuda.datatypes.intervals import Interval
    from remuda.datatypes.schema import Column, MapSchema
    from remuda.datatypes.sql import SqlType, array, char, decimal, varchar
    from remuda.errors import RemudaError

__version__ = "0.1.0"

__all__ = [
    "Client",
    "Cluster",
    "ClusterInfo",
    "Column",
    "Condition",
    "Cursor",
    "EntryEvent",
    "EventKind",
    "Interval",
    "Job",
    "JobTarget",
    "JobTask",
    "JobWriter",
    "Listener",
    "Map",
    "MapDescription",
    "MapSchema",
    "NearCache",
    "NearCacheStatistics",
    "NearMap",
    "RemudaError",
    "Row",
    "RowEvent",
    "SqlType",
    "Statement",
    "Transaction",
    "__version__",
    "array",
    "char",
    "col",
    "connect",
    "decimal",
    "start",
    "varchar",
]

_HOMES = {
    "Client": "remuda.client.client",
    "Cluster": "remuda.client.embedded",
    "ClusterInfo": "remuda.client.requests",
    "Column": "remuda.datatypes.schema",
    "Condition": "remuda.client.predicate",
    "Cursor": "remuda.client.cursor",
    "EntryEvent": "remuda.client.feed_events",
    "EventKind": "remuda.client.feed_events",
    "Interval": "remuda.datatypes.intervals",
    "Job": "remuda.client.jobs",
    "JobTarget": "remuda.client.job_writer",
    "JobTask": "remuda.client.requests",
    "JobWriter": "remuda.client.job_writer",
    "Listener": "remuda.client.listener",
    "Map": "remuda.client.map",
    "MapDescription": "remuda.client.requests",
    "MapSchema": "remuda.datatypes.schema",
    "NearCache": "remuda.client.near_cache",
    "NearCacheStatistics": "remuda.client.near_cache",
    "NearMap": "remuda.client.near_map",
    "RemudaError": "remuda.errors",
    "Row": "remuda.client.row",
    "RowEvent": "remuda.client.feed_events",
    "SqlType": "remuda.datatypes.sql",
    "Statement": "remuda.client.prepared",
    "Transaction": "remuda.client.transaction",
    "array": "remuda.datatypes.sql",
    "char": "remuda.datatypes.sql",
    "col": "remuda.client.predicate",
    "connect": "remuda.client.client",
    "decimal": "remuda.datatypes.sql",
    "start": "remuda.client.embedded",
    "varchar": "remuda.datatypes.sql",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'remuda' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
