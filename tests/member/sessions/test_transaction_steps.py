"""Transactions of which the client does a part by itself: what it reads at the owners of keys, and
what it puts and has not sent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

import remuda.aio
from remuda.client.asynchronous import transaction as asyncio_transaction
from remuda.client.network.deadline import Deadline
from remuda.client.operations import transaction_core
from remuda.errors import (
    CheckViolation,
    FailedTransaction,
    NotServed,
    ObjectMismatch,
    OutcomeUnknown,
    RemudaError,
    SerializationFailure,
    TransactionTimeout,
    UndefinedMap,
)
from remuda.member.base.routes import UserRoutes
from remuda.member.sessions import snapshots as transaction_snapshots
from remuda.member.sessions.openings import Openings
from remuda.member.sessions.session import TransactionSessions
from remuda.member.transactions import outgoing, transactions
from remuda.member.transactions.shell import TransactionShell
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.transaction import states as tx
from remuda.transaction.states import State


@asynccontextmanager
async def numbers_of(cluster: Any) -> Any:
    """A client, and two keys of different members."""
    addresses = [(member.info.host, member.info.user_port) for member in cluster.members]
    async with remuda.aio.connect(addresses) as client:
        numbers = client.map("numbers")
        await numbers.put_all(dict.fromkeys(range(50), 0))
        binding = await numbers._bind(Deadline(60.0))
        owner = binding.router.owner
        other = next(key for key in range(1, 50) if owner((key,)) != owner((0,)))
        yield client, 0, other


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(transaction_snapshots, "ROUND_AFTER", 3600.0)
    monkeypatch.setattr(transaction_core, "DIRECT", 3600.0)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The requests of clients to all members that start from now on."""
    found: list[int] = []
    handle = UserRoutes.handle

    def noted(self: UserRoutes, request: Any) -> None:
        found.append(request.rpc_type)
        handle(self, request)

    monkeypatch.setattr(UserRoutes, "handle", noted)
    return found


