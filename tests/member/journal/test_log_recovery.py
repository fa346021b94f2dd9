"""Members that start again from their logs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from logged import asked, late_member, logged_cluster, memory_disk, on_disk, picture, sim_disk
from tests.member.conftest import TestCluster
from transacting import Session

from remuda.client.asynchronous.connect import connect
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.timestamp import FOREVER
from remuda.errors import DiskFull, RemudaError
from remuda.member.membership.forming import Forming
from remuda.member.membership.recovery import Recovery
from remuda.storage.maps.transfer import EVERY_PARTITION


def test_one_member_comes_back_with_everything() -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a")]
        async with logged_cluster(folders, on_disk(disk)) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, x DOUBLE)")
            await client.sql("CREATE INDEX t_name ON t (name)")
            await client.sql("CREATE VIEW v AS SELECT id, name FROM t WHERE x > 1")
            schema = await client.schema("t")
            for number in range(20):
                await client.put(schema, (number, f"n{number}", number / 2))
            await client.remove(schema, 3)
            await client.sql("INSERT INTO t SELECT id + 100, name, x FROM t")
            await client.sql("UPDATE t SET name = 'changed' WHERE id = 4")
            await client.sql("DELETE FROM t WHERE id = 105")
            await client.sql("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7")
            await client.sql("INSERT INTO t VALUES (1000, NULL, 0.5, NULL)")
            await client.sql("CREATE TABLE gone (id BIGINT PRIMARY KEY)")
            await client.sql("DROP TABLE gone")
            expected = await client.sql("SELECT * FROM t ORDER BY id")
            numbers = await client.sql("SELECT relname, oid FROM pg_class ORDER BY oid")
            killed = picture(disk)
        for after in (disk, killed):
            async with logged_cluster(folders, on_disk(after)) as cluster:
                client = await cluster.client()
                assert await client.sql("SELECT * FROM t ORDER BY id") == expected
                again = await client.sql("SELECT relname, oid FROM pg_class ORDER BY oid")
                assert again == numbers
                assert await client.sql("SELECT count(*) FROM v") == [
                    (sum(1 for row in expected if row[2] > 1),)
                ]
                assert await client.sql("SELECT id FROM t WHERE name = 'changed'") == [(4,)]
                with pytest.raises(RemudaError, match="gone"):
                    await client.sql("SELECT * FROM gone")
                await client.sql("INSERT INTO t VALUES (2000, 'new', 1.5, 1)")
            async with logged_cluster(folders, on_disk(after)) as cluster:
                client = await cluster.client()
                assert len(await client.sql("SELECT * FROM t")) == len(expected) + 1

    asyncio.run(scenario())


async def fill(client, rows: int = 200) -> None:  # type: ignore[no-untyped-def]
    await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")
    await client.sql("CREATE TABLE r (id BIGINT PRIMARY KEY, x BIGINT) WITH (REPLICATED = TRUE)")
    values = ", ".join(f"({number}, 'n{number}')" for number in range(rows))
    await client.sql(f"INSERT INTO t VALUES {values}")
    await client.sql("INSERT INTO r VALUES (1, 10), (2, 20)")
    schema = await client.schema("t")
    for number in range(rows, rows + 20):
        await client.put(schema, (number, "put"))
    await client.remove(schema, 5)
    await client.sql("UPDATE t SET name = 'changed' WHERE id < 3")
    await client.sql("DELETE FROM r WHERE id = 2")


async def holds(client, rows: int = 200) -> None:  # type: ignore[no-untyped-def]
    found = dict(await asked(client, "SELECT id, name FROM t"))
    expected = {n: f"n{n}" for n in range(rows)} | dict.fromkeys(range(rows, rows + 20), "put")
    expected |= dict.fromkeys(range(3), "changed")
    del expected[5]
    assert found == expected
    assert await asked(client, "SELECT * FROM r") == [(1, 10)]


@pytest.mark.parametrize("backups", [0, 2])
def test_a_whole_cluster_comes_back_in_any_order(backups: int) -> None:
    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=backups) as cluster:
            client = await cluster.client()
            await fill(client)
            killed = picture(disk)
        turned = folders[1:] + folders[:1]
        for after, order in ((killed, turned), (killed, folders), (disk, folders)):
            async with logged_cluster(order, on_disk(after), backups=backups) as cluster:
                if order is turned:
                    assert {member.info.number for member in cluster.members} == {1, 2, 3}
                for member in cluster.members:
                    await holds(await cluster.client(member.info.number))
                while order is turned and any(
                    len(row) <= backups for row in cluster.members[0].core.view.replicas
                ):
                    await asyncio.sleep(0.01)  # backups are made anew

    asyncio.run(scenario())


def test_members_that_had_gone_on_are_what_counts() -> None:
    """One member ends, the others go on and write; all come back."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            client = await cluster.client()
            await fill(client)
            gone = cluster.members.pop()
            await gone.stop()
            while len(cluster.member(1).core.view.members) == 3:
                await asyncio.sleep(0.01)
            await asked(client, "UPDATE t SET name = 'later' WHERE id = 100")
            killed = on_disk(picture(disk))
        async with logged_cluster(folders[:2], killed, late=folders[2:], backups=1) as cluster:
            for member in cluster.members:
                client = await cluster.client(member.info.number)
                assert await asked(client, "SELECT name FROM t WHERE id = 100") == [("later",)]
                assert await asked(client, "SELECT count(*) FROM t") == [(219,)]
                assert await asked(client, "SELECT * FROM r") == [(1, 10)]
            assert {m.info.number for m in cluster.members} == {1, 2, 4}

    asyncio.run(scenario())


