"""The life of transactions on their members: what they keep, how they end, what is freed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from transacting import Session

from remuda.errors import (
    FailedTransaction,
    SerializationFailure,
    SnapshotTooOld,
    TransactionTimeout,
    UndefinedTransaction,
)
from remuda.member import upkeep
from remuda.member.sessions import pins as transaction_pins
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

pytestmark = pytest.mark.cluster


async def sessions(cluster: Any, count: int = 2) -> list[Session]:
    made = [Session(await cluster.client(1 + n % len(cluster.members))) for n in range(count)]
    await made[0].sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    await made[0].sql("INSERT INTO t SELECT x, 0 FROM generate_series(1, 40) g(x)")
    return made


@pytest.mark.parametrize("pinned", [True, False])
def test_all_members_keep_the_versions_of_a_snapshot(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, pinned: bool
) -> None:
    monkeypatch.setattr(upkeep, "VERSIONS_KEPT", 0)
    monkeypatch.setattr(transaction_pins, "PIN_AFTER", -(2**40) if pinned else 2**62)
    monkeypatch.setattr(transaction_pins, "PIN_INTERVAL", 0.01)

    async def scenario(cluster: Any) -> None:
        own, other = await sessions(cluster)
        await own.sql("BEGIN")
        assert await own.sql("SELECT sum(v) FROM t") == [(0,)]
        (transaction,) = cluster.members[0].open.sessions
        others = cluster.members[1:]
        if pinned:
            while not all(member.open.pins.oldest_read() for member in others):
                await asyncio.sleep(0.001)
        await other.sql("UPDATE t SET v = v + 1")
        kept = [member.upkeep.horizon() <= transaction.snapshot for member in cluster.members]
        assert kept == [True, pinned, pinned]
        if pinned:
            assert await own.sql("SELECT sum(v), count(*) FROM t") == [(0, 40)]
        await own.sql("ROLLBACK")
        while any(member.open.pins.oldest_read() for member in cluster.members):
            await asyncio.sleep(0.001)
        await cluster.idle()

    in_cluster(scenario, 3)


def test_a_snapshot_that_is_gone_says_so(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        own, _ = await sessions(cluster)
        await own.sql("BEGIN")
        await own.sql("SELECT 1")
        for member in cluster.members:
            for store in member.core.stores.values():
                store.raise_floor(member.core.timestamp())
        with pytest.raises(SnapshotTooOld) as caught:
            await own.sql("SELECT sum(v) FROM t")
        assert "begun again" in caught.value.hint
        await own.sql("ROLLBACK")

    in_cluster(scenario, 1)


def test_a_timeout_ends_what_was_at_work(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        own, _ = await sessions(cluster)
        await own.sql("BEGIN")
        await own.sql("UPDATE t SET v = 1")
        open_ones = cluster.members[0].open.sessions
        (transaction,) = open_ones
        transaction.deadline -= 60.0
        open_ones._tick()
        while len(open_ones):
            await asyncio.sleep(0.01)
        with pytest.raises(TransactionTimeout):
            await own.sql("SELECT 1")
        with pytest.raises(TransactionTimeout):
            await own.sql("COMMIT")
        assert own.transaction == ""
        assert await own.sql("SELECT sum(v) FROM t") == [(0,)]
        await cluster.idle()

    in_cluster(scenario, 2, transaction_timeout=60.0)


def test_idle_transactions_end_if_the_session_says_so(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        own, _ = await sessions(cluster)
        await own.sql("SET idle_in_transaction_session_timeout = '50ms'")
        await own.sql("BEGIN")
        while len(cluster.members[0].open.sessions):
            await asyncio.sleep(0.01)
        with pytest.raises(TransactionTimeout, match="idle"):
            await own.sql("SELECT 1")
        await own.sql("ROLLBACK")
        assert await own.sql("SELECT 1") == [(1,)]

    in_cluster(scenario, 1)


def test_a_statement_that_runs_is_not_idle(in_cluster: Any) -> None:
    """Nor a cursor that the client has not read to its end."""

    async def scenario(cluster: Any) -> None:
        own, _ = await sessions(cluster)
        await own.sql("SET idle_in_transaction_session_timeout = '50ms'")
        own.client.hold = True
        await own.sql("BEGIN")
        text = "SELECT a.v FROM t a, t b, t c"
        cursor = await own.client.start(text, transaction=own.transaction, page_rows=100)
        await cursor.first_page.wait()
        open_ones = cluster.members[0].open.sessions
        (transaction,) = open_ones
        transaction.last_used -= 60.0
        open_ones._tick()
        assert len(open_ones) == 1
        own.client.release()
        await cursor.done.wait()
        assert len(cursor.rows) == 64_000
        while len(open_ones):
            await asyncio.sleep(0.01)
        with pytest.raises(TransactionTimeout, match="idle"):
            await own.sql("SELECT 1")

    in_cluster(scenario, 1)


def test_a_broken_connection_rolls_back_and_the_client_is_told(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        own, other = await sessions(cluster)
        await own.sql("BEGIN")
        await own.sql("DELETE FROM t")
        name = own.transaction
        own.client.channel.close()
        await cluster.idle()
        later = Session(await cluster.client())
        later.transaction = name
        with pytest.raises(UndefinedTransaction, match="its connection ended"):
            await later.sql("INSERT INTO t VALUES (100, 1)")
        assert later.transaction == name, "else what follows would commit by itself"
        await later.sql("ROLLBACK")
        assert later.transaction == ""
        assert await other.sql("SELECT count(*) FROM t") == [(40,)]

    in_cluster(scenario, 2)


def test_statements_beside_each_other(in_cluster: Any) -> None:
    """Writes of one transaction take turns; a commit waits for them."""

    async def scenario(cluster: Any) -> None:
        own, other = await sessions(cluster)
        await own.sql("BEGIN")
        await asyncio.gather(*(own.run("UPDATE t SET v = v + 1") for _ in range(5)))
        result, _ = await asyncio.gather(own.run("UPDATE t SET v = v + 1"), own.run("COMMIT"))
        assert result.error is None
        assert await other.sql("SELECT min(v), max(v) FROM t") == [(6, 6)]
        await cluster.idle()

    in_cluster(scenario, 2)


def test_a_cursor_outlives_the_commit(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        own, other = await sessions(cluster)
        await own.sql("BEGIN")
        await own.sql("UPDATE t SET v = 7")
        own.client.hold = True
        text = "SELECT a.v FROM t a, t b, t c"
        result = await own.client.start(text, transaction=own.transaction, page_rows=100)
        await result.first_page.wait()
        await other.sql("UPDATE t SET v = 8")
        own.client.release()
        with pytest.raises(SerializationFailure):
            await own.sql("COMMIT")
        await result.done.wait()
        assert result.error is None
        assert set(result.rows) == {(7,)}
        assert len(result.rows) == 64_000
        await cluster.idle()

    in_cluster(scenario, 2)


def test_requests_that_are_none(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        (own,) = await sessions(cluster, 1)
        schema = await own.client.schema("t")
        for name in ("1:1", "x", "1:" + "9" * 30):
            with pytest.raises(UndefinedTransaction):
                request = own.client.keys_request(schema, 1, transaction=name)
                await own.client.ask(RpcType.MAP_GET, request, user_pb2.RowsResponse)
            message = user_pb2.TransactionEnd(transaction=name, commit=True)
            with pytest.raises(UndefinedTransaction):
                await own.client.ask(RpcType.TRANSACTION_END, message, user_pb2.TransactionEnded)
            message.commit = False  # what was rolled back may be rolled back again
            await own.client.ask(RpcType.TRANSACTION_END, message, user_pb2.TransactionEnded)
        begun = await own.client.ask(
            RpcType.TRANSACTION_BEGIN, user_pb2.TransactionBegin(), user_pb2.TransactionStatus
        )
        own.transaction = begun.transaction
        with pytest.raises(FailedTransaction):
            await own.told("SELECT 1/0")
            await own.sql("SELECT 1")
        result = await own.client.run("SELECT 1", transaction=own.transaction, local_only=True)
        assert result.error is not None
        await own.sql("ROLLBACK")
        await cluster.idle()

    in_cluster(scenario, 2)
