"""The blocking client: each method runs the coroutine of ``asynchronous`` to its end.

``remuda`` offers these classes. ``background`` holds the event loop of listeners and change
streams; ``tool_access`` serves the DB-API, the gateway and Spark.

The names below are the entrances of a client to its parts. Each is imported when it is first used:
a program that only runs statements loads neither maps nor listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.first_use import on_first_use

if TYPE_CHECKING:
    from remuda.client.blocking.ids import Ids
    from remuda.client.blocking.jobs import Job
    from remuda.client.blocking.listener import Listener
    from remuda.client.blocking.map import Map
    from remuda.client.blocking.near_map import NearMap
    from remuda.client.blocking.pipeline import Pipeline
    from remuda.client.blocking.prepared import Statement
    from remuda.client.blocking.transaction import Transaction, run_transaction
    from remuda.client.operations.activity import Activity
    from remuda.client.operations.snapshots import Snapshots

__all__ = [
    "Activity",
    "Ids",
    "Job",
    "Listener",
    "Map",
    "NearMap",
    "Pipeline",
    "Snapshots",
    "Statement",
    "Transaction",
    "run_transaction",
]

__getattr__ = on_first_use(
    globals(),
    {
        "Activity": "remuda.client.operations.activity",
        "Ids": "remuda.client.blocking.ids",
        "Job": "remuda.client.blocking.jobs",
        "Listener": "remuda.client.blocking.listener",
        "Map": "remuda.client.blocking.map",
        "NearMap": "remuda.client.blocking.near_map",
        "Pipeline": "remuda.client.blocking.pipeline",
        "Snapshots": "remuda.client.operations.snapshots",
        "Statement": "remuda.client.blocking.prepared",
        "Transaction": "remuda.client.blocking.transaction",
        "run_transaction": "remuda.client.blocking.transaction",
    },
)
