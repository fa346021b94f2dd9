"""Everything that a member shows without having counted it: read when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from remuda.cluster.movement import table_to_reach
from remuda.datatypes.timestamp import to_micros
from remuda.member.base.core import Core
from remuda.member.metrics import process
from remuda.member.metrics.families import Family, Sample, by_label, counter, gauge
from remuda.member.metrics.unexpected_errors import UNEXPECTED_ERRORS
from remuda.release import __version__
from remuda.rpc.messages import control_pb2
from remuda.storage.maps.expiring_rows import expirations

MAPS_SHOWN: Final = 1000
"""Maps with samples of their own, the oldest first; the others are summed as ``OTHER_MAPS``."""
OTHER_MAPS: Final = "(others)"

GAUGES: Final[Mapping[str, tuple[str, str]]] = {
    "queries": ("remuda_queries", "Queries of which this member runs a part."),
    "fragments": ("remuda_fragments", "Fragments of queries that run here."),
    "jobs": ("remuda_jobs", "Bulk writes of clients that are open here."),
    "read_leases": ("remuda_read_leases", "Timestamps that clients keep readable."),
    "channels": ("remuda_member_channels", "Open connections to other members."),
    "tasks": ("remuda_tasks", "Tasks of the event loop that belong to the member."),
    "memory_held": ("remuda_statement_memory_bytes", "Memory that statements hold."),
    "spilled": ("remuda_spilled_bytes", "Bytes that statements have on this member's disk."),
    "clients": ("remuda_clients", "Connected clients."),
    "statements": ("remuda_statements_open", "Statements of clients that are open here."),
    "cursors": ("remuda_cursors", "Open cursors of clients."),
    "advisory_locks": (
        "remuda_advisory_locks",
        "Advisory locks that clients of this member hold or wait for.",
    ),
    "listeners": ("remuda_listeners", "Sessions that listen to channels of NOTIFY."),
    "reads": ("remuda_reads", "Statements that read at a timestamp right now."),
    "queued": ("remuda_statements_queued", "Statements that wait for memory."),
    "on_spark": ("remuda_statements_on_spark", "Statements that run on Spark."),
    "cached_plans": ("remuda_cached_plans", "Plans in the cache."),
    "commits": ("remuda_bulk_commits", "Bulk commits that this member coordinates."),
    "turns": ("remuda_turns", "Writers that wait for the turn of a map, or have it."),
    "prepared": ("remuda_bulk_parts_prepared", "Parts of bulk writes prepared, not decided."),
    "staging": ("remuda_bulk_parts_staging", "Parts of bulk writes that receive rows."),
    "settling": ("remuda_bulk_parts_settling", "Actions that wait for the end of a commit."),
    "committing": ("remuda_commits", "Transactions and writes that commit from this member."),
    "parts": ("remuda_transaction_parts", "Parts of transactions that are not decided here."),
    "part_waits": ("remuda_transaction_part_waits", "Parts that wait for others before them."),
    "key_locks": ("remuda_key_locks", "Keys that transactions have locked here."),
    "transactions": ("remuda_transactions", "Open transactions of clients."),
    "promoting": ("remuda_maps_promoting", "Maps whose backups this member makes primaries."),
    "copies_incoming": ("remuda_copies_incoming", "Copies of partitions on their way here."),
    "copies_outgoing": ("remuda_copies_outgoing", "Copies of partitions that this member gives."),
    "subscriptions": ("remuda_subscriptions", "Listeners, change streams and near caches."),
    "change_logs": ("remuda_change_logs", "Maps of which changes are kept for readers."),
    "log_waiting": ("remuda_log_waiting", "Actions that wait for the write-ahead log."),
    "log_full": ("remuda_log_full", "1 while the log's disk is full and writes are refused."),
    "log_checkpoint": ("remuda_log_checkpoint_record", "Last record in a checkpoint."),
    "log_archived": ("remuda_log_archived_record", "Last record in the archive of logs."),
}
"""The name and help of each gauge of the member's parts."""

COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "log_records": ("remuda_log_records_total", "Records appended to the write-ahead log."),
    "log_durable": ("remuda_log_durable_records_total", "Records that are safe on the disk."),
    "log_bytes": ("remuda_log_bytes_total", "Bytes written to the write-ahead log."),
    "log_groups": ("remuda_log_writes_total", "Groups of records written, each with one sync."),
    "log_archive_bytes": ("remuda_log_archive_bytes_total", "Bytes written to the archive."),
    "log_archive_failures": ("remuda_log_archive_failures_total", "Failed writes to the archive."),
}
"""The same for those that only grow."""


