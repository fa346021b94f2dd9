"""UPDATE, DELETE, TRUNCATE and INSERT ... ON CONFLICT: atomic, and no update is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from remuda.errors import (
    CardinalityViolation,
    RemudaError,
    SerializationFailure,
    UniqueViolation,
)
from remuda.member.statements.changes import ATTEMPTS
from remuda.storage.maps.map_store import MapStore

InCluster = Callable[..., None]
ROWS = 60


async def filled(cluster, kind: str = ""):
    client = await cluster.client()
    await client.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, mark BIGINT) {kind}")
    values = ", ".join(f"({i}, 0, 0)" for i in range(ROWS))
    await client.sql(f"INSERT INTO t VALUES {values}")
    return client


@pytest.mark.parametrize("kind", ["", "REPLICATED"])
def test_concurrent_increments_are_never_lost(in_cluster: InCluster, kind: str) -> None:
    async def scenario(cluster) -> None:
        reader = await filled(cluster, kind)
        times = 8
        running = 3

        async def increment(number: int) -> None:
            nonlocal running
            client = await cluster.client(number)
            for _ in range(times):
                result = await client.run("UPDATE t SET n = n + 1")
                assert (result.error, result.tag, result.affected) == (None, "UPDATE", ROWS)
            running -= 1

        async def read() -> None:
            while running:
                [row] = await reader.sql("SELECT min(n), max(n), count(*) FROM t")
                assert row[0] == row[1]
                assert row[2] == ROWS

        await asyncio.gather(read(), *(increment(number) for number in (1, 2, 3)))
        assert await reader.sql("SELECT DISTINCT n FROM t") == [(3 * times,)]
        await cluster.idle()

    in_cluster(scenario)


def test_an_update_keeps_entries_that_were_put_meanwhile(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        writer = await cluster.client(2)
        schema = await client.schema("t")
        running = True

        async def update() -> None:
            nonlocal running
            for _ in range(6):
                result = await client.run("UPDATE t SET n = n + 1 WHERE id < 40")
                assert result.error is None or isinstance(result.error, SerializationFailure)
            running = False

        async def put() -> int:
            count = 0
            while running:
                count += 1
                for key in (3, 17, 50):
                    await writer.put(schema, (key, 0, count))
                await asyncio.sleep(0)
            return count

        _, count = await asyncio.gather(update(), put())
        rows = await client.sql("SELECT id, mark FROM t WHERE id IN (3, 17, 50) ORDER BY id")
        assert rows == [(3, count), (17, count), (50, count)]
        await cluster.idle()

    in_cluster(scenario)


def test_rows_move_to_other_members_as_a_whole(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        reader = await cluster.client(2)
        moving = True

        async def move() -> None:
            nonlocal moving
            for _ in range(6):
                assert (await client.run("UPDATE t SET id = id + 7")).affected == ROWS
            moving = False

        async def read() -> None:
            while moving:
                [(count, least, greatest)] = await reader.sql(
                    "SELECT count(*), min(id), max(id) FROM t"
                )
                assert (count, greatest - least) == (ROWS, ROWS - 1)

        await asyncio.gather(move(), read())
        assert await client.sql("SELECT * FROM t WHERE id = 41") == []
        assert await client.sql("SELECT * FROM t WHERE id = 42") == [(42, 0, 0)]
        await cluster.idle()

    in_cluster(scenario)


def test_a_refused_statement_changes_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        before = await client.sql("SELECT * FROM t ORDER BY id")
        for wrong in (
            "UPDATE t SET id = 5 WHERE id = 6",
            "UPDATE t SET n = 100 / (id - 31)",
            "INSERT INTO t VALUES (1000, 1, 1), (7, 1, 1) RETURNING id",
            "DELETE FROM t WHERE 1 / (id - 59) = 0",
        ):
            with pytest.raises(RemudaError):
                await client.sql(wrong)
            assert await client.sql("SELECT * FROM t ORDER BY id") == before
        await cluster.idle()

    in_cluster(scenario)


def test_a_statement_that_never_gets_through_says_so(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    async def scenario(cluster) -> None:
        nonlocal attempts
        client = await filled(cluster)
        prepare = MapStore.prepare

        def refuse(self, job, tasks, **options):
            nonlocal attempts
            if options["unchanged_since"] is not None:
                attempts += 1
                raise SerializationFailure("changed")
            return prepare(self, job, tasks, **options)

        monkeypatch.setattr(MapStore, "prepare", refuse)
        with pytest.raises(SerializationFailure) as caught:
            await client.sql("DELETE FROM t WHERE id IN (3, 4)")
        assert caught.value.sqlstate == "40001"
        assert attempts == ATTEMPTS
        monkeypatch.undo()
        assert (await client.run("DELETE FROM t WHERE id IN (3, 4)")).affected == 2
        await cluster.idle()

    in_cluster(scenario)


def test_a_changed_row_is_read_again(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put between the read and the commit: the second attempt sees it."""

    async def scenario(cluster) -> None:
        client = await filled(cluster)
        prepare = MapStore.prepare
        done = False

        def change_before(self, job, tasks, **options):
            nonlocal done
            if not done and options["unchanged_since"] is not None:
                done = True
                at = next(m for m in cluster.members if self in m.core.stores.values())
                key = next(k for k in range(ROWS) if self.get((k,), at.core.timestamp()))
                self.put((key, 1000, 1), at.core.timestamp())
            return prepare(self, job, tasks, **options)

        monkeypatch.setattr(MapStore, "prepare", change_before)
        result = await client.run("UPDATE t SET n = n + 1 RETURNING n")
        assert result.affected == ROWS
        assert sorted(result.rows) == [(1,)] * (ROWS - 1) + [(1001,)]
        assert await client.sql("SELECT sum(n), sum(mark) FROM t") == [(1000 + ROWS, 1)]
        await cluster.idle()

    in_cluster(scenario)


