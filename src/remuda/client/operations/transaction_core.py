"""The core that a transaction's maps and statements use in place of the client's ``Core``: the same
connections, but every request goes to the member that has the transaction, and names it."""

from __future__ import annotations

import contextlib
import re
import struct
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from remuda.client.core.core import Core
from remuda.client.core.held import GONE, Held
from remuda.client.core.reader import Reader
from remuda.client.core.tries import LOST, MAYBE_AGAIN, Tries, of_write
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.operations import transaction_requests
from remuda.client.operations.transaction_requests import PESSIMISTIC, TransactionOptions
from remuda.client.requests.requests import (
    Call,
    ClusterInfo,
    MapDescription,
    MapRequests,
    describe_map,
    transaction_part,
)
from remuda.client.requests.result_stream import ResultStream
from remuda.client.requests.unsent import Unsent
from remuda.client.values.objects import PhysicalRow
from remuda.errors import (
    ConnectionBroken,
    FailedTransaction,
    MemberUnavailable,
    NoActiveTransaction,
    NoAnswer,
    NotServed,
    NotSupported,
    RemudaError,
    SchemaChanged,
    SerializationFailure,
    UndefinedMap,
)
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.request import serialized

T = TypeVar("T")

_NAMED: Final = frozenset(
    {RpcType.MAP_GET, RpcType.MAP_PUT, RpcType.MAP_REMOVE, RpcType.MAP_PUT_BATCH}
    | {RpcType.MAP_COMPUTE, RpcType.MAP_GET_VERSIONED, RpcType.MAP_CHECKED_WRITE}
    | {RpcType.MAP_TTL, RpcType.MAP_SET_TTL}
)
_REFUSED: Final = frozenset({RpcType.JOB_BEGIN})
_AFTER_WRITES: Final = _NAMED | {RpcType.TRANSACTION_SAVEPOINT, RpcType.TRANSACTION_SUSPEND}
"""Requests that depend on earlier puts."""
_ROLLBACK: Final = re.compile(r"\s*(rollback|abort)\b", re.IGNORECASE)
DIRECT: Final = 1.0
"""Seconds since its member was last heard of in which a transaction reads at others."""
_KNOWN: Final = user_pb2.KeysRequest(known=True, keys_only=True).SerializeToString()
_timestamp: Final = struct.Struct("<q").pack


