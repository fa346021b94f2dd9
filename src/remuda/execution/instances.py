"""The instances of a query's fragments: where they are, and the owners of the partitions.

An instance is to a fragment what a member is: it owns some partitions, has one end of every stream
of its edges, and no other instance has its rows. So every plan that is right on several members is
right on several instances of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from remuda.query.ids import Endpoint


@dataclass(frozen=True)
class Sites:
    """``members[f]`` run fragment ``f``, each ``counts[f]`` instances of it (1 if not named)."""

    members: Mapping[int, tuple[int, ...]]
    counts: Mapping[int, int] = field(default_factory=dict)
    _endpoints: dict[int, tuple[Endpoint, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Those of the fragments that were asked for: each end of each edge asks."""

    def runs(self, fragment: int, member: int) -> bool:
        return member in self.members.get(fragment, ())

    def instances(self, fragment: int) -> int:
        return self.counts.get(fragment, 1)

    def endpoints(self, fragment: int) -> tuple[Endpoint, ...]:
        """All instances of a fragment, those of a member next to each other."""
        found = self._endpoints.get(fragment)
        if found is None:
            instances = range(self.counts.get(fragment, 1))
            members = self.members[fragment]
            found = tuple([Endpoint(member, each) for member in members for each in instances])
            self._endpoints[fragment] = found
        return found

    def places(self, fragment: int, owners: Sequence[int]) -> npt.NDArray[Any]:
        """For each partition, the place among the endpoints of the one that owns it.

        ``owners`` are the members that own the partitions. A member's partitions are dealt out to
        its instances in turn. A fragment may run on fewer members than own partitions: those of the
        others are dealt out to all endpoints, the same way by everyone who asks.
        """
        members = self.members[fragment]
        count = self.instances(fragment)
        first = {member: place * count for place, member in enumerate(members)}
        total = len(members) * count
        dealt = dict.fromkeys(members, 0)
        places: list[int] = []
        for partition, owner in enumerate(owners):
            if owner not in first:
                places.append(partition % total)
                continue
            places.append(first[owner] + dealt[owner] % count)
            dealt[owner] += 1
        return np.array(places, np.uint8 if total < 256 else np.uint16)

    def owned(self, fragment: int, endpoint: Endpoint, owners: Sequence[int]) -> frozenset[int]:
        """The partitions of one of several instances."""
        place = self.endpoints(fragment).index(endpoint)
        places = self.places(fragment, owners).tolist()
        return frozenset(
            partition
            for partition, owner in enumerate(owners)
            if owner == endpoint.member and places[partition] == place
        )