def test_concurrent_upserts_count_everything(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE c (k VARCHAR PRIMARY KEY, n BIGINT)")
        statement = (
            "INSERT INTO c VALUES (?, 1), ('all', 1) "
            "ON CONFLICT (k) DO UPDATE SET n = c.n + excluded.n"
        )

        async def count(number: int) -> None:
            own = await cluster.client(number)
            for _ in range(6):
                assert (await own.run(statement, f"member {number}")).affected == 2

        await asyncio.gather(*(count(number) for number in (1, 2, 3)))
        assert await client.sql("SELECT k, n FROM c ORDER BY k") == [
            ("all", 18), ("member 1", 6), ("member 2", 6), ("member 3", 6)
        ]  # fmt: skip

    in_cluster(scenario)


def test_counts_tags_and_pages_of_returning(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        result = await client.run("DELETE FROM t WHERE id < 25 RETURNING id, n", page_rows=10)
        assert (result.tag, result.affected, len(result.rows)) == ("DELETE", 25, 25)
        assert result.columns == ["id", "n"]
        assert max(page.num_rows for page in result.pages) <= 10
        result = await client.run("DELETE FROM t WHERE id < 25 RETURNING id")
        assert (result.affected, result.rows, result.columns) == (0, [], ["id"])
        result = await client.run(
            "INSERT INTO t VALUES (1, 1, 1), (30, 1, 1) ON CONFLICT DO NOTHING"
        )
        assert (result.tag, result.affected) == ("INSERT", 1)
        result = await client.run("TRUNCATE t")
        assert (result.error, result.tag) == (None, "TRUNCATE TABLE")
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        await cluster.idle()

    in_cluster(scenario)


def test_a_row_that_comes_twice_is_refused_in_the_words_of_postgresql(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        with pytest.raises(
            CardinalityViolation, match="cannot affect row a second time"
        ) as refused:
            await client.sql(
                "INSERT INTO t VALUES (1, 1, 1), (1, 2, 2) ON CONFLICT (id) DO UPDATE SET n = 5"
            )
        assert refused.value.hint == (
            "Ensure that no rows proposed for insertion within the same command have duplicate "
            "constrained values."
        )
        assert await client.sql("SELECT n FROM t WHERE id = 1") == [(0,)]

    in_cluster(scenario)


def test_large_changes(in_cluster: InCluster) -> None:
    """More than a page of the inner query, and more than what is prepared on the loop."""

    async def scenario(cluster) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE big (a INTEGER, b INTEGER, n BIGINT, PRIMARY KEY (a, b))")
        await client.sql("CREATE TABLE digits (i INTEGER PRIMARY KEY)")
        values = ", ".join(f"({i})" for i in range(400))
        await client.sql(f"INSERT INTO digits VALUES {values}")
        await client.sql(
            "INSERT INTO big SELECT x.i * 400 + y.i, 0, 0 FROM digits x CROSS JOIN digits y"
        )
        total = 160_000
        assert (await client.run("UPDATE big SET n = n + a")).affected == total
        assert (await client.run("UPDATE big SET b = b + 1 WHERE a % 2 = 0")).affected == total // 2
        assert (await client.run("DELETE FROM big WHERE b = 1")).affected == total // 2
        assert await client.sql("SELECT count(*), min(b), max(b), sum(n) FROM big") == [
            (total // 2, 0, 0, sum(range(1, total, 2)))
        ]
        with pytest.raises(UniqueViolation):
            await client.sql("UPDATE big SET a = a / 4")
        assert (await client.run("DELETE FROM big")).affected == total // 2
        await cluster.idle()

    in_cluster(scenario)
