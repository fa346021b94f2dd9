"""A cut worked on in pieces, apart from any member: a new base restores what the cut restores, an
export holds it, and what was interrupted is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from logged import run
from tests.member.conftest import TestClient, TestCluster

from remuda.cli.main import main
from remuda.errors import DuplicateObject, InputError, Position, ResourceError, UndefinedMap
from remuda.snapshot.export import (
    Exported,
    Target,
    _cannot,
    begin_export,
    export_here,
    export_piece,
    finish_export,
    target_of,
)
from remuda.snapshot.pieces import (
    BaseWriter,
    NewBase,
    begin_base,
    catalog_of,
    chosen_maps,
    finish_base,
    pieces_of,
)
from remuda.snapshot.plans import planned
from remuda.snapshot.store import open_store
from remuda.sql.trees.snapshot import RestoreSnapshotTree
from remuda.storage.format.manifest import Manifest
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.chain import load, snapshot_names
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan
from remuda.storage.snapshot.verifying import verify
from remuda.world import system_world

TABLES = ("m", "r", "late", "notes")


async def history(client: TestClient) -> None:
    """A base and two increments, with writes of all kinds between."""
    await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
    await client.sql("CREATE TABLE r (k INTEGER PRIMARY KEY, v TEXT) REPLICATED")
    await client.sql("CREATE TABLE notes (text TEXT)")
    await client.sql("CREATE TABLE empty (k INTEGER PRIMARY KEY)")
    await client.sql("INSERT INTO m SELECT n, 'v' || n FROM generate_series(1, 400) AS g (n)")
    await client.sql("INSERT INTO r VALUES (1, 'a'), (2, 'b')")
    await client.sql("INSERT INTO notes VALUES ('same'), ('same'), (NULL)")
    await client.sql("CREATE VIEW seen AS SELECT k FROM m")
    await client.sql("CREATE SNAPSHOT s")
    schema = await client.schema("m")
    await client.put(schema, (5, "put"))
    await client.put(schema, (1000, "new"))
    await client.remove(schema, 6)
    await client.sql("UPDATE m SET v = 'updated' WHERE k BETWEEN 10 AND 20")
    await client.sql("DELETE FROM m WHERE k BETWEEN 30 AND 40")
    await client.sql("UPDATE r SET v = 'c' WHERE k = 2")
    await client.sql("CREATE SNAPSHOT s INCREMENT")
    await client.sql("CREATE TABLE late (k INTEGER PRIMARY KEY)")
    await client.sql("INSERT INTO late VALUES (7)")
    await client.sql("DELETE FROM notes WHERE text IS NULL")
    await client.sql("CREATE SNAPSHOT s INCREMENT")


async def contents(client: TestClient, prefix: str = "") -> list[Any]:
    return [sorted(await client.sql(f"SELECT * FROM {prefix}{name}"), key=repr) for name in TABLES]


def opened(place: Path) -> ObjectStore:
    return open_store(str(place / "store"), system_world())


def path_to(store: ObjectStore, name: str = "s", cut: int | None = None) -> RestorePlan:
    return planned(store, RestoreSnapshotTree(name, Position(0, 0, 0), cut=cut), archive=True)


def compacted(store: ObjectStore, path: RestorePlan, into: str, count: int) -> Manifest:
    """As ``spark.snapshots`` does it, in this thread; the pieces in reverse, one tried twice."""
    made = begin_base(store, load(store, path.cut.name), path, into)
    ids = {schema.map_id for schema in catalog_of(path).maps}
    pieces = pieces_of(path, ids, count)
    BaseWriter(store, None, path, made, 0).write(pieces[0])
    objects = [
        each
        for piece in reversed(pieces)
        for each in BaseWriter(store, None, path, made, 1).write(piece)
    ]
    return finish_base(store, path, made, objects, now=1_700_000_000_000_000, key=None)


def test_a_new_base_restores_what_its_cut_restores(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        made = await asyncio.to_thread(compacted, store, path_to(store), "aside", 5)
        assert made.is_base
        assert (made.version, made.timestamp) == (3, load(store, "s").manifests[3].timestamp)
        assert verify(store, "aside").findings == []
        named = {each.key for each in made.data}
        assert named == set(store.keys("aside/data-")), "what was tried first is gone"
        await client.sql("RESTORE SNAPSHOT s PREFIX 'own_'")
        await client.sql("RESTORE SNAPSHOT aside PREFIX 'new_'")
        assert await contents(client, "new_") == await contents(client, "own_")
        assert await client.sql("SELECT count(*) FROM new_empty") == [(0,)]
        assert await contents(client, "new_") == await contents(client)

    run(tmp_path, scenario)


def test_increments_go_on_from_a_base_in_its_place(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        made = await asyncio.to_thread(compacted, store, path_to(store), "s", 4)
        assert (made.name, made.version, made.parent) == ("s", 4, None)
        await client.sql("UPDATE m SET v = 'after' WHERE k = 1")
        await client.sql("INSERT INTO late VALUES (8)")
        [row] = await client.sql("CREATE SNAPSHOT s INCREMENT")
        assert row[1:3] == (5, "increment")
        chain = load(store, "s")
        assert [each.version for each in chain.path(5)] == [4, 5], "the new base bears it"
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("DROP SNAPSHOT s CUT 3, 2, 1 CASCADE")
        await client.sql("RESTORE SNAPSHOT s PREFIX 'new_'")
        assert await contents(client, "new_") == await contents(client)

    run(tmp_path, scenario)


def test_what_cannot_become_a_base(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        chain = load(store, "s")
        with pytest.raises(InputError, match="only the last cut"):
            begin_base(store, chain, path_to(store, cut=2), "s")
        with pytest.raises(InputError, match="only the last cut"):
            begin_base(store, chain, path_to(store, cut=1), "s")
        made = begin_base(store, chain, path_to(store, cut=2), "aside")
        assert made == NewBase("aside", 2)
        with pytest.raises(DuplicateObject, match="aside already"):
            begin_base(store, chain, path_to(store), "aside")
        writing.abandon(store, "aside", 2)
        assert snapshot_names(store) == ["s"]
        writing.begin(store, "s", 4)  # a member makes a cut
        with pytest.raises(InputError, match="cut 4 of snapshot s is being made") as refused:
            begin_base(store, load(store, "s"), path_to(store), "s")
        assert load(store, "s").pending() == [4], "and its note is still there"
        assert "DROP SNAPSHOT s CUT 4" in str(refused.value.hint)
        assert ("s", 4, False) in await client.sql("DROP SNAPSHOT s CUT 4")
        assert load(store, "s").pending() == []
        made = begin_base(store, load(store, "s"), path_to(store), "s")
        assert made == NewBase("s", 5), "4 was given up, and who began it may be at it still"
        writing.abandon(store, "s", 5)
        await client.sql("CREATE SNAPSHOT bases")
        with pytest.raises(InputError, match="is a base already"):
            begin_base(store, load(store, "bases"), path_to(store, "bases"), "bases")

    run(tmp_path, scenario)


def test_a_missing_object_keeps_a_base_from_being_seen(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        path = path_to(store)
        made = begin_base(store, load(store, "s"), path, "aside")
        [piece, *_] = pieces_of(path, {each.map_id for each in catalog_of(path).maps}, 4)
        objects = BaseWriter(store, None, path, made, 0).write(piece)
        store.delete(objects[0].key)
        with pytest.raises(ResourceError, match="is not in the store"):
            finish_base(store, path, made, objects, now=1, key=None)
        assert not load(store, "aside").manifests
        assert writing.abandon(store, "aside", made.version) == len(objects) - 1

    run(tmp_path, scenario)


# --- Parquet --------------------------------------------------------------------------------------

TYPES = """CREATE TABLE types (
    id BIGINT PRIMARY KEY, a BOOLEAN, b TINYINT, c SMALLINT, d INTEGER, e REAL, f DOUBLE PRECISION,
    g DECIMAL(10, 2), h DECIMAL(30, 5), i VARCHAR(20), j BYTEA, k DATE, l TIME, m TIMESTAMP,
    n TIMESTAMPTZ, o UUID, p JSON, q INTERVAL, s INTEGER ARRAY, t UUID ARRAY)"""
ROW = """(1, true, 1, 2, 3, 1.5, 2.5, 12345678.91, 123456789012345678901234.12345, 'Zürich',
    '\\x00ff', DATE '2024-02-29', TIME '12:30:01.5', TIMESTAMP '2024-02-29 12:30:01.123456',
    TIMESTAMPTZ '2024-02-29 12:30:01+02', UUID '12345678-1234-5678-1234-567812345678',
    '{"a": [1, null]}', INTERVAL '1 month 2 days 03:04:05', ARRAY[1, NULL, 3],
    ARRAY[UUID '12345678-1234-5678-1234-567812345678'])"""
NULLS = "(2" + ", NULL" * 19 + ")"


def export(store: ObjectStore, path: RestorePlan, to: Path, **options: Any) -> list[Exported]:
    target = target_of(str(to), "x1")
    return export_here(store, None, path, maps=options.get("maps"), target=target, pieces=3)


def read(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM read_parquet('{folder}/*.parquet')")
        return sorted(found.fetchall(), key=repr)


@pytest.mark.parametrize("cut", [1, 3])
def test_an_export_holds_what_a_restore_brings(tmp_path: Path, cut: int) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        await client.sql(f"RESTORE SNAPSHOT s CUT {cut} PREFIX 'own_'")
        done = await asyncio.to_thread(export, store, path_to(store, cut=cut), tmp_path / "out")
        assert [each.map for each in done] == sorted(
            {"m", "r", "notes", "empty"} | ({"late"} if cut == 3 else set())
        )
        for each in done:
            rows = sorted(await client.sql(f"SELECT * FROM own_{each.map}"), key=repr)
            assert read(tmp_path / "out" / each.map) == rows
            assert each.rows == len(rows)
        assert (tmp_path / "out" / "_SUCCESS").exists()
        assert [each.name for each in tmp_path.iterdir() if "exporting" in each.name] == []

    run(tmp_path, scenario)


def test_the_command_line_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO m VALUES (1), (2)")
        await client.sql("CREATE SNAPSHOT s")
        words = ["snapshot", "export", "s", str(tmp_path / "out"), "--store"]
        assert await asyncio.to_thread(main, [*words, str(tmp_path / "store")]) == 0
        shown = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
        assert [cell.strip() for cell in shown[-1]] == ["m", "2", "1"]
        assert read(tmp_path / "out" / "m") == [(1,), (2,)]
        assert await asyncio.to_thread(main, [*words, str(tmp_path / "store")]) == 1
        assert "is there already, and not empty" in capsys.readouterr().err
        assert await asyncio.to_thread(main, [*words, ""]) == 1
        assert "no store is named" in capsys.readouterr().err

    run(tmp_path, scenario, members=1)


def test_every_type_is_read_by_others(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql(TYPES)
        await client.sql(f"INSERT INTO types VALUES {ROW}, {NULLS}")
        await client.sql('CREATE TABLE "Odd/name=1" (k INTEGER PRIMARY KEY)')
        await client.sql('CREATE TABLE "_hidden" (k INTEGER PRIMARY KEY)')
        await client.sql("CREATE SNAPSHOT t")
        store = opened(tmp_path)
        done = await asyncio.to_thread(export, store, path_to(store, "t"), tmp_path / "out")
        assert [each.rows for each in done] == [0, 0, 2]
        folders = sorted(each.name for each in (tmp_path / "out").iterdir() if each.is_dir())
        assert folders == ["%5Fhidden", "Odd%2Fname%3D1", "types"]
        [full, empty] = read(tmp_path / "out" / "types")
        assert empty == (2, *([None] * 19))
        assert [str(each) for each in full[:10]] == [
            *("1", "True", "1", "2", "3", "1.5", "2.5", "12345678.91"),
            *("123456789012345678901234.12345", "Zürich"),
        ]
        assert full[10] == b"\x00\xff"
        assert [str(each) for each in full[11:14]] == [
            *("2024-02-29", "12:30:01.500000", "2024-02-29 12:30:01.123456")
        ]
        assert full[14] == datetime(2024, 2, 29, 10, 30, 1, tzinfo=UTC)
        own = await client.sql(
            "SELECT CAST(o AS TEXT), CAST(p AS TEXT), CAST(q AS TEXT) FROM types"
        )
        assert full[15:18] == own[0]
        assert full[18:] == ([1, None, 3], [own[0][0]])
        [file] = (tmp_path / "out" / "types").glob("*.parquet")
        facts = {k: v for k, v in pq.read_metadata(file).metadata.items() if b"remuda" in k}
        assert (facts[b"remuda.map"], facts[b"remuda.key"]) == (b"types", b"id")

    run(tmp_path, scenario, members=1)


def test_an_export_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await history(client)
        store = opened(tmp_path)
        path, to = path_to(store), tmp_path / "out"
        with pytest.raises(UndefinedMap, match="nope"):
            export(store, path, to, maps=["nope"])
        to.mkdir()
        (to / "of others").write_text("x")
        with pytest.raises(DuplicateObject, match="not empty"):
            export(store, path, to)
        (to / "of others").unlink()
        lost = load(store, "s").manifests[3].logs[0].segments[0]
        data = store.get(lost.key)
        store.delete(lost.key)
        store.put(lost.key, data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(Exception, match="is damaged"):
            export(store, path, to)
        assert list(to.iterdir()) == []
        store.delete(lost.key)
        store.put(lost.key, data)
        pieces = pieces_of(path, {each.map_id for each in chosen_maps(path, ["m"])}, 1)
        target = target_of(str(to), "x2")
        begin_export(target)
        parts: list[Exported] = []
        wanted: Sequence[str] = ["m"]
        for number, piece in enumerate(pieces):
            for attempt in range(2):
                name = f"part-{number}-{attempt}"
                found = export_piece(
                    store, None, path, piece, maps=wanted, target=target, name=name
                )
            parts += found
        [done] = finish_export(path, wanted, target, parts)
        assert sorted(file.name for file in (to / "m").iterdir()) == sorted(done.files)
        assert read(to / "m") == sorted(await client.sql("SELECT * FROM m"), key=repr)

    run(tmp_path, scenario)


def test_credentials_in_a_target_are_not_shown() -> None:
    for url in ("nope://KEY:SECRET@place/x?token=SECRET", "file://KEY:SECRET@place/x?token=SECRET"):
        with pytest.raises(ResourceError, match=r"the target \w+://place/x cannot be opened") as no:
            target_of(url, "x")
        assert "SECRET" not in str(no.value)
    refused = _cannot(Target("s3://KEY:SECRET@place/x", "", ""), OSError("no way"))
    assert str(refused) == "the export cannot be written to s3://place/x: no way"
