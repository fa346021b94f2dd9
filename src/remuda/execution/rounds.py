"""The rounds of a recursive query: its working table, and which rows are new.

``Rounds`` is what the initiator hands to the fragment that runs the recursive term;
``operators.rounds`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa

from remuda.datatypes.sql import SqlType
from remuda.errors import LimitExceeded
from remuda.execution.group_keys import GroupKeys
from remuda.execution.stored_rows import StoredRows


class WorkingTable(Sequence[pa.RecordBatch]):
    """The rows that the round before has given; owns them."""

    def __init__(self, relation: str, rows: StoredRows) -> None:
        self.relation = relation
        self._rows = rows

    def replace(self, rows: StoredRows) -> None:
        """Free the rows and show others."""
        self._rows.close()
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._rows)

    @overload
    def __getitem__(self, number: int) -> pa.RecordBatch: ...

    @overload
    def __getitem__(self, number: slice) -> list[pa.RecordBatch]: ...

    def __getitem__(self, number: int | slice) -> pa.RecordBatch | list[pa.RecordBatch]:
        return self._rows[number]

    def close(self) -> None:
        self._rows.close()


class NewRows:
    """Tells new rows from those that came before. Not ``distinct``: all rows are new."""

    def __init__(self, types: Sequence[SqlType], distinct: bool) -> None:
        self._seen = GroupKeys(types) if distinct else None
        self._seen_null = False
        self._size = 0

    def of(self, page: pa.RecordBatch) -> pa.RecordBatch:
        if self._seen is None or not page.num_rows:
            return page
        before = self._seen.count
        ids = np.asarray(self._seen.encode(page.columns))
        if self._seen.count - before == page.num_rows:
            return page  # each row has an id of its own
        found, firsts = np.unique(ids, return_index=True)
        new = found > before
        if len(found) and found[0] == 0:  # a lone NULL
            new[0], self._seen_null = not self._seen_null, True
        fresh = np.sort(firsts[new])
        return page if len(fresh) == page.num_rows else page.take(pa.array(fresh))

    def growth(self) -> int:
        """Bytes that telling them apart has come to take since the last time."""
        if self._seen is None:
            return 0
        before, self._size = self._size, max(self._size, self._seen.bytes)
        return self._size - before


@dataclass(frozen=True)
class Rounds:
    """``rows_before`` have come when the first round begins over ``working``, which is not empty.
    No round begins when ``enough`` rows are there, or after ``rounds_max``."""

    name: str
    working: WorkingTable
    new: NewRows
    rows_before: int
    enough: int | None
    rounds_max: int


def beyond_rounds(name: str, rounds_max: int) -> LimitExceeded:
    return LimitExceeded(
        f'recursive query "{name}" did not end within {rounds_max} iterations',
        hint="Its recursive term must come to give no rows: limit it with a condition, "
        "or write UNION instead of UNION ALL to leave out rows that came before.",
    )
