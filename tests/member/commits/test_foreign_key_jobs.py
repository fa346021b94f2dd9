"""Foreign keys in bulk writes: no row of a job names a row that is not there (decision 0108)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from jobs_by_hand import job
from transacting import Session

from remuda.errors import (
    ForeignKeyViolation,
    MemberUnavailable,
    NotSupported,
    RemudaError,
    SerializationFailure,
)
from remuda.member.commits import job_checks
from remuda.member.statements.checks import foreign_keys
from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks

ORPHANS = (
    "SELECT c.k FROM c LEFT JOIN p ON p.k = c.p AND (c.u IS NULL OR p.u = c.u) "
    "WHERE c.p IS NOT NULL AND p.k IS NULL"
)
MANY = 1000


async def tables(client: Any, parents: int = 100) -> None:
    await client.sql("CREATE TABLE p (k BIGINT PRIMARY KEY, u VARCHAR UNIQUE)")
    await client.sql(
        "CREATE TABLE c (k BIGINT PRIMARY KEY, p INTEGER REFERENCES p, u VARCHAR REFERENCES p (u))"
    )
    await client.sql(
        f"INSERT INTO p SELECT n, 'u' || n FROM generate_series(0, {parents - 1}) AS g (n)"
    )


def rows(count: int, *more: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Children of which the fifth names no row."""
    found = [(n, None if n % 5 == 0 else n % 100, f"u{n % 100}") for n in range(count)]
    return [*found, *more]


