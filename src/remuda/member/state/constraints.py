"""The conditions on rows of a map where they enter a member, beyond their types: CHECK constraints.
Rows get some values there: the keys of maps that make their own, generated columns.

Statements compute generated columns in their plans, so that RETURNING sees them; for all other
writers they are computed here.

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
from remuda.datatypes.schema import NOT_NULL_GUARD, Check, Column, MapSchema
from remuda.datatypes.sql import BOOLEAN
from remuda.datatypes.values import (
    PhysicalValue,
    array_to_values,
    arrays_to_rows,
    values_to_array,
)
from remuda.datatypes.violations import broken_check, null_value
from remuda.errors import ConstraintError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.predicate import Predicate
from remuda.plan.expression import Call, Expression, walk
from remuda.session.definitions import at_moment
from remuda.session.parameters import CLOCK_FUNCTIONS, Moment, clock_values
from remuda.sql.definitions.constraints import check_condition
from remuda.sql.definitions.generated import generation
from remuda.transaction.own_writes import Row

MEMBER_BITS = 11
"""Of a row id; the others count from the microsecond in which the member started."""


class Conditions:
    """The CHECK constraints of one schema, compiled. Any thread."""

    def __init__(self, schema: MapSchema, wall_micros: Callable[[], int]) -> None:
        self.schema = schema
        self._wall_micros = wall_micros

    @cached_property
    def _broken(self) -> list[tuple[Check, Expression, Predicate | None]]:
        """The conditions that a row fulfils if it breaks a constraint, in the order in which
        PostgreSQL looks: NOT NULL first, then by name. Those that tell the time are compiled each
        time."""
        found: list[tuple[Check, Expression, Predicate | None]] = []
        guards = (check for check in self.schema.checks if check.name.startswith(NOT_NULL_GUARD))
        named = (check for check in self.schema.checks if not check.name.startswith(NOT_NULL_GUARD))
        for check in (*guards, *sorted(named, key=lambda check: check.name)):
            condition, _ = check_condition(self.schema, check)
            broken = Call(BOOLEAN, "is_false", (condition,))
            timed = any(isinstance(p, Call) and p.function in CLOCK_FUNCTIONS for p in walk(broken))
            found.append((check, broken, None if timed else self._compiled(broken)))
        return found

    def _compiled(self, condition: Expression) -> Predicate:
        return Predicate(condition, self._compiler())

    @cached_property
    def _generations(self) -> list[tuple[int, Expression, Column]]:
        """Position, value and column of each generated column."""
        schema = self.schema
        return [(p, generation(schema, p), schema.columns[p]) for p in schema.generated]

    def completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch``, in engine form and with values that fit the other columns, with the values of
        generated columns, whatever it had there. Raises the DataErrors of their expressions."""
        if not batch.num_rows:
            return batch
        rows, compiler = Batch.of(batch), self._compiler()
        for position, expression, column in self._generations:
            array = canonical(compiler.column(expression)(rows), column.type)
            batch = batch.set_column(position, batch.schema.field(position), array)
        return batch

    def completed_rows(self, rows: Sequence[Row]) -> list[Row]:
        """The same for rows of physical values. Raises NotNullViolation as well."""
        if not self.schema.generated or not rows:
            return list(rows)
        batch = self.completed(self._batch(rows))
        types = [column.type for column in self.schema.columns]
        found = list(arrays_to_rows(batch.columns, types))
        for position, _, column in self._generations:
            for row in found:
                if row[position] is None and not column.nullable:
                    raise null_value(self.schema, column, row)
        return found

    def entered_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Rows of physical values that other writes have changed, with the values of generated
        columns. Raises what ``Constraints.check`` raises, and the errors of these columns."""
        batch = self._batch(rows)
        check_batch(batch, self.schema.given)
        if self.schema.generated:
            batch = self.completed(batch)
        check_batch(batch, self.schema)
        self.check(batch)
        return list(arrays_to_rows(batch.columns, [column.type for column in self.schema.columns]))

    def _compiler(self) -> Compiler:
        return Compiler({position: position for position in range(len(self.schema.columns))})

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises CheckViolation for the first row that breaks a constraint, and the DataErrors of
        conditions that cannot be computed. ``batch`` is in engine form."""
        if not self.schema.checks or not batch.num_rows:
            return
        rows = Batch.of(batch)
        first: tuple[int, Check] | None = None
        for check, condition, predicate in self._broken:
            bad = (predicate or self._compiled(self._now(condition))).select(rows)
            if bad is not None and not len(bad):
                continue
            first = (0 if bad is None else int(bad[0]), check)
            if first[0] == 0:
                break
            rows = Batch.of(batch.slice(0, first[0]))  # the error tells of the first row
        if first is not None:
            raise self._violation(first[1], batch, first[0])

    def check_rows(self, rows: Sequence[Sequence[PhysicalValue]]) -> None:
        """The same for rows of physical values."""
        if not self.schema.checks or not rows:
            return
        self.check(self._batch(rows))

    def _batch(self, rows: Sequence[Sequence[PhysicalValue]]) -> pa.RecordBatch:
        arrays = [
            values_to_array(list(values), column.type)
            for values, column in zip(zip(*rows, strict=True), self.schema.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(self.schema))

    def _now(self, condition: Expression) -> Expression:
        moments = clock_values(CLOCK_FUNCTIONS, Moment.of_one(self._wall_micros()))
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

    def entered(self, batch: pa.RecordBatch, schema: MapSchema) -> pa.RecordBatch:
        """The rows that a client gives, with the values of generated columns. Raises the errors
        of ``check`` and of these columns."""
        if schema.generated:
            check_batch(batch, schema.given)
            batch = self.of(schema).completed(batch)
        self.check(batch, schema)
        return batch

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
