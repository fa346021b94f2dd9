"""The relations that pages follow: their queries, how often they are asked, their keys."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Final

from remuda.gateway.failures import Refused

APPLICATION: Final = "remuda console"
"""The name of the console's connections."""
MARK: Final = "/* remuda console */"
"""Begins the console's own statements, which its pages do not list."""


@dataclass(frozen=True, slots=True)
class Topic:
    """``key`` names the columns that identify a row of the answer of ``sql``, ``seconds`` pass
    between two answers; as long as they are alike, the time doubles up to ``rest``. ``wakes``:
    topics that are asked at once when cells ``on`` of this one change. ``parameters`` are those of
    ``sql``."""

    name: str
    sql: str
    key: tuple[str, ...]
    seconds: float
    rest: float
    wakes: tuple[str, ...] = ()
    on: str = ""
    parameters: tuple[str, ...] = ()


_TOPICS: Final = (
    Topic(
        "members",
        "SELECT member, uuid, host, user_port, control_port, data_port, state, cause, coordinator, "
        "partitions, backups, view, queries, fragments, clients, jobs, catalog_version, "
        "memory_held, memory_limit, spilled, queued, labels, storage_held, storage_limit, "
        "writes_refused, internal_errors, ceil(lease) AS lease, floor(silent) AS silent "
        "FROM sys.members",
        ("member",),
        1,
        1,
        wakes=("partitions", "membership", "map_parts", "clients"),
        on="view",
    ),
    Topic(
        "membership",
        "SELECT * FROM sys.membership_events WHERE at IS NOT NULL",
        ("member", "at", "kind", "subject"),
        2,
        4,
    ),
    Topic(
        "spark",
        "SELECT member, service, state, user_name, address, cores, free, running, "
        "floor(silent) AS silent FROM sys.spark_services WHERE service IS NOT NULL",
        ("member", "service"),
        2,
        8,
    ),
    Topic("partitions", "SELECT * FROM sys.partitions", ("partition",), 1, 8),
    Topic("maps", "SELECT * FROM sys.maps", ("map_id",), 2, 4),
    Topic("map_parts", "SELECT * FROM sys.map_parts", ("name", "member"), 2, 8),
    Topic("indexes", "SELECT * FROM sys.indexes", ("map", "name"), 4, 16),
    Topic("settings", "SELECT * FROM sys.settings", ("name",), 30, 120),
    Topic(
        "queries",
        "SELECT * FROM sys.queries WHERE text NOT LIKE ?",
        ("query",),
        1,
        1,
        wakes=("history",),
        on="query",
        parameters=(f"{MARK}%",),
    ),
    Topic(
        "history",
        "SELECT * FROM sys.query_history ORDER BY started DESC LIMIT 200",
        ("query",),
        2,
        4,
    ),
    Topic("transactions", "SELECT * FROM sys.transactions", ("transaction",), 1, 2),
    Topic(
        "lock_waits",
        "SELECT * FROM sys.lock_waits",
        ("transaction", "pid", "blocking_transaction", "blocking_pid", "map", "key", "mode"),
        1,
        2,
    ),
    Topic(
        "clients",
        "SELECT * FROM sys.clients WHERE application IS DISTINCT FROM ?",
        ("pid",),
        2,
        4,
        parameters=(APPLICATION,),
    ),
    Topic("subscriptions", "SELECT * FROM sys.subscriptions", ("subscription", "member"), 2, 4),
    Topic("logs", "SELECT * FROM sys.logs", ("member",), 2, 8),
    Topic("snapshots", "SELECT * FROM sys.snapshots", ("snapshot", "cut"), 10, 40),
    Topic("restorable", "SELECT * FROM sys.restorable", ("snapshot", "first"), 10, 40),
    Topic(
        "snapshot_tasks",
        "SELECT * FROM sys.snapshot_tasks",
        ("member", "kind", "snapshot", "cut"),
        1,
        4,
    ),
)
PROFILE: Final = "SELECT profile FROM sys.query_profiles WHERE query = ?"
_BY_NAME: Final = {topic.name: topic for topic in _TOPICS}
_OPERATORS: Final = Topic(
    "operators",
    "SELECT member, fragment, instance, operator, name, rows, batches, bytes, seconds, wait, "
    "waits, memory, spilled, files FROM sys.operators WHERE query = ?",
    ("member", "fragment", "instance", "operator"),
    0.5,
    1,
)


def topic_of(name: str) -> Topic:
    """By its name, as ``members``, or ``operators:`` and the id of a statement. Raises Refused."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    kind, _, query = name.partition(":")
    if kind != "operators":
        raise Refused(
            400, f'there is no topic "{kind}"; known: {", ".join(_BY_NAME)}, operators:ID'
        )
    query = query_id(query)
    return replace(_OPERATORS, name=f"{kind}:{query}", parameters=(query,))


def query_id(text: str) -> str:
    """The id of a statement in its normal form. Raises Refused."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Refused(400, f"{text!r} is not the id of a statement") from None
