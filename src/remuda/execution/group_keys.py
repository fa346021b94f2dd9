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
from remuda.execution.arrays import Indices, Mask, concat, take
from remuda.execution.keys import KeyIds


class GroupKeys:
    """Ids as ``KeyIds.encode`` gives them: from 1, in order of first appearance."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = types
        texts = [type_.is_text or type_.kind in (Kind.BYTEA, Kind.UUID) for type_ in types]
        self._lead = [place for place, text in enumerate(texts) if not text]
        self._rest = [place for place, text in enumerate(texts) if text]
        self._firsts: list[pa.Array] | None = None
        """Per column of ``_rest`` the text of each group; None: all columns are the key."""
        if self._lead and self._rest:
            self._firsts = [pa.array([], _arrow_type(types[place])) for place in self._rest]
            self._keys = KeyIds([types[place] for place in self._lead])
        else:
            self._keys = KeyIds(types)

    @property
    def count(self) -> int:
        return self._keys.count

    @property
    def bytes(self) -> int:
        texts: int = sum(array.nbytes for array in self._firsts or ())
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
        if self._firsts is not None:
            self._take_all(self._firsts)
        return self._keys.known(arrays)

    def _encode_lead(self, firsts: list[pa.Array], arrays: Sequence[pa.Array]) -> Indices | None:
        """None when the texts of a row are not those of its group; nothing is kept of it then."""
        lead = [arrays[place] for place in self._lead]
        if len(lead) == 1 and lead[0].null_count:
            return None  # a lone NULL has no id
        before = len(firsts[0])
        ids = self._keys.encode(lead)
        new = np.flatnonzero(ids > before)
        rows = np.empty(self._keys.count - before, np.int64)
        rows[ids[new[::-1]] - before - 1] = new[::-1]  # the first row of a group is written last
        grown: list[pa.Array] = []
        for known, place in zip(firsts, self._rest, strict=True):
            texts = arrays[place]
            if pa.types.is_null(texts.type):
                texts = texts.cast(known.type)
            both = concat([known, take(texts, rows)], known.type) if len(rows) else known
            if not _same(texts, take(both, ids - 1)):
                return None
            grown.append(both)
        firsts[:] = grown
        return ids

    def _take_all(self, firsts: list[pa.Array]) -> None:
        """Make all columns the key: the groups there are keep their ids."""
        known = len(firsts[0])
        groups = np.arange(1, known + 1)
        columns = self._columns(self._keys.decode(groups), firsts) if known else []
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
        return self._columns(columns, [take(texts, ids - 1) for texts in self._firsts])

    def _columns(self, lead: Sequence[pa.Array], rest: Sequence[pa.Array]) -> list[pa.Array]:
        by_place = dict(zip([*self._lead, *self._rest], [*lead, *rest], strict=True))
        return [by_place[place] for place in range(len(self._types))]


def _arrow_type(type_: SqlType) -> pa.DataType:
    return pa.string() if type_.is_text else pa.binary()


def _same(texts: pa.Array, others: pa.Array) -> bool:
    """Whether all pairs are equal, NULL to NULL."""
    equal = pc.equal(texts, others)
    if equal.null_count:
        both = pc.and_(pc.is_null(texts), pc.is_null(others))
        equal = pc.or_(pc.fill_null(equal, fill_value=False), both)
    return pc.all(equal).as_py() is not False
