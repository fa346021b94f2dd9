"""Members that may store no more: writes are refused on every copy before anything of them is
prepared, and succeed again when there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.member.conftest import TestCluster

import remuda.aio
from remuda.client.operations import bulk
from remuda.errors import StorageFull, TransientError, UniqueViolation

InCluster = Callable[..., None]
TEXT = "x" * 500


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def with_table(cluster: TestCluster, options: str = "") -> Any:
    client = await cluster.client()
    await client.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR) {options}")
    return client


def keys_of(cluster: TestCluster, member: int, count: int) -> list[int]:
    """Keys of the table whose primary a member is."""
    core = cluster.member(member).core
    [schema] = [s for s in core.catalog.maps if s.name == "t"]
    router = cluster.member(member).transactions.router(schema.map_id)
    mine = set(core.view.partitions_of(member))
    return [k for k in range(10_000) if router.key_partition((k,)) in mine][:count]


def fill(cluster: TestCluster, member: int) -> None:
    """From now on the member has no room."""
    cluster.member(member).core.room.stored.resize(1)


def empty(cluster: TestCluster, member: int) -> None:
    cluster.member(member).core.room.stored.resize(2**30)


def left(cluster: TestCluster) -> list[str]:
    """What is left of writes that were refused."""
    found = []
    for member in cluster.members:
        gauges = member.transactions.gauges()
        found += [f"{member.core.number}: {n}={v}" for n, v in gauges.items() if v and n != "ends"]
        for store in (*member.core.stores.values(), *member.core.backup_stores.values()):
            if store.schema.name == "t" and (store.rows or store._staging.jobs):
                found.append(f"{member.core.number}: rows or jobs of {store.schema.name}")
    return found


def staged(cluster: TestCluster) -> bool:
    """Whether rows of jobs lie anywhere."""
    return any(
        store._staging.jobs
        for member in cluster.members
        for store in (*member.core.stores.values(), *member.core.backup_stores.values())
    )


@pytest.mark.parametrize("full", [1, 2])
def test_every_kind_of_write_is_refused_by_the_copy_without_room(
    in_cluster: InCluster, full: int
) -> None:
    """Member 1 is the primary of all keys, and member 2 their backup, which is full, or else it is
    the primary that is full. Nothing is left of what was refused, on any copy."""

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        schema = await client.schema("t")
        mine = keys_of(cluster, 1, 60)
        values = ", ".join(f"({key}, '{TEXT}')" for key in mine)
        fill(cluster, full)

        async def transaction() -> None:
            async with client.transaction() as transaction:
                await transaction.sql(f"INSERT INTO t VALUES {values}")

        writes: dict[str, Callable[[], Any]] = {
            "put": lambda: client.put(schema, (mine[0], TEXT)),
            "several": lambda: client.put(schema, *[(key, TEXT) for key in mine[:5]]),
            "insert": lambda: client.sql(f"INSERT INTO t VALUES ({mine[0]}, '{TEXT}')"),
            "many": lambda: client.sql(f"INSERT INTO t VALUES {values}"),
            "query": lambda: client.sql(
                f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(20001, 23000) g(g)"
            ),
        }
        for name, write in writes.items():
            with pytest.raises(StorageFull, match=f"member {full} has no room") as refused:
                await write()
            error = refused.value
            assert error.sqlstate == "53200", name
            assert error.retryable
            assert not error.may_have_run
            assert "may store" in error.message
            assert "storage_memory" in error.hint
        await until(lambda: not left(cluster))
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        empty(cluster, full)
        for name in ("put", "several", "query"):
            await writes[name]()
        [(count,)] = await client.sql("SELECT count(*) FROM t")
        assert count > 2000

    in_cluster(scenario, members=2, backups=1)


@pytest.mark.parametrize("full", [1, 2])
def test_bulk_writes_and_statements_that_copy_rows_leave_nothing(
    in_cluster: InCluster, full: int
) -> None:
    """Tables of clients, jobs as Spark begins them, statements that make or rewrite rows."""
    rows = pa.table({"id": list(range(3000)), "v": [TEXT] * 3000})

    async def scenario(cluster: Any) -> None:
        plain = await with_table(cluster)
        series = f"SELECT g, '{TEXT}' FROM generate_series(10000, 12000) g(g)"
        await plain.sql(f"INSERT INTO t {series}")
        before = await plain.sql("SELECT count(*), min(v), max(v) FROM t")
        async with remuda.aio.connect(cluster.member(1).addresses()["user"]) as client:
            numbers = client.map("t")

            async def job() -> None:
                begun = await client.begin_job("t")
                async with begun:
                    task = await begun.write(bulk.engine_batches(begun.schema, rows))
                    await begun.commit([task])

            writes: dict[str, Callable[[], Any]] = {
                "table": lambda: numbers.put_all(rows),
                "job": job,
                "update": lambda: client.sql("UPDATE t SET v = v || 'y'"),
                "merge": lambda: client.sql(
                    f"MERGE INTO t USING ({series}) s(id, v) ON t.id = s.id "
                    "WHEN MATCHED THEN UPDATE SET v = s.v || 'z' WHEN NOT MATCHED THEN "
                    "INSERT VALUES (s.id, s.v)"
                ),
                "conflict": lambda: client.sql(
                    f"INSERT INTO t {series} ON CONFLICT (id) DO UPDATE SET v = excluded.v || 'x'"
                ),
                "create table as": lambda: client.sql(f"CREATE TABLE made AS {series}"),
            }
            fill(cluster, full)
            for name, write in writes.items():
                with pytest.raises(StorageFull, match=f"member {full} has no room") as refused:
                    await write()
                assert refused.value.retryable, name
            await until(lambda: not staged(cluster))
            assert await plain.sql("SELECT count(*), min(v), max(v) FROM t") == before
            assert all(
                schema.name != "made" for m in cluster.members for schema in m.core.catalog.maps
            )
            await client.sql("ALTER TABLE t ADD COLUMN more VARCHAR DEFAULT 'x'")  # takes no memory
            await client.sql("ALTER TABLE t DROP COLUMN more")
            empty(cluster, full)
            for write in writes.values():
                await write()

    in_cluster(scenario, members=2, backups=1)


def test_guards_of_unique_values_use_the_reserve(in_cluster: InCluster) -> None:
    """Their map is an internal one; the row itself is not."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT UNIQUE)")
        await client.sql("INSERT INTO t VALUES (1, 1)")
        fill(cluster, 1)
        with pytest.raises(StorageFull, match="member 1 has no room for a write"):
            await client.sql("INSERT INTO t VALUES (2, 2)")
        empty(cluster, 1)
        await client.sql("INSERT INTO t VALUES (2, 2)")
        with pytest.raises(UniqueViolation):
            await client.sql("INSERT INTO t VALUES (3, 2)")

    in_cluster(scenario, members=1)