@pytest.fixture(params=["by value", "all parents"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How parents are found."""
    if request.param == "all parents":
        monkeypatch.setattr(foreign_keys, "SOUGHT_BY_KEY", 0)
        monkeypatch.setattr(foreign_keys, "SOUGHT_BY_VALUE", 0)
    monkeypatch.setattr(foreign_keys, "SOUGHT_AT_ONCE", 32)


@pytest.mark.usefixtures("way")
def test_a_job_names_rows_that_are_there(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await tables(client)
        assert await job(client, rows(MANY), table="c") == MANY
        for more, constraint, detail in (
            ((7000, 100, None), "c_p_fkey", 'Key (p)=(100) is not present in table "p".'),
            ((7001, None, "no"), "c_u_fkey", 'Key (u)=(no) is not present in table "p".'),
        ):
            for overwrite in (False, True):
                with pytest.raises(ForeignKeyViolation, match=constraint) as caught:
                    await job(client, rows(300, more), table="c", overwrite=overwrite)
                assert caught.value.detail == detail
        assert await client.sql("SELECT count(*) FROM c") == [(MANY,)]
        assert await job(client, rows(300), table="c", overwrite=True) == 300
        assert await client.sql("SELECT count(*) FROM c") == [(300,)]

    in_cluster(scenario)


def test_statements_and_puts_of_many_rows_are_checked(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await tables(client)
        insert = "INSERT INTO c SELECT n, n % 100, 'u1' FROM generate_series(0, 999) AS g (n)"
        await client.sql(insert)
        with pytest.raises(ForeignKeyViolation, match="c_p_fkey"):
            await client.sql("UPDATE c SET p = 4")
            await client.sql("UPDATE c SET p = p + CASE WHEN k = 999 THEN 900 ELSE 1 END")
        assert await client.sql("SELECT count(*), min(p), max(p) FROM c") == [(1000, 4, 4)]
        with pytest.raises(ForeignKeyViolation, match="c_u_fkey"):
            await client.sql(
                "INSERT INTO c SELECT n, 1, CASE WHEN n = 1999 THEN 'no' END "
                "FROM generate_series(1000, 1999) AS g (n)"
            )
        await client.sql("DELETE FROM c")

    in_cluster(scenario)


@pytest.mark.parametrize("level", ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"))
def test_a_delete_that_has_looked_before_the_job_is_refused(in_cluster: Any, level: str) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await tables(client)
        session = Session(await cluster.client(2))
        await session.sql(f"BEGIN ISOLATION LEVEL {level}")
        await session.sql("DELETE FROM p WHERE k = 7")
        await job(client, rows(MANY), table="c")
        with pytest.raises(RemudaError) as caught:
            await session.sql("COMMIT")
        assert caught.value.sqlstate in ("40001", "23503")
        assert await client.sql(ORPHANS) == []

    in_cluster(scenario)


def test_deletes_beside_jobs_leave_no_child_alone(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        first, second = await cluster.client(1), await cluster.client(2)
        await tables(first)

        async def load(start: int) -> str:
            children = [(start + n, 90 + n % 10, None) for n in range(700)]
            try:
                await job(first, children, table="c")
            except ForeignKeyViolation:
                return "refused"
            except SerializationFailure:
                return "again"
            return "loaded"

        async def delete(key: int) -> str:
            try:
                await second.sql(f"DELETE FROM p WHERE k = {key}")
            except ForeignKeyViolation:
                return "refused"
            except SerializationFailure:
                return "again"
            return "deleted"

        for each in range(3):
            await first.sql("DELETE FROM c")
            key = 90 + each
            await first.sql(f"INSERT INTO p VALUES ({key}, 'u{key}') ON CONFLICT DO NOTHING")
            ends = await asyncio.gather(load(1000 * each), delete(key))
            assert await first.sql(ORPHANS) == []
            assert tuple(ends) != ("loaded", "deleted")
            await first.sql(f"INSERT INTO p VALUES ({key}, 'u{key}') ON CONFLICT DO NOTHING")

    in_cluster(scenario)


def test_jobs_that_wait_for_each_other_end(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_checks, "PARENTS_TIMEOUT", 0.5)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE a (k BIGINT PRIMARY KEY, b BIGINT)")
        await client.sql("CREATE TABLE b (k BIGINT PRIMARY KEY, a BIGINT REFERENCES a)")
        await client.sql("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b")
        await client.sql("INSERT INTO a VALUES (1, NULL)")
        await client.sql("INSERT INTO b VALUES (1, NULL)")

        async def load(table: str, start: int) -> bool:
            try:
                children: Sequence[tuple[Any, ...]] = [(start + n, 1) for n in range(600)]
                await job(await cluster.client(2), children, table=table)
            except SerializationFailure:
                return False
            return True

        for each in range(3):
            ends = await asyncio.gather(
                load("a", 1000 + each * 1000), load("b", each * 1000 + 1000)
            )
            counts = [(await client.sql(f"SELECT count(*) FROM {t}"))[0][0] for t in ("a", "b")]
            assert counts == [1 + 600 * end for end in ends] or each
        assert await load("a", 10**6)

    in_cluster(scenario)


def test_a_job_whose_parents_nobody_tells_ends(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_checks, "PARENTS_TIMEOUT", 0.5)

    async def forever(*_: Any) -> None:
        await asyncio.Event().wait()

    async def unreachable(*_: Any) -> None:
        raise MemberUnavailable("nobody has the parents")

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await tables(client)
        for never in (forever, unreachable):
            monkeypatch.setattr(ForeignKeyChecks, "require_parents", never)
            find = job_checks.JobChecks.find_parents_by
            for member in cluster.members:
                checks = member.commits.checks
                find(checks, partial(never, None))
            with pytest.raises(SerializationFailure, match="waited too long"):
                await job(client, rows(20), table="c")

    in_cluster(scenario)


def test_maps_that_are_their_own_parents_take_no_jobs(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE s (k BIGINT PRIMARY KEY, up BIGINT REFERENCES s)")
        with pytest.raises(NotSupported, match="it references itself"):
            await job(client, [(1, 1)], table="s")
        await client.sql("INSERT INTO s SELECT n, n / 2 FROM generate_series(0, 599) AS g (n)")
        assert await client.sql("SELECT count(*) FROM s") == [(600,)]

    in_cluster(scenario)


def test_a_job_that_looks_for_no_parents_would_leave_children_alone(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(ForeignKeyChecks, "require_parents", nothing)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await tables(client)
        await job(client, rows(600, (7000, 100, None)), table="c")
        assert await client.sql(ORPHANS) == [(7000,)]

    in_cluster(scenario)


def test_values_are_compared_as_sql_compares_them(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE w (a DECIMAL(30, 2), b DOUBLE, PRIMARY KEY (a, b))")
        await client.sql(
            "CREATE TABLE v (k BIGINT PRIMARY KEY, b DOUBLE, a DECIMAL(30, 2), "
            "FOREIGN KEY (a, b) REFERENCES w)"
        )
        await client.sql("INSERT INTO w VALUES (1.5, 0.0), (2.5, 'NaN')")
        arrow = [(1, -0.0, pa.scalar(1.5).as_py()), (2, float("nan"), 2.5), (3, None, 9)]
        found = [(k, b, None if a is None else _decimal(a)) for k, b, a in arrow]
        assert await job(client, found, table="v") == 3
        with pytest.raises(ForeignKeyViolation, match="v_a_b_fkey"):
            await job(client, [(4, 1.0, _decimal(1.5)), (5, 0.0, _decimal(1.5))], table="v")
        await client.sql("DELETE FROM v")
        await client.sql("ALTER TABLE v ADD FOREIGN KEY (a, b) REFERENCES w MATCH FULL")
        assert await job(client, [(1, 0.0, _decimal(1.5)), (2, None, None)], table="v") == 2
        with pytest.raises(ForeignKeyViolation, match="v_a_b_fkey1") as caught:
            await job(client, [(4, 0.0, _decimal(1.5)), (5, None, _decimal(1.5))], table="v")
        assert "MATCH FULL does not allow mixing" in caught.value.detail

    in_cluster(scenario)


def _decimal(value: float) -> Any:
    import decimal  # noqa: PLC0415

    return decimal.Decimal(str(value)).quantize(decimal.Decimal("0.01"))
