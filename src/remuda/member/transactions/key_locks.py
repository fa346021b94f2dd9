"""Locks of transactions that lock keys before they write them, as operations between members.

The primary of a key holds its locks (``transaction.locks``); a request for one that is taken waits
there, first come, first served. Transactions that wait for a while are looked for in circles over
all members (``transaction.deadlock``); the youngest transaction of a circle gives way, and its
error names the circle. Locks are not kept by backups: when a primary is lost, they are, and the
commit, which is validated in any case, finds whatever was changed. Single puts wait for locks,
commits of others are refused (no-wait), bulk writes pass them by.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from google.protobuf.message import DecodeError

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.violations import key_text
from remuda.errors import (
    DeadlockDetected,
    LockNotAvailable,
    MemberUnavailable,
    RemudaError,
    ViewChanged,
)
from remuda.member.base.core import Core, attempt, bug
from remuda.member.base.peers import Peers
from remuda.member.state.lock_rows import LockRow
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Key
from remuda.member.transactions import locked_rows
from remuda.member.transactions.locked_rows import Found
from remuda.member.transactions.pending import Held, PendingParts
from remuda.member.transactions.wire import decode_name, fill_name
from remuda.rpc import codec
from remuda.rpc.codec import decode_row
from remuda.rpc.connection import Reply
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.deadlock import Probe, Search, ToNear, Victim, forwarded
from remuda.transaction.locks import Granted, LockTable, Mode
from remuda.transaction.states import TransactionId

log = logging.getLogger(__name__)

SEARCH_AFTER = 0.1
"""Seconds that a transaction waits before it is looked for in circles; again after as long."""
ASK_AGAIN = 0.1
LOCK_TIMEOUT = 60.0
ENDED_KEPT = 10_000
"""Transactions that have given up their locks here, and get none any more."""
HOLDERS_TOLD = 3
"""More are not named in the detail of an error."""
ASK_PATIENCE = 1.0
"""Seconds that a refused transaction waits to learn who holds its key."""

Granting = control_pb2.KeyLock
"""Tells a transaction that it has its locks."""
Answer = Callable[[Granting | RemudaError], None]


@dataclass(slots=True)
class Asking:
    """A transaction that waits here, as primary."""

    answer: Callable[[RemudaError | None], None]
    """With None when it has got all its locks."""
    wanted: bytes
    """The request without its context: a repeated one keeps its place."""
    missing: set[Held]
    since: float
    rounds: int = 0


@dataclass(slots=True)
class Owning:
    """A transaction of this member, as near member."""

    members: set[int] = field(default_factory=set)
    """Where it holds locks or waits."""
    waits_at: int = 0
    waiting: asyncio.Future[Granting] | None = None
    wants: Callable[[], str] = str
    """The keys that it waits for, as the detail of an error names them."""


class Undecided(Protocol):
    """The transactions of this member that are prepared and not decided: their keys block locks."""

    @property
    def pending(self) -> PendingParts: ...

    def schema(self, map_id: int) -> MapSchema: ...

    def router(self, map_id: int) -> Router: ...

    def require_decidable(self, schema: MapSchema, keys: Iterable[Key]) -> None: ...


class KeyLocks:
    def __init__(self, core: Core, peers: Peers, transactions: Undecided) -> None:
        self._core = core
        self._peers = peers
        self._transactions = transactions
        self.table: LockTable[TransactionId, Held] = LockTable()
        self.held: Mapping[Held, object] = self.table.held
        self._search = Search(self.table)
        self._asking: dict[TransactionId, Asking] = {}
        self._owning: dict[TransactionId, Owning] = {}
        self._clients: dict[TransactionId, str] = {}
        """Of transactions that hold locks here or wait: their client, in the words of their
        member."""
        self._since: dict[TransactionId, dict[Held, int]] = {}
        """When each lock was granted here, in microseconds since 1970."""
        self._released: dict[Held, list[Callable[[], None]]] = {}
        self._ended: OrderedDict[TransactionId, None] = OrderedDict()
        """A KEY_LOCK may arrive after the KEY_UNLOCK that followed it, over another connection."""

    def __len__(self) -> int:
        return len(self.table) + len(self._owning)

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """The requests of the control channel."""
        return {
            RpcType.KEY_LOCK: self._on_lock,
            RpcType.KEY_UNLOCK: self._on_unlock,
            RpcType.KEY_PROBE: self._on_probe,
            RpcType.KEY_VICTIM: self._on_victim,
        }

    # --- as the near member -------------------------------------------------------------------

    async def lock(
        self,
        owner: TransactionId,
        map_id: int,
        keys: Iterable[Key],
        *,
        shared: bool = False,
        timeout: float = LOCK_TIMEOUT,
        client: str = "",
    ) -> None:
        """Lock keys of a map for a transaction of this member, which asks for one thing at a time;
        they stay locked until ``release``. ``client`` describes whose it is, for others.
        Raises DeadlockDetected, LockNotAvailable (after ``timeout`` seconds), SchemaChanged,
        MemberUnavailable; the transaction is then to be rolled back, and released."""
        await self._lock(owner, map_id, keys, shared, timeout, client, 0)

    async def lock_and_read(
        self,
        owner: TransactionId,
        schema: MapSchema,
        keys: Iterable[Key],
        *,
        timeout: float = LOCK_TIMEOUT,
        client: str = "",
    ) -> Found:
        """``lock``, and the rows of the keys, which their primaries read when nothing undecided
        concerns them any more. A key that its primary cannot read right now is locked, and is
        missing in the result."""
        version = 0 if schema.replicated else schema.version  # any member writes its own copy
        return await self._lock(owner, schema.map_id, keys, False, timeout, client, version)

    async def _lock(  # noqa: PLR0917 (see lock)
        self,
        owner: TransactionId,
        map_id: int,
        keys: Iterable[Key],
        shared: bool,
        timeout: float,
        client: str,
        read_version: int,
    ) -> Found:
        deadline = self._core.world.clock.monotonic() + timeout
        left, found = list(keys), Found()
        while left:
            member, here = self._next_of(map_id, left)
            message = Granting(
                map_id=map_id, shared=shared, client=client, read_version=read_version
            )
            fill_name(message.owner, owner)
            for key in here:
                codec.fill_row(message.keys.add(), key)
            try:
                granted = await self._lock_at(owner, member, message, here, deadline)
            except ViewChanged:  # perhaps another member is to be asked
                await asyncio.sleep(ASK_AGAIN)
                continue
            self._core.observe_clock(granted.context.clock)
            found.update(locked_rows.found(granted, here))
            locked = set(here)
            left = [key for key in left if key not in locked]
        return found

    def _next_of(self, map_id: int, keys: Sequence[Key]) -> tuple[int, list[Key]]:
        """The lowest member that has some of the keys, and these: a transaction that locks several
        goes in one order."""
        router = self._transactions.router(map_id)
        if router.schema.replicated:
            return self._core.coordinator, list(keys)
        owners: dict[int, list[Key]] = {}
        for key in sorted(set(keys), key=repr):
            owners.setdefault(self._core.view.owners[router.key_partition(key)], []).append(key)
        member = min(owners)
        return member, owners[member]

    async def _lock_at(
        self,
        owner: TransactionId,
        member: int,
        message: control_pb2.KeyLock,
        keys: Sequence[Key],
        deadline: float,
    ) -> Granting:
        self._core.require_alive(member)
        schema = self._transactions.schema(message.map_id)
        owning = self._owning.setdefault(owner, Owning())
        done: asyncio.Future[Granting] = asyncio.get_running_loop().create_future()
        owning.members.add(member)
        owning.waits_at, owning.waiting = member, done
        owning.wants = partial(_told, schema, keys)
        message.context.CopyFrom(self._core.context())
        again: asyncio.Task[None] | None = None
        if member == self._core.number:
            self._lock_here(message, partial(_settle, done))
        else:
            answered = partial(_answered, done)
            self._peers.request_nowait(member, RpcType.KEY_LOCK, message, (), answered)
            again = self._peers.ask_again(member, RpcType.KEY_LOCK, message, (), answered)
        try:
            left = max(0.0, deadline - self._core.world.clock.monotonic())
            return await asyncio.wait_for(done, left)
        except TimeoutError as error:
            raise LockNotAvailable(
                f'a row of map "{schema.name}" is locked by another '
                "transaction, and was not given free in time",
                detail="\n".join((owning.wants(), *await self._asked(member, message))),
                hint="Run the transaction again. sys.lock_waits shows who waits for whom.",
            ) from error
        finally:
            owning.waiting, owning.waits_at, owning.wants = None, 0, str
            if again is not None:
                again.cancel()

    async def _asked(self, member: int, message: control_pb2.KeyLock) -> Sequence[str]:
        """The holders in the way, in words; none, where that cannot be found out soon."""
        asking = control_pb2.KeyLock(ask=True)
        asking.MergeFrom(message)
        if member == self._core.number:
            return self._in_the_way(asking)
        try:
            reply = await self._peers.request(member, RpcType.KEY_LOCK, asking, (), ASK_PATIENCE)
        except RemudaError as error:
            log.debug("the holders of a lock were not told: %s", error.message)
            return ()
        return tuple(control_pb2.KeyLock.FromString(reply.pbody).holders)

    def interrupt(self, owner: TransactionId, error: RemudaError) -> None:
        """A transaction of this member does not wait any more: ``lock`` raises ``error``."""
        owning = self._owning.get(owner)
        if owning is not None:
            _settle_waiting(owning, error)

    def release(self, owner: TransactionId) -> None:
        """The transaction has ended: give up its locks, everywhere."""
        owning = self._owning.pop(owner, None)
        if owning is None:
            return
        _settle_waiting(owning, MemberUnavailable(f"transaction {owner} has ended"))
        for member in owning.members:
            if member == self._core.number:
                self._release_here(owner)
            else:
                self._release_at(owner, member)

    def _release_at(self, owner: TransactionId, member: int) -> None:
        """Nobody else would free the keys."""

        def message() -> control_pb2.KeyLock:
            unlock = control_pb2.KeyLock(context=self._core.context())
            fill_name(unlock.owner, owner)
            return unlock

        self._peers.tell(member, RpcType.KEY_UNLOCK, message)

    # --- as the primary -----------------------------------------------------------------------

    def _on_lock(self, request: Request) -> None:
        message = control_pb2.KeyLock.FromString(request.pbody)
        self._core.observe_member(message.context)
        if message.ask:
            told = control_pb2.KeyLock(
                context=self._core.context(), holders=self._in_the_way(message)
            )
            request.reply(RpcType.KEY_LOCK, told)
            return

        def answer(granted: Granting | RemudaError) -> None:
            if isinstance(granted, RemudaError):
                request.fail(granted)
            else:
                request.reply(RpcType.KEY_LOCK, granted)

        self._lock_here(message, answer)

    def _lock_here(self, message: control_pb2.KeyLock, answer: Answer) -> None:
        owner = decode_name(message.owner)
        if owner in self._ended:
            answer(LockNotAvailable(f"transaction {owner} has ended"))
            return
        mode = Mode.SHARED if message.shared else Mode.EXCLUSIVE
        wanted, waits = _wanted(message), self._asking.get(owner)
        granted = partial(self._when_decided, message, answer)
        if waits is not None and waits.wanted == wanted:
            waits.answer = lambda error: granted() if error is None else answer(error)
            return
        self._stop_waiting(owner, None)
        self._clients[owner] = message.client
        missing: set[Held] = set()
        for row in message.keys:
            held = (message.map_id, decode_row(row))
            if self.table.acquire(owner, held, mode):
                missing.add(held)
            else:
                self._note(owner, held)
        if not missing:
            self._when_decided(message, answer)
            return
        if self._core.pulse.resting:
            self._core.pulse.wake()  # for the search of circles
        now = self._core.world.clock.monotonic()
        self._asking[owner] = Asking(
            lambda error: granted() if error is None else answer(error), wanted, missing, now
        )

    def _note(self, owner: TransactionId, held: Held) -> None:
        """The lock was granted now, if it was not before."""
        known = self._since.setdefault(owner, {})
        known.setdefault(held, self._core.world.clock.wall_micros())

    def _in_the_way(self, message: control_pb2.KeyLock) -> list[str]:
        owner = decode_name(message.owner)
        mode = Mode.SHARED if message.shared else Mode.EXCLUSIVE
        schema = self._transactions.schema(message.map_id)
        found = []
        for row in message.keys:
            key = decode_row(row)
            holder = self.table.obstacle((message.map_id, key), mode, owner)
            if holder is not None:
                found.append(f"{key_text(schema, key)} is locked by {self.described(holder)}.")
                if len(found) == HOLDERS_TOLD:
                    break
        return found

    def described(self, owner: TransactionId) -> str:
        """A transaction that holds locks here, for people."""
        client = self._clients.get(owner)
        return f"transaction {owner}" + (f" of {client}" if client else "")

    def rows(self) -> Iterator[LockRow]:
        """Every lock that is held or awaited here."""
        offset = self._core.wall_offset()
        for held, lock in self.table.held.items():
            for holder, mode in lock.holders.items():
                since = self._since.get(holder, {}).get(held, 0)
                client = self._clients.get(holder, "")
                yield LockRow(*held, "row", mode, True, str(holder), client, since)
            for place, (waiter, mode) in enumerate(lock.waiting):
                asking = self._asking.get(waiter)
                since = 0 if asking is None else round((asking.since + offset) * 1e6)
                blockers = tuple(map(str, lock.obstacles(waiter, mode, place)))
                client = self._clients.get(waiter, "")
                yield LockRow(*held, "row", mode, False, str(waiter), client, since, blockers)

    def _when_decided(self, message: control_pb2.KeyLock, answer: Answer) -> None:
        """Locked; its new owner must see a commit under the key that was under way before."""
        pending = self._transactions.pending
        for row in message.keys:
            held = (message.map_id, decode_row(row))
            if pending.holder(held, write=True) is not None:
                try:
                    schema = self._transactions.schema(message.map_id)
                    self._transactions.require_decidable(schema, [held[1]])
                except RemudaError as error:
                    answer(error)
                    return
                pending.when_free(*held, partial(self._when_decided, message, answer))
                return
        self._grant(message, answer)

    def _grant(self, message: control_pb2.KeyLock, answer: Answer) -> None:
        granted = Granting()
        if message.read_version:
            router = self._transactions.router(message.map_id)
            locked_rows.read(self._core, router, message, granted)
        self._core.timestamp()
        granted.context.CopyFrom(self._core.context())
        answer(granted)

    def _on_unlock(self, request: Request) -> None:
        message = control_pb2.KeyLock.FromString(request.pbody)
        self._release_here(decode_name(message.owner))
        request.reply(RpcType.ACK, common_pb2.Ack(ok=True))

    def _release_here(self, owner: TransactionId) -> None:
        self._ended[owner] = None
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)
        self._stop_waiting(owner, LockNotAvailable(f"transaction {owner} has ended"))
        self._granted(self.table.release(owner))
        self._forget(owner)
        self._wake()

    def _forget(self, owner: TransactionId) -> None:
        self._clients.pop(owner, None)
        self._since.pop(owner, None)

    def _stop_waiting(self, owner: TransactionId, error: RemudaError | None) -> None:
        asking = self._asking.pop(owner, None)
        self._granted(self.table.stop_waiting(owner))
        if asking is not None and error is not None:
            attempt("the refusal of a lock", partial(asking.answer, error))

    def _granted(self, served: Sequence[Granted[TransactionId, Held]]) -> None:
        for grant in served:
            self._note(grant.transaction, grant.key)
            asking = self._asking.get(grant.transaction)
            if asking is None:
                continue
            asking.missing.discard(grant.key)
            if not asking.missing:
                del self._asking[grant.transaction]
                attempt("the grant of a lock", partial(asking.answer, None))

    # --- writes of others ---------------------------------------------------------------------

    def holder(
        self, held: Held, owner: TransactionId | None, *, write: bool
    ) -> TransactionId | None:
        """Whose lock stands in the way of reading, or writing, a key."""
        if not self.held:
            return None
        return self.table.obstacle(held, Mode.EXCLUSIVE if write else Mode.SHARED, owner)

    def when_released(self, held: Held, action: Callable[[], None]) -> None:
        """Call ``action`` when locks were released (it must ask again)."""
        self._released.setdefault(held, []).append(action)

    def _wake(self) -> None:
        for held in [h for h in self._released if self.holder(h, None, write=True) is None]:
            for action in self._released.pop(held):
                attempt("a write that waited for a lock", action)

    # --- deadlocks ----------------------------------------------------------------------------

    @property
    def asking(self) -> int:
        """Transactions that wait for keys of this member."""
        return len(self._asking)

    def on_tick(self, now: float) -> None:
        for owner, asking in list(self._asking.items()):
            if now - asking.since >= SEARCH_AFTER * (asking.rounds + 1):
                asking.rounds += 1
                self._chase(self._search.started(owner, asking.rounds))

    def _chase(self, found: Sequence[ToNear[TransactionId] | Victim[TransactionId]]) -> None:
        for each in found:
            if isinstance(each, ToNear):
                self._tell(each.probe.target.near, self._at_near, each.probe, RpcType.KEY_PROBE)
            else:
                near = each.transaction.near
                probe = Probe(0, each.cycle, each.transaction)
                self._tell(near, self._victim, probe, RpcType.KEY_VICTIM)

    def _tell(
        self,
        member: int,
        here: Callable[[Probe[TransactionId]], None],
        probe: Probe[TransactionId],
        rpc_type: int,
        *,
        waits_here: bool = False,
    ) -> None:
        if member == self._core.number:
            asyncio.get_running_loop().call_soon(here, probe)
            return
        message = control_pb2.KeyProbe(
            context=self._core.context(), round=probe.round, waits_here=waits_here
        )
        for transaction in probe.path:
            fill_name(message.path.add(), transaction)
        fill_name(message.target, probe.target)
        try:
            self._peers.send_control(member, rpc_type, message)
        except RemudaError as error:  # the next round asks again
            log.debug("a probe was not sent: %s", error.message)

    def _on_probe(self, request: Request) -> None:
        message, probe = self._decoded(request)
        (self._at_member if message.waits_here else self._at_near)(probe)

    def _decoded(self, request: Request) -> tuple[control_pb2.KeyProbe, Probe[TransactionId]]:
        message = control_pb2.KeyProbe.FromString(request.pbody)
        self._core.observe_peer(message.context)
        path = tuple(decode_name(name) for name in message.path)
        return message, Probe(message.round, path, decode_name(message.target))

    def _at_near(self, probe: Probe[TransactionId]) -> None:
        owning = self._owning.get(probe.target)
        places = (owning.waits_at,) if owning is not None and owning.waits_at else ()
        for each in forwarded(probe, places):
            self._tell(each.member, self._at_member, each.probe, RpcType.KEY_PROBE, waits_here=True)

    def _at_member(self, probe: Probe[TransactionId]) -> None:
        self._chase(self._search.continued(probe))

    def _on_victim(self, request: Request) -> None:
        self._victim(self._decoded(request)[1])

    def _victim(self, probe: Probe[TransactionId]) -> None:
        owning = self._owning.get(probe.target)
        if owning is None or owning.waiting is None:
            return  # it waits no more
        circle = " waits for ".join(str(t) for t in (*probe.path, probe.path[0]))
        _settle_waiting(
            owning,
            DeadlockDetected(
                "deadlock detected: transactions wait for each other's locks",
                detail=f"transaction {circle}\n{owning.wants()}",
                hint="Run the transaction again. Transactions that lock keys in one order never "
                "meet like this.",
            ),
        )

    # --- views --------------------------------------------------------------------------------

    def on_view(self) -> None:
        """Those that wait ask again, perhaps elsewhere; locks of lost near members are free."""
        view = self._core.view
        for owner in self.table.transactions:
            if owner.near not in view.by_number:
                self._asking.pop(owner, None)
                self._granted(self.table.release(owner))
        for owner in [each for each in self._clients if each.near not in view.by_number]:
            self._forget(owner)  # also those that have stopped waiting
        for owner in list(self._asking):
            self._stop_waiting(owner, ViewChanged("the view has changed while a lock was awaited"))
        released, self._released = self._released, {}
        for actions in released.values():
            for action in actions:
                attempt("a write that waited for a lock", action)


def _told(schema: MapSchema, keys: Sequence[Key]) -> str:
    more = f", and {len(keys) - 1} more" if len(keys) > 1 else ""
    return f'{key_text(schema, keys[0])} of map "{schema.name}"{more}'


def _wanted(message: control_pb2.KeyLock) -> bytes:
    bare = control_pb2.KeyLock(map_id=message.map_id, keys=message.keys, shared=message.shared)
    return bare.SerializeToString(deterministic=True)


def _settle(done: asyncio.Future[Granting], granted: Granting | RemudaError) -> None:
    if done.done():
        return
    if isinstance(granted, RemudaError):
        done.set_exception(granted)
    else:
        done.set_result(granted)


def _answered(done: asyncio.Future[Granting], reply: Reply | RemudaError) -> None:
    if isinstance(reply, RemudaError):
        _settle(done, reply)
        return
    try:
        granted: Granting | RemudaError = Granting.FromString(reply.pbody)
    except DecodeError as error:  # called back: nobody else would answer
        granted = bug(error, "the answer to a lock")
    _settle(done, granted)


def _settle_waiting(owning: Owning, error: RemudaError) -> None:
    if owning.waiting is not None:
        _settle(owning.waiting, error)
