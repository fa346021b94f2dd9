"""Puts and removes of entries of one partition, at its primary: one phase, over the backups
(design rules 17 and 27).

A write waits in front of everything until its keys are free; then it reads, decides its condition
and prepares in one step, so that a condition is decided under the lock of its key. Its decisions go
to the backups as plain writes, validated against the timestamp at which it was decided: a promoted
backup that gets it once more refuses it when the key has changed since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    ConnectionBroken,
    JobAborted,
    OutcomeUnknown,
    QueryCanceled,
    RemudaError,
    SerializationFailure,
    SnapshotTooOld,
    TransientError,
    ViewChanged,
)
from remuda.member.base.core import Call, Core, bug
from remuda.member.state.clients import described
from remuda.member.state.lifetimes import refuse_lifetime
from remuda.member.state.lock_rows import LockRow
from remuda.member.state.log import fields
from remuda.member.state.transaction_sets import Key, PartWork, ReadSet, Row, Write
from remuda.member.transactions.pending import Held
from remuda.member.transactions.transactions import Transactions
from remuda.query.ids import QueryId
from remuda.rpc.transport import Request
from remuda.storage.maps.map_store import MapStore
from remuda.transaction import states as tx
from remuda.transaction.locks import Mode

log = logging.getLogger(__name__)

WAIT_MAX = 30.0
"""Seconds after which a write that still waits is refused, and one whose backups do not answer is
of unknown outcome."""
PAUSE = 0.001
PAUSE_MAX = 0.05

Rows = Sequence[Row | None]
Decide = Callable[[list[Row | None]], tuple[list[tuple[Key, Row | None]], list[Row | None]]]
"""From the rows that are there to the rows to write, and the rows to answer with."""
Answered = Callable[[list[Row | None] | RemudaError], None]


@dataclass(eq=False, slots=True)
class SmallWrite:
    """``answered`` hears the rows to answer with when all synchronous backups have the writes, or
    why nothing was written; ViewChanged: the partition has got another primary before."""

    schema: MapSchema
    partition: int
    keys: Sequence[Key]
    decide: Decide
    answered: Answered
    ttl: int | None = None
    """Of the rows, in microseconds; 0: for ever; None: as the map says."""
    call: Call | None = None
    """Of the client that wants it, if one does."""
    statement: QueryId | None = None
    """That the write belongs to, if one does."""
    waits: Callable[[], None] | None = None
    """Called once, when the write must wait for a key or for its partition."""
    blind: bool = False
    """``decide`` asks whether there are rows, not for what is in them: it gets empty ones."""
    deadline: float = 0.0
    prepared: bool = False
    told: bool = False
    """It was answered before its backups had it, as its map says."""
    attempts: int = 0
    obstacle: str = ""


class SmallWrites:
    def __init__(self, core: Core, transactions: Transactions) -> None:
        self._core = core
        self._transactions = transactions
        self._shell = transactions.shell
        self._running: dict[SmallWrite, None] = {}
        transactions.on_tick.append(self._expire)

    def __len__(self) -> int:
        return len(self._running)

    def write(self, write: SmallWrite) -> None:
        write.deadline = self._core.world.clock.monotonic() + WAIT_MAX
        self._running[write] = None
        self._try(write)

    def withdraw(self, write: SmallWrite, error: RemudaError | None = None) -> None:
        """It is not wanted any more: unless it is prepared, it ends with ``error``, or with
        QueryCanceled."""
        if not write.prepared:
            error = error or QueryCanceled("the write was cancelled while it waited")
            self._answer(write, error.knowing(may_have_run=False))

    def backup_lag(self) -> float:
        """Seconds since the oldest write began that is prepared here and that a backup has not
        acknowledged; 0 without one. With asynchronous backups, a loss of this member loses what
        was written in that time."""
        begun = next((each.deadline for each in self._running if each.prepared), None)
        if begun is None:
            return 0.0
        return max(0.0, self._core.world.clock.monotonic() - (begun - WAIT_MAX))

    def rows(self) -> Iterator[LockRow]:
        """Writes that wait for a key that somebody holds."""
        now, wall = self._core.world.clock.monotonic(), self._core.world.clock.wall_micros()
        for write in self._running:
            if write.prepared or not write.obstacle:
                continue
            since = wall - round((now - write.deadline + WAIT_MAX) * 1e6)
            channel = write.call.channel if isinstance(write.call, Request) else None
            client = "" if channel is None else described(channel)
            for key in write.keys:
                if blockers := self._holders((write.schema.map_id, key)):
                    yield LockRow(
                        write.schema.map_id, key, "write", Mode.EXCLUSIVE, False, "", client,
                        since, blockers, channel, write.statement,
                    )  # fmt: skip

    def _holders(self, held: Held) -> tuple[str, ...]:
        shell = self._shell
        parts = [str(address[0]) for address in shell.pending.holders(held)]
        holder = self._transactions.locks.holder(held, None, write=True)
        return tuple(parts) if holder is None else (*parts, str(holder))

    def _answer(self, write: SmallWrite, answer: list[Row | None] | RemudaError) -> None:
        if write not in self._running:
            return
        del self._running[write]
        if not write.told:
            write.answered(answer)
        elif isinstance(answer, RemudaError):
            log.warning(
                "a write was lost after its answer, as asynchronous backups may lose one",
                extra=fields(map=write.schema.name, cause=answer.message),
            )

    def _try(self, write: SmallWrite) -> None:
        if write not in self._running:
            return
        try:
            channel = write.call.channel if isinstance(write.call, Request) else None
            if channel is not None and channel.closed and not write.attempts:
                raise ConnectionBroken("the client is gone, and its write was not begun")
            if self._waits(write):
                if write.waits is not None:
                    told, write.waits = write.waits, None
                    told()
            else:
                self._core.store(write.schema.map_id, write.schema.version)  # altered meanwhile?
                self._prepare(write)
        except RemudaError as error:
            self._answer(write, error)
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            self._answer(write, bug(error, f'a write of map "{write.schema.name}"'))

    def _waits(self, write: SmallWrite) -> bool:
        shell, map_id, locks = self._shell, write.schema.map_id, self._transactions.locks
        if shell.layout.primary(write.partition) != self._core.number:
            raise ViewChanged(
                f"partition {write.partition} has got another primary than member "
                f"{self._core.number}"
            )
        again = partial(self._try, write)
        obstacle = shell.admission.obstacle(write.partition, (map_id,))
        if obstacle is not None:
            self._core.require_decidable(map_id)
            write.obstacle = obstacle
            shell.admission.when_open(again)
            return True
        for key in write.keys:
            if (map_id, key) in shell.pending.keys:
                self._transactions.require_decidable(write.schema, [key])
                write.obstacle = "another write of the same key is being committed"
                shell.pending.when_free(map_id, key, again)
                return True
            if locks.table.held and locks.holder((map_id, key), None, write=True) is not None:
                write.obstacle = "a transaction has locked its key"
                locks.when_released((map_id, key), again)
                return True
        return False

    def _prepare(self, write: SmallWrite) -> None:
        core, schema = self._core, write.schema
        at = core.timestamp()
        store = core.copy_of(schema.map_id, write.partition)
        before: list[Row | None] = []
        for key in write.keys:
            if write.blind:
                before.append(() if store.has(key, at) else None)
            else:
                before.append(store.get(key, at))
        chosen, answer = write.decide(before)
        if not chosen:
            self._answer(write, answer)
            return
        ttl = store.schema.options.ttl if write.ttl is None else write.ttl
        if schema.concerns_others and self._concerns_others(write, chosen, store, at):
            writes = [Write(schema.map_id, schema.version, key, row, ttl) for key, row in chosen]
            write.prepared = True
            core.spawn(self._commit(write, writes, answer, at), "a write of unique values")
            return
        writes = []
        for key, row in chosen:
            writes.append(tx.made(Write, (schema.map_id, schema.version, key, row, ttl, False)))
        write.prepared = True
        work = tx.made(PartWork, (at, tuple(writes), (), (), None, ()))
        ended = partial(self._ended, write, answer)
        shell = self._shell
        held = shell.begin_alone(write.partition, work, ended)
        if not held:
            near = shell.begin({write.partition: work}, ended, one_phase=True)
            held = (near.transaction, write.partition) in shell.pending.parts
        early = store.schema.options.async_backups and not shell.backup_room.may_refuse(
            shell.layout.backups(write.partition)
        )
        if early and held and write in self._running:
            # It holds its keys (a part may also be prepared a little later, and be refused then).
            # Readers of them wait until it is visible, so whoever has written it sees it.
            write.told = True
            write.answered(answer)

    def _concerns_others(
        self,
        write: SmallWrite,
        chosen: Sequence[tuple[Key, Row | None]],
        store: MapStore,
        at: int,
    ) -> bool:
        """Whether a row gets values of a unique index or of a foreign key that it did not have, or
        one goes that others may name. Raises NotSupported for one of these with a TTL."""
        schema = write.schema
        positions = [schema.position[n] for index in schema.uniques for n in index.names]
        positions += [schema.position[n] for key in schema.foreign_keys for n in key.columns]
        for key, row in chosen:
            if row is None:
                if schema.children:
                    return True
                continue
            refuse_lifetime(schema, write.ttl)
            old = store.get(key, at) if positions else None
            if positions and (old is None or any(row[p] != old[p] for p in positions)):
                return True
        return False

    async def _commit(
        self, write: SmallWrite, writes: Sequence[Write], answer: list[Row | None], at: int
    ) -> None:
        """As a transaction, since rows of other partitions have a say."""
        left = write.deadline - self._core.world.clock.monotonic()
        try:
            await self._transactions.commit(writes, ReadSet(at), max(left, PAUSE))
        except (SerializationFailure, SnapshotTooOld) as error:
            write.prepared = False
            write.obstacle = f"others were committing the same values: {error.message}"
            self._again(write)
        except RemudaError as error:
            self._answer(write, error)
        except Exception as error:  # noqa: BLE001 (a task of its own: nobody else would answer)
            self._answer(write, bug(error, f'a write of map "{write.schema.name}"'))
        else:
            self._answer(write, answer)

    def _again(self, write: SmallWrite) -> None:
        """In a moment."""
        pause = min(PAUSE * 2 ** min(write.attempts, 10), PAUSE_MAX)
        write.attempts += 1
        asyncio.get_running_loop().call_later(pause, self._try, write)

    def _ended(self, write: SmallWrite, answer: list[Row | None], report: tx.Report) -> None:
        if report.state is tx.State.COMMITTED:
            self._answer(write, answer)
        elif report.state is tx.State.UNKNOWN:
            self._answer(write, _unknown(write, "this member was dropped from the cluster"))
        elif isinstance(report.cause, SerializationFailure | SnapshotTooOld) and not write.told:
            # A transaction that is about to commit is in the way, or another member has become the
            # primary before it heard of the write. (One that was answered is not written later:
            # its client may have written the key once more.)
            write.prepared = False
            self._again(write)
        else:
            self._answer(write, report.cause or JobAborted("the write was rolled back"))

    def _expire(self, now: float) -> None:
        """The oldest ones come first."""
        for write in list(self._running):
            if now < write.deadline:
                return
            if write.prepared:
                error: RemudaError = _unknown(write, "a backup does not answer")
            else:
                error = TransientError(
                    f'a write of map "{write.schema.name}" waited for {WAIT_MAX:.0f} s: '
                    + (write.obstacle or "a transaction that reads its key is about to commit"),
                    hint="Write again.",
                )
            self._answer(write, error)


def _unknown(write: SmallWrite, cause: str) -> RemudaError:
    return OutcomeUnknown(
        f'it is not known whether a write of map "{write.schema.name}" has taken effect: {cause}',
        hint="Read the entry, then write again if need be.",
    )
