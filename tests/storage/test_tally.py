"""The rows between two cuts are counted as they were committed, wherever their records stand."""

from __future__ import annotations

import json

import pytest
from snapshot_grid import MAP, NAME, PARTITIONS, Grid, Member, filled

from remuda.errors import InputError
from remuda.storage.format import records as log
from remuda.storage.log.replay import find_cut
from remuda.storage.log.tally import Stretch, Tally, tally
from remuda.storage.snapshot.chain import load

SEEDS = 8


def counted(grid: Grid, member: Member, parent: int, version: int) -> dict[int, Tally]:
    before = load(grid.store, NAME).manifests[parent].log_of(member.identity.member.hex())
    assert before is not None
    cut = find_cut(member.opened.reader.entries(), version)
    assert cut is not None
    stretch = Stretch(before.needs, grid.cuts[parent], cut, frozenset(member.partitions))
    return tally(stretch, member.opened.reader.entries(before.needs), rows_in)


def rows_in(record: log.StagedRows | log.StagedKeys) -> int:
    """As the grid writes them; those of a task that was run again must not count."""
    assert isinstance(record, log.StagedRows)
    return 1_000_000 if record.task == "lost" else len(json.loads(record.rows))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_increment_counts_the_commits_between_the_timestamps_of_its_cuts(seed: int) -> None:
    grid = filled(seed)
    found = 0
    for parent in range(1, grid.version):
        low, high = grid.cuts[parent], grid.cuts[parent + 1]
        parts = [counted(grid, member, parent, parent + 1) for member in grid.members]
        written = [row is not None for at, _, _, row in grid.truth if low < at <= high]
        assert sum(each[MAP].put for each in parts if each) == written.count(True)
        assert sum(each[MAP].removed for each in parts if each) == written.count(False)
        found += len(written)
    assert found > PARTITIONS


def test_two_increments_count_together_what_one_over_both_counts() -> None:
    grid = filled(3)
    for member in grid.members:
        one, two, both = (counted(grid, member, *cuts) for cuts in ((1, 2), (2, 3), (1, 3)))
        for kind in (0, 1):
            parts = [each.get(MAP, Tally(0, 0))[kind] for each in (one, two)]
            assert both.get(MAP, Tally(0, 0))[kind] == sum(parts)


def test_entries_of_some_partitions_are_all_but_the_parts_of_others() -> None:
    grid = filled(2)
    for member in grid.members:
        reader, wanted = member.opened.reader, frozenset(member.partitions[:1])
        every = list(reader.entries(5))
        kept = [
            each
            for each in every
            if not isinstance(each.record, log.Prepared | log.Committed | log.RolledBack)
            or each.record.part.partition in wanted
        ]
        assert list(reader.entries(5, partitions=wanted)) == kept
        assert 0 < len(kept) < len(every)
        cut = find_cut(every, grid.version)
        assert cut is not None
        stretch = Stretch(1, 0, cut, wanted)
        whole = tally(stretch, reader.entries(1), rows_in)
        assert tally(stretch, reader.entries(1, partitions=wanted), rows_in) == whole


def test_a_log_that_ends_before_the_cut_is_not_counted() -> None:
    grid = filled(1)
    member = grid.members[0]
    cut = find_cut(member.opened.reader.entries(), grid.version)
    assert cut is not None
    stretch = Stretch(1, 0, cut, frozenset(member.partitions))
    entries = [each for each in member.opened.reader.entries() if each.sequence < cut.finish]
    with pytest.raises(InputError, match="does not reach"):
        tally(stretch, entries, rows_in)
