"""The values that a job writes into one unique index, compared with each other and with the stored
rows of one member (decision 0085)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from remuda.datatypes.violations import duplicate_values
from remuda.member.base.offload import Offload
from remuda.storage.chunks.chunk import Offsets
from remuda.storage.chunks.keys import Hashes
from remuda.storage.maps.unique_values import (
    NOTHING,
    Columns,
    JobValues,
    WrittenValues,
    among,
    equal_to,
)

VALUES_AT_ONCE: Final = 4096
"""So many values are asked for and compared at a time."""
SOUGHT_BY_INDEX: Final = 16 * 1024
"""With more values, stored rows are read one after the other: the index takes values one by one."""


class Source(Protocol):
    """Values that the job writes on one member."""

    number: int

    @property
    def hashes(self) -> Hashes:
        """Of the values, in order."""

    async def columns(self, places: Offsets) -> Columns:
        """The values at some places of that order."""


class UniqueComparison:
    """``own`` has the values ``written`` here. Rows that the job writes on two members are compared
    by the one with the higher number."""

    def __init__(
        self,
        offload: Offload,
        values: JobValues,
        written: WrittenValues,
        own: Source,
        others: Sequence[Source],
    ) -> None:
        self._offload = offload
        self._values = values
        self._written = written
        self._form = written.form
        self._own = own
        self._others = others

    async def run(self) -> int:
        """How many values the job writes, on all members. Raises UniqueViolation."""
        repeated = await self._offload.result(self._written.repeated)
        if repeated is not None:
            raise duplicate_values(self._values.schema, self._form.index, repeated)
        for other in self._others:
            if other.number < self._own.number:
                for part in await self._common(other, self._own.hashes):
                    await self._refuse(await other.columns(part), [self._own])
        return await self._compare_stored()

    async def _common(self, source: Source, hashes: Hashes) -> list[Offsets]:
        """The places of a source whose hash is among ``hashes``, which are in order."""
        found = await self._offload.result(lambda: np.flatnonzero(among(source.hashes, hashes)))
        return _parts(found)

    async def _compare_stored(self) -> int:
        sources = [self._own, *self._others]
        total = sum(len(source.hashes) for source in sources)
        if not total:
            return 0
        index_id = self._form.index.index_id
        if total <= SOUGHT_BY_INDEX and self._values.index_serves(index_id, total):
            for source in sources:
                for part in _parts(np.arange(len(source.hashes))):
                    columns = await source.columns(part)
                    await self._refuse_all(self._values.twins_by_index(self._form, columns))
            return total
        hashes = [NOTHING, *(source.hashes for source in sources)]
        sought = await self._offload.result(lambda: np.sort(np.concatenate(hashes)))
        await self._refuse_all(self._values.twins(self._form, sought))
        return total

    async def _refuse_all(self, twins: Iterator[Columns | None]) -> None:
        """Stored rows that may have values of the job."""
        while (found := await self._offload.result(_next(twins))) is not _END:
            if found:
                await self._refuse(found, [self._own, *self._others])

    async def _refuse(self, columns: Columns, sources: Sequence[Source]) -> None:
        """Raises UniqueViolation when one of the rows has values of a source."""
        form = self._form
        keys = await self._offload.result(lambda: form.keys(columns))
        hashes = await self._offload.result(lambda: np.unique(form.hashes(columns)))
        for source in sources:
            for part in await self._common(source, hashes):
                row = equal_to(keys, form.keys(await source.columns(part)))
                if row is not None:
                    values = form.values(columns, row)
                    raise duplicate_values(self._values.schema, form.index, values)


_END: Final[Columns] = []
"""There are no more rows."""


def _next(twins: Iterator[Columns | None]) -> Callable[[], Columns | None]:
    return lambda: next(twins, _END)


def _parts(places: Offsets) -> list[Offsets]:
    return [places[at : at + VALUES_AT_ONCE] for at in range(0, len(places), VALUES_AT_ONCE)]
