"""Definitions on their way from the binder to the catalog: the values of defaults.

The binder keeps a default as text. Here it is computed: one that is always the same is kept with
its value, and the rows that a map has already get the value that a new column's default has now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from remuda.catalog.edits import Edit, PutMap
from remuda.datatypes.schema import Column, Default, MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidGeneration
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.plan.expression import Call, Expression, Literal, transform, walk
from remuda.plan.functions.catalog import STABLE_FUNCTIONS, is_volatile
from remuda.session.in_zone import parts_in_zone
from remuda.session.parameters import CLOCK_FUNCTIONS, Moment, clock_values
from remuda.sql.definitions.constraints import default_of
from remuda.sql.definitions.generated import generation

SOME_ZONE: Final = "Europe/Berlin"
"""Any zone but UTC: expressions that look at the session's zone differ in it."""


def settled(schema: MapSchema) -> MapSchema:
    """``schema`` with the values of its constant defaults. Raises the DataErrors of those, and
    InvalidGeneration for a generated column whose value may change by itself."""
    for position in schema.generated:
        _require_immutable(generation(schema, position))
    return replace(schema, columns=tuple(_settled(column) for column in schema.columns))


def settled_edits(edits: Sequence[Edit], now_micros: int) -> tuple[Edit, ...]:
    """The same for edits. A new column of a map that exists gets the value of its default, at the
    moment ``now_micros``, for the rows that are there; none, if the default has another value for
    each row: then the statement computes them."""
    return tuple(
        replace(edit, schema=_with_missing(settled(edit.schema), now_micros))
        if isinstance(edit, PutMap)
        else edit
        for edit in edits
    )


def _settled(column: Column) -> Column:
    default = column.default
    if default is None or default.constant:
        return column
    expression = default_of(column)
    if _calls(expression) & set(CLOCK_FUNCTIONS) or is_volatile(expression):
        return column
    return replace(column, default=Default(default.text, True, evaluate_constant(expression)))


def _require_immutable(expression: Expression) -> None:
    """Raises InvalidGeneration."""
    immutable = not any(
        isinstance(part, Call)
        and (part.function in CLOCK_FUNCTIONS or part.function in STABLE_FUNCTIONS)
        for part in walk(expression)
    )
    # A cast or function that looks at the session's time zone gets it as an argument.
    if (
        not immutable
        or is_volatile(expression)
        or parts_in_zone(expression, SOME_ZONE) != expression
    ):
        raise InvalidGeneration("generation expression is not immutable")


def _calls(expression: Expression) -> set[str]:
    return {part.function for part in walk(expression) if isinstance(part, Call)}


def _with_missing(schema: MapSchema, now_micros: int) -> MapSchema:
    if not schema.map_id:
        return schema
    columns = tuple(
        column if column.id or column.default is None else _new(column, now_micros)
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _new(column: Column, now_micros: int) -> Column:
    if is_volatile(default_of(column)):
        return column
    return replace(column, missing=default_value(column, now_micros))


def default_value(column: Column, now_micros: int) -> PhysicalValue:
    """The value of the column in a row that gives none, at a moment (in UTC). Raises the
    DataErrors of the default."""
    default = column.default
    if default is None:
        return None
    if default.constant:
        return default.value
    return evaluate_constant(at_moment(default_of(column), _moments(now_micros)))


def default_values(column: Column, rows: int, now_micros: int) -> pa.Array:
    """The same for many rows, in engine form."""
    expression = at_moment(default_of(column), _moments(now_micros))
    return Compiler({}).column(expression)(Batch([], rows))


def _moments(now_micros: int) -> dict[str, PhysicalValue]:
    values = clock_values(CLOCK_FUNCTIONS, Moment.of_one(now_micros))
    return dict(zip(CLOCK_FUNCTIONS, values, strict=True))


def at_moment(expression: Expression, moments: dict[str, PhysicalValue]) -> Expression:
    """``expression`` with the functions that tell the time replaced by what they tell."""

    def rewrite(part: Expression) -> Expression:
        if isinstance(part, Call) and part.function in moments:
            return Literal(part.type, moments[part.function])
        return part

    return transform(expression, rewrite)
