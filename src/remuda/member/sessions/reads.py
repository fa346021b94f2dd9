"""The reads of a serializable transaction: keys, and scans with their predicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from remuda.datatypes.values import PhysicalValue
from remuda.execution.evaluate.lookup_keys import lookup_keys
from remuda.member.queries.query_start import QueryStart
from remuda.member.state.transaction_sets import Key, ReadSet, Scan
from remuda.plan.expression import Expression, Parameter, walk
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.physical import (
    KeyLookup,
    LookupJoin,
    Physical,
    PhysicalPlan,
    TableScan,
)
from remuda.transaction.own_writes import canonical_key

KEYS_MAX: Final = 100_000
"""A transaction that reads more keys of a map counts as one that has read all of it."""
SCANS_MAX: Final = 1_000
"""The same for scans with different predicates."""
_ALL: Final[Mapping[int, frozenset[int]]] = {}


class OwnReads:
    """Grows until the transaction ends; bounded by the two limits above, per map."""

    def __init__(self) -> None:
        self.keys: dict[int, set[Key]] = {}
        self._versions: dict[int, int] = {}
        self._scans: dict[int, dict[Scan, None]] = {}
        self._whole: set[int] = set()
        """Maps of which everything counts as read."""
        self._latest: list[tuple[int, set[Key] | Scan | None]] | None = None
        """The keys, or the scan, that each read has added which may be taken back."""

    def begin(self) -> None:
        """The reads from now on may be taken back."""
        self._latest = []

    def take_back(self) -> bool:
        """Forget the reads since ``begin``: nobody has used their rows. False: it is not known any
        more which these are."""
        latest, self._latest = self._latest, None
        if latest is None:
            return False
        for map_id, added in latest:
            if isinstance(added, set):
                self.keys[map_id] -= added
            elif added is not None:
                del self._scans[map_id][added]
        return True

    def add_keys(self, map_id: int, schema_version: int, keys: Sequence[Key]) -> None:
        """Keys that were looked up, whether they were there or not."""
        if map_id in self._whole:
            return
        self._versions[map_id] = schema_version
        known = self.keys.setdefault(map_id, set())
        read = set(map(canonical_key, keys))
        if self._latest is not None:
            self._latest.append((map_id, read - known))
        known.update(read)
        if len(known) > KEYS_MAX:
            self._all_of(map_id, schema_version)

    def add_scan(self, scan: Scan) -> None:
        if scan.map_id in self._whole:
            return
        scans = self._scans.setdefault(scan.map_id, {})
        if self._latest is not None:
            self._latest.append((scan.map_id, None if scan in scans else scan))
        scans[scan] = None
        whole = scan.predicate is None and scan.partitions is None
        if whole or len(scans) > SCANS_MAX:
            self._all_of(scan.map_id, scan.schema_version)

    def _all_of(self, map_id: int, schema_version: int) -> None:
        self._latest = None
        self._whole.add(map_id)
        self.keys.pop(map_id, None)
        self._scans[map_id] = {Scan(map_id, schema_version): None}

    def add_query(self, start: QueryStart) -> None:
        """Everything that the fragments of a query read."""
        self.add_plan(start.plan, start.parameters, start.partitions)

    def add_plan(
        self,
        plan: PhysicalPlan,
        parameters: tuple[PhysicalValue, ...],
        partitions: Mapping[int, frozenset[int]] = _ALL,
    ) -> None:
        """``partitions``: by fragment, those that it reads, if not all."""
        for fragment in plan.fragments:
            for node in fragment.nodes:
                self._add_node(node, partitions.get(fragment.id), parameters)

    def _add_node(
        self,
        node: Physical,
        partitions: frozenset[int] | None,
        parameters: tuple[PhysicalValue, ...],
    ) -> None:
        match node:
            case TableScan():
                self.add_scan(_scan_of(node, partitions, parameters))
            case KeyLookup():
                keys = list(lookup_keys(node.keys, parameters))
                self.add_keys(node.map_id, node.schema_version, keys)
            case LookupJoin():  # which keys it looks for is known at its members only
                self.add_scan(Scan(node.map_id, node.schema_version))

    def as_set(self, snapshot: int) -> ReadSet:
        keys: dict[int, set[Key]] = {}
        for map_id, found in self.keys.items():
            keys[map_id] = set(found)
        scans: list[Scan] = []
        for scanned in self._scans.values():
            scans += scanned
        return ReadSet(snapshot, keys, scans)

    @property
    def count(self) -> int:
        scans = sum(len(scans) for scans in self._scans.values())
        return scans + sum(len(keys) for keys in self.keys.values())


def _scan_of(
    node: TableScan, partitions: frozenset[int] | None, parameters: tuple[PhysicalValue, ...]
) -> Scan:
    predicate = node.filter
    if predicate is None or is_volatile(predicate):
        return Scan(node.map_id, node.schema_version, partitions=partitions)
    used = parameters if _has_parameters(predicate) else ()
    columns = node.filter_columns
    return Scan(node.map_id, node.schema_version, predicate, columns, used, partitions)


def _has_parameters(expression: Expression) -> bool:
    return any(isinstance(part, Parameter) for part in walk(expression))
