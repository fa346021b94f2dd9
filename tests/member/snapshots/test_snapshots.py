"""CREATE, RESTORE, VERIFY, EXPIRE, DROP SNAPSHOT and SHOW SNAPSHOTS on clusters of members."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.member.conftest import TestClient, TestCluster, cluster_of

from remuda.catalog.catalog import Catalog
from remuda.catalog.unique_guards import is_guards
from remuda.catalog.users import ALL, Role
from remuda.errors import (
    DataCorrupted,
    DuplicateMap,
    InputError,
    NotSupported,
    RemudaError,
    TransientError,
    UndefinedMap,
    UndefinedObject,
    UndefinedSchema,
)
from remuda.member.snapshots import making as snapshot_making
from remuda.member.snapshots import restoring as snapshot_restoring
from remuda.member.system.system_state import SystemState
from remuda.session.privileges import Need, needs_of
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.trees.snapshot import RestoreSnapshotTree

QUERIES = (
    "SELECT id, item, price FROM {}orders ORDER BY id",
    "SELECT name, size FROM {}kinds ORDER BY name",
    "SELECT text FROM {}notes ORDER BY text",
)


async def filled(client: TestClient) -> None:
    await client.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT, price DECIMAL(10, 2))")
    await client.sql(
        "INSERT INTO orders SELECT n, 'item ' || n, n / 4.0 FROM generate_series(1, 2000) AS g (n)"
    )
    await client.sql("CREATE TABLE kinds (name TEXT PRIMARY KEY, size INTEGER) REPLICATED")
    await client.sql("INSERT INTO kinds VALUES ('a', 1), ('b', NULL)")
    await client.sql("CREATE TABLE notes (text TEXT)")
    await client.sql("INSERT INTO notes VALUES ('same'), ('same'), (NULL)")
    await client.sql("CREATE INDEX by_price ON orders (price)")
    await client.sql("CREATE VIEW dear AS SELECT id FROM orders WHERE price > 400")


async def contents(client: TestClient, prefix: str = "") -> list[Any]:
    return [await client.sql(query.format(prefix)) for query in QUERIES]


NUMBERS = (
    "SELECT relname, oid FROM pg_class WHERE oid >= 16384 "
    "UNION ALL SELECT conname, oid FROM pg_constraint ORDER BY 2"
)


async def names(client: TestClient) -> list[str]:
    return [row[0] for row in await client.sql("SHOW TABLES")]


def staged(cluster: TestCluster) -> list[str]:
    """Maps of interrupted restores, on whatever member."""
    return [
        schema.name
        for member in cluster.members
        for schema in member.core.catalog.maps
        if schema.name.startswith("\x01") and not is_guards(schema)
    ]


async def refused(client: TestClient, text: str, kind: type[RemudaError]) -> RemudaError:
    with pytest.raises(kind) as caught:
        await client.sql(text)
    return caught.value


Scenario = Callable[[TestClient, TestCluster], Awaitable[None]]


def run(store: Path, scenario: Scenario, members: int = 2, **settings: Any) -> None:
    async def main() -> None:
        async with cluster_of(members, snapshot_store=str(store), **settings) as cluster:
            await scenario(await cluster.client(members), cluster)
            await cluster.idle()
            assert not staged(cluster)

    asyncio.run(main())


def test_a_snapshot_restores_on_another_number_of_members(tmp_path: Path) -> None:
    before: list[Any] = []
    numbers: list[Any] = []

    async def make(client: TestClient, _cluster: TestCluster) -> None:
        await filled(client)
        numbers.extend(await client.sql(NUMBERS))
        before.extend(await contents(client))
        [row] = await client.sql("CREATE SNAPSHOT nightly")
        assert row[:3] == ("nightly", 1, "base")
        assert row[5:7] == (3, 2005)
        await client.sql("DELETE FROM orders WHERE id > 10")
        assert await client.sql("VERIFY SNAPSHOT nightly") == []
        restored = await client.sql("RESTORE SNAPSHOT nightly PREFIX 'old_'")
        assert [each[:3] for each in restored] == [
            ("kinds", "old_kinds", 2),
            ("notes", "old_notes", 3),
            ("orders", "old_orders", 2000),
        ]
        assert await contents(client, "old_") == before
        assert [row[:2] for row in await client.sql("SHOW INDEXES")] == [
            ("by_price", "orders"),
            ("by_price_2", "old_orders"),
        ]
        now = await client.sql(NUMBERS)
        assert set(numbers) < set(now)
        assert len({oid for _, oid in now}) == len(now)  # what was there before keeps its own

    async def restore(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE other (id INTEGER PRIMARY KEY)")
        await client.sql("DROP TABLE other")
        await client.sql("RESTORE SNAPSHOT nightly")
        assert await contents(client) == before
        assert await client.sql(NUMBERS) == numbers
        assert await client.sql("SELECT count(*) FROM dear") == [(400,)]
        [index] = await client.sql("SHOW INDEXES")
        assert (index[0], index[4]) == ("by_price", "ready")
        await client.sql("INSERT INTO notes VALUES ('same')")  # its row id is a new one
        assert await client.sql("SELECT count(*) FROM notes WHERE text = 'same'") == [(3,)]

    run(tmp_path, make, members=3)
    run(tmp_path, restore, members=1)
    run(tmp_path, restore, members=2)


def test_what_is_in_a_store_is_shown(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        (tmp_path / "Of others").mkdir()
        (tmp_path / "Of others" / "x").write_text("what others keep there is left alone")
        assert await client.sql("SHOW SNAPSHOTS") == []
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v INTEGER)")
        await client.sql("CREATE TABLE empty (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO m VALUES (1, 1)")
        await client.sql("CREATE SNAPSHOT a")
        await client.sql("UPDATE m SET v = 2")
        await client.sql("CREATE SNAPSHOT a")
        await client.sql("CREATE SNAPSHOT 'b-1'")
        listed = await client.sql("SHOW SNAPSHOTS")
        assert [row[:3] for row in listed] == [
            ("a", 1, "base"),
            ("a", 2, "base"),
            ("b-1", 1, "base"),
        ]
        assert listed == await client.sql("SELECT * FROM sys.snapshots ORDER BY snapshot, cut")
        shown = await client.sql("SHOW SNAPSHOT a")
        assert [row[1:7] for row in shown] == [
            (cut, "base", *counts)
            for cut in (1, 2) for counts in (("empty", 0, 0, 0), ("m", 1, 0, 1))
        ]  # fmt: skip
        await client.sql("RESTORE SNAPSHOT a CUT 1 MAPS m AS first, empty AS nothing")
        await client.sql("RESTORE SNAPSHOT a MAPS m AS second")
        assert await client.sql("SELECT v FROM first") == [(1,)]
        assert await client.sql("SELECT v FROM second") == [(2,)]
        assert await client.sql("SELECT count(*) FROM nothing") == [(0,)]
        while await client.sql("SELECT * FROM sys.snapshot_tasks"):
            pass  # each member ends its own

    run(tmp_path, scenario)


def test_expire_and_drop_keep_what_is_needed(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO m VALUES (1)")
        for _ in range(3):
            await client.sql("CREATE SNAPSHOT s")
        late = "'2999-01-01'"
        assert await client.sql(f"EXPIRE SNAPSHOT s BEFORE {late} DRY RUN") == [
            ("s", 1, False), ("s", 2, False), ("s", 3, True),
        ]  # fmt: skip
        assert len(await client.sql("SHOW SNAPSHOTS")) == 3
        await client.sql("DROP SNAPSHOT s CUT 2")
        assert await client.sql("EXPIRE SNAPSHOT s BEFORE '2001-01-01'") == [
            ("s", 1, True), ("s", 3, True),
        ]  # fmt: skip
        await client.sql(f"EXPIRE SNAPSHOT s BEFORE {late}")
        assert [row[1] for row in await client.sql("SHOW SNAPSHOTS")] == [3]
        assert len(list(tmp_path.rglob("*.arrow"))) == 1
        await client.sql("DROP SNAPSHOT s")
        assert left_in(tmp_path) == []
        await refused(client, "DROP SNAPSHOT s", UndefinedObject)
        assert await client.sql("DROP SNAPSHOT IF EXISTS s") == []

    run(tmp_path, scenario)


def test_what_cannot_be_restored_leaves_the_cluster_as_it_was(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await filled(client)
        await client.sql("CREATE SNAPSHOT s")
        before = await contents(client)
        error = await refused(client, "RESTORE SNAPSHOT s", DuplicateMap)
        assert '"kinds" exists already' in error.message
        await refused(client, "RESTORE SNAPSHOT s MAPS orders AS dear", DuplicateMap)
        await refused(client, "RESTORE SNAPSHOT s MAPS orders AS x, kinds AS x", DuplicateMap)
        error = await refused(client, "RESTORE SNAPSHOT s MAPS order AS x", UndefinedMap)
        assert '"orders"' in error.hint
        await refused(client, "RESTORE SNAPSHOT s CUT 9", InputError)
        await refused(client, "RESTORE SNAPSHOT none", UndefinedObject)
        await refused(client, "CREATE SNAPSHOT 'Not This'", InputError)
        checked = await client.sql("RESTORE SNAPSHOT s PREFIX 'x_' DRY RUN")
        assert len(checked) == 3
        victim = max(tmp_path.rglob("*.arrow"), key=lambda path: path.stat().st_size)
        whole = victim.read_bytes()
        middle = len(whole) // 2
        victim.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        for text in ("RESTORE SNAPSHOT s PREFIX 'x_'", "RESTORE SNAPSHOT s PREFIX 'x_' DRY RUN"):
            error = await refused(client, text, DataCorrupted)
            assert victim.name in error.message
        [(place, problem, kind)] = await client.sql("VERIFY SNAPSHOT s LEVEL 1")
        assert place.endswith(victim.name)
        assert "damaged" in problem
        assert kind == "damage"
        victim.unlink()
        error = await refused(client, "RESTORE SNAPSHOT s PREFIX 'x_'", InputError)
        assert victim.name in error.detail
        assert await client.sql("VERIFY SNAPSHOT s") != []
        assert await names(client) == ["kinds", "notes", "orders"]
        assert await contents(client) == before

    run(tmp_path, scenario)


def test_without_a_store_snapshots_say_what_to_do(in_cluster: Callable[..., None]) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client()
        error = await refused(client, "CREATE SNAPSHOT s", NotSupported)
        assert "snapshot_store" in error.hint
        assert await client.sql("SELECT * FROM sys.snapshots") == []

    in_cluster(scenario, 1)


def test_a_restore_that_is_cancelled_too_late_says_that_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY)")
        await client.sql("INSERT INTO m VALUES (1)")
        await client.sql("CREATE SNAPSHOT s")
        snapshots = cluster.members[0].snapshots
        edit = snapshots.restoring._edit
        edits = 0

        async def cancelled_meanwhile(made: Any) -> None:
            nonlocal edits
            edits += 1
            if edits == 2:  # all rows are there; this gives the map its name
                running.cancel()
                await asyncio.sleep(0)
            await edit(made)

        async def restore() -> None:
            tree = RestoreSnapshotTree("s", None, maps=(("m", "n"),))
            with snapshots.tasks.task("restore", "s", lambda: None) as task:
                await snapshots.restoring.restore(task, tree)

        monkeypatch.setattr(snapshots.restoring, "_edit", cancelled_meanwhile)
        running = asyncio.create_task(restore())
        await running
        assert await client.sql("SELECT k FROM n") == [(1,)]

    run(tmp_path, scenario, members=1)


def test_objects_are_encrypted_and_another_key_is_refused(tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    for path, text in ((key, "ab" * 32), (other, "cd" * 32)):
        path.write_text(text)
        path.chmod(0o600)
    store = tmp_path / "store"

    async def make(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE m (k INTEGER PRIMARY KEY, v TEXT)")
        await client.sql("INSERT INTO m VALUES (1, 'a word that is secret')")
        [made] = await client.sql("CREATE SNAPSHOT s")
        assert made[9]  # the key
        assert await client.sql("SHOW SNAPSHOTS") == [made[:-1]]
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("RESTORE SNAPSHOT s MAPS m AS again")
        assert await client.sql("SELECT v FROM again") == [("a word that is secret",)]
        for path in store.rglob("*"):
            assert path.is_dir() or b"secret" not in path.read_bytes()

    async def read(client: TestClient, _cluster: TestCluster) -> None:
        error = await refused(client, "RESTORE SNAPSHOT s", InputError)
        assert "encrypted" in error.message
        assert await names(client) == []
        error = await refused(client, "VERIFY SNAPSHOT s", InputError)
        assert await client.sql("VERIFY SNAPSHOT s LEVEL 1") == []

    run(store, make, members=1, snapshot_key_file=str(key))
    run(store, read, members=1, snapshot_key_file=str(other))
    run(store, read, members=1)
    key.chmod(0o644)

    async def readable(client: TestClient, _cluster: TestCluster) -> None:
        error = await refused(client, "CREATE SNAPSHOT t", InputError)
        assert "chmod 600" in error.hint

    run(store, readable, members=1, snapshot_key_file=str(key))


def test_a_snapshot_is_of_one_moment_while_transactions_run(tmp_path: Path) -> None:
    """Money moves between accounts all the time; no snapshot may see it on its way."""

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await client.sql("CREATE TABLE accounts (id INTEGER PRIMARY KEY, amount INTEGER)")
        await client.sql("INSERT INTO accounts SELECT n, 100 FROM generate_series(1, 20) AS g (n)")
        over = False
        moves = 0

        async def move(first: int) -> None:
            nonlocal moves
            mover = await cluster.client(1)
            while not over:
                a, b = first, first % 20 + 1
                await mover.sql(
                    "UPDATE accounts SET amount = amount + CASE id WHEN ? THEN 1 ELSE -1 END"
                    " WHERE id IN (?, ?)", a, a, b,
                )  # fmt: skip
                moves += 1

        movers = [asyncio.ensure_future(move(first)) for first in (1, 5, 9)]
        sums = []
        for number in range(4):
            await client.sql("CREATE SNAPSHOT money")
            await client.sql(f"RESTORE SNAPSHOT money MAPS accounts AS a{number}")
            sums += await client.sql(f"SELECT sum(amount), count(*) FROM a{number}")
        over = True
        await asyncio.gather(*movers)
        assert moves > 0
        assert sums == [(2000, 20)] * 4

    run(tmp_path, scenario, members=2, backups=1)


def left_in(store: Path) -> list[Path]:
    """Besides marks: the number of a cut that was given up is not given out again."""
    return [path for path in store.rglob("*") if path.is_file() and path.suffix != ".mark"]


def test_a_cancelled_statement_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def manifests() -> list[Path]:
        return sorted([*tmp_path.rglob("*.manifest"), *tmp_path.rglob("*.note")])

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        await client.sql("CREATE SNAPSHOT s")
        files = manifests()
        monkeypatch.setattr(snapshot_making, "THROTTLE", 1e6)  # it rests for a second, each time
        making = await client.start("CREATE SNAPSHOT s")
        watcher = await cluster.client(1)
        while not await watcher.sql("SELECT 1 FROM sys.snapshot_tasks WHERE objects > 0"):
            await asyncio.sleep(0.005)
        await client.cancel(making)
        await making.done.wait()
        assert making.error is not None
        assert making.error.sqlstate == "57014"
        # (A member may still be putting an object, which no manifest names.)
        assert manifests() == files
        late = await client.run("CREATE SNAPSHOT s", timeout=0.05)
        assert late.error is not None
        assert late.error.sqlstate == "57014"
        monkeypatch.setattr(snapshot_making, "THROTTLE", 0.0)
        [row] = await client.sql("CREATE SNAPSHOT s")
        assert row[1] >= 2
        assert await client.sql("VERIFY SNAPSHOT s") == []
        await client.sql("DROP SNAPSHOT s")
        assert left_in(tmp_path) == []

    run(tmp_path, scenario)


def test_an_interrupted_restore_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def hold(_self: Any, _maps: Any) -> None:
        held.set()
        await asyncio.Event().wait()

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        await client.sql("CREATE SNAPSHOT s")
        with monkeypatch.context() as patch:
            patch.setattr(snapshot_restoring.SnapshotRestoring, "_check_rows", hold)
            started = await client.start("RESTORE SNAPSHOT s PREFIX 'x_'")
            await held.wait()
            assert staged(cluster)
            watcher = await cluster.client(1)
            assert await names(watcher) == ["kinds", "notes", "orders"]  # nobody sees them
            assert len(await watcher.sql("SELECT * FROM sys.maps")) == 3
            await cluster.member(3).stop()  # it runs the restore
            while staged(cluster):
                await asyncio.sleep(0.01)
                cluster.members = [m for m in cluster.members if not m.core.stopping]
            assert not started.done.is_set() or started.error is not None
        await watcher.sql("RESTORE SNAPSHOT s PREFIX 'x_'")
        assert await contents(watcher, "x_") == await contents(watcher)

    run(tmp_path, scenario, members=3, backups=1)


def test_a_number_that_another_maker_has_just_taken_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked which numbers were tried before either left its note."""
    begin, taken = snapshot_making.writing.begin, list[int]()

    def begun_twice(store: Any, name: str, version: int, now: int = 0) -> None:
        if not taken:
            taken.append(version)
            begin(store, name, version, now)
        begin(store, name, version, now)

    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await filled(client)
        monkeypatch.setattr(snapshot_making.writing, "begin", begun_twice)
        [made] = await client.sql("CREATE SNAPSHOT s")
        assert made[1] == taken[0] + 1
        [note] = tmp_path.rglob("*.note")
        assert f"{taken[0]:010}" in note.name, "the other one's"

    run(tmp_path, scenario)


