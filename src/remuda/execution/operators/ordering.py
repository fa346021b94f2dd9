"""Sort keys as integers: every key column becomes int64 codes in ascending order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.hashes.orderkeys import order_keys
from remuda.datatypes.sql import Kind, SqlType
from remuda.execution.arrays import Data, Indices, Mask, data_of, mask_of, validity_mask
from remuda.execution.evaluate.numbers import exact_of
from remuda.plan.expression import ColumnId, SortKey
from remuda.plan.logical import OutputColumn


@dataclass(frozen=True, slots=True)
class BoundKey:
    """A sort key with its position in the input."""

    position: int
    type: SqlType
    descending: bool = False
    nulls_first: bool = False


def places_of(columns: Sequence[OutputColumn]) -> dict[ColumnId, int]:
    """Column id -> its position."""
    return {column.id: place for place, column in enumerate(columns)}


def bound_keys(keys: Sequence[SortKey], columns: Sequence[OutputColumn]) -> list[BoundKey]:
    """``keys`` of a plan over batches of ``columns``."""
    places = places_of(columns)
    return [
        BoundKey(places[k.column], columns[places[k.column]].type, k.descending, k.nulls_first)
        for k in keys
    ]


def codes(array: pa.Array, key: BoundKey) -> list[Data]:
    """One or two int64 arrays, most significant first, whose ascending order is the key's order."""
    data = _ascending(array, key.type)
    if key.descending:
        data = ~data
    valid = validity_mask(array)
    if valid is None:
        return [data]
    # NULLs are equal to each other, and all before or all after the rest
    data = np.where(valid, data, 0)
    place = valid if key.nulls_first else ~valid
    return [place.astype(np.int8), data]


def _ascending(array: pa.Array, type_: SqlType) -> Data:
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if type_.is_float:
        return float_codes(data_of(array).astype(np.float64))
    if type_.kind is Kind.BOOLEAN:
        return mask_of(array).astype(np.int64)
    if type_.kind is Kind.DECIMAL:
        data = exact_of(array)
        assert isinstance(data, np.ndarray)
        if data.dtype == object:
            return np.unique(data, return_inverse=True)[1].astype(np.int64)
        return data
    if type_.ordered_by_key:
        array = order_keys(array, type_)
    if type_.is_text or type_.holds_bytes or type_.ordered_by_key:
        ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")
        return data_of(ranks.cast(pa.int64()))
    return data_of(array).astype(np.int64)


def float_codes(data: Data) -> Data:
    """Order-preserving: NaN above infinity, -0.0 equal to 0.0."""
    data = data + 0.0
    data = np.where(np.isnan(data), np.nan, data)
    bits = data.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def sorted_rows(columns: Sequence[pa.Array], keys: Sequence[BoundKey]) -> Indices:
    """Row numbers in order (stable); ``columns[i]`` are the values of ``keys[i]``."""
    if len(keys) == 1 and keys[0].type.ordered_by_key:
        return _sorted_text(order_keys(columns[0], keys[0].type), keys[0])
    if len(keys) == 1 and (keys[0].type.is_text or keys[0].type.holds_bytes):
        return _sorted_text(columns[0], keys[0])
    return order_of(
        [part for array, key in zip(columns, keys, strict=True) for part in codes(array, key)]
    )


def order_of(parts: list[Data]) -> Indices:
    """Row numbers in the order of ``codes``, the most significant first (stable)."""
    if len(parts) == 1:
        return np.argsort(parts[0], kind="stable")
    packed = _packed(parts)
    if packed is not None:
        return np.argsort(packed, kind="stable")
    return np.lexsort(parts[::-1])


def key_ids(parts: list[Data]) -> Data:
    """Numbers in the order of ``codes`` (the most significant first), equal for equal rows."""
    packed = parts[0] if len(parts) == 1 else _packed(parts)
    if packed is not None:
        return packed
    order = np.lexsort(parts[::-1])
    begins: Mask = np.zeros(len(order), np.bool_)
    for part in parts:
        ordered = part[order]
        begins[1:] |= ordered[1:] != ordered[:-1]
    ids = np.empty(len(order), np.int64)
    ids[order] = np.cumsum(begins)
    return ids


def _sorted_text(array: pa.Array, key: BoundKey) -> Indices:
    order = pc.array_sort_indices(
        array,
        order="descending" if key.descending else "ascending",
        null_placement="at_start" if key.nulls_first else "at_end",
    )
    return data_of(order.cast(pa.int64()))


def _packed(parts: list[Data]) -> Data | None:
    """All codes in one int64 when their ranges allow: one sort instead of several."""
    total = 1
    ranges: list[tuple[int, int]] = []
    for part in parts:
        if len(part) == 0:
            return np.zeros(0, np.int64)
        low, high = int(part.min()), int(part.max())
        ranges.append((low, high - low + 1))
        total *= high - low + 1
        if total >= 2**63:
            return None
    packed: Data = np.zeros(len(parts[0]), np.int64)
    for part, (low, size) in zip(parts, ranges, strict=True):
        packed = packed * size + (part.astype(np.int64) - low)
    return packed


def first_rows(columns: Sequence[pa.Array], keys: Sequence[BoundKey], count: int) -> Indices | None:
    """Rows among which the first ``count`` are (ties of the first key included), in input order;
    None when nothing can be left out."""
    rows = len(columns[0])
    if rows <= count or count == 0:
        return None
    parts = codes(columns[0], keys[0])
    if len(parts) == 2:
        packed = _packed(parts)
        if packed is None:
            return None
        data = packed
    else:
        data = parts[0]
    bound = np.partition(data, count - 1)[count - 1]
    return np.flatnonzero(data <= bound)
