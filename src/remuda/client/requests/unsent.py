"""The reads and puts of a transaction that the client has made by itself; its member learns of it
with the commit, or before the next request that depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.client.requests.requests import MapRequests
from remuda.client.values.objects import PhysicalRow
from remuda.errors import RemudaError
from remuda.rpc.messages import user_pb2
from remuda.transaction.own_writes import canonical_key

BYTES_MAX: Final = 32 * 1024
"""Of rows that wait; a transaction that puts more sends each of them."""
READS_MAX: Final = 256


class Unsent:
    """Rows and keys in their packed form, by map; no two rows of one key."""

    __slots__ = ("_puts", "_reads", "_size", "failed", "full", "maps")

    def __init__(self) -> None:
        self.maps: dict[tuple[int, int], MapRequests] = {}
        """By map id and schema version."""
        self._puts: dict[tuple[int, int], dict[PhysicalRow, bytes]] = {}
        self._reads: dict[tuple[int, int], dict[bytes, None]] = {}
        self._size = 0
        self.full = False
        """Whether so much was put that nothing waits any more."""
        self.failed: RemudaError | None = None
        """Why something did not reach the member: only a rollback is possible then."""

    @property
    def puts(self) -> bool:
        return bool(self._puts)

    @property
    def reads(self) -> bool:
        return bool(self._reads)

    def put(self, requests: MapRequests, key: PhysicalRow, row: PhysicalRow) -> None:
        """Raises DataErrors for a row that cannot be packed."""
        packed = requests.pack_row(row)
        rows = self._puts.setdefault(self._known(requests), {})
        rows[canonical_key(key)] = packed
        self._size += len(packed)
        self.full = self._size > BYTES_MAX

    def find(self, requests: MapRequests, key: PhysicalRow) -> PhysicalRow | None:
        """The row that waits for ``key``, as it would be read."""
        schema = requests.schema
        rows = self._puts.get((schema.map_id, schema.version))
        packed = None if rows is None else rows.get(canonical_key(key))
        return None if packed is None else requests.unpack_row(packed)

    def read(self, requests: MapRequests, key: PhysicalRow) -> None:
        self._reads.setdefault(self._known(requests), {})[requests.pack_key(key)] = None

    @property
    def many_reads(self) -> bool:
        return sum(map(len, self._reads.values())) >= READS_MAX

    def _known(self, requests: MapRequests) -> tuple[int, int]:
        known = (requests.schema.map_id, requests.schema.version)
        self.maps[known] = requests
        return known

    def take_puts(self) -> list[tuple[MapRequests, list[bytes]]]:
        """All rows that wait, by map; none of them waits any more."""
        puts, self._puts = self._puts, {}
        return [(self.maps[known], list(rows.values())) for known, rows in puts.items()]

    def take_reads(self) -> list[tuple[MapRequests, list[bytes]]]:
        """The same for keys."""
        reads, self._reads = self._reads, {}
        return [(self.maps[known], list(keys)) for known, keys in reads.items()]

    def forget_puts(self) -> None:
        """They are rolled back, and so is what has failed."""
        self._puts, self.failed = {}, None

    def fill(self, end: user_pb2.TransactionEnd) -> None:
        """With everything, which is kept: a member may refuse it."""
        for known, keys in self._reads.items():
            _name(end.reads.add(), self.maps[known]).keys.extend(keys)
        for known, rows in self._puts.items():
            _name_put(end.puts.add(), self.maps[known], list(rows.values()))


def _name(message: user_pb2.KeysRequest, requests: MapRequests) -> user_pb2.KeysRequest:
    schema = requests.schema
    message.map, message.map_id = schema.name, schema.map_id
    message.schema_version = schema.version
    return message


def _name_put(message: user_pb2.PutRequest, requests: MapRequests, rows: Sequence[bytes]) -> None:
    schema = requests.schema
    message.map, message.map_id = schema.name, schema.map_id
    message.schema_version = schema.version
    message.rows.extend(rows)
