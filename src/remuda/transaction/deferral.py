"""The foreign keys of a transaction that are checked by its commit in place of its statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from remuda.datatypes.schema import ForeignKey, MapSchema


@dataclass(frozen=True, slots=True)
class Deferral:
    """``every``: the last SET CONSTRAINTS ALL of the transaction (None: there was none); ``named``:
    later ones of single foreign keys, by map id and name."""

    every: bool | None = None
    named: Mapping[tuple[int, str], bool] = field(default_factory=dict)

    def of_all(self, deferred: bool) -> Deferral:
        return Deferral(deferred)

    def of(self, keys: Collection[tuple[int, str]], deferred: bool) -> Deferral:
        return replace(self, named={**self.named, **dict.fromkeys(keys, deferred)})

    def defers(self, child: MapSchema, key: ForeignKey) -> bool:
        """Whether the statement that breaks it may go on."""
        if not key.deferrable:
            return False
        said = self.named.get((child.map_id, key.name), self.every)
        return key.deferred if said is None else said


AS_DEFINED: Final = Deferral()
