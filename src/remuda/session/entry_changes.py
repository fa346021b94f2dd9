"""The changes of ``map.compute``, bound once for each map and text; and computed for rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, array_to_values, values_to_array
from remuda.errors import InputError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.one_row import Formulas
from remuda.execution.evaluate.predicate import Predicate
from remuda.plan.expression import columns_of
from remuda.rpc.packing import packer
from remuda.rpc.type_codec import decode_types
from remuda.session.client_session import ClientSession
from remuda.session.parameters import (
    Moment,
    check_count,
    clock_values,
    fitted,
    with_clock_parameters,
)
from remuda.sql.changes.entry_changes import EntryChange, bind_entry_change

Row: TypeAlias = tuple[PhysicalValue, ...]
Compute: TypeAlias = Callable[[Sequence[Row]], list[Row | None]]
"""The new row for each, in schema order; None where the condition does not hold."""

CHANGES_KEPT = 1000
ROWS_ONE_BY_ONE = 16
"""Of more rows, the columns are worth making."""
SIZE_KEPT = 1024
"""Bytes of text and parameters of a change that is kept ready; longer ones are made each time."""

_Key: TypeAlias = tuple[int, int, str, str, tuple[SqlType, ...] | None]
_Asked: TypeAlias = tuple[int, int, str, str, bytes, bytes]


class EntryChanges:
    """The changes that a member has bound, the last ones. On the loop's thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, EntryChange] = OrderedDict()
        self._ready: OrderedDict[_Asked, Compute] = OrderedDict()
        """By map, texts, and parameters as they came: counters are asked for the same again and
        again. Equal bytes are equal values, which equal values are not always (0.0 and -0.0)."""

    def __len__(self) -> int:
        return len(self._known)

    def computing(  # noqa: PLR0917 (a change as it was asked for, and when, and by whom)
        self,
        schema: MapSchema,
        assignments: str,
        condition: str,
        types: bytes,
        parameters: bytes,
        now_micros: int,
        session: ClientSession,
    ) -> Compute:
        """The rows that the change gives. ``types``: a ``SqlTypes``, serialized; ``parameters``:
        one packed row of these. Raises ProtocolError, and the errors of ``fitting`` and
        ``compute_of``."""
        asked = (schema.map_id, schema.version, assignments, condition, types, parameters)
        ready = self._ready.get(asked)
        if ready is not None:
            self._ready.move_to_end(asked)
            return ready
        given: tuple[PhysicalValue, ...] = ()
        sql_types = decode_types(types)
        if sql_types:
            given = packer(sql_types).unpack(parameters)
        change, values = self.fitting(schema, assignments, condition, given, sql_types)
        compute = compute_of(schema, change, values, now_micros, session)
        size = len(assignments) + len(condition) + len(types) + len(parameters)
        if size <= SIZE_KEPT and not change.clock_parameters:
            self._ready[asked] = compute
            if len(self._ready) > CHANGES_KEPT:
                self._ready.popitem(last=False)
        return compute

    def fitting(
        self,
        schema: MapSchema,
        assignments: str,
        condition: str,
        values: tuple[PhysicalValue, ...],
        types: tuple[SqlType, ...],
    ) -> tuple[EntryChange, tuple[PhysicalValue, ...]]:
        """The change by the parameter types that the binder infers, if the values fit them exactly;
        otherwise by the types that the client gave. With the values in these types."""
        try:
            found = self._bound(schema, assignments, condition, None)
        except InputError:
            if not types:
                raise
            found = None
        if found is not None:
            check_count(len(found.parameter_types), len(values))
            suitable = fitted(values, types, found.parameter_types)
            if suitable is not None:
                return found, suitable
        return self._bound(schema, assignments, condition, types), values

    def _bound(
        self,
        schema: MapSchema,
        assignments: str,
        condition: str,
        types: tuple[SqlType, ...] | None,
    ) -> EntryChange:
        key = (schema.map_id, schema.version, assignments, condition, types)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        change = bind_entry_change(schema, assignments, condition, types)
        found = change.rewritten(
            *with_clock_parameters(change.expressions, len(change.parameter_types))
        )
        self._known[key] = found
        if len(self._known) > CHANGES_KEPT:
            self._known.popitem(last=False)
        return found


def compute_of(
    schema: MapSchema,
    change: EntryChange,
    values: tuple[PhysicalValue, ...],
    now_micros: int,
    session: ClientSession,
) -> Compute:
    """``change`` with its parameters, at a moment (UTC). The function raises the DataErrors of the
    expressions; whether a row conforms to the schema is for its caller to check."""
    parameters = values + clock_values(change.clock_parameters, Moment.of_one(now_micros), session)
    used = sorted({column for part in change.expressions for column in columns_of(part)})
    compiler = Compiler({column: place for place, column in enumerate(used)}, parameters)
    condition = None if change.condition is None else Predicate(change.condition, compiler)
    targets = [
        (position, schema.columns[position].type, compiler.column(value))
        for position, value in zip(change.positions, change.values, strict=True)
    ]
    change_one = _formula_of(schema, change, parameters)

    def batch_of(rows: Sequence[Row]) -> Batch:
        arrays = [
            values_to_array([row[column] for row in rows], schema.columns[column].type)
            for column in used
        ]
        return Batch(arrays, len(rows))

    def chosen(rows: Sequence[Row]) -> Sequence[int]:
        places = None if condition is None else condition.select(batch_of(rows))
        return range(len(rows)) if places is None else [int(place) for place in places]

    def compute(rows: Sequence[Row]) -> list[Row | None]:
        if change_one is not None and len(rows) <= ROWS_ONE_BY_ONE:
            return list(map(change_one, rows))
        found: list[Row | None] = [None] * len(rows)
        places = chosen(rows) if rows else ()
        if not places:
            return found
        batch = batch_of([rows[place] for place in places])
        columns = [
            (position, array_to_values(value(batch), sql_type))
            for position, sql_type, value in targets
        ]
        for index, place in enumerate(places):
            changed = list(rows[place])
            for position, results in columns:
                changed[position] = results[index]
            found[place] = tuple(changed)
        return found

    return compute


def _formula_of(
    schema: MapSchema, change: EntryChange, parameters: tuple[PhysicalValue, ...]
) -> Callable[[Row], Row | None] | None:
    """The new row for one, without columns; None: the expressions are not that simple."""
    everything = {place: place for place in range(len(schema.columns))}
    formulas = Formulas(change.expressions, len(parameters), everything)
    condition = None if change.condition is None else formulas.condition(change.condition)
    values = [formulas.of(value) for value in change.values]
    if None in values or (condition is None) != (change.condition is None):
        return None
    targets = [
        (position, value)
        for position, value in zip(change.positions, values, strict=True)
        if value is not None
    ]

    def change_one(row: Row) -> Row | None:
        scope = formulas.scope(parameters, row)
        if condition is not None and not condition(scope):
            return None
        changed = list(row)
        for position, value in targets:
            changed[position] = value(scope)
        return tuple(changed)

    return change_one
