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

from typing import TYPE_CHECKING

from remuda.first_use import on_first_use

if TYPE_CHECKING:
    from remuda.client.blocking.client import Client, connect
    from remuda.client.blocking.cursor import Cursor
    from remuda.client.blocking.ids import Ids
    from remuda.client.blocking.jobs import Job
    from remuda.client.blocking.listener import Listener
    from remuda.client.blocking.map import Map
    from remuda.client.blocking.near_map import NearMap
    from remuda.client.blocking.prepared import Statement
    from remuda.client.blocking.transaction import Transaction
    from remuda.client.embedded.cluster import Cluster, start
    from remuda.client.operations.job_writer import JobTarget, JobWriter
    from remuda.client.operations.near_cache import NearCache, NearCacheStatistics
    from remuda.client.requests.feed_events import EntryEvent, EventKind, RowEvent
    from remuda.client.requests.requests import ClusterInfo, JobTask, MapDescription
    from remuda.client.values.predicate import Condition, col
    from remuda.client.values.row import Row
    from remuda.datatypes.schema import Column, MapSchema
    from remuda.datatypes.sql import SqlType, array, char, decimal, varchar
    from remuda.datatypes.times.intervals import Interval
    from remuda.errors import RemudaError
    from remuda.release import __version__

__all__ = [
    "Client",
    "Cluster",
    "ClusterInfo",
    "Column",
    "Condition",
    "Cursor",
    "EntryEvent",
    "EventKind",
    "Ids",
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
    "Client": "remuda.client.blocking.client",
    "Cluster": "remuda.client.embedded.cluster",
    "ClusterInfo": "remuda.client.requests.requests",
    "Column": "remuda.datatypes.schema",
    "Condition": "remuda.client.values.predicate",
    "Cursor": "remuda.client.blocking.cursor",
    "EntryEvent": "remuda.client.requests.feed_events",
    "EventKind": "remuda.client.requests.feed_events",
    "Interval": "remuda.datatypes.times.intervals",
    "Job": "remuda.client.blocking.jobs",
    "JobTarget": "remuda.client.operations.job_writer",
    "JobTask": "remuda.client.requests.requests",
    "JobWriter": "remuda.client.operations.job_writer",
    "Ids": "remuda.client.blocking.ids",
    "Listener": "remuda.client.blocking.listener",
    "Map": "remuda.client.blocking.map",
    "MapDescription": "remuda.client.requests.requests",
    "MapSchema": "remuda.datatypes.schema",
    "NearCache": "remuda.client.operations.near_cache",
    "NearCacheStatistics": "remuda.client.operations.near_cache",
    "NearMap": "remuda.client.blocking.near_map",
    "RemudaError": "remuda.errors",
    "Row": "remuda.client.values.row",
    "RowEvent": "remuda.client.requests.feed_events",
    "SqlType": "remuda.datatypes.sql",
    "Statement": "remuda.client.blocking.prepared",
    "Transaction": "remuda.client.blocking.transaction",
    "__version__": "remuda.release",
    "array": "remuda.datatypes.sql",
    "char": "remuda.datatypes.sql",
    "col": "remuda.client.values.predicate",
    "connect": "remuda.client.blocking.client",
    "decimal": "remuda.datatypes.sql",
    "start": "remuda.client.embedded.cluster",
    "varchar": "remuda.datatypes.sql",
}


__getattr__ = on_first_use(globals(), _HOMES)


def __dir__() -> list[str]:
    return __all__
