"""Statistics of a map's columns, from a sample of its chunks, as the planner needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue, array_to_values
from remuda.storage.chunk import Chunk
from remuda.storage.scan import shown

SAMPLE_ROWS: Final = 64 * 1024
STALE_SHARE: Final = 0.1
"""Statistics are taken again when more than this share of the rows has changed."""

_UNORDERED: Final = (Kind.BOOLEAN, Kind.NULL, Kind.INTERVAL)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column. ``width`` is the mean size of a value in bytes; the bounds are physical values.

    The bounds are exact for fixed-width types (hidden rows included: they may be too wide, never
    too narrow at the time of sampling) and those of the sample for text and binary.
    """

    null_fraction: float
    distinct: float
    minimum: PhysicalValue
    maximum: PhysicalValue
    width: float


@dataclass(frozen=True, slots=True)
class MapStatistics:
    """The rows of one map on one member; ``columns`` in schema order."""

    rows: int
    bytes: int
    columns: tuple[ColumnStatistics, ...]


def take_statistics(
    schema: MapSchema, chunks: Sequence[Chunk], rows: int, size: int
) -> MapStatistics:
    """Statistics over the current rows of ``chunks``, of which there are ``rows``."""
    sample = _sample(chunks, rows)
    columns = tuple(
        _column(sample, chunks, position, column, rows)
        for position, column in enumerate(schema.columns)
    )
    return MapStatistics(rows=rows, bytes=size, columns=columns)


def _sample(chunks: Sequence[Chunk], rows: int) -> pa.Table | None:
    """Up to about ``SAMPLE_ROWS`` current rows; None when there are none.

    One row from each stretch of equal length, at a random place in it (always the same ones for the
    same map): evenly spaced rows would meet the periods that generated data often has.
    """
    step = max(1, -(-rows // SAMPLE_ROWS))
    targets = np.arange(0, max(rows, 1), step)
    targets += np.random.default_rng(rows).integers(0, step, len(targets))
    parts: list[pa.RecordBatch] = []
    passed = 0
    for chunk in chunks:
        mask = shown(chunk, chunk.length, FOREVER - 1, None)
        if mask is False:
            continue
        alive = np.arange(chunk.length) if mask is True else np.flatnonzero(mask)
        low, high = np.searchsorted(targets, [passed, passed + len(alive)])
        chosen = alive[targets[low:high] - passed]
        passed += len(alive)
        if len(chosen):
            batch = chunk.columns(chunk.length)
            whole = len(chosen) == chunk.length
            parts.append(batch if whole else batch.take(pa.array(chosen)))
    return pa.Table.from_batches(parts) if parts else None


def _column(
    sample: pa.Table | None, chunks: Sequence[Chunk], position: int, column: Column, rows: int
) -> ColumnStatistics:
    if sample is None:
        return ColumnStatistics(0.0, 0.0, None, None, 0.0)
    values = sample.column(position)
    taken = len(values)
    missing = values.null_count
    low, high = _bounds(values, chunks, position, column.type)
    return ColumnStatistics(
        null_fraction=missing / taken,
        distinct=_distinct(values, rows),
        minimum=low,
        maximum=high,
        width=values.nbytes / taken,
    )


def _distinct(values: pa.ChunkedArray, rows: int) -> float:
    """The estimated number of distinct values, NULL left out.

    Haas and Stokes, "Estimating the Number of Classes in a Finite Population" (1998), estimator
    Duj1: n*d / (n - f1 + f1*n/N), with f1 the number of values that the sample holds once.
    """
    if pa.types.is_null(values.type):
        return 0.0
    known = values.drop_null() if values.null_count else values
    taken = len(known)
    if taken == 0:
        return 0.0
    counts = pc.value_counts(known.combine_chunks()).field("counts").to_numpy()
    seen = len(counts)
    population = max(taken, round(rows * taken / len(values)))
    if population == taken:
        return float(seen)
    once = int(np.count_nonzero(counts == 1))
    estimate = taken * seen / (taken - once + once * taken / population)
    return float(min(max(estimate, seen), population))


def _bounds(
    values: pa.ChunkedArray, chunks: Sequence[Chunk], position: int, sql_type: SqlType
) -> tuple[PhysicalValue, PhysicalValue]:
    if sql_type.kind in _UNORDERED:
        return None, None
    if sql_type.is_text or sql_type.kind is Kind.BYTEA:
        both = pc.min_max(values)
        return _physical(both["min"], sql_type), _physical(both["max"], sql_type)
    pairs = [chunk.bounds(position) for chunk in chunks if chunk.length]
    lows = [value for low, _ in pairs if (value := _physical(low, sql_type)) is not None]
    highs = [value for _, high in pairs if (value := _physical(high, sql_type)) is not None]
    return min(lows, default=None, key=_order), max(highs, default=None, key=_order)


def _order(value: PhysicalValue) -> Any:
    return value


def _physical(scalar: pa.Scalar, sql_type: SqlType) -> PhysicalValue:
    return array_to_values(pa.array([scalar], type=scalar.type), sql_type)[0]