class MovingState(SystemState):
    """At first rows are between two members, or counted on both, when their states are asked."""

    answers = 0
    """How many are such."""

    async def all(self) -> dict[int, Any]:
        states = await super().all()
        self.answers -= 1
        if self.answers < 0:
            return states
        first = states[min(states)]
        for part in first.maps:
            part.rows = part.rows // 2 if self.answers % 2 else 2 * part.rows + 1
        if self.answers % 3:
            first.context.view += 1
        else:
            next(gauge for gauge in first.gauges if gauge.name == "promoting").value = 1
        return states


@pytest.mark.parametrize("kind", ["", " INCREMENT"])
def test_restored_rows_are_counted_when_none_is_on_its_way(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_restoring, "COUNT_PAUSE", 0.0)
    monkeypatch.setattr(snapshot_restoring, "COUNT_ATTEMPTS", 20)

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        await client.sql("CREATE SNAPSHOT s")
        if kind:
            await client.sql("INSERT INTO orders VALUES (9999, 'last', 1)")
            [made] = await client.sql(f"CREATE SNAPSHOT s{kind}")
            assert made[2] == "increment"
        for member in cluster.members:
            member.snapshots.restoring._state.__class__ = MovingState
        state: Any = cluster.members[-1].snapshots.restoring._state
        state.answers = 7
        await client.sql("RESTORE SNAPSHOT s PREFIX 'x_'")
        assert await contents(client, "x_") == await contents(client)
        state.answers = 10_000
        error = await refused(client, "RESTORE SNAPSHOT s PREFIX 'y_'", TransientError)
        assert "partitions were moved" in error.message
        state.answers = 0

    settings = {"data_dir": str(tmp_path / "data")} if kind else {}
    run(tmp_path / "store", scenario, members=1 if kind else 2, **settings)


