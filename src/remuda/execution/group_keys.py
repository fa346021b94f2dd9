"""Keys of groups: ``KeyIds``, without handling texts that other key columns determine.

GROUP BY often lists columns that depend on one of them (a customer's number, and his name, address
and comment). Ids are given by the other columns alone as long as every row has the same texts as
the first row of its group, which is compared, column by column. The first row that differs ends
that: its group's columns are all part of the key from then on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.sql import Kind, SqlType
from remuda.execution.arrays import Indices, Mask, concat, mask_of, take
from remuda.execution.keys import KeyIds


class _Firsts:
    """A text column's value of each group, in pieces whose sizes halve: appending copies a value
    only as often as its piece doubles, and a look-up touches few pieces."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._pieces: list[pa.Array] = []
        self._starts: list[int] = []
        self.count = 0

    def append(self, texts: pa.Array) -> None:
        start = self.count
        self.count += len(texts)
        merged = [texts]
        while self._pieces and len(self._pieces[-1]) < 2 * (self.count - start):
            merged.insert(0, self._pieces.pop())
            start = self._starts.pop()
        self._pieces.append(concat(merged, self._type))
        self._starts.append(start)

    def agree(self, texts: pa.Array, groups: Indices) -> bool:
        """Whether each of ``texts`` is that of its group (from 0)."""
        starts = [*self._starts, self.count]
        for number, piece in enumerate(self._pieces):
            start, end = starts[number], starts[number + 1]
            rows = np.flatnonzero((groups >= start) & (groups < end))
            if len(rows) == 0:
                continue
            some = texts if len(rows) == len(groups) else take(texts, rows)
            if not _same(some, take(piece, groups[rows] - start)):
                return False
        return True

    def matches(self, texts: pa.Array, groups: Indices) -> Mask:
        """Which of ``texts`` are those of their groups (from 0)."""
        found = np.zeros(len(groups), np.bool_)
        starts = [*self._starts, self.count]
        for number, piece in enumerate(self._pieces):
            start, end = starts[number], starts[number + 1]
            rows = np.flatnonzero((groups >= start) & (groups < end))
            if len(rows):
                equal = _equal(take(texts, rows), take(piece, groups[rows] - start))
                found[rows] = mask_of(equal)
        return found

    def values(self) -> pa.Array:
        """All of them, in the order of the groups."""
        if len(self._pieces) != 1:
            self._pieces = [concat(self._pieces, self._type)]
            self._starts = [0]
        return self._pieces[0]

    @property
    def bytes(self) -> int:
        return sum(piece.nbytes for piece in self._pieces)


class GroupKeys:
    """Ids as ``KeyIds.encode`` gives them: from 1, in order of first appearance."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = types
        texts = [type_.is_text or type_.kind in (Kind.BYTEA, Kind.UUID) for type_ in types]
        self._lead = [place for place, text in enumerate(texts) if not text]
        self._rest = [place for place, text in enumerate(texts) if text]
        self._firsts: list[_Firsts] | None = None
        """Per column of ``_rest`` the text of each group; None: all columns are the key."""
        if self._lead and self._rest:
            self._firsts = [_Firsts(_arrow_type(types[place])) for place in self._rest]
            self._keys = KeyIds([types[place] for place in self._lead])
        else:
            self._keys = KeyIds(types)

    @property
    def count(self) -> int:
        return self._keys.count

    @property
    def bytes(self) -> int:
        texts = sum(firsts.bytes for firsts in self._firsts or ())
        return self._keys.bytes + texts

    def encode(self, arrays: Sequence[pa.Array]) -> Indices:
        if self._firsts is None:
            return self._keys.encode(arrays)
        ids = self._encode_lead(self._firsts, arrays)
        if ids is None:
            self._take_all(self._firsts)
            ids = self._keys.encode(arrays)
        return ids

    def known(self, arrays: Sequence[pa.Array]) -> tuple[Indices, Mask]:
        """The ids of groups that are there, and for which rows they hold."""
        if self._firsts is None:
            return self._keys.known(arrays)
        ids, known = self._keys.known([arrays[place] for place in self._lead])
        known = known & (ids > 0)
        rows = np.flatnonzero(known)
        for firsts, place in zip(self._firsts, self._rest, strict=True):
            texts = arrays[place]
            if pa.types.is_null(texts.type):
                texts = texts.cast(_arrow_type(self._types[place]))
            known[rows] &= firsts.matches(take(texts, rows), ids[rows] - 1)
        return ids, known

    def _encode_lead(self, firsts: list[_Firsts], arrays: Sequence[pa.Array]) -> Indices | None:
        """None when the texts of a row are not those of its group: those of new groups are kept
        all the same, because ``_take_all`` makes them groups of all columns."""
        lead = [arrays[place] for place in self._lead]
        if len(lead) == 1 and lead[0].null_count:
            return None  # a lone NULL has no id
        before = self._keys.count
        ids = self._keys.encode(lead)
        new = np.flatnonzero(ids > before)
        rows = np.empty(self._keys.count - before, np.int64)
        rows[ids[new[::-1]] - before - 1] = new[::-1]  # the first row of a group is written last
        same = True
        for known, place in zip(firsts, self._rest, strict=True):
            texts = arrays[place]
            if pa.types.is_null(texts.type):
                texts = texts.cast(_arrow_type(self._types[place]))
            if len(rows):
                known.append(take(texts, rows))
            same = same and known.agree(texts, ids - 1)
        return ids if same else None

    def _take_all(self, firsts: list[_Firsts]) -> None:
        """Make all columns the key: the groups there are keep their ids."""
        known = firsts[0].count
        groups = np.arange(1, known + 1)
        texts = [column.values() for column in firsts]
        columns = self._columns(self._keys.decode(groups), texts) if known else []
        self._firsts = None
        self._keys = KeyIds(self._types)
        if known:
            again = self._keys.encode(columns)
            assert (again == groups).all()

    def decode(self, ids: Indices) -> list[pa.Array]:
        """The key columns of ``ids``."""
        columns = self._keys.decode(ids)
        if self._firsts is None:
            return columns
        texts = [take(column.values(), ids - 1) for column in self._firsts]
        return self._columns(columns, texts)

    def _columns(self, lead: Sequence[pa.Array], rest: Sequence[pa.Array]) -> list[pa.Array]:
        by_place = dict(zip([*self._lead, *self._rest], [*lead, *rest], strict=True))
        return [by_place[place] for place in range(len(self._types))]


def _arrow_type(type_: SqlType) -> pa.DataType:
    return pa.string() if type_.is_text else pa.binary()


def _same(texts: pa.Array, others: pa.Array) -> bool:
    """Whether all pairs are equal, NULL to NULL."""
    return pc.all(_equal(texts, others)).as_py() is not False


def _equal(texts: pa.Array, others: pa.Array) -> pa.Array:
    """Which pairs are equal, NULL to NULL."""
    equal = pc.equal(texts, others)
    if equal.null_count:
        both = pc.and_(pc.is_null(texts), pc.is_null(others))
        equal = pc.or_(pc.fill_null(equal, fill_value=False), both)
    return equal
