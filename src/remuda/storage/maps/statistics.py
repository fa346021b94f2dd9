"""Statistics of a map's columns, from a sample of its chunks, as the planner needs them.

Distinct values are counted by sketches: of the sample where it has seen (nearly) every value more
than once, else of all rows. The sketch of a chunk is kept with it, so each chunk is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.hashes.orderkeys import order_keys
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BYTEA, Kind, SqlType
from remuda.datatypes.timestamp import FOREVER
from remuda.datatypes.values import PhysicalValue, array_to_values
from remuda.limits import MIB
from remuda.storage.chunks.chunk import Chunk, Offsets
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.scan import shown
from remuda.storage.maps.sketch import Sketch, merged, sketch_of
from remuda.storage.maps.sketch import distinct as distinct_of

SAMPLE_ROWS: Final = 64 * 1024
SAMPLE_SIZE: Final = 4 * MIB
"""Bytes of the sample of a column, about: wide values are sampled from fewer rows. Computing on a
sample takes several times its size, and no limit counts it."""
SKETCHED_SIZE: Final = 4 * MIB
"""Bytes of a chunk's column that are hashed at once, about."""
HISTOGRAM_ROWS: Final = 8 * 1024
HISTOGRAM_BUCKETS: Final = 64
COMMON_MAX: Final = 32
COMMON_FACTOR: Final = 1.25
"""A value is common when it occurs this many times as often as the average value."""
ONCE_SHARE_MAX: Final = 0.02
"""A sample in which more of the rows than this hold a value of their own has not seen them all."""
STALE_SHARE: Final = 0.1
"""Statistics are taken again when more than this share of the rows has changed."""

_Place: TypeAlias = tuple[Chunk, int, Offsets]
"""A chunk, the rows that it had, and the offsets of some of them."""
_UNORDERED: Final = (Kind.BOOLEAN, Kind.NULL, Kind.INTERVAL, Kind.JSON, Kind.ENUM, Kind.ARRAY)
"""No bounds are taken of these."""


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
    histogram: tuple[PhysicalValue, ...] = ()
    """Bounds of buckets with equally many values (equi-depth), in ascending order."""
    common: tuple[tuple[PhysicalValue, float], ...] = ()
    """The values above the average, most frequent first, with their share of all rows."""
    sketch: Sketch | None = None


@dataclass(frozen=True, slots=True)
class MapStatistics:
    """The rows of one map on one member; ``columns`` in the order of ``schema``."""

    rows: int
    bytes: int
    columns: tuple[ColumnStatistics, ...]
    schema: MapSchema


def take_statistics(
    layouts: Layouts, chunks: Sequence[Chunk], rows: int, size: int, at: int = FOREVER - 1
) -> MapStatistics:
    """Statistics over the rows of ``chunks`` at ``at``, of which there are ``rows``."""
    places = _places(chunks, rows, at)
    columns = tuple(
        _column(places, layouts, chunks, position, rows)
        for position in range(len(layouts.schema.columns))
    )
    return MapStatistics(rows=rows, bytes=size, columns=columns, schema=layouts.schema)


