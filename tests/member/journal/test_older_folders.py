"""The folder of one member is an older copy, or its log was cut off: the others know better."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from logged import asked, logged_cluster, memory_disk, on_disk, picture
from power import judge, record
from tests.member.conftest import TestCluster

from remuda.errors import DataCorrupted, ResourceError
from remuda.member.journal import checkpoint as wal_checkpoint
from remuda.member.journal import heard_logs
from remuda.member.journal.folder import Folder
from remuda.member.journal.heard_logs import HeardLogs
from remuda.member.membership import recovery
from remuda.storage.format.records import HeardLog, JobCommitted, LogsHeard
from remuda.storage.log.files import LogFiles, open_log
from remuda.storage.log.reader import LogReader

FOLDERS = [Path(f"/{name}") for name in "abc"]
A, B, C = FOLDERS


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal_checkpoint, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(heard_logs, "NOTE_EVERY", 0.0)


async def at_rest(cluster: TestCluster) -> None:
    """All have noted how far the logs of all others are, and write no more: notes are no news."""
    wals: Any = [member.core.wal for member in cluster.members]
    before: list[int] = []
    while True:
        ends = [wal.on_disk() for wal in wals]
        lasts = [wal.group.writer.last for wal in wals]
        known = all(
            set(ends) - {end} <= set(wal.heard_logs.noted)
            for wal, end in zip(wals, ends, strict=True)
        )
        if known and lasts == before and all(wal.group.is_safe for wal in wals):
            return
        before = lasts
        await asyncio.sleep(0.1)


async def written(cluster: TestCluster, first: int, last: int) -> None:
    rows = ", ".join(f"({number})" for number in range(first, last))
    await (await cluster.client()).sql(f"INSERT INTO t VALUES {rows}")


def without(disk: Any, folder: Path) -> Any:
    """A copy of the disk on which a folder is empty."""
    made = picture(disk)
    for path in [path for path in made.names_now if path.is_relative_to(folder)]:
        del made.names_now[path]
    return made


def put_back(disk: Any, folder: Path, old: Any) -> Any:
    """One with the folder as it was earlier."""
    made, old = without(disk, folder), picture(old)
    for path, file in old.names_now.items():
        if path.is_relative_to(folder):
            made.names_now[path] = file
    return made


def cut_off(disk: Any, folder: Path) -> tuple[Any, int]:
    """One with the log of the folder cut off before its last commit, and the record that is the
    last one then."""
    made = picture(disk)
    opened = Folder(made, folder)
    assert opened.state is not None
    files = LogFiles(made, opened.log(opened.state.generation))
    entries = LogReader(files, opened.state.identity).entries()
    last = [entry for entry in entries if isinstance(entry.record, JobCommitted)][-1]
    for number in files.numbers():
        if number > last.segment:
            made.remove(files.path(number))
    made.truncate(files.path(last.segment), last.offset)
    opened.close()
    return made, last.sequence - 1


async def refused(disk: Any, folders: list[Path]) -> DataCorrupted:
    with pytest.raises(DataCorrupted) as caught:
        async with logged_cluster(folders, on_disk(picture(disk)), backups=1):
            pass
    return caught.value


async def count(cluster: TestCluster) -> Any:
    return (await asked(await cluster.client(), "SELECT count(*) FROM t"))[0][0]


def test_an_older_folder_is_refused() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster(FOLDERS, on_disk(disk), backups=1) as cluster:
            await (await cluster.client()).sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            await written(cluster, 0, 100)
            await at_rest(cluster)
            old = picture(disk)
            await written(cluster, 100, 200)
            await at_rest(cluster)
            for member in cluster.members:  # the segments with the notes go
                assert member.recovery is not None
                assert member.recovery.checkpoints is not None
                await member.recovery.checkpoints.take()
            end = cluster.member(2).core.wal.on_disk()
            assert end is not None
            killed = picture(disk)
        for order in ([A, B, C], [B, C, A]):
            error = await refused(put_back(killed, B, old), order)
            assert error.message.startswith("the log of member 2 in /b is older than the others")
            assert error.message.endswith(f"and record {end.sequence} was on its disk")
            assert "has noted that" in (error.detail or "")
            assert "start_without=2" in (error.hint or "")
        empty = on_disk(without(killed, B))
        async with logged_cluster([A, C], empty, late=[B], backups=1, start_without="2") as cluster:
            assert await count(cluster) == 200

    asyncio.run(scenario())


def test_a_folder_that_is_younger_than_the_last_note_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has noted what it lacks. Nothing is lost that was noted, whoever starts first; nor of
    what came later if the member starts with an empty folder."""

    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster(FOLDERS, on_disk(disk), backups=1) as cluster:
            await (await cluster.client()).sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            await written(cluster, 0, 100)
            await at_rest(cluster)
            monkeypatch.setattr(HeardLogs, "changed", lambda *_: None)  # the next one is not due
            await written(cluster, 100, 150)
            old = picture(disk)
            await written(cluster, 150, 200)
            killed = picture(disk)
        kept = set()
        for order in ([A, B, C], [B, C, A]):
            back = on_disk(put_back(killed, B, old))
            async with logged_cluster(order, back, backups=1) as cluster:
                found = await asked(await cluster.client(), "SELECT id FROM t")
                assert {*range(150)} <= {row[0] for row in found}
                kept.add(len(found))
        assert len(kept) == 1
        assert kept.pop() < 200  # else the folder was not older
        empty = on_disk(without(killed, B))
        async with logged_cluster([A, C], empty, late=[B], backups=1, start_without="2") as cluster:
            assert await count(cluster) == 200

    asyncio.run(scenario())


