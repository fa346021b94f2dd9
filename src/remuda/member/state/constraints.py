"""What the rows of a map must fulfil where they enter a member, beyond their types: CHECK
constraints. And what they get there: the keys of maps that make their own.

Everything that stores rows comes through here with the version of the schema that it checks; the
store refuses rows of any other version, so no row escapes a constraint that was added meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import check_batch
from remuda.datatypes.schema import Check, MapSchema
from remuda.datatypes.sql import BOOLEAN
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.datatypes.violations import broken_check
from remuda.errors import ConstraintError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.predicate import Predicate
from remuda.plan.expression import Call, Expression, walk
from remuda.session.definitions import at_moment
from remuda.session.parameters import CLOCK_FUNCTIONS, clock_values
from remuda.sql.definitions.constraints import check_condition

MEMBER_BITS = 11
"""Of a row id; the others count from the microsecond in which the member started."""


class Conditions:
    """The CHECK constraints of one schema, compiled. Any thread."""

    def __init__(self, schema: MapSchema, wall_micros: Callable[[], int]) -> None:
        self.schema = schema
        self._wall_micros = wall_micros

    @cached_property
    def _broken(self) -> list[tuple[Check, Expression, Predicate | None]]:
        """The conditions that a row fulfils if it breaks a constraint; those that tell the time are
        compiled each time."""
        found: list[tuple[Check, Expression, Predicate | None]] = []
        for check in self.schema.checks:
            condition, _ = check_condition(self.schema, check)
            broken = Call(BOOLEAN, "is_false", (condition,))
            timed = any(isinstance(p, Call) and p.function in CLOCK_FUNCTIONS for p in walk(broken))
            found.append((check, broken, None if timed else self._compiled(broken)))
        return found

    def _compiled(self, condition: Expression) -> Predicate:
        positions = {position: position for position in range(len(self.schema.columns))}
        return Predicate(condition, Compiler(positions))

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises CheckViolation for the first row that breaks a constraint, and the DataErrors of
        conditions that cannot be computed. ``batch`` is in engine form."""
        if not self.schema.checks or not batch.num_rows:
            return
        rows = Batch.of(batch)
        for check, condition, predicate in self._broken:
            bad = (predicate or self._compiled(self._now(condition))).select(rows)
            if bad is None or len(bad):
                raise self._violation(check, batch, 0 if bad is None else int(bad[0]))

    def check_rows(self, rows: Sequence[Sequence[PhysicalValue]]) -> None:
        """The same for rows of physical values."""
        if not self.schema.checks or not rows:
            return
        arrays = [
            values_to_array(list(values), column.type)
            for values, column in zip(zip(*rows, strict=True), self.schema.columns, strict=True)
        ]
        self.check(pa.RecordBatch.from_arrays(arrays, schema=engine_schema(self.schema)))

    def _now(self, condition: Expression) -> Expression:
        moments = clock_values(CLOCK_FUNCTIONS, self._wall_micros())
        return at_moment(condition, dict(zip(CLOCK_FUNCTIONS, moments, strict=True)))

    def _violation(self, check: Check, batch: pa.RecordBatch, row: int) -> ConstraintError:
        values = [
            array_to_values(array.slice(row, 1), column.type)[0]
            for array, column in zip(batch.columns, self.schema.columns, strict=True)
        ]
        return broken_check(self.schema, check, values)


class Constraints:
    """The constraints of all maps on one member."""

    def __init__(self, wall_micros: Callable[[], int]) -> None:
        self._wall_micros = wall_micros
        self._known: dict[int, Conditions] = {}
        self._row_ids = 0

    def of(self, schema: MapSchema) -> Conditions:
        known = self._known.get(schema.map_id)
        if known is None or known.schema.version != schema.version:
            known = self._known[schema.map_id] = Conditions(schema, self._wall_micros)
        return known

    def check(self, batch: pa.RecordBatch, schema: MapSchema) -> None:
        """All that a batch of rows in engine form must fulfil. Raises what ``check_batch`` and
        ``Conditions.check`` raise."""
        check_batch(batch, schema)
        if schema.checks:
            self.of(schema).check(batch)

    def forget(self, map_id: int) -> None:
        self._known.pop(map_id, None)

    def with_row_ids(self, batch: pa.RecordBatch, schema: MapSchema, member: int) -> pa.RecordBatch:
        """``batch`` with a number for each row that has none yet, if the map is one of those that
        make their own keys. Numbers are never given twice."""
        if not schema.has_row_ids:
            return batch
        position = schema.key_positions[0]
        column = batch.column(position)
        if not column.null_count:
            return batch
        first = self._take_row_ids(column.null_count) | member << 63 - MEMBER_BITS
        missing = np.asarray(column.is_null())
        # NULLs would make floats of the others, which hold no number above 2 ** 53.
        filled = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        filled[missing] = np.arange(first, first + column.null_count)
        return batch.set_column(position, batch.schema.field(position), pa.array(filled))

    def _take_row_ids(self, count: int) -> int:
        if not self._row_ids:
            self._row_ids = self._wall_micros()
        first = self._row_ids
        self._row_ids += count
        return first
