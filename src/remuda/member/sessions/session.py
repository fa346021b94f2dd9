"""Transactions of several requests, on the member that the client speaks to: the near member.

What a transaction has read and written lies here until it commits; nobody else knows of it. Other
members learn of its writes with the start of its queries, and of everything at the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.violations import key_text
from remuda.errors import (
    IdleTransaction,
    LimitExceeded,
    QueryTimeout,
    RemudaError,
    SchemaChanged,
    SerializationFailure,
    TransactionSuspended,
    TransactionTimeout,
    UndefinedTransaction,
)
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.metrics.traces import Traces
from remuda.member.sessions.committing import Committing
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.open_transaction import BLIND, OpenTransaction
from remuda.member.sessions.snapshots import Snapshots, same_row
from remuda.member.sessions.transaction_definitions import CatalogDecision, TransactionDefinitions
from remuda.member.state.clients import described
from remuda.member.state.transaction_sets import ReadSet, Write
from remuda.member.transactions.catalog_part import Decision
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.session.client_session import NO_SESSION, ClientSession
from remuda.transaction.isolation import NO_MODES, Modes
from remuda.transaction.own_writes import Key, OwnWrites, Row, canonical_key
from remuda.transaction.states import State, TransactionId, made

ENDED_KEPT: Final = 1_000
"""Ended transactions whose end is remembered, so that late requests learn of it."""
OPEN_MAX: Final = 10_000
LOCK_TIMEOUT: Final = 60.0
"""Seconds that a pessimistic transaction waits for a lock, if it may take as long."""
RUN_AGAIN: Final = "Run the transaction again."


class TransactionSessions:
    """The open transactions of this member's clients."""

    def __init__(
        self,
        core: Core,
        membership: Membership,
        committing: Committing,
        keys: KeyReader,
        catalog: CatalogService,
    ) -> None:
        self._core = core
        self._keys = keys
        self.snapshots = Snapshots(core, membership, keys)
        self._committing = committing
        self._open: dict[str, OpenTransaction] = {}
        self.definitions = TransactionDefinitions(
            core, catalog, committing, self._open.__contains__
        )
        self._ended: OrderedDict[str, RemudaError | None] = OrderedDict()
        """By id, the latest last: why others ended it; None: its client did."""
        self._timer: asyncio.TimerHandle | None = None
        self.on_timeout: list[Callable[[QueryId, RemudaError], None]] = []
        """Called with a statement that runs in a transaction which was rolled back, and why."""

    # --- begin and find -----------------------------------------------------------------------

    def begin(
        self,
        channel: ClientChannel,
        user: str,
        *,
        modes: Modes,
        defaults: Modes = NO_MODES,
        session: ClientSession = NO_SESSION,
        timeout: float | None = None,
        idle_timeout: float = 0.0,
        label: str = "",
        pessimistic: bool = False,
        traceparent: str = "",
    ) -> OpenTransaction:
        """Raises LimitExceeded."""
        core = self._core
        core.require_serving()
        if len(self._open) >= OPEN_MAX:
            raise LimitExceeded(
                f"member {core.number} has {OPEN_MAX} open transactions",
                hint="Commit or roll back transactions, or begin one on another member.",
            )
        now = core.world.clock.monotonic()
        begun = OpenTransaction(
            id=made(TransactionId, (core.timestamp(), core.number)),
            channel=channel,
            user=user,
            modes=modes,
            defaults=defaults,
            base=session,
            writes=OwnWrites(core.config.transaction_memory),
            started=core.world.clock.wall_micros(),
            deadline=now + (timeout or core.config.transaction_timeout or float("inf")),
            idle_timeout=idle_timeout or float("inf"),
            last_used=now,
            label=label,
            pessimistic=pessimistic,
            traceparent=traceparent,
        )
        self._open[begun.name] = begun
        self._follow()
        return begun

    def find(self, name: str, channel: ClientChannel, user: str) -> OpenTransaction:
        """The transaction of a request on ``channel``. Raises UndefinedTransaction,
        TransactionTimeout, TransactionSuspended."""
        found = self.known(name, channel, user)
        if found.state is State.SUSPENDED:
            raise TransactionSuspended(
                f"transaction {name} is suspended", hint="Resume it before using it."
            )
        return found

    def known(self, name: str, channel: ClientChannel, user: str) -> OpenTransaction:
        """``find``, suspended ones included."""
        found = self._open.get(name)
        if found is None or found.user != user:
            cause = self._ended.get(name)
            if cause is not None:
                raise type(cause)(cause.message, detail=cause.detail, hint=cause.hint)
            raise UndefinedTransaction(
                f"there is no open transaction {name} on member {self._core.number}",
                hint="It has ended, or its connection broke. Begin another one.",
            )
        if found.channel is not channel:
            found.channel = channel
        found.last_used = self._core.world.clock.monotonic()
        return found

    def still_open(self, transaction: OpenTransaction) -> None:
        """Raises as ``known`` when it has ended meanwhile."""
        if self._open.get(transaction.name) is not transaction:
            self.known(transaction.name, transaction.channel, transaction.user)

    def end(
        self,
        transaction: OpenTransaction,
        state: State,
        cause: RemudaError | None,
        error: RemudaError | None = None,
    ) -> None:
        """It is over, here at least. ``cause``: why others have ended it; ``error``: why its commit
        has failed."""
        transaction.state = state
        transaction.cursors.close_all()
        while transaction.at_end:
            transaction.at_end.pop()()
        if transaction.locked:
            self._committing.locks.release(transaction.id)
        if self._open.pop(transaction.name, None) is None:
            return
        if transaction.made_maps:
            self.definitions.ended()
        if self._core.traces is not None and not transaction.implicit:
            self._trace(self._core.traces, transaction, cause or error)
        self._ended[transaction.name] = cause
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _trace(
        self, traces: Traces, transaction: OpenTransaction, error: RemudaError | None
    ) -> None:
        attributes = {
            "remuda.transaction": transaction.name,
            "remuda.member": self._core.number,
            "remuda.state": transaction.state.value,
            "remuda.isolation": transaction.isolation.value,
            "remuda.pessimistic": transaction.pessimistic,
            "remuda.writes": transaction.writes.count,
        }
        began, parent = transaction.started / 1e6, transaction.traceparent
        traces.ended("remuda.transaction", parent, began, attributes, error)

    # --- the end ------------------------------------------------------------------------------

    async def commit(
        self, transaction: OpenTransaction, timeout: float | None = None
    ) -> int | None:
        """The commit timestamp, None when nothing was written; ``timeout``: seconds that whoever
        waits for it has. Raises SerializationFailure, TransactionTimeout, OutcomeUnknown and other
        TransientErrors; the transaction is over in any case."""
        async with transaction.turn:
            self.still_open(transaction)
            transaction.check()
            transaction.state = State.PREPARING
            try:
                at = await self._commit(transaction, timeout)
            except RemudaError as error:
                unknown = error.may_have_run
                self.end(transaction, State.UNKNOWN if unknown else State.ROLLED_BACK, None, error)
                if isinstance(error, SchemaChanged):
                    raise error.advising(RUN_AGAIN) from error  # not just a statement of it
                raise
            except BaseException:
                self.end(transaction, State.UNKNOWN, None)
                raise
            self.end(transaction, State.COMMITTED, None)
            if transaction.notifications is not None:
                await transaction.notifications.committed(at or 0)
            return at

    async def _commit(self, transaction: OpenTransaction, timeout: float | None) -> int | None:
        until = transaction.deadline
        if timeout is not None:
            until = min(until, self._core.world.clock.monotonic() + timeout)
        if transaction.bulk is not None:
            left = until - self._core.world.clock.monotonic()
            return await transaction.bulk.commit(None if left == float("inf") else max(left, 0.0))
        writes: list[Write] = []
        own = transaction.definitions
        for map_id, version, key, written in transaction.writes.entries():
            if own is not None and own.gives_up(map_id):
                continue
            writes.append(made(Write, (map_id, version, key, written.row, None, written.keeps)))
            if len(writes) % _LISTED_PER_STEP == 0:  # nobody changes them any more
                await asyncio.sleep(0)
        if transaction.notifications is not None:
            writes += await transaction.notifications.prepared()
        if own is None:
            return await self._commit_rows(transaction, writes, until)
        decision = CatalogDecision(self.definitions, transaction)
        at = await self._commit_rows(transaction, writes, until, decision)
        if at is None:
            await self.definitions.decide_alone(transaction)
        return at

    async def _commit_rows(
        self,
        transaction: OpenTransaction,
        writes: list[Write],
        until: float,
        decision: Decision | None = None,
    ) -> int | None:
        if not writes:
            if transaction.locks_reads:  # each key was read when it was locked: locks may be lost
                await self._unchanged_until(transaction)
            if decision is None or transaction.pessimistic:
                return None
        reads = await self._validated(transaction)
        if not writes and (reads is None or not (reads.keys or reads.scans)):
            return None
        left = until - self._core.world.clock.monotonic()
        limit = None if left == float("inf") else max(left, 0.0)
        owner = transaction.id if transaction.locked else None
        try:
            return await self._committing.commit(writes, reads, limit, owner, decision)
        except QueryTimeout as error:  # clients would take it for an answer that never came
            raise TransactionTimeout(error.message, hint=error.hint) from error

    async def _validated(self, transaction: OpenTransaction) -> ReadSet | None:
        """The reads that must be as they were."""
        if transaction.pessimistic:
            return transaction.reads_under_locks()
        if not transaction.isolation.moves_on:
            at = transaction.snapshot
            if not at:
                return None
            return transaction.reads.as_set(at)
        if not transaction.checked_since:
            return None
        if transaction.locked_since:
            return transaction.reads.as_set(transaction.checked_since)
        last = await self._unchanged_until(transaction)
        return ReadSet(last) if last else None

    async def _unchanged_until(self, transaction: OpenTransaction) -> int:
        """The timestamp of the last statement that wrote what it had read, 0 for none. Raises
        SerializationFailure when a row that an earlier one wrote was changed before that: the rest
        is for the commit to check. (Each statement of READ COMMITTED has its own.)"""
        read = transaction.first_reads()
        last = max((since for since in read.values() if since != BLIND), default=0)
        earlier: dict[tuple[int, int], list[Key]] = {}
        for (map_id, key), since in read.items():
            if since < last:
                earlier.setdefault((map_id, since), []).append(key)
        for (map_id, since), keys in earlier.items():
            schema = self._core.store(map_id, 0).schema
            before = await self._keys.rows(schema, keys, since)
            after = await self._keys.rows(schema, keys, last)
            for key, old, new in zip(keys, before, after, strict=True):
                if not same_row(old, new):
                    raise SerializationFailure(
                        f'a row of map "{schema.name}" was changed by others since it was read',
                        detail=key_text(schema, key),
                        hint=RUN_AGAIN,
                    )
        return last

    def roll_back(self, transaction: OpenTransaction, cause: RemudaError | None = None) -> None:
        """``cause``: why, if it was not its client who wanted it."""
        if transaction.state not in (State.PREPARING, State.COMMITTING):
            self.end(transaction, State.ROLLED_BACK, cause)

    def interrupt(self, transaction: OpenTransaction, error: RemudaError) -> None:
        """A request of it that waits for a lock ends with ``error``."""
        self._committing.locks.interrupt(transaction.id, error)

    def has_ended(self, name: str) -> bool:
        """Whether it was a transaction of this member, lately."""
        return name in self._ended

    # --- reading ------------------------------------------------------------------------------

    async def read_at(self, transaction: OpenTransaction) -> int:
        """See ``Snapshots``."""
        return await self.snapshots.read_at(transaction)

    async def lock(
        self, transaction: OpenTransaction, schema: MapSchema, keys: Iterable[Key]
    ) -> None:
        """Lock keys that a pessimistic transaction is about to write, until its end. An error fails
        it. Raises DeadlockDetected, LockNotAvailable, MemberUnavailable, SchemaChanged."""
        known = transaction.locked.setdefault(schema.map_id, {})
        wanted = [k for k in dict.fromkeys(map(canonical_key, keys)) if k not in known]
        if not wanted:
            return
        patience, client = self._patience(transaction), _client_of(transaction)
        with _failing(transaction):
            await self._committing.locks.lock(
                transaction.id, schema.map_id, wanted, timeout=patience, client=client
            )
        self._note_locked(transaction, schema, wanted, {})

    async def lock_and_read(
        self, transaction: OpenTransaction, schema: MapSchema, keys: Iterable[Key]
    ) -> list[Row | None]:
        """Lock keys that a pessimistic transaction is about to read, until its end, and read them,
        as they were when each was locked, or was read first since. The primary locks and reads a
        key in one step, so no other clock matters: every earlier commit to the key is there, and
        no other transaction writes it from then on. Fails and raises as ``lock``."""
        known = transaction.locked.setdefault(schema.map_id, {})
        own = list(map(canonical_key, keys))
        wanted = [key for key in dict.fromkeys(own) if known.get(key, BLIND) == BLIND]
        found: dict[Key, tuple[int, Row | None]] = {}
        if wanted:
            patience, client = self._patience(transaction), _client_of(transaction)
            with _failing(transaction):
                found = await self._committing.locks.lock_and_read(
                    transaction.id, schema, wanted, timeout=patience, client=client
                )
            self._note_locked(transaction, schema, wanted, found)
        rows = {key: row for key, (_, row) in found.items()}
        since: dict[int, list[Key]] = {}
        unread = [key for key in dict.fromkeys(own) if key not in rows]
        if any(known[key] == BLIND for key in unread):  # its primary could not read it just then
            now = await self.snapshots.now()
            transaction.note_locked(
                schema.map_id, [key for key in unread if known[key] == BLIND], now
            )
        for key in unread:
            since.setdefault(known[key], []).append(key)
        for at, group in since.items():
            rows.update(zip(group, await self._keys.rows(schema, group, at), strict=True))
        return [rows[key] for key in own]

    def _patience(self, transaction: OpenTransaction) -> float:
        left = transaction.deadline - self._core.world.clock.monotonic()
        return min(max(left, 0.001), transaction.lock_timeout or LOCK_TIMEOUT, LOCK_TIMEOUT)

    def _note_locked(
        self,
        transaction: OpenTransaction,
        schema: MapSchema,
        keys: Iterable[Key],
        found: Mapping[Key, tuple[int, Row | None]],
    ) -> None:
        transaction.note_locked(schema.map_id, keys, BLIND)
        for key, (at, _) in found.items():
            transaction.note_locked(schema.map_id, (key,), at)
        if transaction.state is not State.ACTIVE:  # it has ended meanwhile: nobody else would
            self._committing.locks.release(transaction.id)
            self.still_open(transaction)

    # --- events -------------------------------------------------------------------------------

    def channel_closed(self, channel: ClientChannel, cause: RemudaError) -> None:
        """Transactions end with their connection, unless they are suspended."""
        for transaction in list(self._open.values()):
            if transaction.channel is channel and transaction.state is not State.SUSPENDED:
                error = UndefinedTransaction(
                    f"transaction {transaction.name} was rolled back: its connection ended",
                    detail=cause.message,
                )
                self.roll_back(transaction, error)

    def end_open(self, cause: RemudaError) -> None:
        """Roll back every transaction that is not being committed; suspended ones, too."""
        for transaction in self:
            error = UndefinedTransaction(
                f"transaction {transaction.name} was rolled back: {cause.message}",
                hint="Run it again from the start: other members serve it.",
            )
            self.roll_back(transaction, error)

    def _follow(self) -> None:
        if self._timer is None and self._open:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def _tick(self) -> None:
        """Rolls back what has taken too long."""
        self._timer = None
        now = self._core.world.clock.monotonic()
        for transaction in list(self._open.values()):
            late = now >= transaction.deadline
            idle = now >= transaction.last_used + transaction.idle_timeout
            idle = idle and not transaction.running
            if late or idle:
                what = "took longer than it may" if late else "was idle for too long"
                error = (TransactionTimeout if late else IdleTransaction)(
                    f"transaction {transaction.name} {what} and was rolled back",
                    hint="Begin it again, with a longer timeout if it needs one.",
                )
                self.roll_back(transaction, error)
                if transaction.state is State.ROLLED_BACK:  # not one that is being committed
                    for query in list(transaction.running):
                        for listener in self.on_timeout:
                            listener(query, error)
        self._follow()

    def __iter__(self) -> Iterator[OpenTransaction]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def oldest_read(self) -> int | None:
        """The lowest timestamp that an open transaction reads at."""
        return min((t.oldest_read for t in self._open.values() if t.oldest_read), default=None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.snapshots.close()
        self._open.clear()


@contextlib.contextmanager
def _failing(transaction: OpenTransaction) -> Iterator[None]:
    """An error fails the transaction."""
    try:
        yield
    except RemudaError as error:
        transaction.failed(error)
        raise


def _client_of(transaction: OpenTransaction) -> str:
    return described(transaction.channel, transaction.label)


_LISTED_PER_STEP: Final = 10_000
_TICK: Final = 0.1
"""Seconds between two looks at the transactions' times."""