def test_without_backups_a_lost_member_brings_its_rows_back() -> None:
    """Its partitions were lost in between: when all start again, its log has them."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=0) as cluster:
            client = await cluster.client()
            await fill(client)
            await cluster.members.pop().stop()
            while not cluster.member(1).core.view.absent:
                await asyncio.sleep(0.01)
            killed = on_disk(picture(disk))
            with pytest.raises(RemudaError, match=r"only copies of .* partitions") as caught:
                async with late_member(cluster, folders[2], on_disk(disk)):
                    pass
            assert "Stop all members and start them again" in caught.value.hint
            assert not caught.value.retryable
            assert await cluster.member(1).lost.accept()
            async with late_member(cluster, folders[2], on_disk(disk)) as late:
                assert late.info.number > 3
        async with logged_cluster(folders, killed, backups=0) as cluster:
            await holds(await cluster.client())

    asyncio.run(scenario())


# --- refusals -------------------------------------------------------------------------------------


async def refused(disk: Any, folders: list[Path], **settings: Any) -> RemudaError:
    with pytest.raises(RemudaError) as caught:
        async with logged_cluster(folders, on_disk(disk), **settings):
            pass
    return caught.value


def test_a_folder_is_for_one_process() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        async with logged_cluster([Path("/a")], on_disk(disk)):
            error = await refused(disk, [Path("/a")])
            assert error.message == "data_dir /a is used by another process"

    asyncio.run(scenario())


def test_folders_of_two_clusters_do_not_mix() -> None:
    async def scenario() -> None:
        disk = memory_disk()
        for folder in ("/a", "/b"):
            async with logged_cluster([Path(folder)], on_disk(disk)):
                pass
        error = await refused(disk, [Path("/a"), Path("/b")], join_timeout=2.0)
        assert error.message == "data_dir of the member belongs to another cluster"
        error = await refused(disk, [Path("/new"), Path("/b")], join_timeout=2.0)
        assert "belongs to another cluster: this one is new" in error.message
        async with logged_cluster([Path("/a")], on_disk(disk)) as cluster:
            with pytest.raises(RemudaError, match="belongs to another cluster"):
                async with late_member(cluster, Path("/b"), on_disk(disk)):
                    pass
            with pytest.raises(RemudaError, match="has no data_dir"):
                async with late_member(cluster, Path("/c"), on_disk(disk), data_dir=""):
                    pass

    asyncio.run(scenario())


def test_missing_members_are_named_and_waited_for() -> None:
    """Too many of them, that is; in words, the cluster starts without them."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            await fill(await cluster.client())
            killed = picture(disk)
        error = await refused(picture(killed), folders[:1], join_timeout=1.0)
        assert "members 2, 3 are not back yet; only they have" in error.message
        one_missing = on_disk(picture(killed))
        soon = {"heartbeat_timeout": 0.3, "backups": 1}
        async with logged_cluster(folders[:2], one_missing, **soon) as cluster:
            await holds(await cluster.client())
        given_up = on_disk(killed)
        async with logged_cluster(folders[:1], given_up, start_without="2,3", **soon) as cluster:
            client = await cluster.client()
            assert len(cluster.member(1).core.view.lost) > 80
            assert await asked(client, "SELECT * FROM r") == [(1, 10)]

    asyncio.run(scenario())


