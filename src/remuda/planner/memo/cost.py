"""The cost of plans: the time of the slowest member, in units of one scanned row (about 4 ns).

cost = cpu + 10 x network. The weights follow the measurements of single kernels: a hash table
takes about 70 ns per built row and 20 ns per probed row, a sort about 200 ns per row, hashing,
encoding, moving and decoding a row of 32 bytes about 40 ns. Starting one more exchange costs a
message round between members, about 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from remuda.datatypes.sql import SqlType
from remuda.plan.physical import Distribution, ExchangeKind, Placement

SCAN_START = 5_000.0
"""A scan calls a few dozen kernels, however few rows there are."""
SCAN = 1.0
FILTER = 0.8
PROJECT = 0.5
KEY_LOOKUP = 250.0
LOOKUP_KEY = 1_000.0
"""Reading one row of a lookup join by key; no lookup costs less."""
BUILD = 17.0
PROBE = 5.0
MATCH = 1.0
MERGED_KEY = 14.0
MERGED_KEYS = 9.0
MERGED_TEXT = 4.0
"""A row of either side of a merge join by one number, several keys, and texts: 38, 44, 115 ns. As
hash joins of all keys are reckoned alike, the last two say how much less than these they take."""
MERGE_START = 2_000.0
"""It goes forward by steps, of two dozen kernels each."""
LOOP = 1.0
AGGREGATE_ROW = 6.0
AGGREGATE_GROUP = 20.0
STREAM_ROW = 6.0
"""Groups of sorted rows: as much work per row as by hash, but hardly any per group."""
STREAM_GROUP = 1.0
SORT = 2.5
TOP = 2.0
MERGE = 2.0
NETWORK = 10.0
BYTES_PER_UNIT = 32.0
EXCHANGE_START = 25_000.0


@dataclass(frozen=True, slots=True)
class CostModel:
    members: int

    def on_one(self, rows: float, distribution: Distribution) -> float:
        """How many of ``rows`` the busiest member has."""
        if distribution.placement is Placement.PARTITIONED:
            return rows / self.members
        return rows

    def exchange(
        self, kind: ExchangeKind, rows: float, width: float, source: Distribution
    ) -> float:
        """``rows`` of ``width`` bytes in all; the busiest member's share of moving them."""
        members = self.members
        spread = source.placement is Placement.PARTITIONED
        others = (members - 1) / members
        match kind:
            case ExchangeKind.UNICAST:
                moved = rows * others / (members if spread else 1)
            case ExchangeKind.BROADCAST:
                moved = rows * (others if spread else members - 1)
            case ExchangeKind.GATHER | ExchangeKind.MERGE:
                moved = rows * others
        cost = EXCHANGE_START + NETWORK * moved * max(width, 8.0) / BYTES_PER_UNIT
        return cost + MERGE * rows if kind is ExchangeKind.MERGE else cost

    def hash_join(self, probe: float, build: float, matches: float) -> float:
        return BUILD * build + PROBE * probe + MATCH * matches

    def merge_join(
        self, left: float, right: float, matches: float, keys: Sequence[SqlType]
    ) -> float:
        if any(type_.is_text for type_ in keys):
            each = MERGED_TEXT
        else:
            each = MERGED_KEY if len(keys) == 1 else MERGED_KEYS
        return MERGE_START + each * (left + right) + MATCH * matches

    def loop_join(self, left: float, right: float) -> float:
        return LOOP * left * max(right, 1.0) + MATCH * right

    def aggregate(self, rows: float, groups: float) -> float:
        return AGGREGATE_ROW * rows + AGGREGATE_GROUP * groups

    def streaming_aggregate(self, rows: float, groups: float) -> float:
        return STREAM_ROW * rows + STREAM_GROUP * groups

    def sort(self, rows: float, top: float | None) -> float:
        if top is not None:
            return TOP * rows + SORT * top * log2(top + 2)
        return SORT * rows * log2(rows + 2)
