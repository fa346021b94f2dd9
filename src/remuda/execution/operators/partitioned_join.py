"""A hash join whose right side may be larger than memory (Kitsuregawa, Tanaka, Moto-oka 1983)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from remuda.datatypes.sql import SqlType
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.memory import Reservation
from remuda.execution.operator_builders import BuildContext, builds
from remuda.execution.operators.hash_join import HashJoinOperator, RightNulls
from remuda.execution.operators.input import EMPTY, Borrowed, Upstream
from remuda.execution.operators.join_columns import join_columns, unknown_matches
from remuda.execution.operators.ordering import places_of
from remuda.execution.operators.row_partitions import (
    DEPTH_MAX,
    FileScan,
    HeldRows,
    RowPartitions,
)
from remuda.execution.restarts import is_fixed
from remuda.execution.spill import SpillFile
from remuda.limits import TUPLE_BATCH_ROWS
from remuda.plan.physical import HashJoin

MakeJoin: TypeAlias = Callable[[Operator, Operator], Operator]
"""(left, right) -> the join of what they put out, in memory."""

_TABLE_BYTES_PER_ROW = 48
"""Of the hash table that the join makes of the right side."""


@dataclass(frozen=True, slots=True)
class JoinSide:
    """``keys`` are positions in the columns of ``types``, which are all that the operator puts
    out."""

    operator: Operator
    types: Sequence[SqlType]
    keys: Sequence[int]


class PartitionedJoinOperator(Operator):
    """While the right side fits, it is the join that ``join`` makes. Beyond, both sides are split
    by the hash of the key into files, and the parts are joined one after the other: the order of
    the left side is lost then. ``nulls`` is for NOT IN, which looks beyond the rows of a key.
    ``fixed_right``: the right side is the same after each restart."""

    def __init__(
        self,
        join: MakeJoin,
        left: JoinSide,
        right: JoinSide,
        *,
        key_types: Sequence[SqlType],
        memory: Reservation,
        depth: int = 0,
        nulls: RightNulls | None = None,
        fixed_right: bool = False,
    ) -> None:
        self._join = join
        self._left_side = left
        self._right_side = right
        self._left = Upstream(left.operator)
        self._right = Upstream(right.operator, memory)
        self._key_types = key_types
        self._memory = memory
        self._depth = depth
        self._nulls = nulls
        self._fixed_right = fixed_right
        self._held: list[Batch] = []
        self._held_rows = 0
        self._right_parts: RowPartitions | None = None
        self._left_parts: RowPartitions | None = None
        self._pairs: list[tuple[SpillFile, SpillFile]] = []
        self._inner: Operator | None = None
        self._whole: Operator | None = None
        """The join of the sides as they are, and the input that it reads as its right side; it
        lasts over restarts."""
        self._whole_right = HeldRows([])
        self._split = False
        self._batch = EMPTY

    def advance(self) -> Progress:
        if self._inner is not None:
            return self._advance_inner(self._inner)
        if self._split:
            return self._next_pair()
        source = self._right if not self._right.done else self._left
        batch = source.fetch()
        if batch is None:
            return Progress.WAIT
        if source is self._left:
            self._add_left(batch)
        else:
            self._add_right(batch)
        if self._inner is not None and self._held_rows <= TUPLE_BATCH_ROWS:
            return self._advance_inner(self._inner)
        self._batch = EMPTY
        return Progress.FETCHED

    def _advance_inner(self, inner: Operator) -> Progress:
        progress = inner.advance()
        if progress is not Progress.WAIT:
            self._batch = inner.current_batch()
        if progress is Progress.FETCHED_DONE and self._split:
            inner.close()
            self._inner = None
            return Progress.FETCHED
        return progress

    # --- the right side -----------------------------------------------------------------------

    def _add_right(self, batch: Batch) -> None:
        if self._nulls is not None and batch.rows:
            self._nulls.add([batch.column(key) for key in self._right_side.keys])
        if self._right_parts is not None:
            self._right_parts.add(batch)
        elif batch.rows:
            size = batch.estimated_bytes() + batch.rows * _TABLE_BYTES_PER_ROW
            if self._memory.try_grow(size):
                # Materialized: a selection would hold the whole batch below it.
                self._held.append(Batch(batch.columns(), batch.rows))
                self._held_rows += batch.rows
            else:
                self._begin_to_split(batch)
        if self._right.done and self._right_parts is None:
            self._memory.clear()  # the join counts them again
            held, self._held = self._held, []
            self._inner = self._join_held(held)

    def _join_held(self, held: list[Batch]) -> Operator:
        self._whole_right.replace(held)
        if self._whole is None:
            self._whole = self._join(Borrowed(self._left.operator), self._whole_right)
        return self._whole

    def _begin_to_split(self, batch: Batch) -> None:
        self._memory.clear()
        if self._whole is not None:
            self._whole.close()
            self._whole = None
        self._right_parts = self._partitions(self._right_side)
        while self._held:
            self._right_parts.add(self._held.pop(0))
        self._right_parts.add(batch)

    # --- the left side, when the right one is on disk ---------------------------------------------

    def _add_left(self, batch: Batch) -> None:
        if self._left_parts is None:
            self._left_parts = self._partitions(self._left_side)
        self._left_parts.add(batch)
        if self._left.done:
            assert self._right_parts is not None
            self._left_parts.flush()  # it may fail, and files that were handed out would be lost
            right, left = self._right_parts.finish(), self._left_parts.finish()
            if self._nulls is not None:
                self._nulls.complete = True
            self._pairs = list(zip(left, right, strict=True))
            self._memory.clear()
            self._split = True

    def _partitions(self, side: JoinSide) -> RowPartitions:
        return RowPartitions(side.types, side.keys, self._key_types, self._depth, self._memory)

    # --- pairs of parts -------------------------------------------------------------------------

    def _next_pair(self) -> Progress:
        self._batch = EMPTY
        if not self._pairs:
            return Progress.FETCHED_DONE
        left, right = self._pairs.pop()
        if not left.rows and not right.rows:
            left.close()
            right.close()
            return Progress.FETCHED
        sources = FileScan(left), FileScan(right)
        if self._depth + 1 < DEPTH_MAX:
            self._inner = PartitionedJoinOperator(
                self._join,
                JoinSide(sources[0], self._left_side.types, self._left_side.keys),
                JoinSide(sources[1], self._right_side.types, self._right_side.keys),
                key_types=self._key_types,
                memory=self._memory.beside(),
                depth=self._depth + 1,
            )
        else:
            self._inner = self._join(*sources)
        return Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batch

    def restart(self) -> bool:
        if self._split or self._right_parts is not None:
            return False
        if self._fixed_right and self._inner is not None:
            return self._inner.restart()
        if not self._right.restart() or not (self._whole is None or self._whole.restart()):
            return False
        self._inner = None
        self._held = []
        self._held_rows = 0
        self._memory.clear()
        if self._nulls is not None:
            self._nulls.clear()
        return True

    def close(self) -> None:
        self._batch = EMPTY
        self._held = []
        if self._whole is not None:
            self._whole.close()
        if self._inner is not None and self._inner is not self._whole:
            self._inner.close()
        self._inner = self._whole = None
        for parts in (self._right_parts, self._left_parts):
            if parts is not None:
                parts.close()
        for pair in self._pairs:
            for file in pair:
                file.close()
        self._pairs = []
        self._memory.clear()
        self._left.close()
        self._right.close()


@builds(HashJoin)
def _hash_join(node: HashJoin, inputs: Sequence[Operator], build: BuildContext) -> Operator:
    kept, columns, output = join_columns(node, node.residual)
    left_places, right_places = places_of(node.left.output), places_of(node.right.output)
    left_keys = [left_places[key] for key in node.left_keys]
    right_keys = [right_places[key] for key in node.right_keys]
    left_types = [column.type for column in node.left.output]
    right_types = [column.type for column in node.right.output]
    key_types = [right_types[key] for key in right_keys]
    residual = None
    if node.residual is not None:
        residual = Predicate(node.residual, build.compiler(node.left.output, columns))
    unknown = unknown_matches(node, node.residual, columns, build)
    nulls = RightNulls() if node.null_aware else None
    fixed_right = is_fixed(node.right, build.context.rounds)

    def join(left: Operator, right: Operator) -> Operator:
        return HashJoinOperator(
            kind=node.kind,
            left=left,
            right=right,
            left_keys=left_keys,
            right_keys=right_keys,
            key_types=key_types,
            left_types=left_types,
            right_kept=kept,
            right_types=[column.type for column in columns],
            residual=residual,
            output=output,
            memory=build.reserve(node),
            unknown=unknown,
            null_aware=node.null_aware,
            nulls=nulls,
            fixed_right=fixed_right,
        )

    left, right = inputs
    if build.context.memory.spill is None:
        return join(left, right)
    return PartitionedJoinOperator(
        join,
        JoinSide(left, left_types, left_keys),
        JoinSide(right, right_types, right_keys),
        key_types=key_types,
        memory=build.reserve(node),
        nulls=nulls,
        fixed_right=fixed_right,
    )
