"""Puts and removes at their primary when they cannot go straight into the store: backups must have
them first, or others are about to change the same keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from remuda.datatypes.map_options import DURATION_MAX
from remuda.errors import (
    InputError,
    RemudaError,
    SerializationFailure,
    SnapshotTooOld,
    TransientError,
    ViewChanged,
)
from remuda.member.base.core import Call, Core, nothing_done
from remuda.member.base.forwarding import ForwardedCall
from remuda.member.maps.open_map import OpenMap
from remuda.member.state.transaction_sets import Key, ReadSet, Row, Write
from remuda.member.transactions.small_writes import (
    PAUSE,
    PAUSE_MAX,
    WAIT_MAX,
    SmallWrite,
    SmallWrites,
)
from remuda.member.transactions.transactions import Transactions
from remuda.rpc.messages import user_pb2

ALWAYS = user_pb2.PutRequest.ALWAYS
IF_ABSENT = user_pb2.PutRequest.IF_ABSENT

Tell = Callable[[list[Row | None]], None]
DecideSome = Callable[
    [Sequence[int], list[Row | None]], tuple[list[tuple[Key, Row | None]], list[Row | None]]
]
"""From places in the request and the rows that are there to the rows to write, and the rows to
answer with."""
_FIRST = (0,)
Read = Callable[[list[Key]], Awaitable[list[Row | None]]]


def chosen(
    condition: int, keyed: Sequence[tuple[Key, Row]], before: Sequence[Row | None]
) -> tuple[dict[Key, Row], list[Row | None]]:
    """The rows to store, by key, and the row that each of ``keyed`` replaces or finds: as if they
    were put one after the other."""
    found: dict[Key, Row] = {}
    olds: list[Row | None] = []
    for (key, row), there in zip(keyed, before, strict=True):
        old = found.get(key, there)
        olds.append(old)
        if condition == ALWAYS or (old is None) == (condition == IF_ABSENT):
            found[key] = row
    return found, olds


def ttl_of(message: user_pb2.PutRequest | user_pb2.PutBatchRequest) -> int | None:
    """In microseconds; None: as the map says. Raises InputError."""
    if not message.HasField("ttl"):
        return None
    if not 0 <= message.ttl <= DURATION_MAX:
        raise InputError(f"a TTL has 0 to {DURATION_MAX} microseconds, not {message.ttl}")
    return message.ttl


class MapWrites:
    def __init__(self, core: Core, transactions: Transactions) -> None:
        self._core = core
        self._transactions = transactions
        self.small = SmallWrites(core, transactions)

    # --- put ----------------------------------------------------------------------------------

    def put(  # noqa: PLR0917 (a request, what it says, how to answer)
        self,
        call: Call,
        condition: int,
        found: OpenMap,
        keyed: Sequence[tuple[Key, Row]],
        partitions: Sequence[int],
        tell: Tell,
        again: Callable[[Call], None],
        ttl: int | None = None,
    ) -> None:
        """Rows of ``partitions`` of this member. With ALWAYS all or none; a condition concerns one
        key, so each partition decides about its own. ``again`` serves the request anew, when a
        partition has got another primary."""
        groups = _groups(partitions)
        if len(groups) > 1 and condition == ALWAYS:
            self._core.serve(call, self._put_together(found, keyed, tell, ttl))
            return

        def decide(
            places: Sequence[int], before: list[Row | None]
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            stored, olds = chosen(condition, [keyed[place] for place in places], before)
            return list(stored.items()), olds

        self._write(found, groups, [key for key, _ in keyed], decide, call, tell, again, ttl)

    def put_one(  # noqa: PLR0917 (a request, what it says, how to answer)
        self,
        call: Call,
        condition: int,
        found: OpenMap,
        entry: tuple[Key, Row],
        partition: int,
        tell: Tell,
        again: Callable[[Call], None],
        ttl: int | None,
        *,
        want_old: bool,
    ) -> None:
        """``put`` of one row. Without ``want_old``, ``tell`` hears only whether there was one."""
        answered = partial(self._answered, call, tell, again)
        decide = partial(_put_one, condition, entry)
        write = SmallWrite(
            found.schema, partition, entry[:1], decide, answered, ttl, call, blind=not want_old
        )
        self.small.write(write)

    async def _put_together(
        self, found: OpenMap, keyed: Sequence[tuple[Key, Row]], tell: Tell, ttl: int | None
    ) -> None:
        core = self._core

        async def read(keys: list[Key]) -> list[Row | None]:
            at = core.timestamp()
            while found.store.pending_at_or_below(at):
                key = self._transactions.awaited_key(found.schema.map_id, keys, at)
                if key is None and not found.store.job_pending:
                    break
                core.require_decidable(found.schema.map_id, at)
                await asyncio.sleep(PAUSE)
                at = core.timestamp()
            return [found.store.get(key, at) for key in keys]

        tell(await self.put_atomically(found, ALWAYS, keyed, read, ttl))

    async def put_atomically(
        self,
        found: OpenMap,
        condition: int,
        keyed: Sequence[tuple[Key, Row]],
        read: Read,
        ttl: int | None = None,
    ) -> list[Row | None]:
        """All or none, wherever they are: a transaction. The row that was there before, exactly."""
        core, schema = self._core, found.schema
        deadline = core.world.clock.monotonic() + WAIT_MAX
        pause = PAUSE
        while True:
            snapshot = core.timestamp()
            with nothing_done:
                before = await read([key for key, _ in keyed])
            stored, olds = chosen(condition, keyed, before)
            writes = [
                Write(schema.map_id, schema.version, key, row, ttl) for key, row in stored.items()
            ]
            left = deadline - core.world.clock.monotonic()
            try:
                await self._transactions.commit(writes, ReadSet(snapshot), max(left, PAUSE))
            except (SerializationFailure, SnapshotTooOld) as error:
                if left <= 0:
                    raise TransientError(
                        f'rows of map "{schema.name}" could not be put together: others kept '
                        "changing them",
                        detail=error.message,
                        hint="Put them again.",
                    ) from error
                await asyncio.sleep(pause * (0.5 + core.world.chance.fraction()))
                pause = min(2 * pause, PAUSE_MAX)
            else:
                return olds

    # --- remove -------------------------------------------------------------------------------

    def remove(
        self,
        call: Call,
        found: OpenMap,
        keys: Sequence[Key],
        tell: Tell,
        again: Callable[[Call], None],
    ) -> None:
        def decide(
            places: Sequence[int], before: list[Row | None]
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            there: dict[Key, Row] = {}
            olds: list[Row | None] = []
            for place, row in zip(places, before, strict=True):
                key = keys[place]
                olds.append(None if key in there else row)
                if row is not None:
                    there[key] = row
            return [(key, None) for key in there], olds

        groups = _groups(list(map(found.router.key_partition, keys)))
        self._write(found, groups, keys, decide, call, tell, again)

    # --- what depends on the entry ------------------------------------------------------------

    def change(  # noqa: PLR0917 (a request, what it says, how to answer)
        self,
        call: Call,
        found: OpenMap,
        keys: Sequence[Key],
        decide: Callable[
            [Sequence[int], list[Row | None]], tuple[dict[Key, Row | None], list[Row | None]]
        ],
        tell: Tell,
        again: Callable[[Call], None],
        ttl: int | None = None,
    ) -> None:
        """Each partition for itself: ``decide`` gets places in the request, and the rows there."""

        def decided(
            places: Sequence[int], before: list[Row | None]
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            written, answer = decide(places, before)
            return list(written.items()), answer

        if len(keys) == 1:
            answered = partial(self._answered, call, tell, again)
            partition = found.router.key_partition(keys[0])
            decide_one = partial(decided, _FIRST)
            write = SmallWrite(found.schema, partition, keys, decide_one, answered, ttl, call)
            self.small.write(write)
            return
        groups = _groups(list(map(found.router.key_partition, keys)))
        self._write(found, groups, keys, decided, call, tell, again, ttl)

    # --- shared -------------------------------------------------------------------------------

    def _write(  # noqa: PLR0917 (a request, what it says, how to answer)
        self,
        found: OpenMap,
        groups: dict[int, list[int]],
        keys: Sequence[Key],
        decide: DecideSome,
        call: Call,
        tell: Tell,
        again: Callable[[Call], None],
        ttl: int | None = None,
    ) -> None:
        """A write for each partition, of the places of its keys in the request."""
        answered = partial(self._answered, call, tell, again)
        if len(groups) == 1:
            ((partition, places),) = groups.items()
            write = SmallWrite(
                found.schema, partition, keys, partial(decide, places), answered, ttl, call
            )
            self.small.write(write)
            return
        waits = Gathered(len(keys), len(groups), answered)
        for partition, places in groups.items():
            part = [keys[place] for place in places]
            decided, told = partial(decide, places), waits.part(places)
            write = SmallWrite(found.schema, partition, part, decided, told, ttl, call)
            self.small.write(write)

    def _answered(
        self,
        call: Call,
        tell: Tell,
        again: Callable[[Call], None],
        answer: list[Row | None] | RemudaError,
    ) -> None:
        if isinstance(answer, ViewChanged) and not isinstance(call, ForwardedCall):
            try:
                again(call)
            except RemudaError as error:
                call.fail(error)
        elif isinstance(answer, RemudaError):
            call.fail(answer)
        else:
            tell(answer)


def _put_one(
    condition: int, entry: tuple[Key, Row], before: list[Row | None]
) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
    """``chosen`` for one row."""
    if condition == ALWAYS or (before[0] is None) == (condition == IF_ABSENT):
        return [entry], before
    return [], before


def _groups(partitions: Sequence[int]) -> dict[int, list[int]]:
    """Places in a request by partition."""
    groups: dict[int, list[int]] = {}
    for place, partition in enumerate(partitions):
        groups.setdefault(partition, []).append(place)
    return groups


def not_repeated(error: RemudaError) -> RemudaError:
    """The error of some entries when others are changed already: one after which nobody repeats
    the request by himself."""
    if not isinstance(error, TransientError) or error.may_have_run:
        return error
    return TransientError(
        "some of the entries were changed, others were not",
        detail=error.message,
        hint="Read them before you change them again.",
    )


@contextmanager
def one_of_several(changed: object) -> Iterator[None]:
    """Around the question to one of several owners; ``changed``: another one has answered."""
    try:
        yield
    except RemudaError as error:
        if not changed:
            raise
        raise not_repeated(error) from error


class Gathered:
    """The answers of several partitions, put together in the order of the request; one error is
    the error of the whole, before all one after which nobody knows what was written."""

    def __init__(
        self,
        size: int,
        parts: int,
        answered: Callable[[list[Row | None] | RemudaError], None],
    ) -> None:
        self._rows: list[Row | None] = [None] * size
        self._left = parts
        self._answered = answered
        self._written = False
        self._error: RemudaError | None = None
        if not parts:
            answered([])

    def part(self, places: Sequence[int]) -> Callable[[list[Row | None] | RemudaError], None]:
        def answered(answer: list[Row | None] | RemudaError) -> None:
            self._left -= 1
            if isinstance(answer, RemudaError):
                if self._error is None or (answer.may_have_run and not self._error.may_have_run):
                    self._error = answer
            else:
                self._written = True
                for place, row in zip(places, answer, strict=True):
                    self._rows[place] = row
            if not self._left:
                self._end()

        return answered

    def _end(self) -> None:
        error = self._error
        if error is not None and self._written:
            error = not_repeated(error)
        self._answered(self._rows if error is None else error)
