"""Statements that change one entry by its key, at the owner of the key (decision 0069).

The owner decides and prepares in one step, as for ``map.compute``
(``member.transactions.small_writes``): the statement waits for what is prepared on its key, and
condition and new values are computed over the newest committed version.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.datatypes.violations import duplicate_key
from remuda.errors import MemberUnavailable, OutcomeUnknown, ProtocolError, RemudaError, ViewChanged
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.one_row import Formulas
from remuda.execution.evaluate.predicate import Predicate
from remuda.member.base.core import Core, bug
from remuda.member.base.peers import Peers, unanswered
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.member.transactions.small_writes import WAIT_MAX, SmallWrite
from remuda.plan.codec import decode
from remuda.plan.expression import ColumnRef, Expression, Literal, Parameter
from remuda.plan.keyed_write import KeyedWrite, Meets
from remuda.query.ids import QueryId
from remuda.query.wire import decode_query_id, encode_query_id
from remuda.rpc.connection import Reply
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.packing import packer
from remuda.rpc.point_encoding import encode_rows
from remuda.rpc.transport import Request
from remuda.transaction.own_writes import Key, Row

KEYED_WRITE = RpcType.KEYED_WRITE
PATIENCE = WAIT_MAX + 5.0
"""Seconds until the initiator gives up: the owner answers within ``WAIT_MAX``."""
KNOWN_MAX = 1_000

Values: TypeAlias = tuple[PhysicalValue, ...]
Outcome: TypeAlias = Row | RemudaError | None
"""The values of RETURNING (an empty row without it), None if nothing was changed, or why the
statement has failed."""


class ReadyWrite:
    """A ``KeyedWrite`` with what each of its executions needs."""

    def __init__(self, write: KeyedWrite) -> None:
        self.write = write
        self.parameters = packer(write.parameter_types)
        self.returning = packer(tuple(each.type for each in write.returning))
        self.positions = {column: place for place, (column, _) in enumerate(write.columns)}
        """The columns of an entry that are used, as they stand in a batch."""
        self.places = kept = dict(write.columns)
        """The same, as they stand in the entry."""
        parts = [*write.key, *write.row, *write.returning]
        parts += [] if write.filter is None else [write.filter]
        self._formulas = formulas = Formulas(parts, len(write.parameter_types), kept)
        self._computed = [
            (place, each, formulas.of(each))
            for place, each in enumerate(write.row)
            if not (isinstance(each, ColumnRef) and kept[each.column] == place)
        ]
        """The columns whose values are not simply those of the entry."""
        self._returned = [(each, formulas.of(each)) for each in write.returning]
        (first, *rest) = write.key
        self._only = first.index if isinstance(first, Parameter) and not rest else None
        """The parameter that is the whole key, if one is."""
        self._keys = [(each, formulas.of(each)) for each in write.key]
        self._passes = None if write.filter is None else formulas.condition(write.filter)

    def key(self, values: Values) -> Key:
        if self._only is not None:
            return (values[self._only],)
        scope = self._formulas.scope(values, ())
        found: list[PhysicalValue] = []
        for each, formula in self._keys:
            found.append(_constant(each, values) if formula is None else formula(scope))
        return tuple(found)

    def decision(
        self, found: OpenMap, key: Key, values: Values
    ) -> Callable[[Sequence[Row | None]], tuple[list[tuple[Key, Row | None]], list[Row | None]]]:
        """See ``SmallWrite.decide``. The function raises the DataErrors of the expressions, what
        the constraints of the map refuse, and UniqueViolation."""
        write, schema = self.write, found.schema
        nothing: tuple[list[tuple[Key, Row | None]], list[Row | None]] = ([], [None])

        def decide(
            before: Sequence[Row | None],
        ) -> tuple[list[tuple[Key, Row | None]], list[Row | None]]:
            old = before[0]
            if old is None and write.meets is Meets.EXISTING:
                return nothing
            entry = old or (None,) * len(schema.columns)
            scope = self._formulas.scope(values, entry)
            columns = _Columns(self, schema, entry, values)
            if write.filter is not None:
                passes = self._passes
                if not (columns.passes(write.filter) if passes is None else passes(scope)):
                    return nothing
            row: Row | None = None
            if write.row:
                made = list(entry)
                for place, each, formula in self._computed:
                    made[place] = columns.value(each) if formula is None else formula(scope)
                row = tuple(made)
            if old is not None and write.meets is Meets.ABSENT and not write.refuses:
                return nothing
            if row is not None:
                found.check.row(row)
                if schema.checks:
                    found.conditions.check_rows([row])
            if old is not None and write.refuses:
                raise duplicate_key(schema, key)
            answer: list[PhysicalValue] = []
            for each, formula in self._returned:
                answer.append(columns.value(each) if formula is None else formula(scope))
            return [(key, row)], [tuple(answer)]

        return decide


class _Columns:
    """An entry as columns of one row, for the expressions that are not simple; made with the first
    of them."""

    __slots__ = ("_entry", "_made", "_ready", "_schema", "_values")

    def __init__(self, ready: ReadyWrite, schema: MapSchema, entry: Row, values: Values) -> None:
        self._ready = ready
        self._schema = schema
        self._entry = entry
        self._values = values
        self._made: tuple[Compiler, Batch] | None = None

    def value(self, expression: Expression) -> PhysicalValue:
        compiler, batch = self._made or self._make()
        array = canonical(compiler.column(expression)(batch), expression.type)
        return array_to_values(array, expression.type)[0]

    def passes(self, condition: Expression) -> bool:
        compiler, batch = self._made or self._make()
        places = Predicate(condition, compiler).select(batch)
        return places is None or len(places) > 0

    def _make(self) -> tuple[Compiler, Batch]:
        columns, entry = self._schema.columns, self._entry
        arrays = [
            values_to_array([entry[place]], columns[place].type)
            for place in self._ready.places.values()
        ]
        compiler = Compiler(self._ready.positions, self._values)
        self._made = compiler, Batch(arrays, 1)
        return self._made


def _constant(expression: Expression, values: Values) -> PhysicalValue:
    if isinstance(expression, Parameter):
        return values[expression.index]
    if isinstance(expression, Literal):
        return expression.value
    return evaluate_constant(expression, values)


class KeyedWrites:
    """Both sides: the initiator that asks the owner, and the owner."""

    def __init__(self, core: Core, peers: Peers, maps: Maps) -> None:
        self._core = core
        self._peers = peers
        self._maps = maps
        self._known: OrderedDict[bytes, ReadyWrite] = OrderedDict()
        self._running: dict[QueryId, SmallWrite] = {}
        """Writes of this owner, by their statements."""
        self._asked: dict[QueryId, Callable[[], None]] = {}
        """Called when the owner says that a statement of this initiator waits."""

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the control channel."""
        return {
            KEYED_WRITE: self.on_write,
            RpcType.KEYED_WRITE_END: self.on_end,
            RpcType.KEYED_WRITE_WAITS: self.on_waits,
        }

    # --- the initiator ------------------------------------------------------------------------

    def run(
        self,
        query: QueryId,
        encoded: bytes,
        values: Values,
        answered: Callable[[Outcome], None],
        waits: Callable[[], None],
    ) -> int:
        """Have the owner of the key carry out the write, on behalf of a statement. ``answered``
        hears the outcome, perhaps before this returns; ``waits`` is called when the write must wait
        for its key. The number of the owner. This member is ready. Raises what was found before
        anything was sent."""
        core, ready = self._core, self._ready(encoded)
        write = ready.write
        found = self._maps.open(write.map_name, write.map_id, write.schema_version)
        key = ready.key(values)
        if None in key:
            self._without_key(ready, found, key, values, answered)
            return core.number
        partition = found.router.key_partition(key)
        owner = core.view.owners[partition]
        if owner == core.number:
            self._begin(query, ready, found, key, partition, values, answered, waits)
        else:
            core.require_reached(owner)
            self._asked[query] = waits
            self._ask(owner, query, ready, encoded, values, answered)
        return owner

    def end(self, owner: int, query: QueryId, error: RemudaError) -> None:
        """The statement is not wanted any more: it fails with ``error``, unless its write has
        begun. (A message that is lost changes nothing: the write ends by itself.)"""
        if owner == self._core.number:
            self._withdraw(query, error)
            return
        message = control_pb2.KeyedWriteEnd(
            context=self._core.context(), query_id=encode_query_id(query)
        )
        self._peers.send_control(owner, RpcType.KEYED_WRITE_END, message)

    def _without_key(
        self,
        ready: ReadyWrite,
        found: OpenMap,
        key: Key,
        values: Values,
        answered: Callable[[Outcome], None],
    ) -> None:
        """No entry has NULL in its key, and none may get it. Raises NotNullViolation."""
        if ready.write.meets is not Meets.EXISTING:
            ready.decision(found, key, values)([None])
        answered(None)

    def _ask(  # noqa: PLR0917 (a request, and who hears of it)
        self,
        owner: int,
        query: QueryId,
        ready: ReadyWrite,
        encoded: bytes,
        values: Values,
        answered: Callable[[Outcome], None],
    ) -> None:
        message = control_pb2.KeyedWriteRequest(
            context=self._core.context(),
            query_id=encode_query_id(query),
            write=encoded,
            parameters=ready.parameters.pack(values),
        )

        def late() -> None:
            waiting.clear()
            self._asked.pop(query, None)
            answered(_unknown(ready.write, unanswered(owner, PATIENCE)))

        waiting = [asyncio.get_running_loop().call_later(PATIENCE, late)]

        def replied(reply: Reply | RemudaError) -> None:
            if not waiting:
                return  # it is too late
            waiting.pop().cancel()
            self._asked.pop(query, None)
            if isinstance(reply, MemberUnavailable) and reply.may_have_run:
                reply = _unknown(ready.write, reply)
            outcome: Outcome
            if isinstance(reply, RemudaError):
                outcome = reply
            else:
                try:
                    outcome = self._outcome(reply.pbody, ready)
                except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
                    outcome = bug(error, f"the answer of member {owner}")
            answered(outcome)

        self._peers.request_nowait(owner, KEYED_WRITE, message, (), replied)

    def on_waits(self, request: Request) -> None:
        message = control_pb2.KeyedWriteWaits.FromString(request.pbody)
        waits = self._asked.get(decode_query_id(message.query_id))
        if waits is not None:
            waits()

    def _outcome(self, body: bytes, ready: ReadyWrite) -> Row | None:
        """Raises ProtocolError."""
        answer = user_pb2.RowsResponse.FromString(body)
        self._core.observe(answer.context)
        (entry,) = answer.rows
        return ready.returning.unpack(entry.row) if entry.HasField("row") else None

    # --- the owner ----------------------------------------------------------------------------

    def on_write(self, request: Request) -> None:
        message = control_pb2.KeyedWriteRequest.FromString(request.pbody)
        core = self._core
        core.observe_member(message.context)
        if not core.readiness.ready:
            core.serve(request, self._when_ready(request))
            return
        ready = self._ready(message.write)
        write, values = ready.write, ready.parameters.unpack(message.parameters)
        found = self._maps.open(write.map_name, write.map_id, write.schema_version)

        def answered(outcome: Outcome) -> None:
            if isinstance(outcome, RemudaError):
                request.fail(outcome)
                return
            row = None if outcome is None else ready.returning.pack(outcome)
            request.reply(KEYED_WRITE, encode_rows([row], core.encoded_context()))

        query = decode_query_id(message.query_id)

        def waits() -> None:
            note = control_pb2.KeyedWriteWaits(context=core.context(), query_id=message.query_id)
            self._peers.send_control(query.member, RpcType.KEYED_WRITE_WAITS, note)

        key = ready.key(values)
        partition = found.router.key_partition(key)
        if core.view.owners[partition] != core.number:
            raise ViewChanged(f"member {core.number} does not own the key of the statement")
        self._begin(query, ready, found, key, partition, values, answered, waits)

    async def _when_ready(self, request: Request) -> None:
        await self._core.readiness.wait()
        self.on_write(request)

    def on_end(self, request: Request) -> None:
        message = control_pb2.KeyedWriteEnd.FromString(request.pbody)
        self._withdraw(decode_query_id(message.query_id), None)

    def _withdraw(self, query: QueryId, error: RemudaError | None) -> None:
        write = self._running.get(query)
        if write is not None:
            self._maps.writes.small.withdraw(write, error)

    def _ready(self, encoded: bytes) -> ReadyWrite:
        """Raises ProtocolError."""
        ready = self._known.get(encoded)
        if ready is None:
            write = decode(encoded)
            if not isinstance(write, KeyedWrite):
                raise ProtocolError(f"expected a KeyedWrite, found {type(write).__name__}")
            ready = self._known[encoded] = ReadyWrite(write)
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(encoded)
        return ready

    def _begin(  # noqa: PLR0917 (a write, and who hears of it)
        self,
        query: QueryId,
        ready: ReadyWrite,
        found: OpenMap,
        key: Key,
        partition: int,
        values: Values,
        answered: Callable[[Outcome], None],
        waits: Callable[[], None],
    ) -> None:
        """This member owns the partition of the key."""
        running = self._running

        def ended(answer: list[Row | None] | RemudaError) -> None:
            running.pop(query, None)
            answered(answer if isinstance(answer, RemudaError) else answer[0])

        decide = ready.decision(found, key, values)
        write = running[query] = SmallWrite(
            found.schema, partition, (key,), decide, ended, statement=query, waits=waits
        )
        self._maps.writes.small.write(write)


def _unknown(write: KeyedWrite, cause: RemudaError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f'it is not known whether a statement has changed an entry of map "{write.map_name}": '
        f"{cause.message}",
        hint="Read the entry, then run the statement again if need be.",
        member=cause.member,
    )
