"""The log over crashes of the process and of the machine; mutations of its rules are noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from log_damage import silent_losses
from log_records import commit
from log_runs import FOLDER, IDENTITY, SEGMENT_SIZE, Run, Violation
from sim_disk import BYTES, GRAINS, Grain

from remuda.errors import DataCorrupted, DiskFull, LimitExceeded, ResourceError
from remuda.storage.format import segment
from remuda.storage.log import files, reader
from remuda.storage.log.files import LogFiles, OpenedLog
from remuda.storage.log.writer import Flush, LogWriter, SyncFolder, SyncMode, SyncSegment

SEEDS = 200
MUTANT_SEEDS = 300


@pytest.mark.parametrize("grain", GRAINS, ids=str)
@pytest.mark.parametrize("mode", SyncMode)
def test_seeds(mode: SyncMode, grain: Grain) -> None:
    crashes = torn = records = extended = into_zeros = 0
    seeds = SEEDS if (mode, grain) == (SyncMode.FSYNC, BYTES) else SEEDS // 4
    for seed in range(seeds):
        run = Run(seed, mode, grain)
        run.run()
        crashes, torn, records = crashes + run.crashes, torn + run.torn, records + run.acknowledged
        extended, into_zeros = extended + run.extended, into_zeros + run.into_zeros
    assert records > 10 * seeds
    if mode is SyncMode.FSYNC:
        assert extended > seeds
        assert into_zeros > seeds // 4
    if mode is not SyncMode.NONE:
        assert crashes > seeds // 2
        assert torn > seeds // 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_seeds() -> None:
    for seed in range(1000, 11_000):
        mode = [SyncMode.FSYNC, SyncMode.OS, SyncMode.NONE][seed % 3]
        Run(seed, mode, GRAINS[seed // 3 % 3]).run()


# --- mutations ----------------------------------------------------------------------------------


def caught(make: Callable[[int], Run]) -> bool:
    for seed in range(MUTANT_SEEDS):
        try:
            make(seed).run()
        except (Violation, DataCorrupted):
            return True
    return False


def without(*kinds: type[object]) -> Callable[[int], Run]:
    class Lazy(Run):
        def carry_out(self, files: LogFiles, flush: Flush) -> None:
            kept = tuple(each for each in flush.operations if not isinstance(each, kinds))
            files.carry_out(replace(flush, operations=kept))

    return Lazy


def test_an_acknowledgement_before_the_sync_is_caught() -> None:
    assert caught(without(SyncSegment))


def test_names_that_are_not_synced_are_caught() -> None:
    assert caught(without(SyncFolder))


def test_syncing_only_the_last_segment_is_caught() -> None:
    class Lazy(Run):
        def carry_out(self, files: LogFiles, flush: Flush) -> None:
            syncs = [each for each in flush.operations if isinstance(each, SyncSegment)]
            kept = tuple(
                each for each in flush.operations if each not in syncs or each == syncs[-1]
            )
            files.carry_out(replace(flush, operations=kept))

    assert caught(Lazy)


def test_zeros_that_stay_in_a_segment_that_another_follows_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LogFiles, "_complete", lambda self: None)
    assert caught(Run)


def test_a_torn_tail_that_stays_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFiles, "cut", lambda self, tail: None)
    assert caught(Run)


def test_recovered_records_that_are_not_synced_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process before has written, and the disk does not have yet, was read and believed;
    then the power goes."""

    class ThenPower(Run):
        def recover(self) -> OpenedLog:
            opened = super().recover()
            if opened.tail.lost == 0:
                self.disk.lose_power()
                self.open_again()
            return opened

        def open_again(self) -> None:
            again = files.open_log(
                self.disk, FOLDER, IDENTITY, self.mode, segment_size=SEGMENT_SIZE
            )
            if again.tail.end.sequence < self.acknowledged:
                raise Violation("what was recovered is gone")

    for seed in range(SEEDS // 4):
        ThenPower(seed, SyncMode.OS).run()
    monkeypatch.setattr(LogFiles, "cut", lambda self, tail: None)
    assert caught(lambda seed: ThenPower(seed, SyncMode.OS))


def test_a_frame_that_tells_too_much_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a torn tail is taken for damage."""

    def boast(salt: int, sequence: int, durable: int, kind: int, payload: bytes) -> bytes:
        return segment.encode_frame(salt, sequence, sequence - 1, kind, payload)

    monkeypatch.setattr("remuda.storage.log.writer.encode_frame", boast)
    assert caught(Run)


def test_checksums_that_are_ignored_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(data: bytes, offset: int, salt: int) -> segment.Frame | None:
        start = offset + segment.FRAME_OVERHEAD
        if start > len(data) or not data.startswith(segment.FRAME_MAGIC, offset):
            return None
        size, sequence, durable, kind = segment._frame.unpack_from(data, offset + 6)
        end = start + size
        if end > len(data):
            return None
        return segment.Frame(offset, end, 0, sequence, durable, kind, data[start:end])

    monkeypatch.setattr(reader, "read_frame", trusting)
    assert caught(Run)


def test_a_tail_that_is_cut_at_any_bad_frame_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records behind a hole are given up, acknowledged or not: no crash does that, damage does."""
    assert silent_losses() == []
    monkeypatch.setattr(reader, "next_frame", lambda *_: None)
    assert silent_losses() != []


# --- scripts ------------------------------------------------------------------------------------


def test_a_group_is_one_write_and_one_sync() -> None:
    run = Run(1)
    opened = run.open()
    writer = opened.writer
    for number in range(2):
        writer.append(commit(number, run.random, 5))
    first = writer.step()
    assert first is not None
    assert [type(each).__name__ for each in first.operations] == [
        "CreateSegment",
        "SyncSegment",
        "SyncFolder",
        "AppendTo",
        "SyncSegment",
    ]
    for number in range(2, 4):
        writer.append(commit(number, run.random, 5))
    assert writer.step() is None, "one flush at a time"
    assert writer.acknowledged == 0
    opened.files.carry_out(first)
    writer.on_flushed()
    assert writer.acknowledged == writer.durable == 2
    second = writer.step()
    assert second is not None
    assert [type(each).__name__ for each in second.operations] == ["AppendTo", "SyncSegment"]
    assert second.last == 4


def test_what_the_modes_promise() -> None:
    for mode, synced in ((SyncMode.FSYNC, 1), (SyncMode.OS, 0), (SyncMode.NONE, 0)):
        run = Run(1, mode)
        opened = run.open()
        opened.writer.append(commit(1, run.random))
        flush = opened.writer.step()
        assert flush is not None
        opened.files.carry_out(flush)
        opened.writer.on_flushed()
        assert (opened.writer.acknowledged, opened.writer.durable) == (1, synced)


def test_a_full_segment_is_synced_in_mode_os() -> None:
    for mode, synced in ((SyncMode.OS, 2), (SyncMode.NONE, 0)):
        run = Run(1, mode)
        opened = run.open()
        for number in range(3):
            if number == 2:
                opened.writer.roll()
            opened.writer.append(commit(number, run.random))
            flush = opened.writer.step()
            assert flush is not None
            opened.files.carry_out(flush)
            opened.writer.on_flushed()
        assert (opened.writer.acknowledged, opened.writer.durable) == (3, synced)


def test_a_record_may_ask_for_a_sync_in_mode_os() -> None:
    run = Run(1, SyncMode.OS)
    opened = run.open()
    opened.writer.append(commit(1, run.random), sync=True)
    flush = opened.writer.step()
    assert flush is not None
    assert flush.synced == 1


def test_a_failed_flush_ends_the_log() -> None:
    run = Run(1)
    opened = run.open()
    run.disk.capacity = 10
    opened.writer.append(commit(1, run.random))
    flush = opened.writer.step()
    assert flush is not None
    with pytest.raises(DiskFull) as full:
        opened.files.carry_out(flush)
    opened.writer.on_failed(full.value)
    with pytest.raises(ResourceError, match="has failed") as refused:
        opened.writer.append(commit(2, run.random))
    assert "Restart" in refused.value.hint
    run.disk.capacity = None
    assert run.open().tail.end.sequence == 0


def test_a_record_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.storage.log.writer.LOG_RECORD_SIZE_MAX", 10)
    opened = Run(1).open()
    with pytest.raises(LimitExceeded):
        opened.writer.append(commit(1, Run(1).random))
    assert isinstance(opened.writer, LogWriter)
    assert opened.writer.last == 0
