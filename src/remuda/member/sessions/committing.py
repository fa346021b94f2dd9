"""The room that commits open transactions and holds their locks, as they see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError
from remuda.member.state.transaction_sets import ReadSet, WriteSet
from remuda.member.transactions.catalog_part import Decision
from remuda.transaction.own_writes import Key, Row
from remuda.transaction.states import TransactionId


class Locking(Protocol):
    """``member.transactions.key_locks``."""

    async def lock(
        self,
        owner: TransactionId,
        map_id: int,
        keys: Iterable[Key],
        *,
        shared: bool = False,
        timeout: float = 60.0,
        client: str = "",
    ) -> None:
        """Raises DeadlockDetected, LockNotAvailable, SchemaChanged, MemberUnavailable."""

    async def lock_and_read(
        self,
        owner: TransactionId,
        schema: MapSchema,
        keys: Iterable[Key],
        *,
        timeout: float = 60.0,
        client: str = "",
    ) -> dict[Key, tuple[int, Row | None]]:
        """``lock``, and the rows of the keys that could be read under it, with the timestamps at
        which they were. Raises the same."""

    def interrupt(self, owner: TransactionId, error: RemudaError) -> None:
        """``lock``, if it waits for ``owner``, raises ``error``."""

    def release(self, owner: TransactionId) -> None: ...


class Committing(Protocol):
    """``member.transactions.transactions``: commits what a transaction has written, on all
    members."""

    @property
    def locks(self) -> Locking: ...

    async def commit(
        self,
        writes: WriteSet,
        reads: ReadSet | None,
        timeout: float | None = None,
        owner: TransactionId | None = None,
        decision: Decision | None = None,
    ) -> int:
        """The commit timestamp. ``owner`` holds the locks that do not stand in the way.
        ``decision``: the catalog commits it. Raises SerializationFailure, MemberUnavailable,
        QueryTimeout, and what the decision raises."""

    def leads(self, transaction: TransactionId) -> bool:
        """Whether a transaction of this member has not ended everywhere."""
