"""The reads that a part names beside its writes."""

from __future__ import annotations

from remuda.member.state.transaction_sets import Write
from remuda.member.transactions.transactions import unwritten


def test_reads_that_writes_check_are_left_out_and_older_ones_stay() -> None:
    writes = [Write(1, 1, ("a",), ("a", 5)), Write(1, 1, ("b",), None)]
    reads = [(1, ("a",)), (1, ("b",)), (1, ("c",)), (2, ("a",))]
    assert unwritten(reads, writes, {}, 100) == [(1, ("c",)), (2, ("a",))]
    # Read before the snapshot, at which a write is checked: the read is stricter.
    since = {(1, ("a",)): 90, (1, ("b",)): 110}
    assert unwritten(reads, writes, since, 100) == [(1, ("a",)), (1, ("c",)), (2, ("a",))]