@pytest.mark.parametrize("full", [1, 2, 3])
def test_an_index_without_room_is_refused_before_it_is_made(
    in_cluster: InCluster, full: int
) -> None:
    """Member 3 only serves it: each member is asked for what it has, as a primary and a backup."""

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1, 4000) g(g)")
        await client.sql("CREATE TABLE u (id BIGINT PRIMARY KEY, v VARCHAR)")
        fill(cluster, full)
        for text in (
            "CREATE INDEX i ON t (v)",
            "CREATE INDEX i ON t USING HASH (v)",
            "CREATE INDEX i ON t USING BITMAP (v)",
            "CREATE UNIQUE INDEX i ON t (id, v)",
            "ALTER TABLE t ADD CONSTRAINT i UNIQUE (id, v)",
        ):
            with pytest.raises(StorageFull, match=f"member {full} has no room for an index") as e:
                await client.sql(text)
            assert e.value.sqlstate == "53200"
            assert e.value.retryable
            assert "storage_memory" in e.value.hint
        await client.sql("CREATE INDEX j ON u (v)")  # there is nothing to be indexed
        assert not await client.sql("SELECT indexname FROM pg_indexes WHERE indexname = 'i'")
        for member in cluster.members:
            core = member.core
            assert all(index.name != "i" for m in core.catalog.maps for index in m.indexes)
            assert all(
                index.definition.name != "i"
                for store in (*core.stores.values(), *core.backup_stores.values())
                for index in store.indexes.by_id.values()
            )
        for member in cluster.members:  # no error keeps the variables of where it was raised
            kept = [each.facts.error for each in member.statements.history._kept.values()]
            assert not [e for e in kept if e and (e.__traceback__ or e.__context__ or e.__cause__)]
        empty(cluster, full)
        await client.sql("CREATE INDEX i ON t (v)")
        for member in cluster.members:
            member.core.room.measure()
            assert member.core.room.stored.held > 2_000_000  # rows and indexes, of both copies

    in_cluster(scenario, members=3, backups=1)


