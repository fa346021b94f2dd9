"""UnfoldRows: each input row once for every row that functions give for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.errors import WrongParameters
from remuda.execution.batch import Batch, Selection
from remuda.execution.checkpoint import checkpoint
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.given import given
from remuda.execution.evaluate.set_rows import SET_EVALUATORS, TAKES_NULL, Column, Piece
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Upstream, unify
from remuda.execution.operators.ordering import places_of
from remuda.limits import BATCH_ROWS
from remuda.plan.expression import Expression, Literal, Parameter
from remuda.plan.functions.set_functions import GIVEN_ROWS, SetCall
from remuda.plan.physical import UnfoldRows


@dataclass(frozen=True)
class BoundSetCall:
    call: SetCall
    arguments: Sequence[Callable[[Batch], pa.Array]]

    def values(self, batch: Batch) -> list[tuple[PhysicalValue, ...]]:
        """The arguments of each row."""
        if not self.arguments:
            return [()] * batch.rows
        columns = [
            array_to_values(argument(batch), expression.type)
            for argument, expression in zip(self.arguments, self.call.arguments, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def pieces(self, arguments: tuple[PhysicalValue, ...]) -> Iterator[Piece]:
        if None in arguments and self.call.function not in TAKES_NULL:
            return iter(())
        return SET_EVALUATORS[self.call.function](*arguments, types=self.call.types)


@dataclass(frozen=True)
class GivenRows(BoundSetCall):
    """The rows of a long VALUES; ``parameters`` are those of the statement."""

    parameters: Sequence[PhysicalValue]

    def pieces(self, arguments: tuple[PhysicalValue, ...]) -> Iterator[Piece]:  # noqa: ARG002
        cells, width = self.call.arguments, len(self.call.types)
        step = BATCH_ROWS * width
        for first in range(0, len(cells), step):
            values = [self._value(cell) for cell in cells[first : first + step]]
            yield tuple([values[place::width] for place in range(width)])

    def _value(self, cell: Expression) -> PhysicalValue:
        assert isinstance(cell, Literal | Parameter)
        if isinstance(cell, Parameter) and cell.index >= len(self.parameters):
            raise WrongParameters(f"no value for parameter {cell.index + 1}")
        return given(cell, self.parameters)


class UnfoldOperator(Operator):
    """Gathers the rows of several input rows into one batch, and cuts those of one into several.

    ``kept`` are positions of the input to pass on. At most ``batch_rows`` rows come out at a time,
    or a piece (see ``set_rows``) more.
    """

    def __init__(
        self,
        source: Operator,
        *,
        kept: Sequence[int],
        calls: Sequence[BoundSetCall],
        ordinality: bool,
        outer: bool,
        batch_rows: int,
    ) -> None:
        self._source = Upstream(source)
        self._kept = kept
        self._calls = calls
        self._types = [found for bound in calls for found in bound.call.types]
        self._ordinality = ordinality
        self._outer = outer
        self._limit = batch_rows
        self._rows: Iterator[tuple[int, int, int, Piece]] = iter(())
        self._input = EMPTY
        self._batch = EMPTY
        self._rest: Batch | None = None

    def advance(self) -> Progress:
        if self._rest is None:
            gathered = self._gathered()
            if gathered is None and not self._source.done:
                batch = self._source.fetch()
                if batch is None:
                    return Progress.WAIT
                self._input = batch
                self._rows = self._unfolded(batch)
                gathered = self._gathered()
            self._rest = gathered
        if self._rest is None:
            self._batch = EMPTY
            return Progress.FETCHED_DONE if self._source.done else Progress.FETCHED
        self._batch, self._rest = _cut(self._rest, self._limit)
        return Progress.FETCHED

    def _unfolded(self, batch: Batch) -> Iterator[tuple[int, int, int, Piece]]:
        """(input row, how many rows, ordinality of the first, their columns), in order."""
        arguments = [bound.values(batch) for bound in self._calls]
        for row in range(batch.rows):
            done = 0
            pieces = [
                bound.pieces(values[row])
                for bound, values in zip(self._calls, arguments, strict=True)
            ]
            for rows, piece in pieces_together(pieces, self._calls):
                yield row, rows, done, piece
                done += rows
            if not done and self._outer:
                yield row, 1, -1, tuple([None] for _ in self._types)

    def _gathered(self) -> Batch | None:
        """The next rows of the input at hand; None when it has no more."""
        origins: list[int] = []
        counts: list[int] = []
        firsts: list[int] = []
        columns = [_Gathering(found) for found in self._types]
        total = 0
        for row, rows, first, piece in self._rows:
            checkpoint()
            origins.append(row)
            counts.append(rows)
            firsts.append(first)
            for column, part in zip(columns, piece, strict=True):
                column.add(part)
            total += rows
            if total >= self._limit:
                break
        if not total:
            return None
        repeats = np.array(counts)
        selection = Selection(np.repeat(np.array(origins, np.int64), repeats))
        kept = self._input.project(self._kept)
        left = [selection.apply(kept.column(place)) for place in range(kept.width)]
        results = [column.array() for column in columns]
        if self._ordinality:
            results.append(_numbers(repeats, np.array(firsts, np.int64)))
        return Batch([*left, *results], total)

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        if not self._source.restart():
            return False
        self._input = EMPTY
        self._rest = None
        self._rows = iter(())
        return True

    def close(self) -> None:
        self._batch = self._input = EMPTY
        self._rest = None
        self._rows = iter(())
        self._source.close()


def _numbers(repeats: np.ndarray, firsts: np.ndarray) -> pa.Array:
    """Ordinalities from 1; NULL where an input row has no rows."""
    starts = np.cumsum(repeats) - repeats
    within = np.arange(int(repeats.sum())) - np.repeat(starts, repeats)
    first = np.repeat(firsts, repeats)
    return pa.array(first + within + 1, pa.int64(), mask=first < 0)


def _cut(batch: Batch, limit: int) -> tuple[Batch, Batch | None]:
    if batch.rows <= limit:
        return batch, None
    columns = [batch.column(place) for place in range(batch.width)]
    head = Batch([column.slice(0, limit) for column in columns], limit)
    rest = batch.rows - limit
    return head, Batch([column.slice(limit) for column in columns], rest)


class _Gathering:
    """One column of the results: lists and arrays in order."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._arrays: list[pa.Array] = []
        self._values: list[PhysicalValue] = []

    def add(self, part: Column) -> None:
        if isinstance(part, list):
            self._values += part
        else:
            self._flush()
            self._arrays.append(part)

    def _flush(self) -> None:
        if self._values:
            self._arrays.append(values_to_array(self._values, self._type))
            self._values = []

    def array(self) -> pa.Array:
        self._flush()
        return unify(self._arrays, self._type)


