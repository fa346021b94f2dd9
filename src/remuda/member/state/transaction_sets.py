"""The reads and writes of a transaction, and the share of them that concerns one partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import ColumnId, Expression
from remuda.transaction.states import TransactionId
from remuda.transaction.writes import Key, Row, Write, WriteSet

__all__ = ["Key", "PartWork", "ReadSet", "Row", "Scan", "Write", "WriteSet"]
"""``Key``, ``Row``, ``Write`` and ``WriteSet`` come from ``remuda.transaction.writes``."""


@dataclass(frozen=True, slots=True)
class Scan:
    """All entries of a map (or of some partitions) for which ``predicate`` holds; None: all.

    ``columns`` says which position in the schema each column id of the predicate stands for, as
    ``physical.TableScan.filter_columns`` does; ``parameters`` are the values of its Parameters.
    """

    map_id: int
    schema_version: int
    predicate: Expression | None = None
    columns: tuple[tuple[ColumnId, int], ...] = ()
    parameters: tuple[PhysicalValue, ...] = ()
    partitions: frozenset[int] | None = None


@dataclass(slots=True)
class ReadSet:
    """The reads at ``snapshot``: keys by map id (those that were absent, too), and scans. Written
    keys are validated against the same snapshot, read or not."""

    snapshot: int
    keys: dict[int, set[Key]] = field(default_factory=dict)
    scans: list[Scan] = field(default_factory=list)
    since: dict[tuple[int, Key], int] = field(default_factory=dict)
    """By map id and key: when those of ``keys`` were read that were not read at ``snapshot``."""


class PartWork(NamedTuple):
    """The work of one part. ``snapshot`` 0: nothing is validated."""

    snapshot: int
    writes: tuple[Write, ...] = ()
    reads: tuple[tuple[int, Key], ...] = ()
    """Map id and key."""
    scans: tuple[Scan, ...] = ()
    owner: TransactionId | None = None
    """Whose key locks do not stand in its way (``member.transactions.key_locks``)."""
    since: tuple[int, ...] = ()
    """When each of ``reads`` was read; empty: all at ``snapshot``."""

    @property
    def map_ids(self) -> frozenset[int]:
        found = set()
        for write in self.writes:
            found.add(write.map_id)
        for map_id, _ in self.reads:
            found.add(map_id)
        for scan in self.scans:
            found.add(scan.map_id)
        return frozenset(found)
