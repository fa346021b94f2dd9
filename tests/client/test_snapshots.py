"""``client.snapshots`` and ``remuda snapshot`` on a cluster of processes; the texts they send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remuda import aio
from remuda.cli.main import main
from remuda.client.embedded.cluster import Cluster, start
from remuda.client.operations.snapshots import drop_text, expire_text, restore_text, verify_text
from remuda.errors import InputError, UndefinedObject
from remuda.sql.parsing.parser import parse


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("snapshots")


@pytest.fixture(scope="module")
def cluster(store: Path) -> Iterator[Cluster]:
    with start(members=2, settings={"snapshot_store": str(store)}) as running:
        with running.connect() as client:
            client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
            client.sql("INSERT INTO m SELECT n, 'v' || n FROM generate_series(1, 100) AS g (n)")
        yield running


@pytest.mark.cluster
def test_from_python(cluster: Cluster) -> None:
    with cluster.connect() as client:
        made = client.snapshots.create("from-python")
        assert (made.snapshot, made.cut, made["rows"]) == ("from-python", 1, 100)
        assert made.note is None
        [listed] = client.snapshots.list()
        assert tuple(listed) == tuple(made)[:-1]
        assert client.snapshots.verify("from-python") == []
        assert client.snapshots.restore("from-python", maps={"m": "Odd name"}, dry_run=True)
        [row] = client.snapshots.restore("from-python", maps={"m": "Odd name"})
        assert row.restored_as == "Odd name"
        assert client.sql('SELECT count(*) FROM "Odd name"').scalar() == 100
        assert client.map("Odd name")[7] == client.map("m")[7]
        [kept] = client.snapshots.expire("from-python", datetime(2999, 1, 1, tzinfo=UTC))
        assert kept.kept
        client.snapshots.drop("from-python")
        with pytest.raises(UndefinedObject):
            client.snapshots.describe("from-python")

    async def later() -> None:
        async with await aio.connect(cluster.address) as client:
            await client.snapshots.create("later")
            assert [row.map for row in await client.snapshots.describe("later")] == [
                "Odd name",
                "m",
            ]
            await client.snapshots.restore("later", prefix="again_")
            assert await client.snapshots.verify("later", 1) == []
            await client.snapshots.drop("later", 1)
            assert await client.snapshots.list() == []
            await client.snapshots.drop("later", if_exists=True)

    asyncio.run(later())


@pytest.mark.cluster
def test_from_the_command_line(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], store: Path
) -> None:
    def run(*words: str) -> tuple[int, str]:
        status = main(["snapshot", words[0], "--connect", cluster.address, *words[1:]])
        out, err = capsys.readouterr()
        return status, out + err

    assert run("list") == (0, "nothing\n")
    assert run("create", "shell")[0] == 0
    assert "100" in run("describe", "shell")[1]
    assert run("verify", "shell") == (0, "snapshot shell: nothing found\n")
    status, text = run("restore", "shell", "--map", "m=copy", "--dry-run")
    assert (status, "would be" in text) == (0, True)
    assert run("restore", "shell", "--map", "m=copy")[0] == 0
    status, text = run("restore", "shell", "--map", "m=copy")
    assert status == 1
    assert 'a map or view of the name "copy" exists already' in text
    victim = max(store.rglob("*.arrow"), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1])
    status, text = run("verify", "shell", "--level", "1")
    assert (status, victim.name in text) == (1, True)
    assert run("restore", "shell", "--prefix", "x_", "--dry-run")[0] == 1
    assert run("expire", "shell", "--before", "soon")[0] == 1
    assert run("expire", "shell", "--before", "2001-01-01")[0] == 0
    assert "would go" in run("drop", "shell", "--dry-run")[1]
    assert run("drop", "shell")[0] == 0
    assert run("drop", "shell")[0] == 1


@pytest.mark.cluster
def test_the_rows_of_increments_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"snapshot_store": str(tmp_path / "store"), "data_dir": str(tmp_path / "data")}
    with start(members=1, settings=settings) as running:
        with running.connect() as client:
            client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
            client.sql("INSERT INTO m SELECT n FROM generate_series(1, 1500) AS g (n)")
            client.snapshots.create("s", increment=True)
            client.sql("INSERT INTO m SELECT n FROM generate_series(2001, 3200) AS g (n)")
            client.sql("DELETE FROM m WHERE k <= 40")
            made = client.snapshots.create("s", increment=True)
            assert (made.kind, made.maps, made["rows"], made.removed) == ("increment", 1, 1200, 40)
        assert main(["snapshot", "list", "--connect", running.address]) == 0
        lines = capsys.readouterr().out.splitlines()
        text = "SELECT kind, maps, rows, removed FROM sys.snapshots ORDER BY cut"
        assert main(["sql", "-c", text, "--format", "json", "--connect", running.address]) == 0
        assert json.loads(capsys.readouterr().out) == [
            {"kind": "base", "maps": 1, "rows": 1500, "removed": 0},
            {"kind": "increment", "maps": 1, "rows": 1200, "removed": 40},
        ]
    head, _, *cuts = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert [dict(zip(head, each, strict=True))["rows"] for each in cuts] == ["1,500", "1,200"]
    assert [dict(zip(head, each, strict=True))["removed"] for each in cuts] == ["0", "40"]


def test_texts() -> None:
    when = datetime(2024, 1, 31, tzinfo=UTC)
    for text in (
        verify_text("it's", 2),
        restore_text("s", 3, {"a": 'b"c', "d": "e"}, "", dry_run=True),
        restore_text("s", None, None, "o'", dry_run=False),
        expire_text("s", when, dry_run=True),
        drop_text("s", (1, 2), if_exists=True, cascade=True, dry_run=True),
    ):
        parse(text)
    for wrong in (
        lambda: verify_text(3, 1),  # type: ignore[arg-type]
        lambda: verify_text("s", True),
        lambda: restore_text("s", None, "maps", "", dry_run=False),
        lambda: restore_text("s", None, [], "", dry_run=False),
        lambda: restore_text("s", None, ["a"], "x", dry_run=False),
        lambda: expire_text("s", datetime(2024, 1, 31), dry_run=False),  # noqa: DTZ001
    ):
        with pytest.raises(InputError):
            wrong()
