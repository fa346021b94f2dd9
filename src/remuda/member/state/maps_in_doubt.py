"""Maps with writes in doubt: their transaction has a part in partitions that are unreachable, so
readers would wait until these come back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Doubts:
    """The loop calls ``note``; any thread calls ``at_or_below``, which reads what is replaced as a
    whole."""

    def __init__(self) -> None:
        self._lowest: Mapping[str, Mapping[int, int]] = MappingProxyType({})

    def note(self, kind: str, lowest: Mapping[int, int]) -> frozenset[int]:
        """By map, the lowest prepare timestamp of the writes of a kind that are in doubt here. The
        maps that had none before."""
        fresh = frozenset(lowest.keys() - self._lowest.get(kind, {}).keys())
        self._lowest = MappingProxyType({**self._lowest, kind: dict(lowest)})
        return fresh

    def at_or_below(self, map_id: int, at: int) -> bool:
        """Whether a reader at ``at`` would wait for something in doubt."""
        return any(map_id in lowest and lowest[map_id] <= at for lowest in self._lowest.values())
