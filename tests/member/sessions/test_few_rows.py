"""Statements of open transactions that name few entries: without fragments, with the answers and
the conflicts of the general way."""

# ruff: noqa: E501 (a statement per line)

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from transacting import Session

from remuda.errors import QueryCanceled, QueryTimeout, RemudaError
from remuda.member.maps.maps import Maps
from remuda.member.sessions.few_rows import FewRows
from remuda.member.sessions.keys import KeyReader

pytestmark = pytest.mark.cluster

InCluster = Callable[..., None]
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")

TABLES = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad')
CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(5), n INTEGER NOT NULL DEFAULT 7, d DECIMAL(6,2), m mood, twice INTEGER GENERATED ALWAYS AS (n * 2) STORED, CONSTRAINT n_small CHECK (n < 100))
CREATE UNIQUE INDEX t_name ON t (name)
CREATE INDEX t_n ON t (n)
CREATE TABLE late (id INTEGER NOT NULL, n INTEGER, r REAL)
INSERT INTO t (id, name, n, d, m) SELECT x, 'n' || x, x % 10, x / 8.0, CASE WHEN x % 2 = 0 THEN 'sad' ELSE 'ok' END::mood FROM generate_series(1, 40) g(x)
INSERT INTO late SELECT x, x % 10, x / 4.0 FROM generate_series(1, 40) g(x)
ALTER TABLE late ADD PRIMARY KEY (id)
CREATE TABLE two (a INTEGER, b VARCHAR, v INTEGER, PRIMARY KEY (a, b))
INSERT INTO two SELECT x % 5, 'b' || x, x FROM generate_series(1, 30) g(x)
"""
FORMS = (
    "SELECT * FROM t WHERE id = {k}",
    "SELECT id, n + 1, m, twice FROM t WHERE id = {k}",
    "SELECT id, name FROM t WHERE id IN ({k}, {j}, 1000)",
    "SELECT id FROM t WHERE id = {k} AND n > 5",
    "SELECT 1 / (n - 3) FROM t WHERE id = {k}",
    "SELECT id, n FROM t WHERE name = 'n{k}'",
    "SELECT id, name FROM t WHERE n = {s}",
    "SELECT id, d FROM t WHERE n = {s} AND d > 2",
    "SELECT id FROM t WHERE n IN ({s}, 3)",
    "SELECT id FROM t WHERE n BETWEEN {s} AND {s} + 1",
    "SELECT * FROM late WHERE id = {k}",
    "SELECT v FROM two WHERE a = {s} AND b = 'b{k}'",
    "SELECT {k} + 1, '{j}'",
    "SELECT {k} WHERE {s} > 4",
    "UPDATE t SET n = n + 1 WHERE id = {k}",
    "UPDATE t SET n = n + {k}, m = 'glad' WHERE id = {j} RETURNING id, n, m, twice",
    "UPDATE t SET m = 'angry' WHERE id = {k}",
    "UPDATE t SET n = n * 30 WHERE id = {k} RETURNING *",
    "UPDATE t SET n = NULL WHERE id = {k}",
    "UPDATE t SET n = n / {s} WHERE id = {k}",
    "UPDATE t SET name = 'n{j}' WHERE id = {k} RETURNING name",
    "UPDATE t SET name = 'x{k}' WHERE name = 'n{k}'",
    "UPDATE t SET d = d + 1 WHERE n = {s} RETURNING id, d",
    "UPDATE t SET id = id + 100 WHERE id = {k}",
    "UPDATE late SET n = n + 1 WHERE id = {k} RETURNING n",
    "UPDATE late SET id = {j} WHERE id = {k}",
    "UPDATE late SET r = r * {s} WHERE id = {k}",
    "UPDATE two SET v = v + 1 WHERE a = {s} AND b = 'b{k}' RETURNING *",
    "DELETE FROM t WHERE id = {k} RETURNING id, n",
    "DELETE FROM t WHERE name = 'n{k}'",
    "DELETE FROM late WHERE id = {k} AND n = {s}",
    "INSERT INTO t (id, name, n) VALUES ({k}, 'v{j}', {s})",
    "INSERT INTO t (id, name, n) VALUES ({k} + 500, 'n{j}', {s}) RETURNING id, twice",
    "INSERT INTO t (id, n) VALUES ({k} + 600, {k} * 4) RETURNING *",
    "INSERT INTO t (id, n, name) VALUES ({k}, 1, 'w{k}') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING n",
    "INSERT INTO t (id, n) VALUES ({k}, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO late VALUES ({k} + {j}, {s}, NULL) RETURNING id",
    "INSERT INTO late VALUES ({k}, 1 / {s}, 0.1)",
    "INSERT INTO two VALUES ({s}, 'b{k}', 1)",
    "SAVEPOINT s",
    "ROLLBACK TO s",
)  # fmt: skip


def script(chance: random.Random) -> list[str]:
    """One transaction: statements that mostly meet rows of their own."""
    found = ["SAVEPOINT s"]
    for _ in range(14):
        keys = {"k": chance.randrange(1, 13), "j": chance.randrange(1, 13)}
        found.append(chance.choice(FORMS).format(**keys, s=chance.randrange(10)))
    return found


async def told(session: Session, text: str) -> tuple[object, ...]:
    try:
        rows = await session.sql(text)
    except RemudaError as error:
        where = None if error.subject is None else error.subject.constraint
        return text, error.sqlstate, error.message, error.detail, error.hint, where
    return text, session.tag, sorted(rows, key=repr)


async def outcomes(cluster: Any, seed: int) -> list[tuple[object, ...]]:
    chance = random.Random(seed)
    session = Session(await cluster.client())
    for text in TABLES.strip().splitlines():
        await session.sql(text)
    found: list[tuple[object, ...]] = []
    for number in range(8):
        await session.sql(f"BEGIN ISOLATION LEVEL {LEVELS[number % 3]}")
        for text in script(chance):
            found.append(await told(session, text))
            if len(found[-1]) > 3:
                await session.sql("ROLLBACK TO s")
        found.append(await told(session, chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))))
        found += [await told(session, f"SELECT * FROM {table}") for table in ("t", "late", "two")]
    for text in ("DROP TABLE t, late, two", "DROP TYPE mood"):
        await session.sql(text)
    return found


@pytest.mark.parametrize("members", [1, 3])
def test_both_ways_have_the_same_outcomes(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, members: int
) -> None:
    columns, taken = FewRows.columns, Counter[bool]()

    async def counted(self: FewRows, *arguments: Any) -> Any:
        found = await columns(self, *arguments)
        taken[found is not None] += 1
        return found

    async def scenario(cluster: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(FewRows, "columns", counted)
            short = [await outcomes(cluster, seed) for seed in range(3)]
        assert taken[True] > 100
        monkeypatch.setattr(FewRows, "takes", lambda *_: False)
        general = [await outcomes(cluster, seed) for seed in range(3)]
        states = Counter(each[1] for one in general for each in one if len(each) > 3)
        assert {"23505", "23514", "22012", "22P02", "23502"} <= states.keys()
        for one, other in zip(short, general, strict=True):
            for mine, theirs in zip(one, other, strict=True):
                assert mine == theirs
        await cluster.idle()

    in_cluster(scenario, members=members)


READS = {
    "key": "SELECT n FROM t WHERE id = {}",
    "missing key": "SELECT n FROM t WHERE id = {} + 700",
    "unique value": "SELECT n FROM t WHERE name = 'n{}'",
    "index": "SELECT id FROM t WHERE n = {}",
    "added key": "SELECT n FROM late WHERE id = {}",
}
WRITES = {
    "key": "UPDATE t SET n = 50 WHERE id = {}",
    "missing key": "INSERT INTO t (id) VALUES ({} + 700)",
    "unique value": "DELETE FROM t WHERE name = 'n{}'",
    "index": "UPDATE t SET n = {} WHERE id = 30",
    "added key": "UPDATE late SET n = 50 WHERE id = {}",
}


@pytest.mark.parametrize("kind", READS)
def test_what_was_read_in_the_short_way_is_checked_at_the_commit(
    in_cluster: InCluster, kind: str
) -> None:
    """Two transactions read what the other one writes: at SERIALIZABLE only one of them commits. At
    the other levels both do. A row that both change goes to the first one."""

    async def scenario(cluster: Any) -> None:
        one, two = Session(await cluster.client(1)), Session(await cluster.client(3))
        for text in TABLES.strip().splitlines():
            await one.sql(text)
        ends: dict[str, list[str]] = {}
        for number, level in enumerate(LEVELS):
            first, second = 2 * number + 1, 2 * number + 2
            for session, key in ((one, first), (two, second)):
                await session.sql(f"BEGIN ISOLATION LEVEL {level}")
                await session.sql(READS[kind].format(key))
            for session, key in ((one, second), (two, first)):
                await session.sql(WRITES[kind].format(key))
            ends[level] = [(await one.told("COMMIT"))[:6], (await two.told("COMMIT"))[:6]]
        if kind == "index":  # both have written row 30
            assert all(sorted(end) == ["40001 ", "COMMIT"] for end in ends.values()), ends
            return
        assert ends["READ COMMITTED"] == ends["REPEATABLE READ"] == ["COMMIT", "COMMIT"]
        assert sorted(ends["SERIALIZABLE"]) == ["40001 ", "COMMIT"]

        for isolation, says in (("REPEATABLE READ", "40001 "), ("READ COMMITTED", "COMMIT")):
            await one.sql(f"BEGIN ISOLATION LEVEL {isolation}")
            await one.sql("SELECT n FROM t WHERE id = 20")
            await two.sql("UPDATE t SET n = n + 1 WHERE id = 20")
            await one.told("UPDATE t SET n = n + 1 WHERE id = 20")
            assert (await one.told("COMMIT"))[:6] == says
            await one.told("ROLLBACK")

    in_cluster(scenario)


@pytest.mark.parametrize("way", ["query", "change"])
def test_a_read_that_others_do_not_answer_is_cancelled_and_ends_in_time(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    text = "SELECT n FROM t WHERE id = 1" if way == "query" else "UPDATE t SET n = 1 WHERE id = 1"

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER)")
        asked = asyncio.Event()

        async def unanswered(*_: Any) -> list[Any]:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setattr(KeyReader, "rows", unanswered)
        monkeypatch.setattr(Maps, "serves_alone", lambda *_: False)
        begun = await client.run("BEGIN", transaction="")
        waiting = await client.start(text, transaction=begun.tx.transaction)
        await asked.wait()
        await client.cancel(waiting)
        await waiting.done.wait()
        assert isinstance(waiting.error, QueryCanceled)
        await client.run("ROLLBACK", transaction=begun.tx.transaction)

        begun = await client.run("BEGIN", transaction="")
        late = await client.run(text, transaction=begun.tx.transaction, timeout=0.05)
        assert isinstance(late.error, QueryTimeout)
        await client.run("ROLLBACK", transaction=begun.tx.transaction)
        await cluster.idle()

    in_cluster(scenario)
