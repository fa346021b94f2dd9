"""Cuts of the simulated cluster, written as records of the log and replayed: the same commits as
``commits_of_cut`` finds, from the log's beginning and from where the index says it suffices."""

from __future__ import annotations

import cut_model as cut
import pytest
from cluster_of_copies import PARTITIONS, Work, run
from cluster_with_cuts import ClusterWithCuts, MemberWithCuts, Restorable
from tests.storage.log_index import CutEntry, IndexBuilder

from remuda.errors import InputError
from remuda.storage.format import records as log
from remuda.storage.format.record_codec import decode_record, encode_record
from remuda.storage.log.reader import Entry
from remuda.storage.log.replay import PartCommit, Replay, ToCut, ToMoment, find_cut
from remuda.transaction.parts import Address

SEEDS = 60


def part_id(address: Address) -> log.PartId:
    transaction, partition = address
    return log.PartId(transaction.began, transaction.near, partition)


def record_of(logged: object) -> log.Record:
    match logged:
        case cut.Committed(part, timestamp, Work() as work):
            changes = tuple(
                log.Change(1, 1, str(key).encode(), str(values).encode())
                for key, values in work.writes.items()
            )
            return log.Committed(part_id(part), timestamp, (part[1],), changes)
        case cut.LogStart(version, timestamp):
            return log.CutStart(version, timestamp)
        case cut.LogFinish(version, before, after):
            return log.CutFinish(
                version, frozenset(map(part_id, before)), frozenset(map(part_id, after))
            )
    raise AssertionError(logged)


def entries_of(member: MemberWithCuts) -> list[Entry]:
    records = [decode_record(*encode_record(record_of(each))) for each in member.log]
    return [Entry(number, 1, 0, record) for number, record in enumerate(records, 1)]


def replayed(entries: list[Entry], replay: Replay) -> list[PartCommit]:
    steps = [step for entry in entries if not replay.done and (step := replay.on_entry(entry))]
    replay.finish()
    return [step for step in steps if isinstance(step, PartCommit)]


def index_of(entries: list[Entry]) -> dict[int, CutEntry]:
    builder = IndexBuilder(1)
    for entry in entries:
        builder.observe(entry.sequence, entry.record)
    return {each.version: each for each in builder.seal(1, 1, len(entries)).cuts}


def check(cluster: ClusterWithCuts, found: Restorable, earlier: Restorable | None) -> int:
    compared = 0
    for member in cluster.members.values():
        mine = {p for p in range(PARTITIONS) if found.view.primary(p) == member.number}
        if not mine:
            continue
        assert isinstance(member, MemberWithCuts)
        expected = {
            part_id(commit.part)
            for commit in cut.commits_of_cut(member.log, found.version) or ()
            if commit.part[1] in mine
        }
        entries = entries_of(member)
        goal = find_cut(entries, found.version)
        assert isinstance(goal, ToCut)
        whole = replayed(entries, Replay(0, goal, mine))
        assert {step.part for step in whole} == expected
        assert [step.sequence for step in whole] == sorted({step.sequence for step in whole})
        compared += len(whole)
        index = index_of(entries)
        if earlier is None or earlier.version not in index:
            continue
        start = index[earlier.version].needs
        increment = replayed(entries[start - 1 :], Replay(earlier.timestamp, goal, mine))
        assert increment == [step for step in whole if step.timestamp > earlier.timestamp]
        middle = (earlier.timestamp + found.timestamp) // 2
        part_way = replayed(entries, Replay(0, _until(goal, middle), mine))
        assert part_way == [step for step in whole if step.timestamp <= middle]
    return compared


def _until(goal: ToCut, moment: int) -> ToCut:
    return ToCut(
        goal.version, goal.timestamp, goal.start, goal.finish, goal.before, goal.after, moment
    )


def test_cuts_are_replayed_from_records() -> None:
    compared = cuts = transactions = 0
    for seed in range(SEEDS):
        cluster = run(seed, ClusterWithCuts)
        assert isinstance(cluster, ClusterWithCuts)
        earlier = None
        for found in cluster.cuts.restorable:
            compared += check(cluster, found, earlier)
            earlier = found
        cuts += len(cluster.cuts.restorable)
        transactions += len(cluster.commit_times)
    assert compared > SEEDS * 10
    assert cuts > SEEDS
    assert transactions > 10 * SEEDS


@pytest.mark.soak
def test_cuts_of_many_runs_are_replayed_from_records() -> None:
    for seed in range(SEEDS, 10_000):
        cluster = run(seed, ClusterWithCuts)
        assert isinstance(cluster, ClusterWithCuts)
        earlier = None
        for found in cluster.cuts.restorable:
            check(cluster, found, earlier)
            earlier = found


def test_a_moment_that_the_log_does_not_reach_is_refused() -> None:
    replay = Replay(0, ToMoment(50))
    replay.on_entry(Entry(1, 1, 0, log.Closed(49)))
    with pytest.raises(InputError, match="does not reach moment 50"):
        replay.finish()
    replay.on_entry(Entry(2, 1, 0, log.Closed(50)))
    assert replay.finish().closed == 50
