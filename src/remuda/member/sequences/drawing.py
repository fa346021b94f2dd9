"""The values that a statement by key draws before its write is sent to the owner of the key:
numbers of sequences, and values of volatile functions (``plan.keyed_write.Draw``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from remuda.datatypes.sequences import NumberBlock
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.member.base.core import Core, bug
from remuda.member.sequences.calls import current_number, last_number, own_numbers, sequence_of
from remuda.member.sequences.states import Sequences
from remuda.member.sessions.statement import Statement
from remuda.plan.keyed_write import Draw
from remuda.plan.sequence_calls import CURRVAL, LASTVAL, SequenceCall

Values: TypeAlias = tuple[PhysicalValue, ...]
Drawn: TypeAlias = Callable[[Values | RemudaError], None]


class Drawing:
    def __init__(self, core: Core, sequences: Sequences) -> None:
        self._core = core
        self._sequences = sequences

    def begin(
        self, statement: Statement, draws: Sequence[Draw], values: Values, drawn: Drawn
    ) -> None:
        """Make the draws one after the other. ``drawn`` hears the ``values`` with the drawn ones
        behind them, or why there are none, perhaps before this returns. Meanwhile the statement
        tells of its cancel by ``progress.on_error``."""
        _Draws(self._core, self._sequences, statement, values, drawn).go_on(iter(draws))


class _Draws:
    """Of one execution."""

    __slots__ = ("_core", "_drawn", "_sequences", "_statement", "_values")

    def __init__(
        self,
        core: Core,
        sequences: Sequences,
        statement: Statement,
        values: Values,
        drawn: Drawn,
    ) -> None:
        self._core = core
        self._sequences = sequences
        self._statement = statement
        self._values = list(values)
        self._drawn = drawn

    def go_on(self, rest: Iterator[Draw]) -> None:
        """Until a number must be waited for."""
        found: Values | RemudaError
        try:
            for draw in rest:
                if self._waits(draw, rest):
                    return
            found = tuple(self._values)
        except RemudaError as error:
            found = error
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            found = bug(error, "the numbers of a statement by key")
        self._drawn(found)

    def _waits(self, draw: Draw, rest: Iterator[Draw]) -> bool:
        """Whether the value is not there yet; ``rest`` follows when it is."""
        values, call = self._values, draw.call
        value = None if draw.expression is None else evaluate_constant(draw.expression, values)
        if call is None:
            values.append(value)
        elif draw.expression is not None and value is not True:
            values.append(None)
        elif call.function == LASTVAL:
            values.append(last_number(self._core.catalog, self._statement))
        elif call.function == CURRVAL:
            schema = sequence_of(self._core.catalog, self._statement, call.map_id)
            values.append(current_number(self._statement, schema))
        else:
            return self._next(call, rest)
        return False

    def _next(self, call: SequenceCall, rest: Iterator[Draw]) -> bool:
        statement, map_id = self._statement, call.map_id
        schema = sequence_of(self._core.catalog, statement, map_id)
        if schema.temporary:
            self._take(map_id, own_numbers(statement, schema, 1))
            return False
        taken = statement.progress.numbers_taken()
        left = taken.left(map_id, 1)
        if left:
            self._take(map_id, left)
            return False
        waits = False

        def answered(blocks: Sequence[NumberBlock] | RemudaError) -> None:
            statement.progress.on_error = None
            if isinstance(blocks, RemudaError):
                self._drawn(blocks)
                return
            taken.take(map_id, blocks)
            self._take(map_id, blocks)
            if waits:
                self.go_on(rest)

        withdraw = self._sequences.begin(schema, 1, answered)
        if withdraw is None:
            return False
        waits = True

        def ended(error: RemudaError) -> None:
            withdraw()
            answered(error)

        statement.progress.on_error = ended
        return True

    def _take(self, map_id: int, blocks: Sequence[NumberBlock]) -> None:
        number = blocks[0].first
        self._values.append(number)
        self._statement.progress.took(map_id, number)
