"""ALTER TABLE, constraints, views and CREATE TABLE AS on three members, with others at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import (
    CheckViolation,
    DivisionByZero,
    NotNullViolation,
    RemudaError,
    SchemaChanged,
    UndefinedColumn,
    UndefinedMap,
    UniqueViolation,
)

InCluster = Callable[..., None]
ROWS = 3000


async def filled(cluster: Any) -> Any:
    client = await cluster.client(1)
    await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT DEFAULT 7, s TEXT)")
    await client.sql(
        f"INSERT INTO m (id, s) SELECT i, 'r' || i FROM generate_series(1, {ROWS}) AS g (i)"
    )
    return client


def schemas(cluster: Any) -> set[Any]:
    return {member.core.catalog for member in cluster.members}


def test_every_member_has_the_new_schema_when_alter_has_answered(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        others = [await cluster.client(number) for number in (2, 3)]
        await client.sql("ALTER TABLE m ADD COLUMN extra INTEGER DEFAULT 5, DROP COLUMN s")
        for other in others:
            assert await other.sql("SELECT count(*), sum(extra), sum(v) FROM m") == [
                (ROWS, 5 * ROWS, 7 * ROWS)
            ]
            with pytest.raises(UndefinedColumn):
                await other.sql("SELECT s FROM m")
        await others[1].sql("UPDATE m SET extra = id WHERE id <= 10")
        assert await client.sql("SELECT sum(extra) FROM m WHERE id <= 12") == [(65,)]
        assert len(schemas(cluster)) == 1
        versions = {m.core.catalog.get("m").version for m in cluster.members}
        assert versions == {2}

    in_cluster(scenario)


def test_queries_and_changes_go_on_while_the_schema_changes(in_cluster: InCluster) -> None:
    """Readers see every row, with a value that was written; writers lose nothing. Whatever fails,
    fails with a transient error."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        done = asyncio.Event()
        added = 0

        async def read(number: int) -> None:
            reader = await cluster.client(number)
            while not done.is_set():
                try:
                    found = await reader.sql("SELECT count(*), min(v), max(length(s)) FROM m")
                except SchemaChanged:
                    continue
                assert found[0][0] >= ROWS
                assert found[0][1] == 7

        async def write(number: int) -> None:
            nonlocal added
            writer = await cluster.client(number)
            key = 10_000 * number
            while not done.is_set():
                key += 1
                try:
                    await writer.sql("INSERT INTO m (id, s) VALUES (?, 'w')", key)
                    added += 1
                    await writer.sql("UPDATE m SET s = 'u' WHERE id = ?", key)
                except SchemaChanged:
                    continue

        work = [asyncio.ensure_future(read(n)) for n in (1, 2, 3)]
        work += [asyncio.ensure_future(write(n)) for n in (2, 3)]
        for step in range(6):
            await client.sql(f"ALTER TABLE m ADD COLUMN c{step} INTEGER DEFAULT {step}")
            await asyncio.sleep(0.01)
            await client.sql(f"ALTER TABLE m RENAME COLUMN c{step} TO d{step}")
            await client.sql(f"ALTER TABLE m ADD CONSTRAINT k{step} CHECK (d{step} >= 0)")
            await asyncio.sleep(0.01)
            if step % 2:
                await client.sql(f"ALTER TABLE m DROP COLUMN d{step}")
        done.set()
        await asyncio.gather(*work)
        assert added > 0
        found = await client.sql("SELECT count(*), sum(d0), sum(d2), sum(d4) FROM m")
        assert found == [(ROWS + added, 0, 2 * (ROWS + added), 4 * (ROWS + added))]

    in_cluster(scenario)


def test_a_constraint_that_rows_break_changes_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        other = await cluster.client(3)
        before = cluster.member(2).core.catalog.get("m")
        with pytest.raises(CheckViolation):
            await other.sql("ALTER TABLE m ADD COLUMN x INTEGER, ADD CHECK (id < 10)")
        await client.sql("UPDATE m SET s = NULL WHERE id = 5")
        with pytest.raises(NotNullViolation):
            await other.sql("ALTER TABLE m ALTER COLUMN s SET NOT NULL, ADD COLUMN y INTEGER")
        with pytest.raises(DivisionByZero):
            await other.sql("ALTER TABLE m ADD CHECK (1 / (id - 5) >= 0)")
        for member in cluster.members:
            after = member.core.catalog.get("m")
            assert (after.columns, after.checks) == (before.columns, before.checks)
        await client.sql("INSERT INTO m (id) VALUES (100000)")
        assert await other.sql("SELECT count(*) FROM m WHERE s IS NULL") == [(2,)]
        assert len(schemas(cluster)) == 1

    in_cluster(scenario)


