"""ALTER TABLE at the moments of a cut at which rows are logged under another version of their map
than the one that the manifest names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from logged import run
from tests.member.conftest import TestClient, TestCluster

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import MapSchema
from remuda.member.snapshots import making
from remuda.member.snapshots.cuts import Cuts
from remuda.member.snapshots.making import SnapshotMaking
from remuda.snapshot.catalog import catalog_text

Between = Callable[[], Awaitable[None]]


def before(method: str, work: Between) -> Any:
    """The next call of ``SnapshotMaking``'s method begins when the work is done."""
    original, left = getattr(SnapshotMaking, method), [work]

    async def late(*arguments: Any) -> Any:
        while left:
            await left.pop()()
        return await original(*arguments)

    return mock.patch.object(SnapshotMaking, method, late)


def test_rows_of_before_an_alter_that_a_base_has_seen(tmp_path: Path) -> None:
    """They are committed above the base's timestamp, and its objects have the newer columns."""

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
        await client.sql("INSERT INTO m VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        m, r = await client.schema("m"), await client.schema("r")

        async def alter() -> None:
            await client.put(m, (1, "put"))
            await client.remove(m, 2)
            await client.put(r, (1, "put"))
            await client.sql("INSERT INTO m SELECT n, 'job' FROM generate_series(4, 90) AS g (n)")
            await client.sql("ALTER TABLE m ADD COLUMN w INTEGER DEFAULT 7")
            await client.sql("ALTER TABLE r RENAME COLUMN v TO u")

        with before("_base", alter):
            await client.sql("CREATE SNAPSHOT s")
        await client.sql("INSERT INTO m VALUES (100, 'new', 8)")
        [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[2] == "increment", row
        await check(client, cluster)

    async def check(client: TestClient, _cluster: TestCluster) -> None:
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("RESTORE SNAPSHOT s PREFIX 'c_'")
        rows = await client.sql("SELECT k, v, w FROM c_m WHERE k < 5 OR k >= 90 ORDER BY k")
        wanted = [(1, "put", 7), (3, "c", 7), (4, "job", 7), (90, "job", 7), (100, "new", 8)]
        assert rows == wanted
        assert await client.sql("SELECT k, u FROM c_r") == [(1, "put")]

    run(tmp_path, scenario)
    (tmp_path / "other").mkdir()
    run(tmp_path / "other", check, members=1, snapshot_store=str(tmp_path / "store"))


def test_an_alter_while_an_increment_is_stored(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("INSERT INTO m VALUES (1, 'a')")
        original = Cuts.store

        async def store(*arguments: Any) -> Any:
            stored = await original(*arguments)
            await client.sql("ALTER TABLE m ADD COLUMN w INTEGER DEFAULT 7")
            return stored

        with mock.patch.object(Cuts, "store", store):
            [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[2] == "increment", row
        await client.sql("RESTORE SNAPSHOT s PREFIX 'c_'")
        assert await client.sql("SELECT * FROM c_m") == [(1, "a")]

    run(tmp_path, scenario)


def test_a_manifest_that_names_no_former_versions(tmp_path: Path) -> None:
    """One that was made before manifests named them restores as it did."""

    def without(catalog: Catalog, _former: Iterable[MapSchema] = ()) -> str:
        return catalog_text(catalog)

    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("ALTER TABLE m ADD COLUMN w INTEGER DEFAULT 7")
        with mock.patch.object(making, "catalog_text", without):
            await client.sql("CREATE SNAPSHOT s")
            await client.sql("INSERT INTO m VALUES (1, 'a', 8)")
            [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[2] == "increment", row
        made = [each.read_bytes() for each in (tmp_path / "store").rglob("*.manifest")]
        assert [b"former_maps" in each for each in made] == [False, False]
        [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[2] == "increment", row
        for cut in (2, 3):
            await client.sql(f"RESTORE SNAPSHOT s CUT {cut} PREFIX 'c{cut}_'")
            assert await client.sql(f"SELECT * FROM c{cut}_m") == [(1, "a", 8)]

    run(tmp_path, scenario)
