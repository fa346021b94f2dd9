"""``Transaction``: several reads and writes that take effect together, blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from remuda.client.asynchronous import transaction as asynchronous
from remuda.client.blocking.cursor import Cursor
from remuda.client.blocking.map import Map
from remuda.client.blocking.prepared import Statement
from remuda.client.core.core import Core
from remuda.client.network.backoff import conflict_pause
from remuda.client.network.driving import finish
from remuda.client.operations.transaction_core import TransactionCore
from remuda.client.operations.transaction_requests import TransactionOptions
from remuda.errors import RemudaError
from remuda.transaction.states import State

T = TypeVar("T")


class Transaction:
    """Begins when it is entered; commits at the end of the ``with`` block, rolls back if that is
    left by an exception. For one thread at a time (``suspend`` and ``resume`` hand it on).

    ``map`` and ``sql`` work as those of the client, on one snapshot of the whole grid and what the
    transaction has written itself. Nobody else sees that before the commit.
    """

    def __init__(self, core: Core, options: TransactionOptions) -> None:
        self._transaction = asynchronous.Transaction(core, options)

    # --- life ---

    def begin(self) -> Self:
        """Begin now, on some member; a transaction that is only entered begins with its first
        request. Raises MemberUnavailable, LimitExceeded."""
        finish(self._transaction.begin())
        return self

    def commit(self) -> None:
        """Make everything visible, at one moment. The transaction is over then, whatever is raised:
        SerializationFailure (run it again, nothing took effect), OutcomeUnknown (the answer was
        lost), FailedTransaction, TransactionTimeout, UndefinedTransaction."""
        finish(self._transaction.commit())

    def rollback(self) -> None:
        """Give up everything. Also good when a member, or the connection, is lost."""
        finish(self._transaction.rollback())

    def suspend(self) -> None:
        """Put it aside: it stays as it is, even when the connection ends, until ``resume`` or its
        timeout. Raises NoActiveTransaction unless it is ACTIVE."""
        finish(self._transaction.suspend())

    def resume(self) -> None:
        """Go on with it. Raises NoActiveTransaction unless it is SUSPENDED."""
        finish(self._transaction.resume())

    def savepoint(self, name: str) -> None:
        """A place to go back to."""
        finish(self._transaction.savepoint(name))

    def rollback_to(self, name: str) -> None:
        """Undo what was written since the savepoint. UndefinedSavepoint."""
        finish(self._transaction.rollback_to(name))

    def release(self, name: str) -> None:
        """Forget the savepoint, and later ones; the writes stay. UndefinedSavepoint."""
        finish(self._transaction.release(name))

    # --- what it is ---

    @property
    def id(self) -> str:
        """Its name in ``sys.transactions``; "" before its first request."""
        return self._transaction.id

    @property
    def state(self) -> State:
        """As far as the client knows it."""
        return self._transaction.state

    @property
    def commit_timestamp(self) -> int | None:
        """Hybrid timestamp of the commit; None before it, and if nothing was written."""
        return self._transaction.commit_timestamp

    # --- work ---

    def map(
        self, name: str, value_type: type | None = None, *, key_type: type | None = None
    ) -> Map[Any, Any]:
        """A handle of the map ``name`` inside the transaction."""
        return Map(self._core, name, value_type, key_type)

    def sql(self, text: str, *params: Any, timeout: float | None = None) -> Cursor:
        """Run one statement inside the transaction; else as ``Client.sql``. An error of a statement
        fails the transaction: only ``rollback`` (or ``rollback_to``) is possible then."""
        return Cursor(finish(self._transaction.run(text, params, timeout)))

    def prepare(self, text: str) -> Statement:
        """A prepared statement that runs inside the transaction."""
        return Statement(self._core, text)

    def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """As ``Client.execute_many``, inside the transaction."""
        return finish(self._transaction.execute_many(text, rows))

    def copy_from(
        self,
        target: str,
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """As ``Client.copy_from``, inside the transaction."""
        return finish(
            self._transaction.copy_from(target, source, columns=columns, timeout=timeout, **options)
        )

    def copy_to(
        self,
        target: str,
        sink: Any,
        *,
        columns: Sequence[str] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> int:
        """As ``Client.copy_to``, inside the transaction."""
        return finish(
            self._transaction.copy_to(target, sink, columns=columns, timeout=timeout, **options)
        )

    @property
    def _core(self) -> TransactionCore:
        return self._transaction.core

    def __enter__(self) -> Self:
        finish(self._transaction.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        finish(self._transaction.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self._transaction)


def run_transaction(
    core: Core,
    begin: Callable[[], Transaction],
    function: Callable[[Transaction], T],
    attempts: int,
) -> T:
    """As ``Client.run_transaction``; ``begin`` makes the transaction of one attempt."""
    asynchronous.checked_attempts(attempts)
    for attempt in range(attempts):
        transaction = begin()
        try:
            with transaction:
                result = asynchronous.plain(function(transaction))
        except RemudaError as error:
            if not asynchronous.again(error, transaction.state, attempt, attempts):
                raise
            finish(core.ports.pause(conflict_pause(attempt)))
        else:
            return result
    raise AssertionError("the last attempt returns or raises")
