"""An open transaction on its near member: its reads, writes and locks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from remuda.catalog.own.definitions import OwnDefinitions
from remuda.catalog.temporary import TemporaryTables
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    ActiveTransaction,
    FailedTransaction,
    LimitExceeded,
    ReadOnlyTransaction,
    RemudaError,
    UndefinedMap,
    UndefinedTransaction,
)
from remuda.execution.overlay import MapWrites, altered
from remuda.member.base.core import Core
from remuda.member.cursors.open_cursors import OpenCursors
from remuda.member.notifications.pending import PendingNotifications
from remuda.member.queries.query_start import QueryStart
from remuda.member.sessions.bulk_write import BulkWrite
from remuda.member.sessions.reads import OwnReads
from remuda.member.state.transaction_sets import ReadSet, Scan
from remuda.plan.physical import PhysicalPlan
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.messages import control_pb2
from remuda.session.client_session import ClientSession
from remuda.transaction.deferral import AS_DEFINED, Deferral
from remuda.transaction.isolation import Isolation, Modes
from remuda.transaction.own_writes import Key, OwnWrites, Row, canonical_key
from remuda.transaction.states import State, TransactionId

BLIND: Final = FOREVER
"""``since`` of a write by one who had not read: nothing that others commit is a conflict."""


@dataclass(eq=False)
class OpenTransaction:
    """One transaction. Everything on the loop's thread."""

    id: TransactionId
    channel: ClientChannel
    """The connection that used it last: its end is that of the transaction."""
    user: str
    modes: Modes
    defaults: Modes
    base: ClientSession
    """The client's session when it began: a rollback brings it back."""
    writes: OwnWrites
    started: int
    deadline: float
    idle_timeout: float
    last_used: float
    running: set[QueryId] = field(default_factory=set)
    """Its statements that have not ended: until then it is not idle."""
    label: str = ""
    traceparent: str = ""
    """The span in which its client began it, as W3C Trace Context has it."""
    implicit: bool = False
    """Of one autocommitted statement: its commit follows at once."""
    pessimistic: bool = False
    """It locks what it writes, and with REPEATABLE READ what it gets by key, before it reads it."""
    locked: dict[int, dict[Key, int]] = field(default_factory=dict)
    """By map id: the keys that are locked, and when each was read; BLIND if it was not."""
    state: State = State.ACTIVE
    snapshot: int = 0
    """The timestamp that it reads at; 0: none has been chosen."""
    loose: bool = False
    """Whether ``snapshot`` may lie below clocks of other members (``transaction_snapshots``)."""
    ceiling: int = 0
    """Of a loose one: a timestamp above the clocks that all members had when it had begun; 0: not
    known yet."""
    reads: OwnReads = field(default_factory=OwnReads)
    checked_since: int = 0
    """Of READ COMMITTED: the lowest timestamp of a statement whose reads the commit checks, or that
    wrote what it had read; 0: there was none."""
    locked_since: int = 0
    """The lowest timestamp of a SELECT ... FOR UPDATE; 0: there was none."""
    cause: RemudaError | None = None
    """The error that has failed it."""
    local: dict[str, str] = field(default_factory=dict)
    """The settings of SET LOCAL."""
    latest: ClientSession | None = None
    """The client's session since it was changed in the transaction; None: it was not."""
    kept: list[tuple[str, TemporaryTables | None]] = field(default_factory=list)
    """The session's temporary tables at each savepoint, by the names of these."""
    definitions: OwnDefinitions | None = None
    """Those that its COMMIT makes; None: there are none."""
    made_maps: bool = False
    """Whether it may have left maps without names."""
    deferral: Deferral = AS_DEFINED
    """The foreign keys that its statements leave to the commit."""
    deferral_at: list[Deferral] = field(default_factory=list)
    """At each savepoint."""
    definitions_at: list[OwnDefinitions | None] = field(default_factory=list)
    """At each savepoint."""
    read_only_at: list[bool] = field(default_factory=list)
    """At each savepoint: its end brings this back, whether it is released or rolled back to."""
    follows_definition: bool = False
    """Whether a definition has committed the changes that its client made before it, in a block
    that has not ended since."""
    asked: bool = False
    """Whether a statement has read or written in it: then its modes stand."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by who writes, and by the commit."""
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    cursors: OpenCursors = field(default_factory=OpenCursors)
    notifications: PendingNotifications | None = None
    """None: it has sent none, and listens to nothing else."""
    bulk: BulkWrite | None = None
    """The rows that it writes, if they are too many for ``writes``. It writes nothing else then."""
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called when it has ended, in whatever way."""

    @property
    def isolation(self) -> Isolation:
        return self.modes.isolation or self.defaults.isolation or Isolation.SERIALIZABLE

    @property
    def read_only(self) -> bool:
        said = self.modes.read_only
        return bool(self.defaults.read_only if said is None else said)

    @cached_property
    def name(self) -> str:
        return str(self.id)

    @property
    def open(self) -> bool:
        return self.state in (State.ACTIVE, State.SUSPENDED, State.MARKED_ROLLBACK)

    @property
    def lock_timeout(self) -> float | None:
        """Seconds that it waits for one lock, as its client's latest SET or SET LOCAL says; None:
        not set."""
        session = self.base if self.latest is None else self.latest
        if "lock_timeout" in self.local:
            return self.session(session).lock_timeout
        return session.lock_timeout

    def goes_on_with(self, session: ClientSession) -> None:
        """Its client has changed the session in it; a rollback still brings ``base`` back."""
        self.latest = session

    def session(self, session: ClientSession) -> ClientSession:
        """``session`` as statements of the transaction see it."""
        values = {
            **session.values,
            **self.local,
            "transaction_isolation": self.isolation.value,
            "transaction_read_only": "on" if self.read_only else "off",
            "transaction_deferrable": "on" if self.modes.over(self.defaults).deferrable else "off",
        }
        return ClientSession(
            values,
            session.prepared,
            session.user,
            database=session.database,
            defaults=session.defaults,
            numbers=session.numbers,
            temporary=session.temporary,
            definitions=self.definitions,
        )

    def check(self) -> None:
        """Raises FailedTransaction when a statement of it has failed."""
        if self.state is State.MARKED_ROLLBACK:
            raise FailedTransaction(
                "current transaction is aborted, commands ignored until end of transaction block",
                detail=f"cause: {self.cause.message}" if self.cause is not None else "",
                hint="ROLLBACK, or ROLLBACK TO a savepoint.",
            )

    def check_writable(self, what: str) -> None:
        """Raises ReadOnlyTransaction."""
        if self.read_only:
            raise ReadOnlyTransaction(f"cannot execute {what} in a read-only transaction")

    def describe(self, message: control_pb2.OpenTransaction) -> None:
        """For ``sys.transactions``."""
        message.transaction, message.state = self.name, self.state.name
        message.isolation, message.read_only = self.isolation.value, self.read_only
        message.user, message.label = self.user, self.label
        message.started, message.snapshot = self.started, self.snapshot
        message.writes, message.bytes = self.writes.count, self.writes.bytes
        message.reads, message.savepoints = self.reads.count, len(self.writes.savepoints)

    @property
    def bare(self) -> bool:
        """Whether its commit has nothing to look at and nothing to write so far."""
        reads = self.isolation is Isolation.SERIALIZABLE and self.reads.count
        held = self.locked or self.checked_since or self.locked_since or self.pessimistic
        rest = self.implicit or self.notifications is not None or self.bulk is not None
        rest = rest or self.definitions is not None
        return not (self.writes.count or self.kept or reads or held or rest)

    def writes_in_bulk(self, bulk: BulkWrite) -> None:
        """That is all that it writes, as it is ``bare``. Raises as ``write``."""
        self._check_active()
        self.bulk = bulk
        self.at_end.append(bulk.close)

    def _check_alone(self, *map_ids: int) -> None:
        """Raises NotSupported if it writes in bulk; ``map_ids``: it only reads these, and its
        commit looks at no reads."""
        if self.bulk is None:
            return
        if not map_ids or self.bulk.map_id in map_ids:
            raise self.bulk.alone

    def announces(self, notifications: PendingNotifications) -> None:
        """From now on its commit sends and chooses what these say. Raises NotSupported if it writes
        in bulk."""
        self._check_alone()
        self.notifications = notifications

    def kept_at(self, name: str, *, ends: bool = False) -> TemporaryTables | None:
        """The temporary tables at a savepoint, without those that were set later, or without it as
        well if it ``ends``."""
        place = max(place for place, (known, _) in enumerate(self.kept) if known == name)
        found = self.kept[place][1]
        del self.kept[place + (not ends) :]
        return found

    def defines(self, definitions: OwnDefinitions) -> None:
        """From now on its statements see these. Raises NotSupported if it writes in bulk."""
        self._check_alone()
        self.definitions = definitions

    def makes_maps(self) -> None:
        """Its member looks for those that are left when it ends. Raises as ``defines``."""
        self._check_alone()
        self.made_maps = True

    def defers(self, deferral: Deferral) -> None:
        """From now on its statements leave these foreign keys to the commit."""
        self.deferral = deferral

    def savepoint(self, name: str) -> None:
        """A place to go back to. LimitExceeded."""
        self.writes.savepoint(name)
        self.definitions_at.append(self.definitions)
        self.deferral_at.append(self.deferral)
        self.read_only_at.append(self.read_only)

    def roll_back_to(self, name: str) -> None:
        """To a savepoint; what had failed since is forgiven. UndefinedSavepoint."""
        self.writes.rollback_to(name)
        kept = len(self.writes.savepoints)
        self.definitions = self.definitions_at[kept - 1]
        self.deferral = self.deferral_at[kept - 1]
        self._read_only_as(kept - 1)
        del self.definitions_at[kept:], self.deferral_at[kept:], self.read_only_at[kept:]
        self.cursors.rolled_back_to(kept)
        if self.notifications is not None:
            self.notifications.own.rolled_back_to(len(self.writes.savepoints))
        if self.state is State.MARKED_ROLLBACK:
            self.state, self.cause = State.ACTIVE, None

    def release(self, name: str) -> None:
        """Forget a savepoint. UndefinedSavepoint."""
        self.writes.release(name)
        kept = len(self.writes.savepoints)
        self._read_only_as(kept)
        del self.definitions_at[kept:], self.deferral_at[kept:], self.read_only_at[kept:]
        self.cursors.released(len(self.writes.savepoints))
        if self.notifications is not None:
            self.notifications.own.released(len(self.writes.savepoints))

    def _read_only_as(self, place: int) -> None:
        """As at a savepoint: READ ONLY that was said since ends with it."""
        if self.read_only_at[place] is not self.read_only:
            self.modes = replace(self.modes, read_only=self.read_only_at[place])

    def failed(self, error: RemudaError) -> None:
        """A statement of it has failed: only a rollback is possible from now on."""
        if self.state in (State.ACTIVE, State.SUSPENDED):
            self.state, self.cause = State.MARKED_ROLLBACK, error

    def overlay(self, map_ids: Iterable[int], core: Core) -> tuple[MapWrites, ...]:
        """Its writes to these maps, as they are now. Raises SerializationFailure for a map that was
        altered since, NotSupported for one that it writes in bulk."""
        found = []
        for map_id in map_ids:
            self._check_alone(map_id)
            own = self.writes.maps.get(map_id)
            if own is None:
                continue
            store = core.stores.get(map_id)
            if store is None or store.schema.version != own.schema_version:
                raise altered(core.dropped.get(map_id, "") if store is None else store.schema.name)
            rows = {key: written.row for key, written in own.written.items()}
            found.append(MapWrites(store.schema, rows))
        return tuple(found)

    def note_query(self, start: QueryStart, *, locking: bool = False) -> None:
        """The reads of a query, if the commit checks them."""
        if locking:
            at = start.read_timestamp
            self.locked_since = min(self.locked_since or at, at)
            self._checks(at)
        if locking or self.isolation is Isolation.SERIALIZABLE:
            if start.plan.dependencies:
                self._check_alone()
            self.reads.add_query(start)

    def note_plan(self, plan: PhysicalPlan, values: tuple[PhysicalValue, ...]) -> None:
        """The reads of a query that read all partitions, if the commit checks them."""
        if self.isolation is Isolation.SERIALIZABLE:
            self.reads.add_plan(plan, values)

    def note_table(self, schema: MapSchema, at: int) -> None:
        """Nobody else writes the map between ``at`` and the commit, or that fails. Raises
        NotSupported if it writes in bulk."""
        self._check_alone()
        self.locked_since = min(self.locked_since or at, at)
        self._checks(at)
        self.reads.add_scan(Scan(schema.map_id, schema.version))

    def _checks(self, since: int) -> None:
        self.checked_since = min(self.checked_since or since, since)

    def note_locked(self, map_id: int, keys: Iterable[Key], since: int) -> None:
        """Keys that are locked have been read at ``since``, or not at all (BLIND)."""
        known = self.locked.setdefault(map_id, {})
        for key in keys:
            own = canonical_key(key)
            known[own] = min(known.get(own, BLIND), since)
        if since != BLIND:
            self._checks(since)

    @property
    def locks_reads(self) -> bool:
        return self.pessimistic and not self.isolation.moves_on

    @property
    def oldest_read(self) -> int:
        """Versions of this timestamp are still needed; 0: of none."""
        needed = [at for at in (self.snapshot, self.checked_since) if at]
        return min(needed, default=0)

    def note_keys(self, schema: MapSchema, keys: Sequence[Key]) -> None:
        if self.isolation is Isolation.SERIALIZABLE:
            self._check_alone()
            self.reads.add_keys(schema.map_id, schema.version, keys)

    def own(self, map_id: int, key: Key) -> tuple[bool, Row | None]:
        """Whether it has written the key, and what (None: removed). Raises NotSupported for a map
        that it writes in bulk."""
        if self.bulk is not None:
            self._check_alone(map_id)
        written = self.writes.of(map_id).get(canonical_key(key))
        return (False, None) if written is None else (True, written.row)

    def write(
        self,
        map_id: int,
        version: int,
        entries: Mapping[Key, Row | None],
        since: int,
        keeps: bool = False,
        *,
        made: bool = False,
    ) -> None:
        """All entries or none. ``keeps``: see ``Written``; ``made``: to a map that its next
        definitions name. Raises LimitExceeded, FailedTransaction, UndefinedTransaction if it has
        ended meanwhile, SerializationFailure for a map that was altered since the last write,
        ActiveTransaction for a map of others that it has altered, NotSupported if it writes in
        bulk."""
        self._check_active()
        if self.definitions is not None and not made:
            self._check_form(self.definitions, map_id)
        if self.bulk is not None:
            self._check_alone()
        own = self.writes.maps.get(map_id)
        if own is not None and own.schema_version != version:
            raise altered(str(map_id))
        mark = self.writes.mark
        if since != BLIND:
            self._checks(since)
        try:
            for key, row in entries.items():
                self.writes.write(map_id, version, canonical_key(key), row, since, keeps)
        except LimitExceeded:
            self.writes.undo(mark)
            raise

    @staticmethod
    def _check_form(own: OwnDefinitions, map_id: int) -> None:
        if own.gives_up(map_id):
            before = own.base.find_id(map_id)
            name = str(map_id) if before is None else before.local
            raise UndefinedMap(f'relation "{name}" does not exist')
        changed = map_id in own.altered or map_id in own.constrained
        schema = own.own.find_id(map_id) if changed else None
        if schema is not None:
            raise own_form(schema)

    def _check_active(self) -> None:
        self.check()
        if self.state is not State.ACTIVE:
            raise UndefinedTransaction(
                f"transaction {self.name} was {self.state.value} meanwhile",
                hint="Begin another one.",
            )

    def first_reads(self) -> dict[tuple[int, Key], int]:
        """By map id and key, when it first read what it has locked or written; BLIND: it has
        not."""
        found = {(map_id, key): written.since for map_id, _, key, written in self.writes.entries()}
        for map_id, locked in self.locked.items():
            for key, since in locked.items():
                found[map_id, key] = min(since, found.get((map_id, key), BLIND))
        return found

    def reads_under_locks(self) -> ReadSet | None:
        """The keys that a pessimistic one has read, each at the clock of its primary. Its locks
        keep others from changing them; the commit looks all the same, since locks are lost with
        their primary, and bulk writes pass them by."""
        since = {held: at for held, at in self.first_reads().items() if at != BLIND}
        if not since:
            return None
        keys: dict[int, set[Key]] = {}
        for map_id, key in since:
            keys.setdefault(map_id, set()).add(key)
        return ReadSet(max(since.values()), keys, since=since)


def own_form(schema: MapSchema) -> ActiveTransaction:
    return ActiveTransaction(
        f'the rows of table "{schema.local}" cannot be read or written in the transaction that has '
        "altered it",
        hint="COMMIT first: the rows have their new form then.",
    )