def pieces_together(
    streams: Sequence[Iterator[Piece]], calls: Sequence[BoundSetCall]
) -> Iterator[tuple[int, Piece]]:
    """Pieces of all calls side by side, with their number of rows; the shorter end in NULLs."""
    if len(streams) == 1:
        for only in streams[0]:
            if len(only[0]):
                yield len(only[0]), only
        return
    waiting: list[Piece | None] = [None] * len(streams)
    while True:
        for place, stream in enumerate(streams):
            piece: Piece | None = waiting[place]
            while piece is None or not len(piece[0]):
                piece = next(stream, None)
                if piece is None:
                    break
            waiting[place] = piece
        lengths = [len(known[0]) for known in waiting if known is not None]
        if not lengths:
            return
        rows = min(lengths)
        columns: list[Column] = []
        for place, now in enumerate(waiting):
            if now is None:
                columns += [[None] * rows for _ in calls[place].call.types]
            else:
                columns += [column[:rows] for column in now]
                waiting[place] = tuple(column[rows:] for column in now)
        yield rows, tuple(columns)


@builds(UnfoldRows)
def _unfold(node: UnfoldRows, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    places = places_of(node.input.output)
    compiler = build.compiler(node.input.output)
    return UnfoldOperator(
        inputs[0],
        kept=[places[column.id] for column in node.output if column.id in places],
        calls=[
            GivenRows(call, (), build.context.parameters)
            if call.function == GIVEN_ROWS
            else BoundSetCall(call, [compiler.column(part) for part in call.arguments])
            for call in node.calls
        ],
        ordinality=node.ordinality,
        outer=node.outer,
        batch_rows=build.context.batch_rows or BATCH_ROWS,
    )
