"""Expressions that evaluate their parts only on the rows that reach them: AND, OR, CASE, COALESCE;
and the functions that look at NULLs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind, SqlType
from remuda.errors import CardinalityViolation
from remuda.execution.arrays import Indices, boolean_array, mask_of, take, validity_mask
from remuda.execution.batch import Batch
from remuda.execution.evaluate.comparison import comparer_of, true_mask
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.kernel import Evaluator, column
from remuda.execution.evaluate.numbers import Value

_TRUE, _FALSE = pa.scalar(True), pa.scalar(False)


def logic(function: str, arguments: list[Evaluator], guarded: list[bool]) -> Evaluator:
    """Three-valued AND and OR of any number of arguments.

    ``guarded[i]``: argument i may raise, so it only sees rows that the ones before left open.
    """
    combine = pc.and_kleene if function == "and" else pc.or_kleene
    decided = function == "or"

    def evaluate(batch: Batch) -> Value:
        result: Value = arguments[0](batch)
        for argument, guard in zip(arguments[1:], guarded[1:], strict=True):
            if isinstance(result, pa.Scalar) and result.as_py() is decided:
                return result
            if guard and isinstance(result, pa.Array):
                open_rows = _open_rows(result, decided)
                if len(open_rows) < batch.rows:
                    part = column(argument(batch.narrow(open_rows)), len(open_rows))
                    result = _overlay(result, open_rows, combine(take(result, open_rows), part))
                    continue
            result = combine(result, argument(batch))
        return result

    return evaluate


def _open_rows(result: pa.Array, decided: bool) -> Indices:
    settled = mask_of(result) if decided else mask_of(pc.invert(result))
    return np.flatnonzero(~settled)


def _overlay(base: pa.Array, rows: Indices, part: pa.Array) -> pa.Array:
    return _merge([np.arange(len(base)), rows], [base, part], len(base))


def _merge(places: list[Indices], parts: list[pa.Array], rows: int) -> pa.Array:
    """The column whose rows ``places[i]`` are ``parts[i]``; later parts win."""
    source = np.empty(rows, np.int64)
    start = 0
    for place, part in zip(places, parts, strict=True):
        source[place] = np.arange(start, start + len(part))
        start += len(part)
    return take(pa.concat_arrays(parts), source)


def gather(places: list[Indices], parts: list[Value], rows: int, type_: SqlType) -> Value:
    """One column out of values for disjoint sets of rows that together are all rows."""
    if len(parts) == 1:
        return parts[0]
    wide = any(pa.types.is_decimal(part.type) for part in parts)
    if all(isinstance(part, pa.Scalar) for part in parts):
        codes = np.empty(rows, np.int64)
        for code, place in enumerate(places):
            codes[place] = code
        table = _same_form([pa.repeat(part, 1) for part in parts], type_, wide)
        return take(pa.concat_arrays(table), codes)
    arrays = [column(part, len(place)) for part, place in zip(parts, places, strict=True)]
    return _merge(places, _same_form(arrays, type_, wide), rows)


def _same_form(arrays: list[pa.Array], type_: SqlType, wide: bool) -> list[pa.Array]:
    if wide:
        arrays = [canonical(array, type_) for array in arrays]
    target = arrays[0].type if type_.kind is Kind.NULL else None
    wanted = target or (
        engine_type(type_) if wide or type_.kind is not Kind.DECIMAL else pa.int64()
    )
    return [
        pa.nulls(len(array), wanted) if pa.types.is_null(array.type) else array for array in arrays
    ]


def case(
    branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator, type_: SqlType
) -> Evaluator:
    def evaluate(batch: Batch) -> Value:
        places: list[Indices] = []
        parts: list[Value] = []
        rest: Indices | None = None
        current = batch
        for condition, value in branches:
            if current.rows == 0:
                break
            holds = condition(current)
            if isinstance(holds, pa.Scalar) and holds.as_py() is not True:
                continue
            mask = true_mask(holds, current.rows)
            hits = np.flatnonzero(mask)
            if len(hits) == 0:
                continue
            all_hit = len(hits) == current.rows
            parts.append(value(current if all_hit else current.narrow(hits)))
            places.append(hits if rest is None else rest[hits])
            misses = np.flatnonzero(~mask)
            rest = misses if rest is None else rest[misses]
            current = batch.narrow(rest)
        if current.rows or not parts:
            parts.append(otherwise(current))
            places.append(np.arange(batch.rows) if rest is None else rest)
        return gather(places, parts, batch.rows, type_)

    return evaluate


def single_row(value: Evaluator, rows: Evaluator) -> Evaluator:
    """The value of a scalar subquery that had ``rows`` rows (NULL: none)."""

    def evaluate(batch: Batch) -> Value:
        count = rows(batch)
        most = count if isinstance(count, pa.Scalar) else pc.max(count)
        if (most.as_py() or 0) > 1:
            raise CardinalityViolation(
                "more than one row returned by a subquery used as an expression",
                hint="Use an aggregate such as max(...), or LIMIT 1.",
            )
        return value(batch)

    return evaluate


def coalesce(arguments: list[Evaluator], type_: SqlType) -> Evaluator:
    def evaluate(batch: Batch) -> Value:
        places: list[Indices] = []
        parts: list[Value] = []
        rest: Indices = np.arange(batch.rows)
        current = batch
        for number, argument in enumerate(arguments):
            value = argument(current)
            final = number == len(arguments) - 1
            if isinstance(value, pa.Scalar):
                if not (value.is_valid or final):
                    continue
                parts.append(value)
                places.append(rest)
                break
            valid = validity_mask(value)
            if valid is None or final:
                parts.append(value)
                places.append(rest)
                break
            kept = np.flatnonzero(valid)
            parts.append(take(value, kept))
            places.append(rest[kept])
            rest = rest[~valid]
            current = batch.narrow(rest)
        return gather(places, parts, batch.rows, type_)

    return evaluate


def nullif(arguments: list[Evaluator], types: tuple[SqlType, SqlType], type_: SqlType) -> Evaluator:
    same = comparer_of("=", *types)
    null = pa.scalar(None, engine_type(type_))

    def evaluate(batch: Batch) -> Value:
        left, right = (argument(batch) for argument in arguments)
        if isinstance(right, pa.Scalar) and not right.is_valid:
            return left
        if isinstance(left, pa.Scalar) and not left.is_valid:
            return null
        left, right = column(left, batch.rows), column(right, batch.rows)
        equal = same([left, right])
        for side in (left, right):
            valid = validity_mask(side)
            if valid is not None:
                equal = equal & valid
        return pc.if_else(boolean_array(equal), pa.scalar(None, left.type), left)

    return evaluate


def extreme(function: str, arguments: list[Evaluator], type_: SqlType) -> Evaluator:
    """GREATEST and LEAST: NULLs are skipped."""
    better = comparer_of(">" if function == "greatest" else "<", type_, type_)

    def evaluate(batch: Batch) -> Value:
        columns = [column(argument(batch), batch.rows) for argument in arguments]
        wide = any(pa.types.is_decimal(part.type) for part in columns)
        columns = _same_form(columns, type_, wide)
        best = columns[0]
        for other in columns[1:]:
            if other.null_count == len(other):
                continue
            if best.null_count == len(best):
                best = other
                continue
            wins = better([other, best])
            best_valid, other_valid = validity_mask(best), validity_mask(other)
            if best_valid is not None:
                wins = wins | ~best_valid
            if other_valid is not None:
                wins = wins & other_valid
            best = pc.if_else(boolean_array(wins), other, best)
        return best

    return evaluate


def null_test(function: str, argument: Evaluator) -> Evaluator:
    """IS [NOT] NULL and IS [NOT] TRUE / FALSE: never NULL themselves."""

    def evaluate(batch: Batch) -> Value:
        value = argument(batch)
        if function in ("is_null", "is_not_null"):
            # Not by its Python form: dates reach farther than Python's.
            if isinstance(value, pa.Scalar):
                return _TRUE if value.is_valid == (function == "is_not_null") else _FALSE
            return value.is_null() if function == "is_null" else value.is_valid()
        if isinstance(value, pa.Scalar):
            return _TRUE if _holds(function, value.as_py() if value.is_valid else None) else _FALSE
        if value.type == pa.null():
            value = value.cast(pa.bool_())
        mask = mask_of(value if "true" in function else pc.invert(value))
        return boolean_array(~mask if "not" in function else mask)

    return evaluate


def _holds(function: str, value: object) -> bool:
    match function:
        case "is_true":
            return value is True
        case "is_false":
            return value is False
        case "is_not_true":
            return value is not True
        case _:
            return value is not False