class TransactionCore(Core):
    """Made by ``within``."""

    in_transaction = True
    options: TransactionOptions
    held: Held
    """The one of ``shared``, for as long as this lives."""
    unsent: Unsent
    _client: Core
    first_owner: int | None
    """The owner of the first key that was put before the transaction has begun."""
    kept: dict[tuple[int, int], Any]
    """By map id and version: the bindings of what was put before the transaction has begun."""
    locked: set[tuple[int, PhysicalRow]]
    """Map id and key of each entry that a pessimistic transaction has locked by gets and puts."""
    _heard: float
    """When its member has last answered."""

    @classmethod
    def within(cls, core: Core, options: TransactionOptions) -> Self:
        made = cls.__new__(cls)
        made.__dict__.update(core.__dict__)
        made._client = core  # noqa: SLF001 (its own)
        made.options, made.unsent = options, Unsent()
        made.held = Held("", 0)
        made.shared = replace(core.shared, held=made.held)
        made.first_owner, made.kept, made.locked = None, {}, set()
        made._heard = 0.0  # noqa: SLF001
        return made

    async def still_described(self, name: str) -> MapDescription | None:
        self.require_open()
        if not self.held.name:
            await self.begin()
        known = self.described.get(name)
        if known is None or known.catalog_version != self.held.catalog_version:
            return None
        return known

    async def last_described(self, name: str) -> MapDescription | None:
        if self.begins_with_get:
            return self.described.get(name)
        return await self.still_described(name)

    # --- the beginning ------------------------------------------------------------------------

    @property
    def pessimistic(self) -> bool:
        return self.options.concurrency == PESSIMISTIC

    @property
    def locks_reads(self) -> bool:
        """Whether a get locks its key."""
        return self.pessimistic and self.options.isolation != "read committed"

    @property
    def begins_with_get(self) -> bool:
        held = self.held
        return not held.name and not held.ended

    async def begin(self, deadline: Deadline | None = None, owner: int | None = None) -> None:
        """By a request of its own, on ``owner`` if it can be reached, else on whichever member
        answers."""
        client, begun = self._client, None
        deadline = deadline or self.deadline()
        call = transaction_requests.begin(self.options, client.clock, client.view.number)
        if owner is not None:
            with contextlib.suppress(*LOST):
                begun = await client.pool(client.nearest(owner)).call(call, deadline)
        if begun is None:  # one that nobody uses ends by itself
            begun = await client.call(None, call, True, deadline)
        held = self.held
        held.name, held.member, held.state = begun.name, begun.member, begun.state
        held.catalog_version = begun.catalog_version
        self._heard = time.monotonic()

    async def begin_with_get(
        self, requests: MapRequests, key: PhysicalRow, owner: int, deadline: Deadline
    ) -> PhysicalRow | None:
        """Read the first key, on the member that has the transaction from then on: its owner, if it
        can be reached."""
        first = transaction_requests.first_part(self.options)
        call = requests.first_get(key, first, self._begun)
        try:
            port = self._client.pool(self._client.nearest(owner))
            row: PhysicalRow | None = await port.call(call, deadline)
        except LOST:
            await self.begin(deadline)
            return await self._ask(requests.get_one(key), deadline)
        return row

    async def commit_at_once(self, call: Call[T], deadline: Deadline) -> T:
        """``call`` begins the transaction and commits it, on the owner of the first key if it can
        be reached: then it needs no other member for that key. A member that has refused it has
        done nothing, so another one gets it. Raises ConnectionBroken when the answer was lost."""
        client, owner, tries = self._client, self.first_owner, None
        while True:
            try:
                return await client.pool(client.nearest(owner)).call(call, deadline)
            except MAYBE_AGAIN as error:
                if of_write(error) is not error:  # it may have been committed
                    raise
                owner = None
                tries = tries or client.tries(0, deadline)
                await tries.after(error)

    async def put_anew(self, deadline: Deadline) -> None:
        """Put what is kept into the maps as they are now. Raises UndefinedMap, ObjectMismatch and
        other DataErrors."""
        for requests, rows in self.unsent.take_puts():
            schema = requests.schema
            call = describe_map(schema.name, schema_only=True)
            found = self.described[schema.name] = await self.call(None, call, True, deadline)
            self.kept[schema.map_id, schema.version].as_now(found.schema, rows)
        await self.send_unsent(deadline)

    def _begun(self, status: user_pb2.TransactionStatus) -> None:
        held = self.held
        held.name, held.member, held.state = status.transaction, status.member, status.state
        held.catalog_version, held.snapshot = status.catalog_version, status.snapshot
        self._heard = time.monotonic()

    # --- what its client does by itself -------------------------------------------------------

    @property
    def reads_directly(self) -> bool:
        """Whether keys are read at their owners now. Not for long after its member was heard of: it
        may be lost, or have rolled the transaction back."""
        held = self.held
        usable = held.snapshot and held.broken is None and not held.ended
        fresh = held.state == user_pb2.ACTIVE and self.unsent.failed is None
        return bool(usable and fresh and time.monotonic() - self._heard < DIRECT)

    async def get_directly(
        self, requests: MapRequests, key: PhysicalRow, owner: int, deadline: Deadline
    ) -> tuple[bool, PhysicalRow | None]:
        """A key as it was at the snapshot, at its owner: whether that is good, and its row. If not,
        the member of the transaction reads it, and knows what is to be said about it."""
        call = requests.newest(key, _timestamp(self.held.snapshot))
        try:
            newest, row = await self._client.ask(owner, call, deadline)
        except RemudaError:
            return False, None
        if newest:
            self.unsent.read(requests, key)
            if self.unsent.many_reads:
                await self.send_unsent(deadline)
        return newest, row

    async def send_unsent(self, deadline: Deadline | None = None) -> None:
        """Before what depends on it. An error fails the transaction: only a rollback is possible
        then. Raises FailedTransaction if that was so before, else what a get or a put raises."""
        unsent = self.unsent
        if unsent.failed is not None:
            raise FailedTransaction(
                "something that was put in the transaction was refused: nothing of it can take "
                "effect",
                detail=f"cause: {unsent.failed.message}",
                hint="ROLLBACK, or roll back to a savepoint.",
            )
        self.held.snapshot = 0
        try:
            for requests, keys in unsent.take_reads():
                await self._send(requests.packed(keys, _KNOWN), deadline)
            for requests, rows in unsent.take_puts():
                await self._send(requests.put_packed(rows), deadline)
        except (SchemaChanged, UndefinedMap) as error:
            unsent.failed = error
            self.forget_maps()
            raise SerializationFailure(
                "a map was altered or dropped while the transaction was about to write to it",
                detail=error.message,
                hint="Run the transaction again.",
            ) from error
        except RemudaError as error:
            unsent.failed = error
            raise

    def forget_maps(self) -> None:
        """The transaction's knowledge of its maps is out of date."""
        for requests in self.unsent.maps.values():
            self.described.pop(requests.schema.name, None)

    async def ready(self) -> None:
        """It has begun, and its member knows everything."""
        self.require_open()
        if not self.held.name:
            await self.begin()
        if self.held.broken is None:
            await self.send_unsent()

    async def execute(self, text: str, *args: Any, **options: Any) -> Reader:
        if _ROLLBACK.match(text):
            self.unsent.forget_puts()
        await self.ready()
        return await super().execute(text, *args, **options)

    # --- requests -----------------------------------------------------------------------------

    def call(
        self,
        member: int | None,
        call: Call[T],
        read: bool = False,
        deadline: Deadline | None = None,
    ) -> Coroutine[Any, Any, T]:
        if not self.held.name and call.rpc_type == RpcType.DESCRIBE_MAP:
            self.require_open()
            return self._client.call(member, call, read, deadline)
        return self._ask(call, deadline)

    def ask(self, owner: int, call: Call[T], deadline: Deadline) -> Coroutine[Any, Any, T]:
        return self._ask(call, deadline, owner)

    async def write(
        self,
        owner: int,
        call: Call[T],
        deadline: Deadline,
        name: str = "",  # noqa: ARG002
    ) -> T:
        return await self._ask(call, deadline, owner)

    def tries(
        self,
        repeats: int,  # noqa: ARG002
        deadline: Deadline | None = None,
        *,
        reads: bool = False,
    ) -> Tries:
        """A request that is lost with its connection is lost with the transaction: there is no
        sense in sending it again."""
        return super().tries(0, deadline, reads=reads)

    async def scatter(
        self, calls: Sequence[tuple[int, Call[T]]], deadline: Deadline
    ) -> list[T | RemudaError]:
        """One after the other: they go to one member."""
        answers: list[T | RemudaError] = []
        for _, call in calls:
            try:
                answer: T | RemudaError = await self.write(0, call, deadline)
            except RemudaError as error:
                answer = error
            answers.append(answer)
        return answers

    async def _ask(
        self, call: Call[T], deadline: Deadline | None = None, owner: int | None = None
    ) -> T:
        """``owner``: of the key that is asked for, where a transaction begins that has not."""
        self.require_open()
        if self.held.broken is not None:
            raise self.held.lost()
        if call.rpc_type in _REFUSED:
            raise NotSupported(
                "staged jobs take no part in transactions",
                hint="Use put_all of objects or of a table, or SQL.",
            )
        if not self.held.name:
            await self.begin(deadline, owner)
        if call.rpc_type in _AFTER_WRITES:
            await self.send_unsent(deadline)
        return await self._send(call, deadline)

    async def ask_first(self, call: Call[T]) -> T:
        """Without what is not sent yet."""
        self.require_open()
        if self.held.broken is not None:
            raise self.held.lost()
        return await self._send(call)

    async def _send(self, call: Call[T], deadline: Deadline | None = None) -> T:
        if call.rpc_type in _NAMED:
            body = bytes(serialized(call.body)) + transaction_part(self.held.name)
            call = call._replace(body=body)
        try:
            answer = await self.pool(self.held.member).call(call, deadline or self.deadline())
            self._heard = time.monotonic()
            return answer
        except GONE:
            self.held.state = user_pb2.MARKED_ROLLBACK
            raise
        except (ConnectionBroken, NoAnswer) as error:
            self.held.lost_with(error)
            raise error.knowing(may_have_run=False) from error.__cause__  # nothing is committed
        except NotServed as error:
            if self.held.member in self.view.by_number:
                raise  # it is asked again
            self.held.broken = error
            raise MemberUnavailable(
                f"the transaction is lost with member {self.held.member}, which had it",
                detail="Nothing of it took effect.",
                hint="Begin another one.",
                member=str(self.held.member),
            ) from error

    async def refresh(self, deadline: Deadline = NEVER) -> ClusterInfo:
        return await self._client.refresh(deadline)

    def told(self, stream: ResultStream) -> None:
        """The transaction may end by a statement; then its handles are of no use any more."""
        outcome = stream.outcome
        if outcome is None:
            return
        if outcome.transaction is not None:
            if outcome.transaction.transaction and outcome.error is None:
                self.held.name = outcome.transaction.transaction  # AND CHAIN
            self.held.told(outcome.transaction, outcome.tag)

    def released(self, text: str) -> Held | None:  # noqa: ARG002
        self.require_open()
        return self.held

    def require_open(self) -> None:
        """Raises NoActiveTransaction: a map or a statement was kept for longer than it is good."""
        if self.held.ended:
            raise NoActiveTransaction(
                "the transaction is over, and its maps and statements with it",
                hint="Begin another one with client.transaction().",
            )

    def nearest(self, owner: int | None) -> int:  # noqa: ARG002
        return self.held.member

    def next_member(self) -> int:
        return self.held.member
