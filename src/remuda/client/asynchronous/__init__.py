"""The client for asyncio, and the logic of the blocking one.

``remuda.aio`` offers these classes. Each coroutine is written once; ``blocking`` runs it to its
end.

The names below are the entrances of a client to its parts. Each is imported when it is first used:
a program that only runs statements loads neither maps nor listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.first_use import on_first_use

if TYPE_CHECKING:
    from remuda.client.asynchronous.activity import Activity
    from remuda.client.asynchronous.copying import copy_from, copy_to
    from remuda.client.asynchronous.cursor import Cursor
    from remuda.client.asynchronous.ids import Blocks, Ids
    from remuda.client.asynchronous.jobs import Job, begin
    from remuda.client.asynchronous.listener import Listener, watch
    from remuda.client.asynchronous.many import execute_many
    from remuda.client.asynchronous.map import Map
    from remuda.client.asynchronous.near_map import NearMap
    from remuda.client.asynchronous.prepared import Statement
    from remuda.client.asynchronous.snapshots import Snapshots
    from remuda.client.asynchronous.transaction import Transaction, run_transaction
    from remuda.client.operations.commit import abort_job, commit_job
    from remuda.client.operations.near_cache import near_cache_of
    from remuda.client.operations.transaction_requests import checked_options

__all__ = [
    "Activity",
    "Blocks",
    "Cursor",
    "Ids",
    "Job",
    "Listener",
    "Map",
    "NearMap",
    "Snapshots",
    "Statement",
    "Transaction",
    "abort_job",
    "begin",
    "checked_options",
    "commit_job",
    "copy_from",
    "copy_to",
    "execute_many",
    "near_cache_of",
    "run_transaction",
    "watch",
]

__getattr__ = on_first_use(
    globals(),
    {
        "Activity": "remuda.client.asynchronous.activity",
        "Blocks": "remuda.client.asynchronous.ids",
        "Cursor": "remuda.client.asynchronous.cursor",
        "Ids": "remuda.client.asynchronous.ids",
        "Job": "remuda.client.asynchronous.jobs",
        "Listener": "remuda.client.asynchronous.listener",
        "Map": "remuda.client.asynchronous.map",
        "NearMap": "remuda.client.asynchronous.near_map",
        "Snapshots": "remuda.client.asynchronous.snapshots",
        "Statement": "remuda.client.asynchronous.prepared",
        "Transaction": "remuda.client.asynchronous.transaction",
        "abort_job": "remuda.client.operations.commit",
        "begin": "remuda.client.asynchronous.jobs",
        "checked_options": "remuda.client.operations.transaction_requests",
        "commit_job": "remuda.client.operations.commit",
        "copy_from": "remuda.client.asynchronous.copying",
        "copy_to": "remuda.client.asynchronous.copying",
        "execute_many": "remuda.client.asynchronous.many",
        "near_cache_of": "remuda.client.operations.near_cache",
        "run_transaction": "remuda.client.asynchronous.transaction",
        "watch": "remuda.client.asynchronous.listener",
    },
)