def test_not_null_holds_for_rows_that_come_while_it_is_verified(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        done = asyncio.Event()

        async def write(number: int) -> None:
            writer = await cluster.client(number)
            key = 10_000 * number
            while not done.is_set():
                key += 1
                try:
                    await writer.sql("INSERT INTO m (id, v) VALUES (?, NULL)", key)
                    await writer.sql("DELETE FROM m WHERE id = ?", key)
                except (CheckViolation, NotNullViolation, SchemaChanged):
                    continue

        work = [asyncio.ensure_future(write(number)) for number in (1, 2, 3)]
        accepted = 0
        for _ in range(20):
            try:
                await client.sql("ALTER TABLE m ALTER COLUMN v SET NOT NULL")
            except NotNullViolation:
                continue
            accepted += 1
            # The planner takes NOT NULL for granted: count what the rows hold.
            rows = await client.sql("SELECT v FROM m")
            assert all(row[0] is not None for row in rows)
            await client.sql("ALTER TABLE m ALTER COLUMN v DROP NOT NULL")
        done.set()
        await asyncio.gather(*work)
        names = {check.name for m in cluster.members for check in m.core.catalog.get("m").checks}
        assert names == set()

    in_cluster(scenario)


def test_values_that_come_while_a_column_is_verified_stay(in_cluster: InCluster) -> None:
    """The column that becomes NOT NULL is the one that rows were written to meanwhile."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        writer = await cluster.client(2)
        definitions = cluster.members[0].statements._definitions
        verify = definitions._verify

        async def write_first(*given: Any) -> None:
            definitions._verify = verify
            await writer.sql("UPDATE m SET n = 8 WHERE id = 1")
            await writer.sql("INSERT INTO m (id, n) VALUES (-1, 9)")
            await verify(*given)

        definitions._verify = write_first
        await client.sql("ALTER TABLE m ADD COLUMN n INTEGER NOT NULL DEFAULT 5 CHECK (n > 0)")
        assert await client.sql("SELECT id, n FROM m WHERE id < 3 ORDER BY id") == [
            (-1, 9), (1, 8), (2, 5),
        ]  # fmt: skip

    in_cluster(scenario)


def test_rows_that_come_while_a_column_gets_numbers_have_their_own(in_cluster: InCluster) -> None:
    """Rows are inserted and changed from when the column is there until the statement ends. None of
    the writers fails for lack of a number, every row has one of its own, and those that RETURNING
    has told stay."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        writer = await cluster.client(2)
        told: dict[int, int] = {}
        filling = asyncio.Event()
        definitions = cluster.members[0].statements._definitions
        fill, steps = definitions._fill_columns, 0

        async def write(number: int) -> None:
            made = await writer.sql(f"INSERT INTO m (id) VALUES ({-number}) RETURNING id, n")
            told.update(dict(made))
            await writer.sql(f"UPDATE m SET s = 'changed' WHERE id = {number}")

        async def write_around(*given: Any) -> None:
            nonlocal steps
            steps += 1
            await write(steps)
            filling.set()
            await fill(*given)
            await write(100 + steps)

        async def write_beside() -> None:
            await filling.wait()
            for number in range(1000, 1010):
                await write(number)

        definitions._fill_columns = write_around
        await asyncio.gather(
            client.sql("ALTER TABLE m ADD COLUMN n SERIAL UNIQUE, ADD COLUMN u UUID NOT NULL"
                       " DEFAULT gen_random_uuid()"),
            write_beside(),
        )  # fmt: skip
        count = ROWS + len(told)
        assert len(told) == 12
        found = await client.sql("SELECT count(*), count(DISTINCT n), count(DISTINCT u) FROM m")
        assert found == [(count, count, count)]
        assert dict(await client.sql("SELECT id, n FROM m WHERE id < 0")) == told
        changed = await client.sql("SELECT count(*) FROM m WHERE s = 'changed'")
        assert changed == [(12,)]

    in_cluster(scenario)


def test_definitions_from_all_members_at_once_are_all_made(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        clients = [client, *[await cluster.client(number) for number in (1, 2, 3)]]

        async def alter(index: int) -> None:
            await clients[index].sql(f"ALTER TABLE m ADD COLUMN x{index} INTEGER DEFAULT {index}")
            await clients[index].sql(f"CREATE VIEW v{index} AS SELECT id, x{index} AS x FROM m")
            await clients[index].sql(f"COMMENT ON COLUMN m.x{index} IS 'of {index}'")

        await asyncio.gather(*(alter(index) for index in range(4)))
        assert len(schemas(cluster)) == 1
        found = await clients[2].sql("SELECT x0, x1, x2, x3 FROM m WHERE id = 1")
        assert found == [(0, 1, 2, 3)]
        for index in range(4):
            assert await clients[3].sql(f"SELECT x FROM v{index} WHERE id = 1") == [(index,)]
        comments = {c.comment for c in cluster.member(1).core.catalog.get("m").columns} - {""}
        assert comments == {f"of {index}" for index in range(4)}

    in_cluster(scenario)


def test_a_job_of_the_old_schema_is_refused_as_a_whole(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        schema = await client.schema("m")
        await client.sql("ALTER TABLE m ADD COLUMN x INTEGER NOT NULL DEFAULT 1")
        with pytest.raises(SchemaChanged):
            await client.put(schema, (1, 2, "three"))
        fresh = await client.schema("m")
        await client.put(fresh, (1, 2, "three", 4))
        assert await client.get(fresh, 1) == [(1, 2, "three", 4)]

    in_cluster(scenario)


def test_a_put_that_breaks_a_check_stores_nothing(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v BIGINT CHECK (v > 0))")
        schema = await client.schema("m")
        rows = [(key, key) for key in range(1, 40)]
        with pytest.raises(CheckViolation) as caught:
            await client.put(schema, *rows, (40, 0))
        assert "m_v_check" in caught.value.message
        assert await client.sql("SELECT count(*) FROM m") == [(0,)]
        await client.put(schema, *rows, (40, None))
        assert await client.sql("SELECT count(*) FROM m") == [(40,)]

    in_cluster(scenario)


def test_create_table_as_leaves_nothing_behind_when_it_fails(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        result = await client.run("CREATE TABLE copy (PRIMARY KEY (id)) AS SELECT id, s FROM m")
        assert (result.error, result.affected) == (None, ROWS)
        for text, expected in [
            ("CREATE TABLE n AS SELECT id / (id - 5) AS x FROM m", DivisionByZero),
            ("CREATE TABLE n (PRIMARY KEY (x)) AS SELECT id % 7 AS x FROM m", UniqueViolation),
        ]:
            with pytest.raises(expected):
                await client.sql(text)
            with pytest.raises(UndefinedMap):
                await client.sql("SELECT * FROM n")
        assert {len(m.core.stores) for m in cluster.members} == {2}
        await cluster.idle()

    in_cluster(scenario)


def test_rows_without_a_key_are_told_apart_on_all_members(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2, 3)]
        await clients[0].sql("CREATE TABLE n (x INTEGER)")
        insert = "INSERT INTO n SELECT 1 FROM generate_series(1, 500)"
        await asyncio.gather(*(client.sql(insert) for client in clients for _ in range(3)))
        found = await clients[1].sql("SELECT count(*), count(DISTINCT n.__row_id) FROM n")
        assert found == [(4500, 4500)]
        assert await clients[2].sql("SELECT * FROM n LIMIT 1") == [(1,)]

    in_cluster(scenario)


def test_live_relations_show_all_members(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        other = await cluster.client(2)
        other.hold = True
        long = await other.start("SELECT a.id FROM m a CROSS JOIN m c CROSS JOIN m b")
        await long.first_page.wait()
        while True:
            found = await client.sql(
                "SELECT q.member, q.state, q.rows > 0, q.members FROM sys.queries q "
                "WHERE q.text LIKE '%CROSS JOIN m b'"
            )
            if found and found[0][3] == 3:
                break
            await asyncio.sleep(0.01)
        assert found == [(2, "running", True, 3)]
        fragments = await client.sql(
            "SELECT count(DISTINCT f.member) FROM sys.fragments f JOIN sys.queries q USING (query) "
            "WHERE q.text LIKE '%CROSS JOIN m b'"
        )
        assert fragments == [(3,)]
        other.release()
        await other.cancel(long)
        await long.done.wait()
        await cluster.idle()
        assert await client.sql("SELECT count(*) FROM sys.fragments") == [(0,)]
        assert await client.sql("SELECT rows, columns FROM sys.maps") == [(ROWS, 3)]
        assert await client.sql("SELECT sum(rows), count(*) FROM sys.map_parts") == [(ROWS, 3)]
        assert await client.sql("SELECT count(*) FROM sys.members WHERE state = 'alive'") == [(3,)]

    in_cluster(scenario)


def test_a_query_of_the_old_schema_is_answered_or_fails_for_now(in_cluster: InCluster) -> None:
    """Pages that were not read yet come from the schema that the query began with."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        reader = await cluster.client(3)
        reader.hold = True
        slow = await reader.start("SELECT id, v, s FROM m", page_rows=100)
        await slow.first_page.wait()
        await client.sql("ALTER TABLE m DROP COLUMN s, ADD COLUMN s INTEGER DEFAULT 9")
        reader.release()
        await slow.done.wait()
        error: RemudaError | None = slow.error
        if error is None:
            assert sorted(slow.rows) == [(i, 7, f"r{i}") for i in range(1, ROWS + 1)]
        else:
            assert isinstance(error, SchemaChanged)
        assert await reader.sql("SELECT s FROM m WHERE id = 1") == [(9,)]

    in_cluster(scenario)
