"""The timestamps that open transactions read at (design rule 15).

A transaction that may see nothing but one state of the grid reads above the clocks of all members:
a round to them. One whose reads the commit checks can do without, while it reads by key: a *loose*
snapshot is the clock of the primary of the first key. Each further key is read there only if
nothing newer is to be found, and nothing undecided; so what was committed before the transaction
began is missing from none of its reads, whatever the clocks say. When something newer is found, or
something else is to be read than a key, the snapshot is *anchored*: moved above the clocks of all
members. Rows that were read before must not have changed until there, which the commit would refuse
anyway. Only a transaction that writes nothing is refused more by it than by a round at its
beginning; so a round is made for those that have not ended after a moment, together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError, SerializationFailure, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.forwarding import VIEW_PAUSE
from remuda.member.membership.membership import Membership
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.reads import OwnReads
from remuda.member.state.transaction_sets import ReadSet
from remuda.transaction.isolation import Isolation
from remuda.transaction.own_writes import Key, Row, canonical_key

VIEW_ATTEMPTS: Final = 40
"""Further rounds while members are in other views, over four seconds: a member that has missed a
view hears of it with the next heartbeats."""
ROUND_AFTER: Final = 0.02
"""Seconds that a loose snapshot waits for a round of the clocks."""


class Reading(Protocol):
    """An open transaction: the timestamp that it reads at, and the keys that it has read."""

    asked: bool
    snapshot: int
    loose: bool
    ceiling: int
    pessimistic: bool
    choosing: asyncio.Lock
    reads: OwnReads

    @property
    def open(self) -> bool: ...

    @property
    def isolation(self) -> Isolation: ...

    @property
    def read_only(self) -> bool: ...

    def failed(self, error: RemudaError) -> None: ...


class Snapshots:
    def __init__(self, core: Core, membership: Membership, keys: KeyReader) -> None:
        self._core = core
        self._membership = membership
        self._keys = keys
        self._timer: asyncio.TimerHandle | None = None
        self._young: list[Reading] = []
        """Loose ones that began since the timer was set."""

    async def now(self) -> int:
        """A timestamp above the clocks of all members. They are asked again while the view changes:
        nothing has been done, and the client of a transaction could not send its request again.
        Raises TransientError."""
        core = self._core
        tries = 0
        while True:
            others = tuple(number for number in core.live_members() if number != core.number)
            try:
                if others:
                    await self._membership.clocks(others)
            except ViewChanged:
                tries += 1
                if tries > VIEW_ATTEMPTS:
                    raise
                await asyncio.sleep(VIEW_PAUSE * tries)
            else:
                return core.timestamp()

    async def read_at(self, transaction: Reading) -> int:
        """The timestamp for the next statement: above the clocks of all members, so that it sees
        everything that had been committed when the transaction first read. Raises
        SerializationFailure, which fails the transaction."""
        transaction.asked = True
        if transaction.isolation.moves_on:
            return await self.now()
        async with transaction.choosing:
            if not transaction.snapshot:
                transaction.snapshot = await self.now()
            elif transaction.loose:
                await self._anchor(transaction)
        return transaction.snapshot

    async def move(self, transaction: Reading, reads: ReadSet) -> None:
        """Have it read above the clocks of all members from now on. ``reads`` are all that it has
        read so far, which must be the same there. Raises SerializationFailure."""
        until = await self.now()
        await self._require_unchanged(reads.keys, transaction.snapshot, until)
        transaction.snapshot = until

    async def _require_unchanged(
        self, reads: Mapping[int, Iterable[Key]], since: int, until: int
    ) -> None:
        for map_id, keys in list(reads.items()):
            schema = self._core.store(map_id, 0).schema
            if not await self.unchanged(schema, sorted_keys(keys), since, until):
                raise changed_by_others(schema)

    async def unchanged(
        self, schema: MapSchema, keys: Sequence[Key], since: int, until: int
    ) -> bool:
        """Whether the rows of ``keys`` are the same at both timestamps."""
        before = await self._keys.rows(schema, keys, since)
        after = await self._keys.rows(schema, keys, until)
        return all(same_row(old, new) for old, new in zip(before, after, strict=True))

    # --- loose ones ---------------------------------------------------------------------------

    def may_be_loose(self, transaction: Reading) -> bool:
        """Whether the commit checks what it reads, and it has not read yet."""
        serializable = transaction.isolation is Isolation.SERIALIZABLE
        fresh = not (transaction.snapshot or transaction.pessimistic or transaction.read_only)
        return serializable and fresh

    def loosen(self, transaction: Reading, at: int) -> None:
        """It reads at ``at``, the clock of this member."""
        transaction.asked = transaction.loose = True
        transaction.snapshot = at
        self._young.append(transaction)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(ROUND_AFTER, self._look)

    def _look(self) -> None:
        self._timer = None
        lasting, self._young = [t for t in self._young if t.open and t.loose], []
        if lasting:
            self._core.spawn(self._round(lasting), "a round of the clocks")

    async def _round(self, transactions: Iterable[Reading]) -> None:
        try:
            at = await self.now()
        except RemudaError:  # a member is being lost: those who need the round make it again
            return
        for transaction in transactions:
            transaction.ceiling = at

    async def _anchor(self, transaction: Reading) -> None:
        since, until = transaction.snapshot, transaction.ceiling or await self.now()
        try:
            await self._require_unchanged(transaction.reads.keys, since, until)
        except RemudaError as error:
            transaction.failed(error)
            raise
        transaction.snapshot, transaction.loose = until, False

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def changed_by_others(schema: MapSchema) -> SerializationFailure:
    return SerializationFailure(
        f'a row of map "{schema.name}" was changed by others since it was read',
        hint="Run the transaction again. One that is declared read-only meets no conflicts.",
    )


def sorted_keys(keys: Iterable[Key]) -> list[Key]:
    """In one order, whatever the hashes of the process are."""
    return sorted(keys, key=repr)


def same_row(one: Row | None, other: Row | None) -> bool:
    """NaN is the same as NaN."""
    if one is None or other is None:
        return one is other
    return canonical_key(one) == canonical_key(other)
