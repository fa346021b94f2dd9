"""Former copies: rows that a member finds in its folder after the others went on without it.

They count for nothing: no view names them, nobody reads them. But most of their rows may be what
the present copies have, so a primary that gives this member a copy sends only the difference
(``member.copies.differences``). They are kept until they have served, or ``return_within`` is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import TransientError
from remuda.member.base.core import Core
from remuda.member.state.log import fields
from remuda.rpc.messages import control_pb2
from remuda.storage.chunks.chunk import Flags
from remuda.storage.maps.copy_comparison import WORD, Inventory
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import Extraction, Versions

log = logging.getLogger(__name__)


@dataclass
class Comparison:
    """A former copy of one map on its way to be a copy again. ``void``: versions that it has, and
    the present copy has not."""

    inventory: Inventory
    void: Flags

    def answer(self, message: control_pb2.CopyCompare) -> control_pb2.CopyCompared:
        """Any thread."""
        inventory, bits = self.inventory, message.bits
        if not message.buckets:
            digests = inventory.digests(bits).astype(WORD).tobytes()
            return control_pb2.CopyCompared(digests=digests)
        inside = inventory.inside(bits, np.array(message.buckets, dtype=np.int64))
        if not message.voided:
            return control_pb2.CopyCompared(marks=inventory.marks.where(inside).to_bytes())
        self.void[np.flatnonzero(inside)[list(message.void)]] = True
        return control_pb2.CopyCompared()

    def good(self) -> Iterator[Versions]:
        return self.inventory.versions(~self.void)


class FormerCopies:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._stores: dict[int, MapStore] = {}
        self._generations: dict[int, int] = {}
        self._replicated: set[int] = set()
        self._comparisons: dict[tuple[str, int], Comparison] = {}
        core.room.counts(lambda: sum(store.bytes for store in self._stores.values()))

    def find(
        self, stores: Mapping[int, MapStore], generations: Mapping[int, int], *, replicated: bool
    ) -> None:
        """The copies in the folder: ``generations`` of the partitions of which it has whole copies;
        whether those of replicated maps are whole."""
        core, seconds = self._core, self._core.config.return_within
        if seconds <= 0:
            return
        self._generations = dict(generations)
        self._replicated = {m for m, s in stores.items() if s.schema.replicated and replicated}
        self._stores = {
            map_id: store
            for map_id, store in stores.items()
            if map_id in self._replicated or not store.schema.replicated
        }
        log.info(
            "former copies are kept",
            extra=fields(partitions=len(self._generations), maps=len(self._stores)),
        )
        core.room.measure()
        asyncio.get_running_loop().call_later(seconds, self.drop)

    def drop(self) -> None:
        """None of them is of use any more."""
        self._stores, self._generations, self._replicated = {}, {}, set()
        self._comparisons.clear()

    def partitions(self, view: View, asked: Iterable[int]) -> list[int]:
        """Those of which a former copy is here that a copy of ``view`` may come from: one of
        another generation has rows that never were in this one."""
        known = self._generations
        return sorted(p for p in asked if p in known and known[p] == view.generation(p))

    def replicated(self, map_id: int) -> bool:
        """Whether a former copy of this replicated map is here."""
        return map_id in self._replicated

    def __bool__(self) -> bool:
        return bool(self._stores)

    def on_view(self, view: View, me: int) -> None:
        """A partition that the view names as a copy of this member is one again."""
        if not self._generations:
            return
        served = frozenset(p for p in self._generations if me in view.replicas[p])
        for store in self._stores.values():
            if served and not store.schema.replicated:
                store.discard_partitions(served)
        for partition in served:
            del self._generations[partition]
        if not self._generations:
            self.drop()

    def fetched(self, map_id: int) -> None:
        """The replicated map is here."""
        self._replicated.discard(map_id)
        store = self._stores.get(map_id)
        if store is not None and store.schema.replicated:
            del self._stores[map_id]

    # --- comparing ----------------------------------------------------------------------------

    def extraction(self, schema: MapSchema, partitions: Iterable[int]) -> Extraction | None:
        """The copies of a map that are here. None: nothing in this form."""
        store = self._stores.get(schema.map_id)
        if store is None or store.schema.version != schema.version:
            return None
        return store.extraction(frozenset(partitions))

    def compare(self, transfer: str, map_id: int, inventory: Inventory) -> Comparison:
        """From now on. It takes the place of any other one."""
        found = Comparison(inventory, np.zeros(len(inventory), dtype=np.bool_))
        self._comparisons = {(transfer, map_id): found}
        return found

    def comparison(self, transfer: str, map_id: int) -> Comparison:
        """Raises TransientError: the transfer begins again."""
        found = self._comparisons.get((transfer, map_id))
        if found is None:
            raise TransientError(f"nothing of transfer {transfer} is compared any more")
        return found

    def end(self, transfer: str, map_id: int) -> None:
        self._comparisons.pop((transfer, map_id), None)