def _places(chunks: Sequence[Chunk], rows: int, at: int) -> list[_Place]:
    """Those of up to about ``SAMPLE_ROWS`` current rows.

    One row from each stretch of equal length, at a random place in it (always the same ones for the
    same map): evenly spaced rows would meet the periods that generated data often has.
    """
    step = max(1, -(-rows // SAMPLE_ROWS))
    targets = np.arange(0, max(rows, 1), step)
    targets += np.random.default_rng(rows).integers(0, step, len(targets))
    found: list[_Place] = []
    passed = 0
    for chunk in chunks:
        length = chunk.length
        mask = shown(chunk, length, at, None)
        if mask is False:
            continue
        alive = np.arange(length) if mask is True else np.flatnonzero(mask)
        low, high = np.searchsorted(targets, [passed, passed + len(alive)])
        chosen = alive[targets[low:high] - passed]
        passed += len(alive)
        if len(chosen):
            found.append((chunk, length, chosen))
    return found


def _sample(places: Sequence[_Place], layouts: Layouts, position: int) -> pa.ChunkedArray:
    """Of one column: the values at these places, or every so many of them."""
    sql_type = layouts.schema.columns[position].type
    step, passed = 1, 0
    if not pa.types.is_primitive(engine_type(sql_type)):
        whole = sum(layouts.columns(c, n, [position]).column(0).nbytes for c, n, _ in places)
        share = sum(len(chosen) for _, _, chosen in places) / sum(n for _, n, _ in places)
        step = max(1, ceil(whole * share / SAMPLE_SIZE))
    parts: list[pa.Array] = []
    for chunk, length, chosen in places:
        some = chosen[-passed % step :: step]
        passed += len(chosen)
        if len(some):
            column = layouts.columns(chunk, length, [position]).column(0)
            parts.append(column if len(some) == length else column.take(pa.array(some)))
    return pa.chunked_array(parts)


def _column(
    places: Sequence[_Place], layouts: Layouts, chunks: Sequence[Chunk], position: int, rows: int
) -> ColumnStatistics:
    if not places:
        return ColumnStatistics(0.0, 0.0, None, None, 0.0)
    sql_type = layouts.schema.columns[position].type
    values = _sample(places, layouts, position)
    taken = len(values)
    low, high = _bounds(values, layouts, chunks, position)
    null_fraction, width = values.null_count / taken, values.nbytes / taken
    known = (values.drop_null() if values.null_count else values).combine_chunks()
    if len(known) == 0 or pa.types.is_null(known.type):
        return ColumnStatistics(null_fraction, 0.0, low, high, width)
    keyed = sql_type.ordered_by_key
    counted = pc.value_counts(order_keys(known, sql_type) if keyed else known)
    found, counts = counted.field("values"), counted.field("counts").to_numpy()
    distinct = float(len(counts))
    if taken == rows or np.count_nonzero(counts == 1) <= ONCE_SHARE_MAX * len(known):
        sketch = sketch_of(hash_arrays([found], [BYTEA if keyed else sql_type]))
    else:
        sketch = merged(_chunk_sketch(chunk, layouts, position) for chunk in chunks if chunk.length)
        distinct = min(max(distinct, distinct_of(sketch)), rows * (1 - null_fraction))
    return ColumnStatistics(
        null_fraction,
        distinct,
        low,
        high,
        width,
        histogram=() if keyed else _histogram(known, sql_type),
        common=() if keyed else _common(found, counts, taken, sql_type),
        sketch=sketch,
    )


def _chunk_sketch(chunk: Chunk, layouts: Layouts, position: int) -> Sketch:
    """Of all rows of a chunk, closed ones included; kept when no row can be added."""
    length = chunk.length
    kept: tuple[int, Sketch] | None = chunk.sketches.get((layouts.schema.version, position))
    if kept is not None and kept[0] == length:
        return kept[1]
    column = layouts.columns(chunk, length, [position]).column(0)
    if column.null_count:
        column = column.drop_null()
    types = [layouts.schema.columns[position].type]
    step = max(1, len(column) * SKETCHED_SIZE // max(column.nbytes, 1))
    sketch: Sketch = merged(
        sketch_of(hash_arrays([column.slice(start, step)], types))
        for start in range(0, len(column), step)
    )
    chunk.sketches[layouts.schema.version, position] = length, sketch
    return sketch


def _histogram(known: pa.Array, sql_type: SqlType) -> tuple[PhysicalValue, ...]:
    if sql_type.kind in _UNORDERED or sql_type.holds_bytes:
        return ()
    step = max(1, len(known) // HISTOGRAM_ROWS)
    some = known.take(pa.array(np.arange(0, len(known), step))) if step > 1 else known
    ordered = some.take(pc.sort_indices(some))
    places = np.linspace(0, len(ordered) - 1, min(HISTOGRAM_BUCKETS + 1, len(ordered)))
    return tuple(array_to_values(ordered.take(pa.array(places.astype(np.int64))), sql_type))


def _common(
    values: pa.Array, counts: npt.NDArray[np.int64], taken: int, sql_type: SqlType
) -> tuple[tuple[PhysicalValue, float], ...]:
    average = counts.sum() / len(counts)
    if len(counts) <= COMMON_MAX:
        places = np.argsort(-counts, kind="stable")
    else:
        top = np.argpartition(-counts, COMMON_MAX)[:COMMON_MAX]
        above = top[(counts[top] > COMMON_FACTOR * average) & (counts[top] > 1)]
        places = above[np.argsort(-counts[above], kind="stable")]
    found = array_to_values(values.take(pa.array(places)), sql_type)
    shares = (counts[places] / taken).tolist()
    return tuple(zip(found, shares, strict=True))


def _bounds(
    values: pa.ChunkedArray, layouts: Layouts, chunks: Sequence[Chunk], position: int
) -> tuple[PhysicalValue, PhysicalValue]:
    sql_type = layouts.schema.columns[position].type
    if sql_type.kind in _UNORDERED:
        return None, None
    if sql_type.is_text or sql_type.holds_bytes:
        both = pc.min_max(values)
        return _physical(both["min"], sql_type), _physical(both["max"], sql_type)
    pairs = [layouts.bounds(chunk, position) for chunk in chunks if chunk.length]
    lows = [value for low, _ in pairs if (value := _physical(low, sql_type)) is not None]
    highs = [value for _, high in pairs if (value := _physical(high, sql_type)) is not None]
    return min(lows, default=None, key=_order), max(highs, default=None, key=_order)


def _order(value: PhysicalValue) -> Any:
    return value


def _physical(scalar: pa.Scalar, sql_type: SqlType) -> PhysicalValue:
    return array_to_values(pa.array([scalar], type=scalar.type), sql_type)[0]
