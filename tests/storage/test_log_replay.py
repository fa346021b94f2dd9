"""What a log makes of an image: cuts, moments, the end; from where the index says it suffices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from log_histories import History
from tests.storage import log_index
from tests.storage.log_index import IndexBuilder, LogIndex

from remuda.errors import DataCorrupted, InputError
from remuda.storage.format import records as log
from remuda.storage.log.reader import Entry
from remuda.storage.log.replay import (
    Ending,
    Goal,
    JobCommit,
    PartCommit,
    Replay,
    ToCut,
    ToEnd,
    ToMoment,
    find_cut,
    last_cut,
)

SEEDS = 150


def replayed(
    entries: list[Entry], above: int, goal: Goal
) -> tuple[dict[log.Unit, tuple[int, object]], Ending]:
    replay = Replay(above, goal)
    found: dict[log.Unit, tuple[int, object]] = {}
    for entry in entries:
        if replay.done:
            break
        step = replay.on_entry(entry)
        match step:
            case PartCommit(part=part, timestamp=at, changes=changes):
                assert part not in found, "twice"
                found[part] = (at, changes)
            case JobCommit(job=job, timestamp=at, rows=rows):
                assert job not in found, "twice"
                found[job] = (at, [each.number for each in rows])
    return found, replay.finish()


def test_the_end_of_a_log_holds_every_commit() -> None:
    for seed in range(SEEDS):
        history = History(seed)
        found, ending = replayed(history.entries, 0, ToEnd())
        assert found == history.commits
        in_doubt = {each.part for each in ending.in_doubt}
        in_doubt |= {each.prepared.job for each in ending.jobs_in_doubt}
        assert in_doubt == set(history.prepared)
        assert ending.highest <= history.clock


def test_cuts_hold_what_was_committed_at_or_below_them() -> None:
    cuts = 0
    for seed in range(SEEDS):
        history = History(seed)
        for version, timestamp in history.finished.items():
            goal = find_cut(history.entries, version)
            assert goal is not None
            found, _ = replayed(history.entries, 0, goal)
            assert found == {u: c for u, c in history.commits.items() if c[0] <= timestamp}
            cuts += 1
    assert cuts > SEEDS


def test_a_cut_that_was_not_finished_is_none() -> None:
    history = next(h for h in map(History, range(SEEDS)) if h.local and not h.local.ended)
    assert find_cut(history.entries, history.local.version) is None
    assert find_cut(history.entries, 99) is None


def test_moments_that_the_log_covers() -> None:
    covered = refused = 0
    for seed in range(SEEDS):
        history = History(seed)
        for moment in range(1, history.clock + 3, 5):
            try:
                found, _ = replayed(history.entries, 0, ToMoment(moment))
            except InputError:
                refused += 1
                continue
            assert found == {u: c for u, c in history.commits.items() if c[0] <= moment}
            covered += 1
    assert covered > 1000
    assert refused > 100


def summaries_of(entries: list[Entry], size: int = 10) -> LogIndex:
    builder, found = IndexBuilder(1), []
    for number, start in enumerate(range(0, len(entries), size), 1):
        for entry in entries[start : start + size]:
            builder.observe(entry.sequence, entry.record)
        last = entries[start : start + size][-1].sequence
        found.append(builder.seal(number, start + 1, last))
    return LogIndex(found)


@pytest.mark.parametrize("remembered", [100_000, 3])
def test_increments_begin_where_the_index_says(
    remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_index, "RECENT_UNITS", remembered)
    later = 0
    for seed in range(SEEDS):
        history = History(seed)
        index = summaries_of(history.entries)
        assert {v for v in range(99) if index.cut(v)} == set(history.finished)
        assert last_cut(history.entries) == max(history.finished, default=0)
        for version, timestamp in history.finished.items():
            cut = index.cut(version)
            assert cut is not None
            assert cut.timestamp == timestamp
            assert cut.needs <= cut.start < cut.finish
            found, _ = replayed(history.entries[cut.needs - 1 :], timestamp, ToEnd())
            assert found == {u: c for u, c in history.commits.items() if c[0] > timestamp}
            later += cut.needs > 1
            for following, at in history.finished.items():
                if following > version:
                    goal = find_cut(history.entries, following)
                    found, _ = replayed(history.entries[cut.needs - 1 :], timestamp, goal)
                    inside = {u: c for u, c in history.commits.items() if timestamp < c[0] <= at}
                    assert found == inside
    assert later > SEEDS // 4


def test_checkpoints_bound_replay() -> None:
    for seed in range(SEEDS):
        history = History(seed)
        builder = IndexBuilder(1)
        for entry in history.entries:
            builder.observe(entry.sequence, entry.record)
            if isinstance(entry.record, log.Closed):
                timestamp = entry.record.timestamp
                start = builder.replay_from(timestamp, entry.sequence + 1)
                found, ending = replayed(history.entries[start - 1 :], timestamp, ToEnd())
                assert found == {u: c for u, c in history.commits.items() if c[0] > timestamp}
                assert {each.part for each in ending.in_doubt} == {
                    unit for unit in history.prepared if isinstance(unit, log.PartId)
                }


def test_a_log_that_contradicts_its_cut_is_refused() -> None:
    refused = 0
    for seed in range(SEEDS):
        history = History(seed)
        for version in history.finished:
            goal = find_cut(history.entries, version)
            assert goal is not None
            for side in ("before", "after"):
                units = [u for u in getattr(goal, side) if isinstance(u, log.PartId)]
                if units:
                    wrong = replace(goal, **{side: getattr(goal, side) - {units[0]}})
                    with pytest.raises(DataCorrupted, match="disagree"):
                        replayed(history.entries, 0, wrong)
                    refused += 1
    assert refused > 20


def test_records_out_of_order_or_twice_are_refused() -> None:
    entries = History(1).entries
    for wrong in ([*entries[:3], entries[2]], [entries[0], entries[2]], entries[::-1]):
        with pytest.raises(DataCorrupted, match="follows record"):
            replayed(wrong, 0, ToEnd())


def test_a_commit_without_its_changes_is_refused() -> None:
    part = log.PartId(1, 1, 1)
    entries = [Entry(5, 1, 0, log.Committed(part, 10, (1,), None))]
    with pytest.raises(DataCorrupted, match="not in the log"):
        replayed(entries, 0, ToEnd())
    assert replayed(entries, 10, ToEnd())[0] == {}, "the image has it"
    with pytest.raises(DataCorrupted, match="not prepared"):
        replayed([Entry(5, 1, 0, log.JobCommitted("j", 10))], 0, ToEnd())


def test_gaps_are_found() -> None:
    builder = IndexBuilder(1)
    for number, record in enumerate(
        [log.PartitionTaken(2, 5, 9), log.PartitionReady(2, 5, False), log.PartitionLeft(2, 6)], 1
    ):
        builder.observe(number, record)
    index = LogIndex([builder.seal(1, 1, 3)])
    (summary,) = index.summaries
    assert summary.gaps == (2,)
    assert [(move.sequence, move.timestamp) for move in summary.moves] == [(1, 9)]


def test_partitions_that_came_are_replayed_by_who_answers_for_them() -> None:
    records = [
        log.CutStart(1, 50),
        log.PartitionTaken(2, 5, 30),
        log.CopiedRows(2, 5, 1, 1, b"rows"),
        log.PartitionTaken(2, 6, 35),
        log.PartitionReady(2, 5, True),
        log.CutFinish(1, frozenset(), frozenset()),
    ]
    entries = [Entry(number, 1, 0, record) for number, record in enumerate(records, 1)]
    goal = find_cut(entries, 1)
    assert goal is not None

    def steps(goal: ToCut) -> list[object]:
        replay = Replay(0, goal, {5})
        found = [step for entry in entries if (step := replay.on_entry(entry)) is not None]
        assert replay.finish().view == 2
        return found

    assert steps(goal) == [records[1], records[2], records[4]]
    assert steps(replace(goal, limit=30)) == steps(goal)
    with pytest.raises(InputError, match="partition 5 came to this log at 30"):
        steps(replace(goal, limit=29))


def test_a_cut_has_a_text() -> None:
    goal = ToCut(3, 100, 1, 2, frozenset(), frozenset())
    assert [str(each) for each in (goal, ToMoment(5), ToEnd())] == [
        "cut 3 at 100",
        "moment 5",
        "the end of the log",
    ]
