"""ExpandRows: each row once per grouping set, with NULL in the columns that are not in the set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.input import EMPTY, Upstream
from remuda.execution.operators.ordering import places_of
from remuda.plan.physical import ExpandRows


class ExpandOperator(Operator):
    """Every batch of the input comes out once per set; its columns are shared, not copied.

    ``kept`` are positions of the input to pass on, ``sources`` those to copy (of ``types``);
    ``sets`` as in ``plan.physical.ExpandRows``.
    """

    def __init__(
        self,
        source: Operator,
        *,
        kept: Sequence[int],
        sources: Sequence[int],
        types: Sequence[SqlType],
        sets: Sequence[tuple[int, ...]],
    ) -> None:
        self._source = Upstream(source)
        self._kept = kept
        self._sources = sources
        self._types = types
        self._sets = sets
        self._input = EMPTY
        self._next = len(sets)
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._next == len(self._sets):
            batch = self._source.fetch()
            if batch is None:
                return Progress.WAIT
            self._input = batch
            self._next = 0 if batch.rows else len(self._sets)
        self._batch = EMPTY
        if self._next < len(self._sets):
            self._batch = self._expanded(self._next)
            self._next += 1
        if self._next == len(self._sets):
            self._input = EMPTY
            if self._source.done:
                return Progress.FETCHED_DONE
        return Progress.FETCHED

    def _expanded(self, number: int) -> Batch:
        batch, present = self._input, self._sets[number]
        kept = batch.project(self._kept)
        copies = [
            batch.column(source) if place in present else pa.nulls(batch.rows, engine_type(type_))
            for place, (source, type_) in enumerate(zip(self._sources, self._types, strict=True))
        ]
        numbers = pa.array(np.full(batch.rows, number, np.int32))
        return kept.beside(Batch([*copies, numbers], batch.rows))

    def current_batch(self) -> Batch:
        return self._batch

    def close(self) -> None:
        self._batch = EMPTY
        self._input = EMPTY
        self._source.close()


@builds(ExpandRows)
def _expand(node: ExpandRows, inputs: Sequence[Operator], _build: BuildContext) -> Operator:
    columns = node.input.output
    places = places_of(columns)
    sources = [places[column] for column in node.sources]
    return ExpandOperator(
        inputs[0],
        kept=[places[column.id] for column in node.output if column.id in places],
        sources=sources,
        types=[columns[place].type for place in sources],
        sets=node.sets,
    )