def test_damage_is_refused_with_its_place() -> None:
    async def scenario() -> None:
        disk, folder = memory_disk(), Path("/a")
        async with logged_cluster([folder], on_disk(disk)) as cluster:
            await fill(await cluster.client())
        segment = folder / "log-0001" / "0000000001.segment"
        damaged = picture(disk)
        damaged.flip(segment, 2000, 4)
        error = await refused(damaged, [folder])
        assert error.message.startswith("the log is damaged: segment 1, offset ")
        before = bytes(damaged.read(segment))
        damaged.flip(segment, 2000, 4)
        assert bytes(damaged.read(segment)) != before
        async with logged_cluster([folder], on_disk(damaged)) as cluster:
            await holds(await cluster.client())

    asyncio.run(scenario())


def test_a_log_without_its_beginning_is_refused() -> None:
    """Whether there is an image of what was before or not."""

    async def scenario() -> None:
        disk, folder = memory_disk(), Path("/a")
        async with logged_cluster([folder], on_disk(disk)) as cluster:
            await fill(await cluster.client())
            checkpoints = cluster.members[0].recovery.checkpoints
            assert checkpoints is not None
            group = cluster.members[0].core.wal.group
            assert group is not None
            group.writer.roll()
            await (await cluster.client()).sql("CREATE TABLE other (k INTEGER PRIMARY KEY)")
            without_image = picture(disk)
            await checkpoints.take()
        image = picture(disk)
        log = folder / "log-0001"
        without_image.remove(log / "0000000001.segment")
        error = await refused(without_image, [folder])
        assert "begins with record" in error.message
        assert "record 1 is needed" in error.message
        for name in image.names(log):
            if name.endswith(".segment"):
                image.remove(log / name)
        error = await refused(image, [folder])
        assert "has no segments" in error.message

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [1, 2])
def test_empty_logs_are_refused_at_once(count: int) -> None:
    """As the end of all processes leaves them before the cluster is there, and as a wrong hand
    does."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a"), Path("/b")][:count]
        async with logged_cluster(folders, on_disk(disk)):
            pass
        for folder in folders:
            for name in disk.names(folder / "log-0001"):
                disk.remove(folder / "log-0001" / name)
        error = await refused(disk, folders, join_timeout=30.0)
        assert error.message == "all members are back, and their logs are empty"

    asyncio.run(scenario())


# --- the disk and the loop ------------------------------------------------------------------------


class Witness(sim_disk.SimulatedDisk):  # type: ignore[misc, name-defined]
    """Notes operations that hold the loop up, from ``serving`` on."""

    serving = False
    held_up = 0
    off_the_loop = 0

    def _operation(self) -> None:
        on_loop = threading.current_thread() is threading.main_thread()
        self.held_up += on_loop and self.serving
        self.off_the_loop += not on_loop
        super()._operation()


def test_votes_views_and_checkpoints_do_not_hold_heartbeats_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remuda.member.journal.checkpoint.LOOK_EVERY", 0.01)

    async def scenario() -> None:
        disk, folders = Witness(), [Path(f"/{name}") for name in "abc"]
        settings = {"backups": 1, "checkpoint_size": 1000}
        async with logged_cluster(folders, on_disk(disk), **settings) as cluster:
            disk.serving = True
            await fill(await cluster.client())
            gone, first = cluster.members[-1], cluster.member(1)
            await gone.stop()
            while (
                len(first.core.view.members) == 3 or not first.core.wal.gauges()["log_checkpoint"]
            ):
                await asyncio.sleep(0.01)
            disk.serving = False
        assert disk.off_the_loop > 10
        assert disk.held_up == 0

    asyncio.run(scenario())


def test_a_view_that_cannot_be_kept_ends_the_member() -> None:
    """Its vote must not count: nobody hears of it."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            ended: list[str] = []
            cluster.member(2).on_given_up.append(ended.append)
            write = disk.write

            def full(path: Path, content: bytes) -> None:
                if path == Path("/b/member.json"):
                    raise DiskFull(f"cannot write {path}: No space left on device")
                write(path, content)

            disk.write = full
            await cluster.member(3).stop()
            while not ended:
                await asyncio.sleep(0.01)
            assert "its log cannot be written: cannot write /b/member.json" in ended[0]
            disk.write = write

    asyncio.run(scenario())


# --- times to live --------------------------------------------------------------------------------


def ends(cluster: TestCluster) -> dict[int, int]:
    """When each entry of t ends, as the primaries have it."""
    found: dict[int, int] = {}
    for member in cluster.members:
        core = member.core
        schema = core.catalog.find("t")
        assert schema is not None
        for versions in core.stores[schema.map_id].extraction(EVERY_PARTITION).versions():
            for key, end in zip(versions.batch.column(0).to_pylist(), versions.ends, strict=True):
                if end > core.clock.last:
                    found[key] = int(end)
    return found