def test_a_dropped_map_makes_room_at_once_however_long_it_took_to_measure(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        await client.sql("CREATE TABLE u (id BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1, 4000) g(g)")
        for member in cluster.members:
            room = member.core.room
            room.measure()
            room.stored.resize(int(room.stored.held * 1.06))
            room._took = 1e9
        more = f"INSERT INTO u SELECT g, '{TEXT}' FROM generate_series(1, 1000) g(g)"
        with pytest.raises(StorageFull):
            await client.sql(more)
        await client.sql("DROP TABLE t")
        await client.sql(more)

    in_cluster(scenario, members=2, backups=1)


def test_single_writes_are_admitted_with_their_index_entries_on_every_copy(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the next measurement finds them."""
    monkeypatch.setattr("remuda.member.state.write_room.MEASURE_EVERY", 1e9)

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        keys = iter(keys_of(cluster, 1, 3))

        async def admitted() -> list[int]:
            """Of one put, by each member."""
            schema = await client.schema("t")
            before = [member.core.room.stored.held for member in cluster.members]
            await client.put(schema, (next(keys), TEXT))
            after = [member.core.room.stored.held for member in cluster.members]
            return [b - a for a, b in zip(before, after, strict=True)]

        plain = await admitted()
        await client.sql("CREATE INDEX i ON t (v)")
        await client.sql("CREATE INDEX j ON t (v, id)")
        indexed = await admitted()
        assert min(plain) > len(TEXT)
        assert all(b >= a + 2 * len(TEXT) for a, b in zip(plain, indexed, strict=True))

    in_cluster(scenario, members=2, backups=1)


def test_a_map_with_max_bytes_refuses_an_index_that_it_has_no_room_for(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster, "WITH (max_bytes = '4 MB', eviction = 'none')")
        await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1, 4000) g(g)")
        cluster.member(1).core.room.measure()
        with pytest.raises(StorageFull, match='map "t" is full'):
            await client.sql("CREATE INDEX i ON t (v)")
        await client.sql("CREATE INDEX i ON t (id)")

    in_cluster(scenario, members=1)


def test_asynchronous_backups_without_room_are_waited_for(in_cluster: InCluster) -> None:
    """Of what is answered before a backup has it, one write is lost."""

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster, "WITH (async_backups = true)")
        schema = await client.schema("t")
        first, *others = keys_of(cluster, 1, 5)
        fill(cluster, 2)
        await client.put(schema, (first, TEXT))
        await until(lambda: not left(cluster))
        for key in others:
            with pytest.raises(StorageFull, match="member 2 has no room"):
                await client.put(schema, (key, TEXT))
        empty(cluster, 2)
        for key in others:
            await client.put(schema, (key, TEXT))
        assert await client.sql("SELECT count(*) FROM t") == [(len(others),)]

    in_cluster(scenario, members=2, backups=1)


def test_what_is_removed_makes_room_though_the_member_is_full(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        schema = await client.schema("t")
        await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1, 400) g(g)")
        for member in cluster.members:
            member.core.room.measure()
            held = member.core.room.stored.held
            member.core.room.stored.resize(held * 9 // 10)  # as after a promotion
        with pytest.raises(StorageFull):
            await client.put(schema, (1000, TEXT))
        await client.remove(schema, 1)
        await client.sql("DELETE FROM t WHERE id BETWEEN 2 AND 20")
        await client.sql("TRUNCATE TABLE t")
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        await client.sql("DROP TABLE t")
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)")
        await client.put(await client.schema("t"), (1, TEXT))

    in_cluster(scenario, members=2, backups=1)


def test_a_write_that_was_refused_succeeds_when_removed_rows_have_gone(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.member.upkeep.VERSIONS_KEPT", 0)

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        schema = await client.schema("t")
        key = 0
        with pytest.raises(StorageFull):
            while key < 100_000:
                await client.put(schema, *[(key + more, TEXT) for more in range(20)])
                key += 20
        [(held, limit, refused)] = await client.sql(
            "SELECT storage_held, storage_limit, writes_refused FROM sys.members"
        )
        assert held <= limit == 4_000_000
        assert held > 3_000_000
        assert refused == 1
        await client.sql(f"DELETE FROM t WHERE id < {key // 2}")
        async with asyncio.timeout(20):
            while True:
                try:
                    await client.put(schema, (key, TEXT))
                except StorageFull:
                    await asyncio.sleep(0.02)
                else:
                    break

    in_cluster(scenario, members=1, storage_memory=4_000_000)


def test_a_map_with_max_bytes_and_without_eviction_refuses_writes(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster, "WITH (max_bytes = '4 MB', eviction = 'none')")
        schema = await client.schema("t")
        with pytest.raises(StorageFull, match='map "t" is full') as refused:
            for key in range(0, 100_000, 20):
                await client.put(schema, *[(key + more, TEXT) for more in range(20)])
        assert "max_bytes" in refused.value.hint
        with pytest.raises(StorageFull, match='map "t" is full'):
            await client.sql(
                f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1000000, 1009000) g(g)"
            )
        await client.sql("CREATE TABLE other (id BIGINT PRIMARY KEY, v VARCHAR)")
        await client.put(await client.schema("other"), (1, TEXT))
        [(held, limit)] = await client.sql("SELECT bytes, bytes_limit FROM sys.maps WHERE name='t'")
        assert limit == 4 * 2**20
        assert limit * 0.8 < held <= limit
        [(shares,)] = await client.sql("SELECT sum(bytes_limit) FROM sys.map_parts WHERE name='t'")
        assert limit - 2 <= shares <= limit
        await client.sql("ALTER TABLE t SET (max_bytes = '1 GB')")
        rooms = [cluster.member(number).core.room for number in (1, 2)]
        await until(lambda: all((room.map_limit(schema.map_id) or 0) > limit for room in rooms))
        await client.put(schema, (7_000_000, TEXT))

    in_cluster(scenario, members=2, backups=1)


def test_copies_that_have_no_room_are_not_made_and_their_partitions_say_so(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three members one is lost: the two that are left cannot hold all rows twice."""
    monkeypatch.setattr("remuda.member.copies.giving.FULL_PAUSE", 0.05)
    monkeypatch.setattr("remuda.member.copies.giving.LOOK_EVERY", 0.05)
    states = "SELECT state, cause, count(*) FROM sys.partitions GROUP BY state, cause ORDER BY 1, 2"

    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        for first in range(1, 6000, 1000):
            series = f"generate_series({first}, {first + 999}) g(g)"
            await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM {series}")
        await cluster.member(3).stop()

        async def look() -> list[Any]:
            try:
                return await client.sql(states)
            except TransientError:  # the view is changing
                return []

        async with asyncio.timeout(30):
            found = await look()
            while not any(cause for _, cause, _ in found):
                await asyncio.sleep(0.05)
                found = await look()
        assert {state for state, _, _ in found} <= {"complete", "short of backups"}
        causes = {cause.split(":")[0] for _, cause, _ in found if cause is not None}
        assert causes <= {f"member {number} has no room for a write" for number in (1, 2)}
        assert await client.sql("SELECT count(*) FROM t") == [(6000,)]
        async with asyncio.timeout(30):
            while await look() != [("complete", None, 271)]:
                for number in (1, 2):
                    empty(cluster, number)  # until the next view, which takes the setting again
                await asyncio.sleep(0.05)

    in_cluster(scenario, members=3, backups=1, heartbeat_timeout=1.0, storage_memory=3_400_000)


def test_a_restore_that_does_not_fit_leaves_nothing(in_cluster: InCluster, tmp_path: Path) -> None:
    async def scenario(cluster: Any) -> None:
        client = await with_table(cluster)
        await client.sql(f"INSERT INTO t SELECT g, '{TEXT}' FROM generate_series(1, 3000) g(g)")
        await client.sql("CREATE SNAPSHOT s")
        await client.sql("DROP TABLE t")
        fill(cluster, 2)
        with pytest.raises(StorageFull, match="member 2 has no room"):
            await client.sql("RESTORE SNAPSHOT s")
        await until(lambda: not any(member.core.catalog.maps for member in cluster.members))
        empty(cluster, 2)
        await client.sql("RESTORE SNAPSHOT s")
        assert await client.sql("SELECT count(*) FROM t") == [(3000,)]

    in_cluster(scenario, members=2, backups=1, snapshot_store=str(tmp_path))


def test_members_of_one_host_share_its_memory(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        limits = {member.core.room.stored.limit for member in cluster.members}
        machine = cluster.member(1).core.world.memory.total()
        assert len(limits) == 1
        assert sum(member.core.memory.limit for member in cluster.members) <= machine // 4
        assert 3 * limits.pop() < machine

    in_cluster(scenario, members=3)