def test_two_gets_and_two_puts_are_three_requests(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked(monkeypatch)

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            for before in range(2):
                requests.clear()
                async with client.transaction() as transaction:
                    numbers = transaction.map("numbers")
                    found = [await numbers.get(key) for key in (one, two)]
                    for key, number in zip((one, two), found, strict=True):
                        await numbers.put(key, number + 1)
                    assert await numbers.get(one) == before + 1
                assert transaction.commit_timestamp
            assert requests == [RpcType.MAP_GET, RpcType.MAP_GET, RpcType.TRANSACTION_END]
            numbers = client.map("numbers")
            assert (await numbers.get(one), await numbers.get(two)) == (2, 2)
            await cluster.idle()

    in_cluster(scenario)


def test_a_transaction_that_only_puts_is_one_request(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked(monkeypatch)

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            numbers = client.map("numbers")
            requests.clear()
            async with client.transaction() as transaction:
                for key in (one, two):
                    await transaction.map("numbers").put(key, 7)
                assert transaction.id == ""
            assert requests == [RpcType.TRANSACTION_END]
            assert transaction.commit_timestamp
            assert transaction.state is State.COMMITTED
            owner = (await numbers._bind(Deadline(60.0))).router.owner((one,))
            assert transaction.id.startswith(f"{owner}:")
            assert (await numbers.get(one), await numbers.get(two)) == (7, 7)
            await cluster.idle()

    in_cluster(scenario)


def test_a_member_that_refuses_to_begin_one_leaves_it_to_others(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked(monkeypatch)
    begin, refused = Openings.begin, list[int]()

    def once(self: Openings, *arguments: Any) -> Any:
        if not refused:
            refused.append(self._core.number)
            raise NotServed("not now", member=str(self._core.number))
        return begin(self, *arguments)

    monkeypatch.setattr(Openings, "begin", once)

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            requests.clear()
            async with client.transaction() as transaction:
                await transaction.map("numbers").put(one, 8)
                await transaction.map("numbers").put(two, 8)
            assert requests.count(RpcType.TRANSACTION_END) == 2
            assert RpcType.TRANSACTION_BEGIN not in requests
            assert refused
            numbers = client.map("numbers")
            assert (await numbers.get(one), await numbers.get(two)) == (8, 8)
            await cluster.idle()

    in_cluster(scenario)


def test_rows_that_wait_fit_a_map_that_was_altered(in_cluster: Any) -> None:
    """The client knew the map as it was before, and asks nobody before the commit."""

    async def scenario(cluster: Any) -> None:
        addresses = [(member.info.host, member.info.user_port) for member in cluster.members]
        async with remuda.aio.connect(addresses) as client, remuda.aio.connect(addresses) as other:
            await client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(3))")
            await client.map("t").put(0, {"name": "abc"})
            await put_in_transaction(client, 1, {"name": "one"})
            await other.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 5")
            await put_in_transaction(client, 2, {"name": "two"})
            await other.sql("ALTER TABLE t ALTER COLUMN name TYPE VARCHAR(9)")
            await put_in_transaction(client, 3, {"name": "longer", "n": 6})
            await other.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (n < 9)")
            with pytest.raises(CheckViolation, match="few"):
                await put_in_transaction(client, 4, {"name": "many", "n": 90})
            rows = [tuple(row) async for row in await client.sql("TABLE t ORDER BY id")]
            assert rows == [(0, "abc", 5), (1, "one", 5), (2, "two", 5), (3, "longer", 6)]
            await other.sql("ALTER TABLE t DROP CONSTRAINT few")
            await put_in_transaction(client, 4, {"name": "many", "n": 90})
            await other.sql("DROP TABLE t")
            with pytest.raises(UndefinedMap, match='"t"'):
                await put_in_transaction(client, 5, {"name": "gone", "n": 1})
            await cluster.idle()

    in_cluster(scenario)


async def put_in_transaction(client: Any, key: int, value: Any) -> None:
    async with client.transaction() as transaction:
        await transaction.map("t").put(key, value)


def test_what_was_written_before_a_read_at_its_owner_is_seen(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            transaction = client.transaction()
            async with transaction:
                numbers = transaction.map("numbers")
                assert await numbers.get(one) == 0
                await client.map("numbers").put(two, 7)
                assert await numbers.get(two) == 7
                assert len([row async for row in await transaction.sql("TABLE numbers")]) == 50
                await client.map("numbers").put(two, 8)
                assert await numbers.get(two) == 7
                assert await numbers.get(one) == 0
            assert transaction.state is State.COMMITTED

    in_cluster(scenario)


def test_two_keys_of_two_states_are_never_seen(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            for options, refused in (({}, True), ({"read_only": True}, False)):
                await client.map("numbers").put_all({one: 0, two: 0})
                async with client.transaction(**options) as transaction:
                    numbers = transaction.map("numbers")
                    assert await numbers.get(one) == 0
                    await client.map("numbers").put_all({one: 1, two: 1})
                    if refused:
                        with pytest.raises(SerializationFailure, match="numbers"):
                            await numbers.get(two)
                        with pytest.raises(FailedTransaction):
                            await transaction.commit()
                    else:
                        assert await numbers.get(two) == 0

    in_cluster(scenario)


def test_one_that_lasts_reads_its_state_whatever_others_write(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_snapshots, "ROUND_AFTER", 0.001)

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            async with client.transaction() as transaction:
                numbers = transaction.map("numbers")
                assert await numbers.get(one) == 0
                (session,) = [s for m in cluster.members for s in m.open.sessions]
                while not session.ceiling:
                    await asyncio.sleep(0.001)
                await client.map("numbers").put_all({one: 1, two: 1})
                assert await numbers.get(two) == 0
                assert await numbers.get(one) == 0
            assert transaction.state is State.COMMITTED

    in_cluster(scenario)


def test_keys_read_at_their_owners_are_checked_by_the_commit(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            with pytest.raises(SerializationFailure):
                async with client.transaction() as transaction:
                    numbers = transaction.map("numbers")
                    await numbers.put(one, await numbers.get(one) + await numbers.get(two) + 1)
                    await client.map("numbers").put(two, 5)
            assert await client.map("numbers").get(one) == 0

    in_cluster(scenario)


def test_puts_that_wait(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            await (
                await client.sql("CREATE TABLE c (k INT PRIMARY KEY, v INT CHECK (v > 0))")
            ).close()
            async with client.transaction() as transaction:
                numbers = transaction.map("numbers")
                await numbers.put(one, 1)
                await transaction.savepoint("a")
                await numbers.put(one, 2)
                await numbers.put(two, 2)
                await transaction.rollback_to("a")
                assert (await numbers.get(one), await numbers.get(two)) == (1, 0)
                await numbers.put(two, 3)
                total = await transaction.sql("SELECT sum(this) FROM numbers")
                assert await total.scalar() == 4
                with pytest.raises(ObjectMismatch):
                    await numbers.put(one, "text")
                with pytest.raises(CheckViolation):
                    await transaction.map("c").put(1, {"v": 0})
                await numbers.put_all(dict.fromkeys(range(40, 45), 9))
                assert await numbers.get_and_put(40, 1) == 9
            numbers = client.map("numbers")
            assert (await numbers.get(one), await numbers.get(two)) == (1, 3)
            assert (await numbers.get(40), await numbers.get(41)) == (1, 9)
            async with client.transaction() as transaction:
                await transaction.map("numbers").put(one, 77)
                await transaction.rollback()
            assert await numbers.get(one) == 1

    in_cluster(scenario)


def test_a_put_that_its_member_refuses_late_fails_the_transaction(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, one, two):
            async with client.transaction() as transaction:
                numbers = transaction.map("numbers")
                await numbers.put(one, await numbers.get(two) + 1)
                await (await client.sql("ALTER TABLE numbers ADD COLUMN more INT")).close()
                with pytest.raises(SerializationFailure, match="altered"):
                    await transaction.sql("SELECT 1")
                with pytest.raises(FailedTransaction, match="refused"):
                    await transaction.commit()
            assert transaction.state is State.ROLLED_BACK
            assert await client.map("numbers").get(one) is not None

    in_cluster(scenario)


def test_one_after_the_other_on_the_same_keys_meets_no_conflict(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though users are told before the backups have heard how a commit ended."""
    early: list[bool] = []
    reported = TransactionShell._reported

    def noted(self: TransactionShell, report: tx.Report) -> None:
        early.append(any(part.work.writes for part in self.pending.parts.values()))
        reported(self, report)

    monkeypatch.setattr(TransactionShell, "_reported", noted)

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, _, _):
            owner = (await client.map("numbers")._bind(Deadline(60.0))).router.owner
            keys = list({owner((key,)): key for key in range(50)}.values())
            assert len(keys) == 3
            for several in (2, 3):  # of two, the member that is asked last decides
                for _ in range(20):
                    async with client.transaction() as transaction:
                        numbers = transaction.map("numbers")
                        for key in keys[:several]:
                            await numbers.put(key, await numbers.get(key) + 1)
            assert [await client.map("numbers").get(key) for key in keys] == [40, 40, 20]
            assert any(early)

    in_cluster(scenario, members=3, backups=1)


@pytest.mark.parametrize(
    "how", [{}, {"concurrency": "pessimistic", "isolation": "repeatable read"}], ids=str
)
def test_messages_that_a_user_waits_for_wait_for_no_company(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, how: dict[str, str]
) -> None:
    """Of three primaries, one is behind; what was locked is free when the user is told."""

    async def scenario(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, _, _):
            owner = (await client.map("numbers")._bind(Deadline(60.0))).router.owner
            keys = {owner((key,)): key for key in range(50)}
            assert len(keys) == 3
            monkeypatch.setattr(outgoing, "LINGER", 3600.0)
            for number in range(3):
                async with asyncio.timeout(60), client.transaction(**how) as transaction:
                    for key in keys.values():
                        await transaction.map("numbers").put(key, number)
            for member in cluster.members:
                member.transactions.shell.outgoing.flush_all()

    in_cluster(scenario, members=3, backups=1)


def test_a_commit_that_cannot_end_is_answered_in_time(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when most members are gone: nobody can decide. The client has said how long it waits."""

    async def main(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, here, there):
            client._core.patience = 0.2
            monkeypatch.setattr(asyncio_transaction, "COMMIT_GRACE", 3600.0)
            monkeypatch.setattr(transactions, "GRACE", 0.2)
            with pytest.raises(RemudaError) as caught:
                async with client.transaction() as transaction:
                    numbers = transaction.map("numbers")
                    await numbers.put(here, await numbers.get(here) + 1)
                    await numbers.put(there, await numbers.get(there) + 1)
                    with monkeypatch.context() as patch:
                        patch.setattr(outgoing.Outgoing, "send_frame", lambda *_: None)
                        await transaction.commit()
            assert isinstance(caught.value, OutcomeUnknown | TransactionTimeout)

    in_cluster(main)


def test_a_commit_whose_time_is_over_is_not_begun(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client may have gone. It is told of the rollback, not of an answer that never came."""
    validated = TransactionSessions._validated

    async def slow(self: TransactionSessions, transaction: Any) -> Any:
        found = await validated(self, transaction)
        await asyncio.sleep(0.01)
        return found

    async def main(cluster: Any) -> None:
        async with numbers_of(cluster) as (client, here, there):
            monkeypatch.setattr(asyncio_transaction, "COMMIT_GRACE", 3600.0)
            monkeypatch.setattr(TransactionSessions, "_validated", slow)
            begun: list[Any] = []
            monkeypatch.setattr(TransactionShell, "begin", lambda *_, **__: begun.append(1))
            transaction = client.transaction()
            async with transaction:
                numbers = transaction.map("numbers")
                await numbers.put(here, await numbers.get(here) + 1)
                await numbers.put(there, await numbers.get(there) + 1)
                transaction._core.patience = 0.001
                with pytest.raises(TransactionTimeout, match="rolled back"):
                    await transaction.commit()
            assert transaction.state is State.ROLLED_BACK
            assert begun == []
            assert await client.map("numbers").get_all([here, there]) == {here: 0, there: 0}

    in_cluster(main)
