"""Snapshots, and the archive of logs, in an object store that speaks as S3 does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from fake_s3 import FakeS3, fake_s3
from logged import logged_cluster
from tests.member.snapshots.test_log_archive import turn

from remuda.errors import DuplicateObject, RemudaError, ResourceError, UndefinedObject
from remuda.snapshot.store import open_store
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.world import system_world


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


def test_objects(s3: FakeS3) -> None:
    store = open_store(s3.url("some/where"), system_world())
    assert store.keys("") == []
    large = bytes(range(256)) * 50_000
    store.put("a/b.arrow", large)
    assert s3.uploaded_in_parts
    assert list(s3.objects) == ["some/where/a/b.arrow"]
    with pytest.raises(DuplicateObject):
        store.put("a/b.arrow", b"other")
    assert store.get("a/b.arrow") == large
    for number in range(12):
        store.put(f"a/c/{number:03}.note", b"")
    assert len(store.keys("a/")) == 13
    assert store.keys("a/c/01") == ["a/c/010.note", "a/c/011.note"]
    with pytest.raises(UndefinedObject):
        store.get("a/none.note")
    store.delete("a/b.arrow")
    store.delete("a/b.arrow")
    assert len(store.keys("")) == 12


def uses(store: ObjectStore) -> list[Callable[[], object]]:
    return [
        partial(store.keys, ""),
        partial(store.get, "a/b.note"),
        partial(store.put, "a/b.note", b""),
        partial(store.delete, "a/b.note"),
    ]


def test_a_store_that_refuses(s3: FakeS3) -> None:
    world = system_world()
    missing = open_store(s3.url("place", bucket="nowhere"), world)
    for use in uses(missing)[:3]:
        with pytest.raises(ResourceError, match="there is no bucket nowhere"):
            use()
    denied = open_store(s3.url("place", key="wrong"), world)
    for use in uses(denied):
        with pytest.raises(ResourceError) as refused:
            use()
        assert "credentials" in refused.value.hint
    with pytest.raises(ResourceError) as caught:
        open_store("s3://key:secret@bucket/x?no_such_option=1", world)
    assert "secret" not in str(caught.value)


def test_a_whole_life(s3: FakeS3, tmp_path: Path) -> None:
    async def main() -> None:
        folders = [tmp_path / "one", tmp_path / "two"]
        settings = {
            "snapshot_store": s3.url("snapshots"),
            "log_archive": s3.url("archive"),
            "log_archive_every": 3600.0,
            "log_sync": "os",
        }
        async with logged_cluster(folders, **settings) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            await client.sql("INSERT INTO m SELECT n, 'a' FROM generate_series(1, 1000) AS g (n)")
            await client.sql("CREATE SNAPSHOT s")
            await client.sql("DELETE FROM m WHERE k > 500")
            [made] = await client.sql("CREATE SNAPSHOT s INCREMENT")
            assert made[2] == "increment"
            await client.sql("DELETE FROM m WHERE k > 50")
            await asyncio.sleep(0.002)
            moment = datetime.now(UTC)
            await turn(cluster)
            assert await client.sql("VERIFY SNAPSHOT s") == []
            for text, rows in (("CUT 1", 1000), ("CUT 2", 500), (f"TO '{moment}'", 50)):
                await client.sql(f"RESTORE SNAPSHOT s {text} PREFIX 'r{rows}_'")
                assert await client.sql(f"SELECT count(*) FROM r{rows}_m") == [(rows,)]
            await client.sql("CREATE SNAPSHOT s")
            gone = await client.sql(f"EXPIRE SNAPSHOT s BEFORE '{datetime.now(UTC)}'")
            assert [row[1:] for row in gone] == [(1, False), (2, False), (3, True)]
            assert await client.sql("VERIFY SNAPSHOT s") == []
            kept = [key for key in s3.objects if key.startswith("snapshots/s/data-0000000001/")]
            assert not [key for key in kept if not key.endswith("/")]
            before = await client.sql("SHOW SNAPSHOTS")
            s3.lost = True
            with pytest.raises(RemudaError) as lost:
                await client.sql("SHOW SNAPSHOTS")
            assert "endpoint" in lost.value.hint
            s3.lost = False
            assert await client.sql("SHOW SNAPSHOTS") == before

    asyncio.run(main())
