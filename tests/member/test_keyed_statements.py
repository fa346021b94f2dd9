"""Statements that change one entry by its key: carried out by the owner of the key, with the
outcomes of the general way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import OutcomeUnknown, QueryCanceled, QueryTimeout, RemudaError
from remuda.member.maps import keyed_writes
from remuda.member.maps.keyed_writes import KeyedWrites
from remuda.member.statements import short_statements
from remuda.member.statements.write_statements import KeyedStatements
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType

InCluster = Callable[..., None]

TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(5), n INTEGER NOT NULL DEFAULT 7, "
    "d DECIMAL(6,2), r REAL, at TIMESTAMP, tags VARCHAR ARRAY, "
    "CONSTRAINT n_small CHECK (n < 100), CONSTRAINT d_or_n CHECK (d IS NULL OR d > n))"
)
SCRIPT: list[tuple[str, tuple[object, ...]]] = [
    ("INSERT INTO t (id, name, n) VALUES (?, ?, ?)", (1, "one", 1)),
    ("INSERT INTO t (id) VALUES (?)", (2,)),
    ("INSERT INTO t (id, n) VALUES (?, ?) RETURNING id, n, name, n * 2 AS twice", (3, 3)),
    ("INSERT INTO t (id, n) VALUES (?, ?)", (1, 1)),
    ("INSERT INTO t (id, n) VALUES (?, ?)", (1, 500)),
    ("INSERT INTO t (id, n) VALUES (?, ?)", (None, 1)),
    ("INSERT INTO t (id, n) VALUES (?, ?)", (9, None)),
    ("INSERT INTO t (id, n) VALUES (?, ?)", (9, 2**40)),
    ("INSERT INTO t (id, name) VALUES (?, ?)", (9, "too long")),
    ("INSERT INTO t (id, d) VALUES (?, ?)", (9, 123456)),
    ("INSERT INTO t (id, d) VALUES (?, ?)", (9, 3)),
    ("INSERT INTO t (id, n) VALUES (?, 1 / ?)", (9, 0)),
    ("INSERT INTO t (id, at) VALUES (4, '2024-02-29 12:00:00')", ()),
    ("INSERT INTO t (id, tags) VALUES (5, ARRAY['a', NULL])", ()),
    ("UPDATE t SET n = n + ? WHERE id = ?", (1, 1)),
    ("UPDATE t SET n = n + ? WHERE id = ?", (1, 77)),
    ("UPDATE t SET n = n + ? WHERE id = ?", (None, 1)),
    ("UPDATE t SET n = n + ? WHERE id = ?", (1, None)),
    ("UPDATE t SET n = n + ? WHERE id = ?", (1000, 1)),
    ("UPDATE t SET n = n * ? WHERE id = ?", (2**31 - 1, 1)),
    ("UPDATE t SET n = n / ? WHERE id = ?", (0, 1)),
    ("UPDATE t SET n = n / ? WHERE id = ? AND name = 'none'", (0, 1)),
    ("UPDATE t SET name = name || ? WHERE id = ?", ("xxx", 1)),
    ("UPDATE t SET name = ?, d = n + 0.125, r = 0.1 WHERE id = ?", (None, 1)),
    ("UPDATE t SET name = 'a', n = DEFAULT WHERE id = 1 AND name IS NULL RETURNING *", ()),
    ("UPDATE t SET n = 9 WHERE id = ? AND name = ? RETURNING n", (1, "b")),
    ("UPDATE t SET n = 9 WHERE id = ? AND name = ? RETURNING n, d, name", (1, "a")),
    ("UPDATE t SET tags[2] = 'b' WHERE id = 5 RETURNING tags", ()),
    ("UPDATE t SET at = at + INTERVAL '1 year' WHERE id = 4 RETURNING at", ()),
    ("UPDATE t SET at = ? WHERE id = 4 RETURNING at", ("2001-01-01 00:00:00",)),
    ("UPDATE t SET n = '12' WHERE id = 2", ()),
    ("UPDATE t SET n = n + 1 WHERE id = '2'", ()),
    ("UPDATE t SET n = n + 1 WHERE id = 2.0", ()),
    ("UPDATE t SET n = n + 1 WHERE id = 2.5", ()),
    ("DELETE FROM t WHERE id = ? AND n > ?", (2, 50)),
    ("DELETE FROM t WHERE id = ? RETURNING id, n, name", (2,)),
    ("DELETE FROM t WHERE id = ?", (2,)),
    ("INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT DO NOTHING", (1, 5)),
    ("INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING n", (6, 6)),
    ("INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING n", (6, 8)),
    ("INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", (6, 500)),
    (
        (
            "INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT (id) DO UPDATE "
            "SET n = t.n + excluded.n RETURNING id, n"
        ),
        (6, 10),
    ),
    (
        (
            "INSERT INTO t (id, n) VALUES (?, ?) ON CONFLICT (id) DO UPDATE "
            "SET n = t.n + excluded.n WHERE t.n < 10 RETURNING id, n"
        ),
        (6, 10),
    ),
    (
        (
            "INSERT INTO t (id, n, name) VALUES (?, ?, 'new') ON CONFLICT (id) DO UPDATE "
            "SET n = t.n + excluded.n, name = excluded.name RETURNING id, n, name"
        ),
        (10, 10),
    ),
    ("INSERT INTO t (id, n) VALUES (6, 1) ON CONFLICT (id) DO UPDATE SET n = 500", ()),
    ("INSERT INTO t (id, n) VALUES (6, 1) ON CONFLICT (id) DO UPDATE SET n = NULL", ()),
    ("SINK INTO t (id, n) VALUES (?, ?)", (6, 60)),
    ("SINK INTO t (id, n) VALUES (?, ?)", (11, 61)),
    ("DELETE FROM t WHERE id = NULL", ()),
]


async def outcomes(client: Any) -> list[object]:
    """Of each statement of the script, and what is there in the end."""
    found: list[object] = []
    for text, parameters in SCRIPT:
        try:
            result = await client.run(text, *parameters)
            error = result.error
        except RemudaError as refused:  # in place of a handle
            error = refused
        if error is not None:
            found.append(
                (text, type(error), error.sqlstate, error.message, error.detail, error.subject)
            )
        else:
            rows = result.rows if result.pages and result.columns else []
            found.append((text, result.tag, result.affected, rows))
    found.append(sorted(await client.sql("SELECT * FROM t")))
    return found


@pytest.mark.parametrize("backups", [0, 1])
def test_all_ways_have_the_same_outcomes(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, backups: int
) -> None:
    """By the owner of the key in one message and with a handle, and the general way."""
    run, began = KeyedWrites.run, 0

    def counted(self: KeyedWrites, *arguments: Any) -> int:
        nonlocal began
        began += 1
        return run(self, *arguments)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(2)
        monkeypatch.setattr(KeyedWrites, "run", counted)
        monkeypatch.setattr(short_statements, "LONG", 60.0)  # however slow the machine is
        await client.sql(TABLE)
        short = await outcomes(client)
        assert began > 30
        await client.sql("DROP TABLE t")
        await client.sql(TABLE)
        client.short = True
        for _ in range(3):  # plans must be known, and a text that repeats gets one of its own
            answered = await outcomes(client)
            await client.sql("DELETE FROM t")
        assert client.answers > 30
        client.short = False
        before = began
        await client.sql("DROP TABLE t")
        monkeypatch.setattr(KeyedStatements, "takes", lambda *_: False)
        await client.sql(TABLE)
        general = await outcomes(client)
        assert began == before
        for one, two, other in zip(short, answered, general, strict=True):
            assert one == two == other
        await cluster.idle()

    in_cluster(scenario, members=3, backups=backups)


async def a_key_of(cluster: Any, client: Any, owner: int) -> int:
    """A key of map t whose owner is this member."""
    schema = await client.schema("t")
    found = cluster.member(1).maps.open("t", schema.map_id, schema.version)
    owners = cluster.member(1).core.view.owners
    return next(k for k in range(1000) if owners[found.router.key_partition((k,))] == owner)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("owner", [1, 2])
def test_a_statement_that_waits_is_cancelled_and_ends_in_time(
    in_cluster: InCluster, owner: int, short: bool
) -> None:
    """For a key that a transaction has locked, at this member or at another one. A client that
    would take the result in one message gets a handle when that does not come."""

    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(1), await cluster.client(2)
        client.short = short
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        key = await a_key_of(cluster, client, owner)
        await client.sql("INSERT INTO t VALUES (?, 0)", key)
        begun = await other.run("BEGIN PESSIMISTIC", transaction="")
        name = begun.tx.transaction
        await other.run("UPDATE t SET n = 1 WHERE id = ?", key, transaction=name)
        small = cluster.member(owner).maps.writes.small

        waiting = await client.start("UPDATE t SET n = n + 10 WHERE id = ?", key)
        while not len(small):
            await asyncio.sleep(0)
        await client.cancel(waiting)
        await waiting.done.wait()
        assert isinstance(waiting.error, QueryCanceled)
        assert waiting.error.sqlstate == "57014"
        assert not waiting.error.may_have_run

        late = await client.run("UPDATE t SET n = n + 10 WHERE id = ?", key, timeout=0.05)
        assert isinstance(late.error, QueryTimeout)
        assert len(small) == 0

        waiting = await client.start("UPDATE t SET n = n + 100 WHERE id = ?", key)
        await other.run("COMMIT", transaction=name)
        await waiting.done.wait()
        assert waiting.affected == 1
        assert await client.sql("SELECT n FROM t WHERE id = ?", key) == [(101,)]
        await cluster.idle()

    in_cluster(scenario, members=2, backups=1)


def test_an_owner_that_does_not_answer_leaves_the_outcome_open(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        key = await a_key_of(cluster, client, 2)
        monkeypatch.setattr(keyed_writes, "PATIENCE", 0.02)
        routes = cluster.member(2)._member_routes.control
        monkeypatch.setitem(routes, ControlType.KEYED_WRITE, lambda _: None)
        result = await client.run("INSERT INTO t VALUES (?, 0)", key)
        assert isinstance(result.error, OutcomeUnknown)
        assert result.error.sqlstate == "08007"
        assert result.error.may_have_run

    in_cluster(scenario, members=2, backups=1)


def test_a_definition_that_changes_is_met_by_a_new_plan(in_cluster: InCluster) -> None:
    """The owner refuses a write for another version of the map, and the statement is planned
    again."""

    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(1), await cluster.client(2)
        await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        keys = [await a_key_of(cluster, client, owner) for owner in (1, 2)]
        for key in keys:
            await client.sql("INSERT INTO t VALUES (?, 0)", key)
        for number, column in enumerate(("one", "two", "three"), 1):
            await other.sql(f"ALTER TABLE t ADD COLUMN {column} BIGINT DEFAULT {number}")
            for key in keys:
                assert (await client.run("UPDATE t SET n = n + 1 WHERE id = ?", key)).affected == 1
        assert sorted(await client.sql("SELECT * FROM t")) == [
            (key, 3, 1, 2, 3) for key in sorted(keys)
        ]

    in_cluster(scenario, members=2, backups=1)


def test_a_write_that_is_none_is_refused(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        first, second = cluster.member(1), cluster.member(2)
        body = control_pb2.KeyedWriteRequest(context=first.core.context(), write=b"[1,[],7]")
        with pytest.raises(RemudaError, match="expected a KeyedWrite"):
            await first.peers.request(second.info.number, ControlType.KEYED_WRITE, body)

    in_cluster(scenario, members=2)