def test_a_member_that_is_lost_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CREATE begins again in the next view, RESTORE has others read the objects."""
    monkeypatch.setattr(snapshot_making, "THROTTLE", 1.0)

    async def scenario(client: TestClient, cluster: TestCluster) -> None:
        await filled(client)
        before = await contents(client)
        rows = cluster.member(3).snapshots.rows
        first = asyncio.Event()
        original = rows._write

        async def slow(message: Any) -> Any:
            first.set()
            await asyncio.sleep(0.2)
            return await original(message)

        monkeypatch.setattr(rows, "_write", slow)
        other = await cluster.client(1)
        making = await other.start("CREATE SNAPSHOT s")
        await first.wait()
        await cluster.member(3).stop()
        await making.done.wait()
        assert making.error is None, str(making.error)
        assert len(list(tmp_path.rglob("*.manifest"))) == 1
        assert not list(tmp_path.rglob("*.note"))
        await other.sql("RESTORE SNAPSHOT s PREFIX 'x_'")
        assert await contents(other, "x_") == before

    run(tmp_path, scenario, members=3, backups=1)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SNAPSHOT s INCREMENT",
        "SHOW SNAPSHOTS",
        "VERIFY SNAPSHOT s",
        "RESTORE SNAPSHOT s",
        "EXPIRE SNAPSHOT s BEFORE '2024-01-01'",
        "DROP SNAPSHOT s",
    ],
)
def test_statements_about_snapshots_are_for_administrators(text: str) -> None:
    catalog = Catalog()
    assert needs_of(bind(parse(text), catalog), catalog) == (Need(Role.ADMIN, ALL),)


def test_a_restore_makes_the_schemas_that_are_not_there(tmp_path: Path) -> None:
    comments = (
        "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace "
        "WHERE nspname LIKE 'shop%' ORDER BY 1"
    )

    async def make(client: TestClient, _cluster: TestCluster) -> None:
        for text in (
            "CREATE SCHEMA shop",
            "COMMENT ON SCHEMA shop IS 'what is sold'",
            'CREATE SCHEMA "shop.odd"',
            "CREATE SCHEMA shop_empty",
            "CREATE TABLE shop.items (id BIGSERIAL PRIMARY KEY, name TEXT UNIQUE)",
            'CREATE TABLE "shop.odd".items (id BIGINT PRIMARY KEY)',
            "INSERT INTO shop.items (name) VALUES ('saw'), ('nail')",
            "CREATE VIEW shop.names AS SELECT name FROM shop.items",
            "CREATE SNAPSHOT one",
        ):
            await client.sql(text)

    async def look(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("RESTORE SNAPSHOT one")
        assert await client.sql(comments) == [("shop", "what is sold"), ("shop.odd", None)]
        assert await client.sql("SELECT name FROM shop.names ORDER BY 1") == [("nail",), ("saw",)]
        await client.sql("INSERT INTO shop.items (name) VALUES ('awl')")
        with pytest.raises(RemudaError, match="duplicate key"):
            await client.sql("INSERT INTO shop.items (name) VALUES ('saw')")
        await client.sql("DROP SCHEMA shop CASCADE")
        await client.sql("CREATE SCHEMA shop")
        await client.sql("RESTORE SNAPSHOT one MAPS shop.items")  # into the schema as it is
        assert await client.sql(comments) == [("shop", None), ("shop.odd", None)]
        assert await client.sql("SELECT count(*) FROM shop.items") == [(2,)]
        await client.sql("CREATE SCHEMA other")
        await client.sql("RESTORE SNAPSHOT one MAPS shop.items AS other.things")
        await client.sql("INSERT INTO other.things (name) VALUES ('awl')")
        assert await client.sql("SELECT max(id), count(*) FROM other.things") == [(3, 3)]
        assert await client.sql("SELECT schemaname FROM pg_tables WHERE tablename = 'things'") == [
            ("other",)
        ]
        await refused(client, "RESTORE SNAPSHOT one MAPS shop.items AS nix.things", UndefinedSchema)
        await refused(client, "RESTORE SNAPSHOT one MAPS items", UndefinedMap)

    run(tmp_path, make)
    run(tmp_path, look, members=1)


def test_a_restore_that_fails_makes_no_schema(tmp_path: Path) -> None:
    async def scenario(client: TestClient, _cluster: TestCluster) -> None:
        await client.sql("CREATE SCHEMA shop")
        await client.sql("CREATE TABLE shop.items (id BIGINT PRIMARY KEY)")
        await client.sql("CREATE TABLE kept (id BIGINT PRIMARY KEY)")
        await client.sql("CREATE SNAPSHOT one")
        await client.sql("DROP SCHEMA shop CASCADE")
        await refused(client, "RESTORE SNAPSHOT one", DuplicateMap)
        await client.sql("RESTORE SNAPSHOT one MAPS shop.items DRY RUN")
        assert await client.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'shop'") == []

    run(tmp_path, scenario)