def test_a_log_that_was_cut_off_is_refused_also_after_a_restart() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster(FOLDERS, on_disk(disk), backups=1) as cluster:
            await (await cluster.client()).sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            await at_rest(cluster)
            disk = picture(disk)
        async with logged_cluster(FOLDERS, on_disk(disk), backups=1) as cluster:
            await written(cluster, 0, 100)
            await at_rest(cluster)
            killed = picture(disk)
        shorter, end = cut_off(killed, C)
        error = await refused(shorter, FOLDERS)
        assert f"member 3 in /c is older than the others know: it ends with record {end}," in (
            error.message
        )
        async with logged_cluster(FOLDERS, on_disk(killed), backups=1) as cluster:
            assert await count(cluster) == 100

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["fsync", "os", "none"])
def test_a_loss_of_power_is_no_older_folder(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs lose what was not synced (and in two of the modes rows with it): nobody was told that it
    was on the disk."""
    noted: list[LogsHeard] = []
    changed = HeardLogs.changed

    def watched(self: HeardLogs, *args: Any) -> LogsHeard | None:
        found = changed(self, *args)
        if found is not None:
            noted.append(found)
        return found

    monkeypatch.setattr(HeardLogs, "changed", watched)
    monkeypatch.setattr(recovery, "open_log", partial(open_log, segment_size=3000))

    async def scenario() -> None:
        settings = {"log_sync": mode, "backups": 1, "checkpoint_size": 10_000}
        for moment in await record(3, 4, **settings):
            wrong = await judge(moment, **settings)
            assert "is older than" not in wrong
            assert mode != "fsync" or not wrong

    asyncio.run(scenario())
    told = [log.sequence for note in noted for log in note.logs]
    assert any(told) == (mode != "none")


def test_notes_are_rare_and_have_news() -> None:
    logs = HeardLogs()
    assert logs.changed(0.0, [1, 2]) is None
    logs.heard(HeardLog(2, b"b", 5))
    assert logs.changed(0.0, [1, 2]) == LogsHeard((HeardLog(2, b"b", 5),))
    assert logs.changed(0.0, [1, 2]) is None
    logs.heard(HeardLog(2, b"b", 6))
    assert logs.changed(0.0, [1, 2]) == LogsHeard((HeardLog(2, b"b", 6),))


def test_notes_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard_logs, "NOTE_EVERY", 3.0)
    logs = HeardLogs()
    logs.heard(HeardLog(2, b"b", 5))
    assert logs.changed(10.0, [1, 2]) is not None
    logs.heard(HeardLog(2, b"b", 6))
    assert logs.changed(12.9, [1, 2]) is None
    assert logs.changed(13.0, [1, 2]) is not None


def test_members_that_have_gone_are_kept_for_a_while() -> None:
    logs = HeardLogs()
    for number in range(1, 101):
        logs.heard(HeardLog(number, b"x", 1))
    found = logs.changed(0.0, [1])
    assert found is not None
    assert [log.member for log in found.logs] == [1, *range(37, 101)]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("outside", ["snapshot_store", "log_archive"])
def test_folders_that_were_all_put_back_are_noticed_from_outside(
    members: int, outside: str, tmp_path: Path
) -> None:
    """Their notes of each other are as old as they are: a cut, or the archive, is not."""

    async def scenario() -> None:
        disk, folders = memory_disk(), FOLDERS[:members]
        settings: dict[str, Any] = {"backups": members - 1, "snapshot_store": "/store"}
        if outside == "log_archive":
            settings |= {"log_archive": "/archive", "log_archive_every": 0.05}
        async with logged_cluster(folders, on_disk(disk), **settings) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
            await written(cluster, 0, 10)
            old = picture(disk)
            await written(cluster, 10, 20)
            if outside == "snapshot_store":
                await client.sql("CREATE SNAPSHOT nightly")
            else:
                wals: Any = [member.core.wal for member in cluster.members]
                ends = [wal.group.writer.last for wal in wals]
                while any((wal.archived or 0) < end for wal, end in zip(wals, ends, strict=True)):
                    await asyncio.sleep(0.01)
        back = picture(disk)
        for folder in folders:
            back = put_back(back, folder, old)
        with pytest.raises(DataCorrupted) as caught:
            async with logged_cluster(folders, on_disk(picture(back)), **settings):
                pass
        said = "cut 1 of snapshot nightly" if outside == "snapshot_store" else "the archive of logs"
        assert f"is older than {said} says" in caught.value.message
        assert "without snapshot_store" in (caught.value.hint or "")
        async with logged_cluster(folders, on_disk(disk), **settings) as cluster:
            assert await count(cluster) == 20  # the newest ones are not refused
        settings["snapshot_store"] = settings["log_archive"] = ""
        async with logged_cluster(folders, on_disk(back), **settings) as cluster:
            assert await count(cluster) == 10  # said in words

    asyncio.run(scenario())


@pytest.mark.parametrize("problem", ["error", "silence"])
def test_a_store_that_does_not_answer_holds_no_start_up(
    problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def unreachable(*_: Any) -> None:
        if problem == "silence":
            over.wait()
        raise ResourceError("the store does not answer")

    async def scenario() -> None:
        disk = memory_disk()
        settings = {"snapshot_store": "/store"}
        async with logged_cluster([A], on_disk(disk), **settings) as cluster:
            await (await cluster.client()).sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        monkeypatch.setattr("remuda.member.snapshots.snapshots.of_cuts", unreachable)
        monkeypatch.setattr(recovery, "WITNESS_TIMEOUT", 0.05)
        async with logged_cluster([A], on_disk(disk), **settings) as cluster:
            assert await count(cluster) == 0

    try:
        asyncio.run(scenario())
    finally:
        over.set()
