"""The pins by which a read of a map holds on to its versions, so that others may go on writing."""

from __future__ import annotations

from remuda.storage.chunks.chunk_table import ChunkTable, TableView
from remuda.storage.chunks.layout import Layouts
from remuda.storage.chunks.readable import ReadableSchemas
from remuda.storage.chunks.upkeep import Upkeep
from remuda.storage.staging import validation


class Pinning:
    """Of one map. It does not know the map's store: the indexes have it, too, and a store that
    refers to itself would keep its rows long after the map was dropped."""

    def __init__(self, readable: ReadableSchemas, table: ChunkTable, upkeep: Upkeep) -> None:
        self._readable = readable
        self._table = table
        self._upkeep = upkeep

    def pin(self, at: int, version: int) -> tuple[TableView, Layouts]:
        """The chunks as they are now, and the forms in which their rows are read. Any thread.
        Raises SnapshotTooOld when upkeep has dropped versions that existed at ``at``."""
        layouts = self._readable.under(version) if version else self._readable.newest
        view = self._table.view  # first: what is collected after this line is still in it
        floor = self._upkeep.floors.reads
        if at < floor:
            raise validation.too_old(self._readable.newest.schema, at, floor)
        return view, layouts
