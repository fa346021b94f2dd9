"""Numbers of sequences: the member that takes some, and the owner of a sequence's state.

The state is the one entry of a map (``datatypes.sequences``). The owner of its key changes it in a
write of one entry (``member.transactions.small_writes``) and answers when all copies have it
(decision 0081).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from remuda.cluster.lease import takeover_delay
from remuda.datatypes.schema import MapSchema, SequenceOptions
from remuda.datatypes.sequences import (
    TAG_BITS,
    NumberBlock,
    SequenceState,
    following,
    initial,
    is_later,
    taken,
)
from remuda.errors import (
    NumberNotDefined,
    OutcomeUnknown,
    RemudaError,
    SchemaChanged,
    SequenceExhausted,
    TransientError,
    ViewChanged,
)
from remuda.limits import CLOCK_DRIFT
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.member.transactions.small_writes import SmallWrite
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction.number_blocks import (
    Ask,
    Effect,
    Failed,
    Forget,
    Give,
    Granted,
    NumberBlocks,
    Refuse,
    Take,
    Void,
    Withdraw,
)
from remuda.transaction.own_writes import Key, Row

PATIENCE: Final = 30.0
"""Seconds for which a request is repeated while members are lost and views change."""
ANSWER_TIMEOUT: Final = 5.0
"""Seconds after which a request is repeated."""
PAUSE: Final = 0.02
PAUSE_MAX: Final = 0.5

Answer: TypeAlias = control_pb2.SequenceAnswer
Taken: TypeAlias = Sequence[NumberBlock] | RemudaError
Decided: TypeAlias = tuple[list[tuple[Key, Row | None]], list[Row | None]]


@dataclass(frozen=True, slots=True)
class NewState:
    """``last_value`` None: the numbers go on where they are."""

    last_value: int | None = None
    is_called: bool = False


@dataclass(frozen=True, slots=True)
class _Setting:
    """Sets a state of one ``generation``."""

    new: NewState
    generation: int
    following: int

    def request(self, found: OpenMap) -> control_pb2.SequenceRequest:
        message = _request(found.schema)
        message.generation, message.next_generation = self.generation, self.following
        message.is_called = self.new.is_called
        if self.new.last_value is not None:
            message.last_value = self.new.last_value
        return message


@dataclass(slots=True)
class _Tries:
    """Of one request."""

    unanswered: bool = False
    """Whether one of them may have had its effect without an answer."""


class Sequences:
    """Both sides."""

    def __init__(self, core: Core, peers: Peers, maps: Maps) -> None:
        self._core = core
        self._peers = peers
        self._maps = maps
        self._blocks = NumberBlocks()
        self._requests = count(1)
        self._waiting: dict[int, Callable[[Taken], None]] = {}

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the control channel."""
        return {RpcType.SEQUENCE: self.on_request, RpcType.SEQUENCE_VOID: self.on_void}

    def forget(self, map_id: int) -> None:
        self._step_all(self._blocks.step(Forget(map_id)))

    # --- numbers ------------------------------------------------------------------------------

    async def take(self, schema: MapSchema, wanted: int) -> Sequence[NumberBlock]:
        """So many numbers, in order. Raises SequenceExhausted, NumberNotDefined if the state was
        lost, SchemaChanged, TransientError."""
        future: asyncio.Future[Sequence[NumberBlock]]
        future = asyncio.get_running_loop().create_future()

        def taken(found: Taken) -> None:
            if future.done():  # cancelled in this step of the loop
                return
            if isinstance(found, RemudaError):
                future.set_exception(found)
            else:
                future.set_result(found)

        withdraw = self.begin(schema, wanted, taken)
        try:
            return await future
        except asyncio.CancelledError:
            if withdraw is not None:
                withdraw()
            raise

    def begin(
        self, schema: MapSchema, wanted: int, taken: Callable[[Taken], None]
    ) -> Callable[[], None] | None:
        """``take`` without a task: ``taken`` hears of the numbers, or why there are none. None: it
        has heard of numbers that were left over; else what withdraws the request."""
        assert schema.sequence is not None
        request, sequence = next(self._requests), schema.map_id
        self._waiting[request] = taken
        leased, cache = self._core.readiness.leased, schema.sequence.cache
        self._step_all(self._blocks.step(Take(sequence, request, wanted, cache, leased)))
        if request not in self._waiting:
            return None

        def withdraw() -> None:
            if self._waiting.pop(request, None) is not None:
                self._step_all(self._blocks.step(Withdraw(sequence, request)))

        return withdraw

    def _step_all(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Give(request=request, blocks=blocks):
                    if (taken := self._waiting.pop(request, None)) is not None:
                        taken(blocks)
                case Refuse(request=request, error=error):
                    if (taken := self._waiting.pop(request, None)) is not None:
                        taken(error)
                case Ask(sequence=sequence, count=wanted):
                    self._core.spawn(self._ask(sequence, wanted), "numbers of a sequence")

    async def _ask(self, sequence: int, wanted: int) -> None:
        def request(found: OpenMap) -> control_pb2.SequenceRequest:
            return _request(found.schema, take=wanted)

        event: Granted | Failed
        try:
            # A block whose answer is lost is skipped: no number of it was given out.
            answer = await self._answered(sequence, request)
            event = _granted(self._opened(sequence).schema, answer)
        except RemudaError as error:
            event = Failed(sequence, error)
        self._step_all(self._blocks.step(event))

    def _opened(self, map_id: int) -> OpenMap:
        """Raises SchemaChanged."""
        schema = self._core.catalog.find_id(map_id)
        if schema is None:
            raise SchemaChanged("the sequence was dropped meanwhile", hint="Run it again.")
        return self._maps.open(schema.name, schema.map_id, schema.version)

    async def _answered(
        self,
        map_id: int,
        request: Callable[[OpenMap], control_pb2.SequenceRequest],
        tries: _Tries | None = None,
    ) -> Answer:
        """The owner's answer. The request is sent again until there is one."""
        clock = self._core.world.clock
        deadline, pause = clock.monotonic() + PATIENCE, PAUSE
        while True:
            try:
                return await self._asked(self._opened(map_id), request)
            except TransientError as error:
                if tries is not None:
                    tries.unanswered |= error.may_have_run
                if clock.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX)

    async def _asked(
        self,
        found: OpenMap,
        request: Callable[[OpenMap], control_pb2.SequenceRequest],
    ) -> Answer:
        core = self._core
        await core.until_ready()
        owner = core.view.owners[found.router.key_partition(_key(found.schema))]
        message = request(found)
        message.context.CopyFrom(core.context())
        if owner == core.number:
            return await self._here(found, message)
        core.require_reached(owner)
        reply = await self._peers.request(owner, RpcType.SEQUENCE, message, timeout=ANSWER_TIMEOUT)
        answer = control_pb2.SequenceAnswer.FromString(reply.pbody)
        core.observe(answer.context)
        return answer

    # --- the state ----------------------------------------------------------------------------

    async def state(self, schema: MapSchema) -> SequenceState | None:
        """As the owner has it now; None: it was never made, or was lost."""
        return _state(await self._answered(schema.map_id, lambda found: _request(found.schema)))

    async def set(self, map_id: int, new: NewState) -> None:
        """Set the state, or make it. When this returns no member gives out numbers any more that
        were taken before. Raises OutcomeUnknown."""
        while True:
            answer = await self._answered(map_id, lambda found: _request(found.schema))
            tag = self._core.world.chance.bits(TAG_BITS)
            setting = _Setting(new, answer.generation, following(answer.generation, tag))
            tries = _Tries()
            try:
                answer = await self._answered(map_id, setting.request, tries)
            except TransientError as error:
                if not tries.unanswered:
                    raise
                raise _unknown(error.message, error.member) from error
            if not answer.refused:
                break
            if tries.unanswered and is_later(answer.generation, setting.following):
                raise _unknown("its answer was lost, and another statement has set it since")
        await self._void_everywhere(map_id, answer.generation)

    async def _void_everywhere(self, map_id: int, generation: int) -> None:
        """Have every member of the view note that older blocks are void. One that does not answer
        is waited for until a view has dropped it and its lease is over."""
        core = self._core
        self._step_all(self._blocks.step(Void(map_id, generation)))
        noted, dropped = {core.number}, False
        deadline = core.world.clock.monotonic() + PATIENCE
        while others := core.view.by_number.keys() - noted:
            replies = await asyncio.gather(
                *(self._void_at(number, map_id, generation) for number in sorted(others)),
                return_exceptions=True,
            )
            for number, reply in zip(sorted(others), replies, strict=True):
                if not isinstance(reply, BaseException):
                    noted.add(number)
                elif not isinstance(reply, TransientError):
                    raise reply
            silent = others - noted
            if silent and core.world.clock.monotonic() > deadline:
                raise _not_noted(silent)
            if silent:
                dropped = True
                await asyncio.sleep(PAUSE_MAX)
        if dropped:
            await asyncio.sleep(takeover_delay(core.config.lease_seconds, CLOCK_DRIFT))

    async def _void_at(self, number: int, map_id: int, generation: int) -> None:
        message = control_pb2.SequenceVoid(
            context=self._core.context(), map_id=map_id, generation=generation
        )
        await self._peers.request(number, RpcType.SEQUENCE_VOID, message, repeated=True)

    def on_void(self, request: Request) -> None:
        message = control_pb2.SequenceVoid.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._step_all(self._blocks.step(Void(message.map_id, message.generation)))
        request.reply(RpcType.SEQUENCE_VOID, common_pb2.Ack(ok=True))

    # --- the owner ----------------------------------------------------------------------------

    def on_request(self, request: Request) -> None:
        message = control_pb2.SequenceRequest.FromString(request.pbody)
        self._core.observe_member(message.context)
        self._core.serve(request, self._answer(request, message))

    async def _answer(self, request: Request, message: control_pb2.SequenceRequest) -> None:
        if not self._core.readiness.ready:
            await self._core.readiness.wait()
        schema = self._core.catalog.find_id(message.map_id)
        if schema is None or schema.version != message.schema_version:
            raise SchemaChanged("the sequence has changed since the request was made")
        found = self._opened(message.map_id)
        owner = self._core.view.owners[found.router.key_partition(_key(schema))]
        if owner != self._core.number:
            raise ViewChanged(f"member {self._core.number} does not own the sequence's state")
        request.reply(RpcType.SEQUENCE, await self._here(found, message))

    async def _here(self, found: OpenMap, message: control_pb2.SequenceRequest) -> Answer:
        """This member owns the state."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer = control_pb2.SequenceAnswer()
        schema = found.schema
        options = schema.sequence
        assert options is not None
        key = _key(schema)

        def decide(before: Sequence[Row | None]) -> Decided:
            answer.Clear()
            row = before[0]
            state = None if row is None else _read(row)
            after = _changed(options, state, message, answer)
            _fill(answer, after)
            if after is None or after == state:
                return [], [None]
            return [(key, _written(schema, after))], [None]

        def answered(outcome: object) -> None:
            if future.done():
                return
            if isinstance(outcome, RemudaError):
                future.set_exception(outcome)
            else:
                future.set_result(None)

        partition = found.router.key_partition(key)
        self._maps.writes.small.write(SmallWrite(schema, partition, (key,), decide, answered))
        await future
        answer.context.CopyFrom(self._core.context())
        return answer


def _changed(
    options: SequenceOptions,
    state: SequenceState | None,
    message: control_pb2.SequenceRequest,
    answer: Answer,
) -> SequenceState | None:
    """The state after a request, which tells ``answer`` of the block."""
    if message.HasField("take"):
        found = None if state is None else taken(options, state, message.take)
        if found is None:
            return state
        state, block = found
        answer.first, answer.count, answer.increment = block.first, block.count, block.increment
        return state
    if not message.HasField("generation"):
        return state
    generation = 0 if state is None else state.generation
    if message.generation != generation:  # perhaps it was set by this very request, before
        answer.refused = message.next_generation != generation
        return state
    if message.HasField("last_value"):
        return SequenceState(message.last_value, message.is_called, message.next_generation)
    if state is None:
        return initial(options, message.next_generation)
    return SequenceState(state.last_value, state.is_called, message.next_generation)


def _request(schema: MapSchema, take: int | None = None) -> control_pb2.SequenceRequest:
    return control_pb2.SequenceRequest(
        map_id=schema.map_id, schema_version=schema.version, take=take
    )


def _granted(schema: MapSchema, answer: Answer) -> Granted | Failed:
    assert schema.sequence is not None
    if not answer.HasField("generation"):
        return Failed(schema.map_id, lost_state(schema.name))
    if not answer.count:
        return Failed(schema.map_id, exhausted(schema.name, schema.sequence))
    block = NumberBlock(answer.first, answer.count, answer.increment, answer.generation)
    return Granted(schema.map_id, block)


def exhausted(name: str, options: SequenceOptions) -> SequenceExhausted:
    up = options.increment > 0
    bound, value = ("maximum", options.maximum) if up else ("minimum", options.minimum)
    return SequenceExhausted(f'nextval: reached {bound} value of sequence "{name}" ({value})')


def lost_state(name: str) -> NumberNotDefined:
    return NumberNotDefined(
        f'the state of sequence "{name}" does not exist: it was lost with its partition, or the '
        "statement that created the sequence was interrupted",
        hint="Give a number that no row has: ALTER SEQUENCE ... RESTART WITH number.",
    )


def _unknown(reason: str, member: str = "") -> OutcomeUnknown:
    return OutcomeUnknown(
        f"it is not known whether the sequence was set: {reason}",
        hint="Read last_value of the sequence, then set it again if need be.",
        member=member,
    )


def _not_noted(silent: Iterable[int]) -> OutcomeUnknown:
    names = ", ".join(str(number) for number in sorted(silent))
    return OutcomeUnknown(
        f"the sequence was set, but these members were not reached: {names}. They may still give "
        "out numbers that they took before",
        hint="Set the sequence again when the cluster is whole.",
        member=names,
    )


def _state(answer: Answer) -> SequenceState | None:
    if not answer.HasField("generation"):
        return None
    return SequenceState(answer.last_value, answer.is_called, answer.generation)


def _fill(answer: Answer, state: SequenceState | None) -> None:
    if state is not None:
        answer.generation, answer.last_value = state.generation, state.last_value
        answer.is_called = state.is_called


# --- the entry ---------------------------------------------------------------------------------


def _key(schema: MapSchema) -> Key:
    assert schema.sequence is not None
    return (schema.sequence.slot,)


def _read(row: Row) -> SequenceState:
    last_value, _, is_called, generation, _ = row
    assert isinstance(last_value, int) and isinstance(generation, int)  # noqa: PT018
    return SequenceState(last_value, bool(is_called), generation)


def _written(schema: MapSchema, state: SequenceState) -> Row:
    assert schema.sequence is not None
    return (state.last_value, 0, state.is_called, state.generation, schema.sequence.slot)
