"""Rows of ``sys.clients``, ``sys.locks``, ``sys.lock_waits``, ``pg_stat_activity``, ``pg_locks``.

A member that does not answer soon has one row in the relations of ``sys``, whose state says so, and
none in those of PostgreSQL. Texts, keys and labels of others are for administrators.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from remuda.catalog.system_relations import DATABASE, OWNER
from remuda.member.base.access import HIDDEN_TEXT
from remuda.member.base.core import Core
from remuda.member.base.round import Gathered, no_answer
from remuda.member.sessions.statement import Statement
from remuda.member.system.activity_report import ActivityReport
from remuda.member.system.advisory_rows import AdvisoryRows
from remuda.query.ids import QueryId
from remuda.query.wire import decode_query_id
from remuda.rpc.messages import control_pb2
from remuda.transaction.locks import Mode
from remuda.transaction.states import State

Row = tuple[Any, ...]
Message = control_pb2

_DATABASE_OID: Final = 5
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PG_MODES: Final = {Mode.EXCLUSIVE.value: "ExclusiveLock", Mode.SHARED.value: "ShareLock"}


@dataclass
class Worker:
    """A client with all that it has open; ``client`` None: it is not known where it is."""

    member: int
    client: Message.ConnectedClient | None = None
    statements: list[Message.RunningStatement] = field(default_factory=list)
    transactions: list[Message.OpenTransaction] = field(default_factory=list)
    waits: list[Message.HeldLock] = field(default_factory=list)

    @property
    def pid(self) -> int | None:
        return self.client.pid if self.client is not None else None

    @property
    def user(self) -> str:
        return self.client.user if self.client is not None else ""

    @property
    def statement(self) -> Message.RunningStatement | None:
        """The oldest that runs."""
        return min(self.statements, key=lambda each: each.started, default=None)

    @property
    def transaction(self) -> Message.OpenTransaction | None:
        """The oldest that is open."""
        return min(self.transactions, key=lambda each: each.started, default=None)

    @property
    def state(self) -> str:
        """As pg_stat_activity has it."""
        if self.statements or self.waits or any(each.busy for each in self.transactions):
            return "active"
        if not self.transactions:
            return "idle"
        failed = all(each.state == State.MARKED_ROLLBACK.name for each in self.transactions)
        return "idle in transaction (aborted)" if failed else "idle in transaction"

    @property
    def changed(self) -> int:
        """Since when, in microseconds; 0: since it connected."""
        found = [self.client.changed] if self.client is not None else []
        return max([*found, *(each.used for each in self.transactions)], default=0)

    @property
    def application(self) -> str:
        """The label of its transaction, or else the name of the client."""
        labels = [each.label for each in self.transactions if each.label]
        return labels[0] if labels else self.client.application if self.client is not None else ""


class Answers:
    """The answers of all members, put together."""

    def __init__(self, found: Gathered[Message.Activity]) -> None:
        self.silent = found.silent
        self.workers: list[Worker] = []
        self.waits: list[Message.HeldLock] = []
        """Of all clients, if the locks were not asked for."""
        self._by_pid: dict[int, Worker] = {}
        self._by_owner: dict[str, Worker] = {}
        self._by_statement: dict[QueryId, Worker] = {}
        for member, activity in found.known.items():
            self._read(member, activity)
        for activity in found.known.values():
            for lock in activity.locks:
                waiter = self.worker(lock)
                if not lock.granted:
                    self.waits.append(lock)
                    if waiter is not None:
                        waiter.waits.append(lock)

    def _read(self, member: int, activity: Message.Activity) -> None:
        for client in activity.clients:
            self.workers.append(worker := Worker(member, client))
            self._by_pid[client.pid] = worker
        for statement in activity.statements:
            owner = self._by_pid.get(statement.pid)
            if owner is not None:
                owner.statements.append(statement)
                self._by_statement[decode_query_id(statement.query_id)] = owner
                if statement.job:
                    self._by_owner[statement.job] = owner
        for transaction in activity.transactions:
            worker = self._by_pid.get(transaction.pid) or Worker(member)
            worker.transactions.append(transaction)
            self._by_owner[transaction.transaction] = worker

    def worker(self, lock: Message.HeldLock) -> Worker | None:
        """The client that holds or wants the lock."""
        if lock.HasField("query_id"):
            return self._by_statement.get(decode_query_id(lock.query_id))
        return self._by_owner.get(lock.owner) or self._by_pid.get(lock.pid)

    def holder(self, owner: str) -> Worker | None:
        """The client of a transaction or a job."""
        return self._by_owner.get(owner)


class ActivityRelations:
    def __init__(self, core: Core, report: ActivityReport, advisory: AdvisoryRows) -> None:
        self._core = core
        self._report = report
        self._advisory = advisory

    def suppliers(self) -> dict[str, Callable[[Statement], Awaitable[Iterable[Row]]]]:
        return {
            "sys.clients": self._clients,
            "sys.lock_waits": self._lock_waits,
            "pg_catalog.pg_stat_activity": self._pg_stat_activity,
        }

    def paged(self) -> dict[str, Callable[[Statement], AsyncIterator[Iterable[Row]]]]:
        """Those that may have millions of rows, page by page."""
        return {"sys.locks": self._locks, "pg_catalog.pg_locks": self._pg_locks}

    async def _answers(self) -> Answers:
        return Answers(await self._report.all())

    # --- what a user may see ------------------------------------------------------------------

    def _text(self, asking: Statement, owner: Worker | None, text: str | None) -> str | None:
        """A text of somebody, for those who may see it."""
        user = owner.user if owner is not None else ""
        return text if not text or self._core.access.owns(asking.user, user) else HIDDEN_TEXT

    def _place(self, asking: Statement, lock: Message.HeldLock) -> tuple[str | None, str | None]:
        """The map and the key of a lock."""
        if self._core.access.catalog(asking.user).find(lock.map) is None:
            return HIDDEN_TEXT, HIDDEN_TEXT
        return lock.map, lock.key if lock.HasField("key") else None

    # --- clients ------------------------------------------------------------------------------

    async def _clients(self, asking: Statement) -> Iterable[Row]:
        answers = await self._answers()
        silent = [no_answer(member, 1, 16, 6) for member in answers.silent]
        return [*(self._client(asking, worker) for worker in answers.workers), *silent]

    def _client(self, asking: Statement, worker: Worker) -> Row:
        client, statement, transaction = worker.client, worker.statement, worker.transaction
        assert client is not None
        return (
            client.pid, worker.member, client.address,
            worker.application or None, client.user or OWNER, _moment(client.since),
            "waiting for a lock" if worker.waits else worker.state,
            _moment(worker.changed or client.since), len(worker.statements),
            _query(statement), self._text(asking, worker, statement.text if statement else None),
            _moment(statement.started if statement else 0), len(worker.transactions),
            transaction.transaction if transaction else None,
            _moment(transaction.started if transaction else 0), client.protocol,
        )  # fmt: skip

    async def _pg_stat_activity(self, asking: Statement) -> Iterable[Row]:
        return [self._pg_client(asking, worker) for worker in (await self._answers()).workers]

    def _pg_client(self, asking: Statement, worker: Worker) -> Row:
        client, statement, transaction = worker.client, worker.statement, worker.transaction
        assert client is not None
        host, _, port = client.address.rpartition(":")
        waits = bool(worker.waits)
        began = transaction.started if transaction else statement.started if statement else 0
        return (
            _DATABASE_OID, DATABASE, client.pid, None, None, client.user or OWNER,
            worker.application, host, None, int(port) if port.isdecimal() else None,
            _moment(client.since), _moment(began), _moment(statement.started if statement else 0),
            _moment(worker.changed or client.since), "Lock" if waits else None,
            _pg_type(worker.waits[0]) if waits else None, worker.state, None, None, None,
            self._text(asking, worker, statement.text if statement else "") or "",
            "client backend",
        )  # fmt: skip

    # --- locks --------------------------------------------------------------------------------

    async def _locks(self, asking: Statement) -> AsyncIterator[Iterable[Row]]:
        found = await self._report.all(locks=True)
        answers, now = Answers(found), self._core.world.clock.wall_micros()
        async for member, page in self._report.pages(found):
            if page is None:
                yield [_not_told(member)]
            else:
                yield [self._lock(asking, answers, member, lock, now) for lock in page]
        yield map(_not_told, answers.silent)

    def _lock(
        self, asking: Statement, answers: Answers, member: int, lock: Message.HeldLock, now: int
    ) -> Row:
        worker = answers.worker(lock)
        name, key = self._place(asking, lock)
        statement = _statement(worker, lock)
        return (
            name, key, lock.kind, lock.mode, lock.granted, lock.owner or None,
            worker.pid if worker else None, self._application(asking, worker, lock),
            (worker.user or OWNER) if worker else None, _query(statement),
            self._text(asking, worker, statement.text if statement else None),
            _moment(lock.since), _seconds(lock.since, now), member,
            ", ".join(lock.blockers) or None,
        )  # fmt: skip

    def _application(
        self, asking: Statement, worker: Worker | None, lock: Message.HeldLock
    ) -> str | None:
        if worker is not None and worker.application:
            return self._text(asking, worker, worker.application)
        return lock.client if lock.client and self._core.access.is_admin(asking.user) else None

    async def _lock_waits(self, asking: Statement) -> Iterable[Row]:
        answers, now = await self._answers(), self._core.world.clock.wall_micros()
        return [
            self._wait(asking, answers, lock, blocker, now)
            for lock in answers.waits
            for blocker in lock.blockers
        ]

    def _wait(
        self, asking: Statement, answers: Answers, lock: Message.HeldLock, blocker: str, now: int
    ) -> Row:
        worker, holder = answers.worker(lock), answers.holder(blocker)
        statement, theirs = _statement(worker, lock), _of(holder, blocker)
        name, key = self._place(asking, lock)
        return (
            worker.pid if worker else None, lock.owner or None,
            self._application(asking, worker, lock),
            self._text(asking, worker, statement.text if statement else None),
            name, key, lock.mode, _moment(lock.since), _seconds(lock.since, now),
            holder.pid if holder else None, blocker,
            self._text(asking, holder, holder.application or None) if holder else None,
            holder.state if holder else None,
            self._text(asking, holder, theirs.text if theirs else None),
        )  # fmt: skip

    async def _pg_locks(self, asking: Statement) -> AsyncIterator[Iterable[Row]]:
        # Together: a silent member is waited for once, not once for each kind of lock.
        found, advisory = await asyncio.gather(self._report.all(locks=True), self._advisory.rows())
        answers = Answers(found)
        async for _, page in self._report.pages(found):
            yield self._pg_page(asking, answers, page or ())
        yield advisory

    def _pg_page(
        self, asking: Statement, answers: Answers, page: Sequence[Message.HeldLock]
    ) -> list[Row]:
        catalog = self._core.access.catalog(asking.user)
        rows: list[Row] = []
        for lock in page:
            schema, worker = catalog.find(lock.map), answers.worker(lock)
            code = zlib.crc32(lock.key.encode()) if lock.HasField("key") else None
            rows.append(
                (
                    _pg_type(lock), _DATABASE_OID, schema.oid if schema else None,
                    None if code is None else code >> 15, None if code is None else code & 0x7FFF,
                    None, None, None, None, None, lock.owner or None,
                    worker.pid if worker else None, _PG_MODES.get(lock.mode, lock.mode),
                    lock.granted, False, None if lock.granted else _moment(lock.since),
                )
            )  # fmt: skip
        return rows


def _not_told(member: int) -> Row:
    """In sys.locks."""
    return no_answer(member, 13, 15, 2)


def _of(worker: Worker | None, owner: str) -> Message.RunningStatement | None:
    """The statement for which somebody holds or wants a lock."""
    if worker is None:
        return None
    mine = (each for each in worker.statements if owner and owner in (each.transaction, each.job))
    return next(mine, worker.statement)


def _statement(worker: Worker | None, lock: Message.HeldLock) -> Message.RunningStatement | None:
    """The statement that holds or wants the lock."""
    if worker is not None and lock.HasField("query_id"):
        return next((each for each in worker.statements if each.query_id == lock.query_id), None)
    return _of(worker, lock.owner)


def _query(statement: Message.RunningStatement | None) -> str | None:
    return None if statement is None else str(decode_query_id(statement.query_id))


def _moment(micros: int) -> dt.datetime | None:
    return _EPOCH + dt.timedelta(microseconds=micros) if micros else None


def _seconds(since: int, now: int) -> float | None:
    return max(0, now - since) / 1e6 if since else None


def _pg_type(lock: Message.HeldLock) -> str:
    return "tuple" if lock.HasField("key") else "relation"