class Sources:
    """``gauges`` of the parts, and the clients that read changes: empty until the member serves."""

    def __init__(
        self,
        core: Core,
        gauges: Callable[[], Mapping[str, int]],
        subscriptions: Callable[[], Iterable[control_pb2.Subscription]],
        backup_lag: Callable[[], float],
    ) -> None:
        self._core = core
        self._gauges = gauges
        self._subscriptions = subscriptions
        self._backup_lag = backup_lag

    def families(self) -> Iterator[Family]:
        yield from self._identity()
        yield from self._view()
        yield from self._parts()
        yield from self._memory()
        yield from self._maps()
        yield gauge(
            "remuda_backup_lag_seconds",
            "Age of the oldest single write here that a backup has not acknowledged.",
            self._backup_lag(),
        )
        yield self._change_streams()
        yield counter(
            "remuda_unexpected_errors_total",
            "Defects that this process has met: each stands in the log.",
            UNEXPECTED_ERRORS.count,
        )
        yield from process.families()

    def _identity(self) -> Iterator[Family]:
        core = self._core
        labels = {"version": __version__, "cluster": core.config.cluster}
        member = {"member": str(core.number), "uuid": core.uuid}
        yield Family("remuda_build_info", "gauge", "Always 1.", [Sample(labels, 1)])
        yield Family("remuda_member_info", "gauge", "Always 1.", [Sample(member, 1)])
        yield gauge(
            "remuda_ready", "1 if this member serves what it is the primary of.", ready(core)
        )
        left = core.readiness.lease_until - core.world.clock.monotonic()
        if left < float("inf"):
            yield gauge(
                "remuda_lease_remaining_seconds",
                "Time for which a majority lets this member serve; negative if it must not.",
                left,
            )

    def _view(self) -> Iterator[Family]:
        core, view = self._core, self._core.view
        yield gauge("remuda_view_number", "Number of the view of the cluster.", view.number)
        yield gauge("remuda_members", "Members of the view.", len(view.members))
        yield gauge(
            "remuda_members_suspected",
            "Members of the view that this member does not hear.",
            sum(1 for number in view.by_number if number in core.lost),
        )
        if not view.number:
            return
        number = core.number
        yield by_label(
            "remuda_partitions",
            "gauge",
            "Partitions by what this member has of them.",
            "role",
            [
                ("primary", view.owners.count(number)),
                ("backup", len(view.backed_up_by(number))),
            ],
        )
        wanted = min(view.backups + 1, len(view.members))
        short = [row for row in view.replicas if row and len(row) < wanted]
        yield by_label(
            "remuda_cluster_partitions",
            "gauge",
            "Partitions of the cluster that need attention, as this member sees it.",
            "state",
            [
                ("lost", len(view.lost)),
                ("unreachable", len(view.unreachable)),
                ("short_of_backups", len(short)),
                ("to_be_moved", self._to_be_moved()),
            ],
        )

    def _to_be_moved(self) -> int:
        core, view = self._core, self._core.view
        staying = tuple(number for number in view.by_number if number not in core.leaving)
        if not staying:
            return 0
        wanted = table_to_reach(view, staying, view.backups + 1)
        return sum(list(row) != list(to) for row, to in zip(view.replicas, wanted, strict=True))

    def _parts(self) -> Iterator[Family]:
        for key, value in self._gauges().items():
            if key in COUNTERS:
                yield counter(*COUNTERS[key], value)
            elif key in GAUGES:
                yield gauge(*GAUGES[key], value)

    def _memory(self) -> Iterator[Family]:
        core = self._core
        core.room.look()
        stored = core.room.gauges()
        yield gauge(
            "remuda_statement_memory_limit_bytes",
            "Memory that statements may hold.",
            core.memory.limit or 0,
        )
        yield gauge(
            "remuda_statement_memory_peak_bytes",
            "Most that statements have held.",
            core.memory.peak,
        )
        yield gauge(
            "remuda_storage_bytes",
            "Bytes of rows with their older versions, backups, indexes and staged rows.",
            stored["storage_held"],
        )
        yield gauge(
            "remuda_storage_limit_bytes", "Bytes that may be stored.", stored["storage_limit"]
        )
        yield counter(
            "remuda_writes_refused_total",
            "Writes refused because this member or a map was full.",
            stored["writes_refused"],
        )

    def _maps(self) -> Iterator[Family]:
        core = self._core
        at = core.clock.last
        sums: dict[str, list[float]] = {}
        for map_id, store in core.stores.items():
            schema = core.catalog.shown.find_id(map_id)
            own = schema is not None and len(sums) < MAPS_SHOWN
            name = schema.name if schema is not None and own else OTHER_MAPS
            backup = core.backup_stores.get(map_id)
            counters = store.counters
            values: list[float] = [
                store.rows, store.bytes, 0 if backup is None else backup.bytes,
                counters.gets, counters.misses, counters.puts, counters.removes,
                counters.evictions, counters.idle + expirations(store, at),
            ]  # fmt: skip
            known = sums.get(name)
            sums[name] = (
                values if known is None else list(map(sum, zip(known, values, strict=True)))
            )
        for position, (name, kind, help_text) in enumerate(_MAP_FAMILIES):
            values_by_map = [(label, values[position]) for label, values in sums.items()]
            yield by_label(name, kind, help_text, "map", values_by_map)

    def _change_streams(self) -> Family:
        core = self._core
        now = core.world.clock.wall_micros()
        slowest: dict[tuple[str, str], float] = {}
        for each in self._subscriptions():
            lag = max(0.0, (now - to_micros(each.position)) / 1e6) if each.position else 0.0
            key = (each.map, each.kind)
            slowest[key] = max(slowest.get(key, 0.0), lag)
        return Family(
            "remuda_change_stream_lag_seconds",
            "gauge",
            "Age of the last change sent to the slowest reader of a map, by kind of reader.",
            [
                Sample({"map": name, "kind": kind}, lag)
                for (name, kind), lag in sorted(slowest.items())
            ],
        )


_MAP_FAMILIES: Final = (
    ("remuda_map_entries", "gauge", "Entries that this member is the primary of."),
    ("remuda_map_bytes", "gauge", "Bytes of the rows that this member is the primary of."),
    ("remuda_map_backup_bytes", "gauge", "Bytes of the rows that this member backs up."),
    ("remuda_map_gets_total", "counter", "Keys that were asked for."),
    ("remuda_map_misses_total", "counter", "Keys that were asked for and not there."),
    ("remuda_map_puts_total", "counter", "Entries put."),
    ("remuda_map_removes_total", "counter", "Entries removed."),
    ("remuda_map_evictions_total", "counter", "Entries removed because the map was full."),
    ("remuda_map_expirations_total", "counter", "Entries that have expired, or were idle."),
)


def ready(core: Core) -> bool:
    """Whether a load balancer should send clients here."""
    return core.serving and core.ready and not core.departure.dismissing
