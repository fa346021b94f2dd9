"""``Transaction``: several reads and writes that take effect together; all its logic is here."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import inf
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from remuda.client.asynchronous.copying import copy_from, copy_to
from remuda.client.asynchronous.cursor import Cursor
from remuda.client.asynchronous.many import execute_many
from remuda.client.asynchronous.map import Map
from remuda.client.asynchronous.prepared import Statement
from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.network.backoff import conflict_pause
from remuda.client.network.deadline import GRACE, Deadline
from remuda.client.network.ports import COMMIT_GRACE
from remuda.client.operations import transaction_requests as requests
from remuda.client.operations.transaction_core import TransactionCore
from remuda.client.operations.transaction_requests import TransactionOptions
from remuda.client.requests.requests import NO_OPTIONS, RunOptions
from remuda.client.values.values import (
    one_sequence,
    parameters_of,
    statement_text,
    timeout_seconds,
    with_hint,
)
from remuda.errors import (
    ConnectionBroken,
    DeadlockDetected,
    FailedTransaction,
    InputError,
    LockNotAvailable,
    MemberUnavailable,
    NoActiveTransaction,
    NoAnswer,
    OutcomeUnknown,
    RemudaError,
    SchemaChanged,
    SerializationFailure,
    SnapshotTooOld,
    TransactionSuspended,
    TransactionTimeout,
    UndefinedMap,
    UndefinedTransaction,
    ViewChanged,
)
from remuda.rpc.messages import user_pb2
from remuda.transaction.states import State

T = TypeVar("T")

AGAIN: Final = (
    SerializationFailure,
    DeadlockDetected,
    LockNotAvailable,
    SnapshotTooOld,
    UndefinedTransaction,
    SchemaChanged,
    ViewChanged,
    MemberUnavailable,
    ConnectionBroken,
)
"""Errors after which a function that runs in a transaction is run again, unless the outcome is
unknown."""
_MOMENT: Final = 0.001
"""Seconds that a commit has at least: members refuse a time of none."""
_GONE: Final = (ConnectionBroken, MemberUnavailable, UndefinedTransaction, TransactionTimeout)
"""Errors of a rollback when there is nothing left to roll back."""
_STATES: Final[dict[int, State]] = {
    user_pb2.ACTIVE: State.ACTIVE,
    user_pb2.SUSPENDED: State.SUSPENDED,
    user_pb2.MARKED_ROLLBACK: State.MARKED_ROLLBACK,
}


class Transaction:
    """Begins when it is entered; commits at the end of the ``async with`` block, rolls back if that
    is left by an exception. For one task at a time.

    ``map`` and ``sql`` work as those of the client, on one snapshot of the whole grid and what the
    transaction has written itself. Nobody else sees that before the commit.
    """

    def __init__(self, core: Core, options: TransactionOptions) -> None:
        self._client = core
        self._options = options
        self._core: TransactionCore | None = None
        self._end: State | None = None
        self.commit_timestamp: int | None = None
        """Hybrid timestamp of the commit; None before it, and if nothing was written."""

    # --- life ---

    async def begin(self) -> Self:
        """Begin now, on some member; a transaction that is only entered begins with its first
        request. Raises MemberUnavailable, LimitExceeded."""
        core = self._enter()
        try:
            await core.begin()
        except BaseException:
            self._core = None
            raise
        return self

    def _enter(self) -> TransactionCore:
        if self._core is not None:
            raise InputError("the transaction has begun already; begin another one")
        core = self._core = TransactionCore.within(self._client, self._options)
        return core

    async def commit(self) -> None:
        """Make everything visible, at one moment. The transaction is over then, whatever is raised:
        SerializationFailure (run it again, nothing took effect), OutcomeUnknown (the answer was
        lost), FailedTransaction, TransactionTimeout, UndefinedTransaction."""
        core = self._open()
        held = core.held
        deadline = core.deadline()
        grace = COMMIT_GRACE if core.settings.timeout is None else GRACE
        if held.state == user_pb2.SUSPENDED:
            raise _suspended()
        if held.broken is not None:
            await self.rollback()
            raise held.lost()
        if core.unsent.failed is not None:
            cause = core.unsent.failed
            await self.rollback()
            raise FailedTransaction(
                "the transaction was rolled back: something that was put in it was refused",
                detail=f"cause: {cause.message}",
            )
        begins = None if held.name else self._options
        if begins is not None and not core.unsent.puts:  # nothing was done
            self._over(core, State.COMMITTED)
            return
        left = max(deadline.left(inf), _MOMENT)
        call = requests.end(held, core.unsent, core.clock, core.view.number, left, begins=begins)
        try:
            if begins is None:
                member = core.pool(held.member)
                self.commit_timestamp = await member.call(call, deadline.later(grace))
            else:
                self.commit_timestamp = await core.commit_at_once(call, deadline.later(grace))
        except OutcomeUnknown:
            self._over(core, State.UNKNOWN)
            raise
        except (ConnectionBroken, NoAnswer) as error:
            if begins is not None and not error.may_have_run:  # no member has got it
                self._over(core, State.ROLLED_BACK)
                raise
            self._over(core, State.UNKNOWN)
            raise OutcomeUnknown(
                "whether the transaction was committed is not known: its answer was lost",
                detail=error.message,
                member=error.member,
            ) from error
        except RemudaError as error:
            altered = isinstance(error, SchemaChanged | UndefinedMap)
            if altered and begins is not None:
                await self._begin_anew(core, deadline)
                await self.commit()
                return
            self._over(core, State.ROLLED_BACK)
            if altered:
                core.forget_maps()
            raise
        except BaseException:
            self._over(core, State.UNKNOWN)
            raise
        core.wrote()
        self._over(core, State.COMMITTED)

    async def _begin_anew(self, core: TransactionCore, deadline: Deadline) -> None:
        """Maps had been altered since the client had learned of them, so the rows that it keeps do
        not fit. The transaction begins now, with rows for the maps as they are."""
        try:
            await core.begin(deadline)
            await core.put_anew(deadline)
        except BaseException:
            core.forget_maps()
            await self.rollback()
            raise

    async def rollback(self) -> None:
        """Give up everything. Also good when a member or the connection is lost, or the timeout has
        done it already."""
        core = self._open()
        self._over(core, State.ROLLED_BACK)
        if not core.held.name:
            return
        if not isinstance(core.held.broken, ConnectionBroken):  # it has not ended with that
            call = requests.end(core.held, None, core.clock, core.view.number)
            # A member that has not answered in time is told, and not waited for once more.
            patience = core.deadline() if core.held.broken is None else Deadline(GRACE)
            with contextlib.suppress(*_GONE):
                await core.pool(core.held.member).call(call, patience)

    def _over(self, core: TransactionCore, state: State) -> None:
        """Its handles are of no use from now on."""
        self._end = state
        core.held.ended = state.value

    async def suspend(self) -> None:
        """Put it aside: it stays as it is, even when the connection ends, until ``resume`` or its
        timeout. Raises NoActiveTransaction unless it is ACTIVE."""
        core = self._open()
        if core.held.state != user_pb2.SUSPENDED:
            await core.ready()
        call = requests.suspend(core.held, resume=False)
        await core.pool(core.held.member).call(call, core.deadline())

    async def resume(self) -> None:
        """Go on with it. Raises NoActiveTransaction unless it is SUSPENDED."""
        core = self._open()
        if not core.held.name:
            await core.begin()
        call = requests.suspend(core.held, resume=True)
        await core.pool(core.held.member).call(call, core.deadline())
        core.held.broken = None

    async def savepoint(self, name: str) -> None:
        """A place to go back to."""
        await self._savepoint(user_pb2.TransactionSavepoint.SET, name)

    async def rollback_to(self, name: str) -> None:
        """Undo what was written since the savepoint. UndefinedSavepoint."""
        await self._savepoint(user_pb2.TransactionSavepoint.ROLL_BACK, name)

    async def release(self, name: str) -> None:
        """Forget the savepoint, and later ones; the writes stay. UndefinedSavepoint."""
        await self._savepoint(user_pb2.TransactionSavepoint.RELEASE, name)

    async def _savepoint(self, action: int, name: str) -> None:
        core = self._open()
        if not core.held.name:
            await core.begin()
        call = requests.savepoint(core.held, action, name)
        if action == user_pb2.TransactionSavepoint.ROLL_BACK:  # of before all that is not sent
            await core.ask_first(call)
            core.unsent.forget_puts()
        else:
            await core.ask(core.held.member, call, core.deadline())

    # --- what it is ---

    @property
    def id(self) -> str:
        """Its name in ``sys.transactions``; "" before its first request is answered."""
        return "" if self._core is None else self._core.held.name

    @property
    def state(self) -> State:
        """As far as the client knows it."""
        if self._end is not None:
            return self._end
        if self._core is None:
            return State.ACTIVE
        held = self._core.held
        if held.ended == State.UNKNOWN.value:
            return State.UNKNOWN
        if held.ended:
            return State.COMMITTED if held.ended == "COMMIT" else State.ROLLED_BACK
        return State.MARKED_ROLLBACK if held.failed else _STATES.get(held.state, State.ACTIVE)

    # --- work ---

    def map(
        self, name: str, value_type: type | None = None, *, key_type: type | None = None
    ) -> Map[Any, Any]:
        """A handle of the map ``name`` inside the transaction."""
        return Map(self._open(), name, value_type, key_type)

    async def sql(self, text: str, *params: Any, timeout: float | None = None) -> Cursor:
        """Run one statement inside the transaction; else as ``Client.sql``. An error of a statement
        fails the transaction: only ``rollback`` (or ``rollback_to``) is possible then."""
        return Cursor(await self.run(text, params, timeout))

    async def prepare(self, text: str) -> Statement:
        """A prepared statement that runs inside the transaction."""
        core = self._open()
        await core.ready()
        return await Statement(core, text).prepare()

    async def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """As ``Client.execute_many``, inside the transaction."""
        core = self._open()
        await core.ready()
        return await execute_many(core, await Statement(core, text).prepare(), rows)

    async def copy_from(
        self,
        target: str,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """As ``Client.copy_from``, inside the transaction."""
        return await copy_from(
            self._open(), target, source, columns=columns, timeout=timeout, options=options
        )

    async def copy_to(
        self,
        target: str,
        sink: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """As ``Client.copy_to``, inside the transaction."""
        return await copy_to(
            self._open(), target, sink, columns=columns, timeout=timeout, options=options
        )

    async def run(self, text: str, params: tuple[Any, ...], timeout: float | None) -> Reader:
        """The work of ``sql``, without a cursor around the result."""
        text = statement_text(text)
        physical, types = parameters_of(one_sequence(params))
        options = NO_OPTIONS if timeout is None else RunOptions(timeout=timeout_seconds(timeout))
        try:
            return await self._open().execute(text, physical, types, options)
        except InputError as error:
            raise with_hint(error, text, params) from error.__cause__

    def _open(self) -> TransactionCore:
        core = self._core
        if core is None:
            raise NoActiveTransaction(
                "the transaction has not begun", hint="Enter it: with client.transaction() as tx."
            )
        if self._end is not None or core.held.ended:
            raise NoActiveTransaction(
                f"the transaction is over: {self.state.value}",
                hint="Begin another one with client.transaction().",
            )
        return core

    @property
    def core(self) -> TransactionCore:
        """The core that its maps and statements use. NoActiveTransaction when it is not open."""
        return self._open()

    async def __aenter__(self) -> Self:
        """It begins with its first request, unless something is to be seen of it before that: its
        name and its timeout."""
        options = self._options
        if options.timeout is not None or options.label:
            return await self.begin()
        self._enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._end is not None or self._core is None or self._core.held.ended:
            return
        if error is None:
            await self.commit()
            return
        with contextlib.suppress(RemudaError):  # ``error`` is what the caller wants to see
            await self.rollback()

    def __repr__(self) -> str:
        return f"<Transaction {self.id or 'not begun'}, {self.state.value}>"


async def run_transaction(
    core: Core,
    begin: Callable[[], Transaction],
    function: Callable[[Transaction], Awaitable[T]],
    attempts: int,
) -> T:
    """As ``Client.run_transaction``; ``begin`` makes the transaction of one attempt."""
    checked_attempts(attempts)
    for attempt in range(attempts):
        transaction = begin()
        try:
            async with transaction:
                result = await to_await(function(transaction))
        except RemudaError as error:
            if not again(error, transaction.state, attempt, attempts):
                raise
            await core.ports.pause(conflict_pause(attempt))
        else:
            return result
    raise AssertionError("the last attempt returns or raises")


def again(error: BaseException, state: State, attempt: int, attempts: int) -> bool:
    """Whether the function of ``run_transaction`` is run once more: ``state`` is that of
    its transaction, ``attempt`` counts from 0."""
    return (
        isinstance(error, AGAIN)
        and not isinstance(error, OutcomeUnknown)
        and state is not State.UNKNOWN
        and attempt + 1 < attempts
    )


def plain(result: T) -> T:
    """The value that a function of the blocking ``run_transaction`` has returned. InputError for a
    coroutine: nothing of it has run, and nothing would."""
    if inspect.iscoroutine(result):
        result.close()
        raise InputError(
            "the function of run_transaction is a coroutine function, and this client blocks",
            hint="Give it a plain function, or use the client of remuda.aio.",
        )
    return result


def to_await(result: Awaitable[T]) -> Awaitable[T]:
    """The value that a function of the asyncio ``run_transaction`` has returned. InputError unless
    it can be awaited."""
    if not inspect.isawaitable(result):
        raise InputError(
            f"the function of run_transaction must be a coroutine function; it returned {result!r}",
            hint="Write it with async def.",
        )
    return result


def checked_attempts(attempts: Any) -> int:
    """InputError."""
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise InputError(f"attempts is a number, 1 or more, found {attempts!r}")
    return attempts


def _suspended() -> TransactionSuspended:
    return TransactionSuspended(
        "the transaction is suspended", hint="Resume it before it is committed."
    )