@pytest.mark.parametrize("checkpoint_size", [1000, 2**30])
def test_entries_end_when_they_would_have(
    checkpoint_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.member.journal.checkpoint.LOOK_EVERY", 0.01)

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a"), Path("/b")]
        settings = {"backups": 1, "checkpoint_size": checkpoint_size}
        async with logged_cluster(folders, on_disk(disk), **settings) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT) WITH (ttl = '1 h')")
            schema = await client.schema("t")
            await client.sql("INSERT INTO t VALUES " + ", ".join(f"({n}, 1)" for n in range(50)))
            await client.put(schema, (100, 1))
            session = Session(client)
            for text in ("BEGIN", *(f"INSERT INTO t VALUES ({n}, 1)" for n in (200, 201))):
                await session.sql(text)
            await session.sql("COMMIT")
            await client.sql("ALTER TABLE t SET (ttl = '2 h')")
            await client.put(schema, (101, 1))
            await client.sql("UPDATE t SET x = 2 WHERE id < 10")
            await client.sql("ALTER TABLE t RESET (ttl)")
            await client.put(schema, (102, 1))
            wal = cluster.member(1).core.wal
            while checkpoint_size == 1000 and not wal.gauges()["log_checkpoint"]:
                await asyncio.sleep(0.01)
            before = ends(cluster)
            killed = picture(disk)
        assert len(before) == 55
        assert before[102] == FOREVER
        async with logged_cluster(folders, on_disk(killed), backups=1) as cluster:
            assert ends(cluster) == before

    asyncio.run(scenario())


# --- long logs ------------------------------------------------------------------------------------


def test_members_wait_for_the_first_one_to_read_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: their ``join_timeout`` counts from when it has."""
    asks: list[int] = []
    read_on = threading.Event()
    restore, answer = Recovery._restore, Forming.answer_join

    def slowly(recovery: Recovery, folder: Any, state: Any) -> Any:
        if str(folder.path) == "/a":
            read_on.wait(10)
        return restore(recovery, folder, state)

    async def counted(forming: Forming, message: Any, channel: Any, ask: Any) -> Any:
        answered = await answer(forming, message, channel, ask)
        asks.append(answered.reading)
        if sum(asks) > 8:  # of a member that asks five times in its join_timeout
            read_on.set()
        return answered

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path("/a"), Path("/b")]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            await fill(await cluster.client())
        monkeypatch.setattr(Recovery, "_restore", slowly)
        monkeypatch.setattr(Forming, "answer_join", counted)
        async with logged_cluster(folders, on_disk(disk), backups=1, join_timeout=1.0) as cluster:
            await holds(await cluster.client())
        assert sum(asks) > 8

    try:
        asyncio.run(scenario())
    finally:
        read_on.set()


async def staged(job: Any, stored: range, removed: range) -> Any:
    """A task of a job that writes and removes."""
    arrow = engine_schema(job.schema)
    async with job.writer("0:0") as writer:
        columns = [pa.array(stored, arrow.field(0).type), pa.array(["job"] * len(stored))]
        await writer.write(pa.record_batch(columns, schema=arrow))
        of_keys = pa.schema([arrow.field(0)])
        await writer.remove(pa.record_batch([pa.array(removed, pa.int64())], schema=of_keys))
        return await writer.finish()


@pytest.mark.parametrize("backups", [0, 1])
def test_rows_of_a_job_that_have_moved_come_back(backups: int) -> None:
    """They were noted as they arrived, some of them by members that have given them away since."""

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        settings = {"backups": backups, "join_timeout": 20.0}
        async with logged_cluster(folders[:2], on_disk(disk), **settings) as cluster:
            client = await connect(f"127.0.0.1:{cluster.member(1).core.info.user_port}")
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR)")
            await client.sql("INSERT INTO t SELECT i, 'old' FROM generate_series(0, 299) AS g(i)")
            job = await client.begin_job("t")
            task = await staged(job, range(200, 500), range(100))
            async with late_member(cluster, folders[2], on_disk(disk), **settings) as late:
                while not late.core.view.partitions_of(3):
                    await asyncio.sleep(0.01)
                assert await job.commit([task]) == 400  # rows and removals
                schema = await (await cluster.client()).schema("t")
                assert late.core.stores[schema.map_id].size(late.core.timestamp())
                killed = picture(disk)
            await client.close()
        expected = dict.fromkeys(range(100, 200), "old") | dict.fromkeys(range(200, 500), "job")
        async with logged_cluster(folders, on_disk(killed), **settings) as cluster:
            found = await asked(await cluster.client(), "SELECT id, name FROM t")
            assert (len(found), dict(found)) == (400, expected)

    asyncio.run(scenario())
