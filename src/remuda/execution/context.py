"""The environment that a member gives to a fragment, as value types and protocols.

All protocols here are implemented in ``member``. Their methods are called from the pool's threads
(or from the loop, for fragments that run inline), so implementations are thread-safe and never
block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.execution.arrays import Indices
from remuda.execution.instances import Sites
from remuda.execution.memory import MemoryAccount
from remuda.execution.profile import OperatorProfile
from remuda.execution.rounds import Rounds
from remuda.query.ids import Endpoint, QueryId
from remuda.query.stream import Grant
from remuda.storage.indexes.access import Access, Probe


class Cursor(Protocol):
    """A scan in progress (``storage.ScanCursor``): one thread at a time."""

    def next(self) -> pa.RecordBatch | None:
        """The next visible rows, in engine form; None at the end."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ScanOf:
    """The part of a map to read: the columns at ``positions`` of ``schema_version`` of the rows
    that are visible at the timestamp ``at`` and lie in ``partitions`` (None: in all of this
    member)."""

    map_id: int
    schema_version: int
    at: int
    positions: Sequence[int]
    partitions: frozenset[int] | None = None


class TableCursor(Cursor, Protocol):
    def share(self) -> TableCursor:
        """Another cursor, for another thread: it takes what this one and its other shares have not
        taken. To be called before ``next``."""


class Sources(Protocol):
    """The maps of this member. All methods raise TransientErrors (schema changed, view changed)."""

    def ready(self, map_id: int, at: int) -> bool:
        """False while transactions prepared at or below ``at`` are undecided: the operator WAITs
        and the member schedules the fragment again when they are resolved (design rule 15)."""

    def scan(self, of: ScanOf) -> TableCursor: ...

    def counter(self, map_id: int) -> Callable[[int], None]:
        """To be called with the number of rows that a scan has given. Any thread."""

    def index_scan(self, of: ScanOf, access: Access) -> Cursor:
        """The rows that pass ``access``, and perhaps others."""

    def ordered_scan(self, of: ScanOf, probe: Probe, descending: bool) -> Cursor:
        """The rows that pass ``probe``, in the order of its SORTED index or backwards."""

    def index_match(
        self, of: ScanOf, index_id: int, columns: Sequence[pa.Array]
    ) -> tuple[pa.RecordBatch, Indices] | None:
        """The rows whose first indexed columns equal a row of ``columns``, which hold no NULL, and
        for each the number of that row; a HASH index gives others, too. None: no row."""

    def lookup(
        self,
        map_id: int,
        schema_version: int,
        at: int,
        keys: Sequence[tuple[PhysicalValue, ...]],
        partitions: frozenset[int] | None = None,
    ) -> list[tuple[PhysicalValue, ...] | None]:
        """Whole rows (schema order) by whole keys, None where a key is absent or, if they are
        limited, not in ``partitions``."""


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """One batch as it goes on the wire.

    ``body`` is an Arrow IPC record batch message, preceded by the schema message when ``ordinal``
    is 0, in pieces; the concatenation is the dbody of the frame and ``size`` its length.
    ``sent_bytes`` counts all bytes of the stream up to and including this batch. The same frame is
    valid for all receivers it is addressed to: it goes once to each member, with the numbers of the
    instances.
    A last batch without rows has an empty body.
    """

    body: tuple[pa.Buffer, ...]
    size: int
    rows: int
    ordinal: int
    sent_bytes: int
    last: bool


class ExchangePort(Protocol):
    """The data channel as one query sees it; never called for the member itself."""

    def send_batch(
        self, edge: int, instance: int, receivers: Sequence[Endpoint], batch: EncodedBatch
    ) -> None:
        """From sending ``instance`` of this member. Raises nothing: a broken connection fails the
        query."""

    def send_flow_control(self, edge: int, instance: int, sender: Endpoint, grant: Grant) -> None:
        """To ``sender``, which feeds the receiving ``instance`` of this member."""


@dataclass(frozen=True)
class FragmentProfile:
    """The report of a finished fragment instance: one entry per operator in pre-order."""

    fragment: int
    member: int
    operators: tuple[OperatorProfile, ...]
    seconds: float
    peak_memory: int
    instance: int = 0


class FragmentListener(Protocol):
    """Called once per fragment instance, from whichever thread ran it: hop to the loop."""

    def on_done(self, profile: FragmentProfile) -> None: ...

    def on_failed(self, fragment: int, error: RemudaError) -> None: ...


SuppliedRows: TypeAlias = Sequence[pa.RecordBatch]
"""All rows of a relation that the initiator supplies, in engine form: its columns in order."""


@dataclass
class FragmentContext:
    """Shared by all fragments of one query on one member.

    ``owners[p]`` is the member number that owns partition ``p`` in the query's view; ``sites``
    tells which members run a fragment, and how many instances of it. ``partitions[f]`` limits the
    scans of a pruned fragment to those partitions; a fragment that is not there scans all that the
    member owns.
    ``read_timestamp`` is T. ``clock`` gives seconds for profiles and time slices.
    """

    query: QueryId
    member: int
    parameters: tuple[PhysicalValue, ...]
    read_timestamp: int
    owners: Sequence[int]
    sites: Sites
    sources: Sources
    exchange: ExchangePort
    clock: Callable[[], float]
    partitions: Mapping[int, frozenset[int]] = field(default_factory=dict)
    wall: float = 0.0
    """Seconds since 1970 when ``clock`` shows 0."""
    analyze: bool = False
    batch_rows: int = 0
    """Cut what scans put out to this many rows; 0 = as stored."""
    memory: MemoryAccount = field(default_factory=MemoryAccount)
    supplied: Mapping[str, SuppliedRows] = field(default_factory=dict)
    """The rows of the relations that ``SuppliedScan`` names; only the initiator has them."""
    rounds: Rounds | None = None
    """The plan is the step of a recursive query, which runs again and again over its own rows."""
