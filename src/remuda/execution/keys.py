"""Keys of joins and groups as dense integers, exactly (nothing depends on hashes being distinct).

Every key column becomes int64 *words* (equal values have equal words), words become dense ids
1, 2, 3, ... in order of first appearance, and several columns are folded pairwise: the ids of two
columns form one 64-bit word, which gets an id in turn. Id 0 stands for NULL, and for "not there"
when a table is only looked up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pandas._libs import hashtable  # type: ignore[attr-defined]  # no stubs for khash

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.hashes.orderkeys import order_keys
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.values import values_to_array
from remuda.execution.arrays import (
    Data,
    Indices,
    Mask,
    array_from,
    boolean_array,
    data_of,
    mask_of,
    take,
    validity_mask,
)
from remuda.execution.evaluate.numbers import exact_of

_DIRECT_SPAN = 1 << 20
_DIRECT_SPAN_SMALL = 1 << 12
_FEW_WORDS = 8
_DIRECT_DENSE = 8
_DIRECT_SPREAD = 64
_DIRECT_SPAN_MAX = 1 << 24
_SHORT_STRING = 7
_DICTIONARY_ENTRY = 112
"""Bytes of one value in a Python dict and a list, besides the value."""
_FLAGGED_MAX = 1 << 21
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class IntegerIds:
    """int64 -> dense id from 1. A plain array indexed by the value while the span of values is
    small against their number, a hash table (khash, from pandas) otherwise."""

    def __init__(self) -> None:
        self.count = 0
        """Ids given so far: 1 .. count."""
        self._base = 0
        self._direct: Data | None = np.zeros(0, np.int32)
        self._padded: Data = np.zeros(2, np.int32)
        """``_direct`` with a zero before and after it."""
        self._flags: Mask = np.zeros(0, np.bool_)
        self._flagged = 0
        self._flags_pay = True
        self._shift = np.uint64(0)
        self._values: list[Data] = []
        self._table: Any = None

    def values(self) -> Data:
        """values()[i - 1] is the value of id i."""
        if self._table is not None:
            uniques: Data = np.asarray(self._table.uniques.to_array(), np.int64)
            return uniques
        return np.concatenate(self._values) if self._values else np.zeros(0, np.int64)

    def encode(self, words: Data) -> Indices:
        """The ids of ``words``; unknown ones get new ids."""
        if len(words) == 0:
            return np.zeros(0, np.int64)
        if not self.count and len(words) <= _FEW_WORDS:
            first = self._few(words)
            if first is not None:
                return first
        if self._direct is not None and not self._reach(words):
            self._to_table(len(words))
        if self._direct is None:
            ids: Indices = self._table.factorize(words)
            self.count = int(self._table.count)
            return ids + 1
        places = words - self._base if self._base else words
        found = self._direct.take(places)
        if found.min() == 0:
            self._add(words[found == 0])
            found = self._direct.take(places)
        return found.astype(np.int64, copy=False)

    def _few(self, words: Data) -> Indices | None:
        """The ids of the first words of all; None if they lie far apart. For few words Python takes
        less time than the calls of NumPy in ``_reach`` and ``_add``."""
        known: dict[int, int] = {}
        ids = [known.setdefault(word, len(known) + 1) for word in words.tolist()]
        low, high = min(known), max(known)
        if high - low >= _DIRECT_SPAN_SMALL:
            return None
        padded = np.zeros(high - low + 3, np.int64)
        for word, number in known.items():
            padded[word - low + 1] = number
        self._padded, self._direct, self._base = padded, padded[1:-1], low
        self._values = [np.array([*known], np.int64)]
        self.count = len(known)
        return np.array(ids, np.int64)

    def _add(self, words: Data) -> None:
        """Give ids to unknown words: every word writes its row number, one per word survives."""
        assert self._direct is not None
        places = words - self._base
        rows = np.arange(1, len(words) + 1)
        self._direct[places] = rows
        new = words[self._direct.take(places) == rows]
        self._direct[new - self._base] = np.arange(self.count + 1, self.count + 1 + len(new))
        self._values.append(new)
        self.count += len(new)

    def _reach(self, words: Data) -> bool:
        """Make the direct table cover ``words``; False if it would be too large for its use."""
        assert self._direct is not None
        low, high = int(words.min()), int(words.max())
        if self._base <= low and high < self._base + len(self._direct):
            return True
        if len(self._direct):
            low = min(low, self._base)
            high = max(high, self._base + len(self._direct) - 1)
        span = high - low + 1
        rows = max(len(words), self.count)
        sparse = min(_DIRECT_SPREAD * rows, _DIRECT_SPAN_MAX)
        if span > max(_DIRECT_SPAN, sparse, _DIRECT_DENSE * rows):
            return False
        if len(self._direct) and span < 2 * len(self._direct):
            # grow by half at least, so that keys that come in order do not copy each time
            high = max(high, min(low + len(self._direct) * 3 // 2, 2**63 - 1))
            span = high - low + 1
        if low >= 0 and high < _DIRECT_SPAN_SMALL:
            low, span = 0, high + 1
        padded = np.zeros(span + 2, np.int64 if span <= _DIRECT_SPAN else np.int32)
        if len(self._direct):
            start = self._base - low + 1
            padded[start : start + len(self._direct)] = self._direct
        self._padded, self._direct, self._base = padded, padded[1:-1], low
        return True

    def _to_table(self, hint: int) -> None:
        self._table = hashtable.Int64Factorizer(max(hint, self.count))
        if self.count:
            self._table.factorize(self.values_in_order())
        self._direct = None
        self._padded = np.zeros(2, np.int32)
        self._values = []

    def values_in_order(self) -> Data:
        return np.concatenate(self._values) if self._values else np.zeros(0, np.int64)

    def lookup(self, words: Data) -> Indices:
        """The ids of ``words``, 0 where unknown."""
        if len(words) == 0 or self.count == 0:
            return np.zeros(len(words), np.int64)
        if self._direct is None:
            return self._lookup_in_table(words)
        # Everything outside lands on one of the zeros around the direct table: a difference that
        # overflows is outside too, because what is inside differs by less than the table's size.
        places = words - self._base
        places += 1
        return self._padded.take(places, mode="clip").astype(np.int64, copy=False)

    def _lookup_in_table(self, words: Data) -> Indices:
        """Most words of a join are often unknown: a small table of flags, which stays in the
        processor's cache, tells that of most of them for a tenth of the price.
        """
        ids: Indices
        maybe = self._flags_of(words) if self._flags_pay and self.count <= _FLAGGED_MAX else None
        if maybe is not None:
            rows = np.flatnonzero(maybe)
            if 2 * len(rows) <= len(words):
                ids = np.zeros(len(words), np.int64)
                ids[rows] = self._table.table.lookup(words.take(rows)) + 1
                return ids
            self._flags_pay = False
        ids = self._table.table.lookup(words) + 1
        return ids

    def _flags_of(self, words: Data) -> Mask:
        """False for words that are not there, True for all that are and a few others."""
        if self._flagged != self.count:
            self._shift = np.uint64(64 - max(12, (8 * self.count).bit_length()))
            self._flags = np.zeros(1 << (64 - int(self._shift)), np.bool_)
            self._flags[self._flag_places(self.values())] = True
            self._flagged = self.count
        return self._flags.take(self._flag_places(words))

    def _flag_places(self, words: Data) -> Indices:
        places = words.view(np.uint64) * _SPREAD  # Fibonacci hashing: the high bits are well mixed
        places >>= self._shift
        return places.view(np.int64)

    @property
    def bytes(self) -> int:
        if self._direct is not None:
            return self._direct.nbytes + 8 * self.count
        return 40 * self.count


class _Words:
    """One key column -> int64 words, and back."""

    def __init__(self, type_: SqlType) -> None:
        self.type = type_
        self.arrow = engine_type(type_)

    def of(self, array: pa.Array, *, grow: bool) -> Data:
        raise NotImplementedError

    def back(self, words: Data) -> pa.Array:
        raise NotImplementedError

    @property
    def bytes(self) -> int:
        """The work of telling values apart beside their words."""
        return 0


class _IntegerWords(_Words):
    def of(self, array: pa.Array, *, grow: bool) -> Data:  # noqa: ARG002
        data = data_of(array)
        return data if data.dtype == np.int64 else data.astype(np.int64)

    def back(self, words: Data) -> pa.Array:
        return array_from(words, self.arrow)


class _BooleanWords(_Words):
    def of(self, array: pa.Array, *, grow: bool) -> Data:  # noqa: ARG002
        return mask_of(array).astype(np.int64)

    def back(self, words: Data) -> pa.Array:
        return boolean_array(words != 0)


class _FloatWords(_Words):
    """-0.0 is 0.0 and all NaNs are one value."""

    def of(self, array: pa.Array, *, grow: bool) -> Data:  # noqa: ARG002
        data = data_of(array).astype(np.float64) + 0.0
        missing = np.isnan(data)
        if missing.any():
            data = np.where(missing, np.nan, data)
        return data.view(np.int64)

    def back(self, words: Data) -> pa.Array:
        return array_from(words.view(np.float64), self.arrow)


class _DictionaryWords(_Words):
    """Values that are not 64-bit integers: words are handed out by a Python dict."""

    def __init__(self, type_: SqlType) -> None:
        super().__init__(type_)
        self._known: dict[Any, int] = {}
        self._order: list[Any] = []
        self._bytes = 0

    def word(self, value: Any, grow: bool) -> int:
        """-1, -2, ...; the smallest int64 for "not there"."""
        found = self._known.get(value)
        if found is None:
            if not grow:
                return -(2**63)
            self._order.append(value)
            self._bytes += _DICTIONARY_ENTRY + sys.getsizeof(value)
            found = self._known[value] = -len(self._order)
        return found

    @property
    def bytes(self) -> int:
        return self._bytes


class _LongDecimalWords(_DictionaryWords):
    def of(self, array: pa.Array, *, grow: bool) -> Data:
        data = exact_of(array)
        assert isinstance(data, np.ndarray)
        unique, inverse = np.unique(data, return_inverse=True)
        words = np.array([self.word(value, grow) for value in unique.tolist()], np.int64)
        return words[inverse] if len(words) else np.zeros(0, np.int64)

    def back(self, words: Data) -> pa.Array:
        return values_to_array([self._order[-word - 1] for word in words.tolist()], self.type)


class _StringWords(_DictionaryWords):
    """Strings of up to 7 bytes are their own word: bytes as a number, times 8, plus length."""

    def of(self, array: pa.Array, *, grow: bool) -> Data:
        rows = len(array)
        offsets_buffer, data_buffer = array.buffers()[1:3]
        if rows == 0 or offsets_buffer is None:
            return np.zeros(rows, np.int64)
        offsets = np.frombuffer(offsets_buffer, np.int32, rows + 1, 4 * array.offset)
        lengths = offsets[1:] - offsets[:-1]
        longest = int(lengths.max())
        if longest == 0:
            return np.zeros(rows, np.int64)
        data = np.frombuffer(data_buffer, np.uint8)
        if longest <= _SHORT_STRING:
            return _packed(data, offsets, lengths, longest)
        encoded = array.dictionary_encode()
        dictionary = encoded.dictionary
        words = np.empty(len(dictionary), np.int64)
        for place, value in enumerate(dictionary.to_pylist()):
            raw = value.encode() if isinstance(value, str) else value
            if len(raw) <= _SHORT_STRING:
                words[place] = int.from_bytes(raw, "little") << 3 | len(raw)
            else:
                words[place] = self.word(value, grow)
        if len(words) == 0:
            return np.zeros(rows, np.int64)
        indices = data_of(encoded.indices)
        valid = validity_mask(array)
        if valid is not None:
            indices = np.where(valid, indices, 0)
        return words.take(indices)

    def back(self, words: Data) -> pa.Array:
        values: list[Any] = []
        text = self.type.is_text
        for word in words.tolist():
            if word < 0:
                values.append(self._order[-word - 1])
            else:
                raw = (word >> 3).to_bytes(_SHORT_STRING, "little")[: word & 7]
                values.append(raw.decode() if text else raw)
        return pa.array(values, self.arrow)


def _packed(data: Data, offsets: Data, lengths: Data, longest: int) -> Data:
    starts = offsets[:-1]
    if len(data) == len(starts) == int(offsets[-1]) and offsets[0] == 0 and longest == 1:
        words = data.astype(np.int64)
    else:
        words = np.zeros(len(lengths), np.int64)
        for place in range(longest):
            bytes_ = data.take(starts + place, mode="clip").astype(np.int64) << (8 * place)
            words |= np.where(lengths > place, bytes_, 0)
    words <<= 3
    words |= lengths
    return words


class _OrderKeyWords(_DictionaryWords):
    """Values with an order key: the first value with a key stands for all that equal it."""

    def __init__(self, type_: SqlType) -> None:
        super().__init__(type_)
        self._values: list[pa.Array] = []

    def of(self, array: pa.Array, *, grow: bool) -> Data:
        rows = len(array)
        if array.null_count == rows:
            return np.zeros(rows, np.int64)
        encoded = order_keys(array, self.type).dictionary_encode()
        valid = validity_mask(array)
        rows_of_values = np.arange(rows) if valid is None else np.flatnonzero(valid)
        indices = data_of(encoded.indices)
        if valid is not None:
            indices = np.where(valid, indices, 0)
        known = len(self._order)
        words = [self.word(key, grow) for key in encoded.dictionary.to_pylist()]
        if len(self._order) > known:
            first = np.full(len(words), -1, np.int64)
            latest_first = rows_of_values[::-1]
            first[indices[latest_first]] = latest_first
            new = [place for place, word in enumerate(words) if word < -known]
            self._values.append(take(array, first[new]))
        return np.array(words, np.int64).take(indices)

    def back(self, words: Data) -> pa.Array:
        known = pa.concat_arrays(self._values) if self._values else pa.array([], self.arrow)
        self._values = [known] if len(known) else []
        return take(known, -words - 1)


def _words_for(type_: SqlType) -> _Words:
    if type_.ordered_by_key:
        return _OrderKeyWords(type_)
    if type_.is_text or type_.holds_bytes:
        return _StringWords(type_)
    if type_.is_float:
        return _FloatWords(type_)
    if type_.kind is Kind.BOOLEAN:
        return _BooleanWords(type_)
    if type_.kind is Kind.DECIMAL and not type_.is_short_decimal:
        return _LongDecimalWords(type_)
    return _IntegerWords(type_)


class _ColumnIds:
    """One key column -> dense ids; 0 is NULL (or unknown, in lookups)."""

    def __init__(self, type_: SqlType) -> None:
        self.words = _words_for(type_)
        self.ids = IntegerIds()

    def encode(self, array: pa.Array, *, grow: bool) -> Indices:
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64)
        valid = validity_mask(array)
        words = self.words.of(array, grow=grow)
        give = self.ids.encode if grow else self.ids.lookup
        if valid is None:
            return give(words)
        ids = np.zeros(len(array), np.int64)
        ids[valid] = give(words[valid])
        return ids

    def known(self, array: pa.Array) -> tuple[Indices, Mask]:
        """Ids, and where they hold: NULL is known, as 0."""
        ids = self.encode(array, grow=False)
        known = ids > 0
        valid = validity_mask(array)
        return ids, known if valid is None else known | ~valid

    def decode(self, ids: Indices) -> pa.Array:
        values = self.ids.values()
        missing = ids == 0
        if not missing.any():
            return self.words.back(values[ids - 1])
        known = self.words.back(values) if len(values) else pa.array([], self.words.arrow)
        return known.take(pa.array(ids - 1, mask=missing))


class KeyIds:
    """Keys of one or more columns -> dense ids from 1; the state of a hash join or group by.

    With one column, NULL has id 0. With more, a NULL part is part of the key like any other value
    (a join leaves such rows out before it comes here, see ``null_rows``).
    """

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._columns = [_ColumnIds(type_) for type_ in types]
        self._pairs = [IntegerIds() for _ in types[1:]]

    @property
    def count(self) -> int:
        """The highest id given."""
        return self._pairs[-1].count if self._pairs else self._columns[0].ids.count

    @property
    def bytes(self) -> int:
        columns = sum(c.ids.bytes + c.words.bytes for c in self._columns)
        return columns + sum(p.bytes for p in self._pairs)

    def encode(self, arrays: Sequence[pa.Array]) -> Indices:
        ids = self._columns[0].encode(arrays[0], grow=True)
        for pairs, column, array in zip(self._pairs, self._columns[1:], arrays[1:], strict=True):
            ids = pairs.encode(ids << 32 | column.encode(array, grow=True))
        return ids

    def lookup(self, arrays: Sequence[pa.Array]) -> Indices:
        """Ids of known keys, 0 for unknown ones and for keys with a NULL part."""
        ids = self._columns[0].encode(arrays[0], grow=False)
        for pairs, column, array in zip(self._pairs, self._columns[1:], arrays[1:], strict=True):
            other = column.encode(array, grow=False)
            found = pairs.lookup(ids << 32 | other)
            ids = np.where((ids == 0) | (other == 0), 0, found)
        return ids

    def known(self, arrays: Sequence[pa.Array]) -> tuple[Indices, Mask]:
        """The result of ``encode``, where it is known: the ids, and where they hold. A lone
        NULL is always known."""
        ids, known = self._columns[0].known(arrays[0])
        for pairs, column, array in zip(self._pairs, self._columns[1:], arrays[1:], strict=True):
            other, other_known = column.known(array)
            ids = pairs.lookup(ids << 32 | other)
            known = known & other_known & (ids > 0)
        return ids, known

    def decode(self, ids: Indices) -> list[pa.Array]:
        """The key columns of ``ids``."""
        columns: list[pa.Array] = []
        for pairs, column in zip(reversed(self._pairs), reversed(self._columns[1:]), strict=True):
            words = pairs.values()[ids - 1]
            columns.append(column.decode(words & (2**32 - 1)))
            ids = words >> 32
        columns.append(self._columns[0].decode(ids))
        return columns[::-1]


def null_rows(arrays: Sequence[pa.Array]) -> Mask | None:
    """True where any part is NULL; None when there is no such row."""
    result: Mask | None = None
    for array in arrays:
        valid = validity_mask(array)
        if valid is not None:
            result = ~valid if result is None else result | ~valid
    return result
