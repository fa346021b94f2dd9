"""Computed values, versions and expected values, on real members with backups."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from unittest.mock import AsyncMock

import pyarrow as pa
import pytest

import remuda.aio
from remuda import col
from remuda.client.core.routing import Router
from remuda.errors import (
    CheckViolation,
    DivisionByZero,
    GroupingError,
    InvalidDefinition,
    LimitExceeded,
    NotNullViolation,
    NotSupported,
    NumericOverflow,
    ObjectMismatch,
    SerializationFailure,
    SqlSyntaxError,
    StringTooLong,
    TransientError,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
    ViewChanged,
    WrongParameters,
)
from remuda.limits import PAGE_ROWS, PAGES_IN_FLIGHT
from remuda.member.queries.cursors import Results

ACCOUNTS = (
    "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance DECIMAL(30, 2) NOT NULL,"
    " owner VARCHAR(5), rate DOUBLE, changed TIMESTAMPTZ, CHECK (balance >= 0))"
)


@asynccontextmanager
async def accounts(cluster, rows=20):
    addresses = [(member.info.host, member.info.user_port) for member in cluster.members]
    async with remuda.aio.connect(addresses) as client:
        await client.sql(ACCOUNTS)
        found = client.map("accounts")
        await found.put_all({k: {"balance": 100, "owner": "o", "rate": 0.5} for k in range(rows)})
        yield client, found


async def contents(cluster):
    """The rows of all copies, and how often each occurs."""
    await cluster.settled()
    found = {}
    for member in cluster.members:
        for stores in (member.core.stores, member.core.backup_stores):
            for store in stores.values():
                cursor = store.scan(member.core.clock.last, range(3), None)
                while (batch := cursor.next()) is not None:
                    for row in batch.to_pylist():
                        found[tuple(row.values())] = found.get(tuple(row.values()), 0) + 1
    return found


def test_a_value_is_computed_where_the_entry_is(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster) as (_, found):
            assert (await found.compute(1, "balance = balance + ?", 5)).balance == 105
            doubled = {"balance": col("balance") * 2, "owner": "twice"}
            value = await found.compute(1, doubled, where=col("rate") < 1)
            assert (value.balance, value.owner, value.rate) == (210, "twice", 0.5)
            assert await found.compute(1, doubled, where=col("balance") < 0) is None
            assert await found.compute(1, "balance = 0 -- not all", where="balance < 0") is None
            text = "balance = balance - ?, changed = now()"
            old = await found.compute(1, text, 10, 200, where="balance >= ?", return_old=True)
            assert old.balance == 210
            value = await found.get(1)
            assert value.balance == 200
            assert value.changed is not None
            # Columns swap their values: all expressions see the row of before.
            await found.compute(2, "balance = rate, rate = balance")
            assert (await found.get(2))[1:4:2] == (Decimal("0.50"), 100.0)
            assert (await found.compute(2, "owner = DEFAULT")).owner is None
            absent = {"balance": 7}
            assert await found.compute(99, "balance = balance + 1") is None
            assert (await found.compute(99, "balance = balance + 1", insert=absent)).balance == 7
            assert (await found.compute(99, "balance = balance + 1", insert=absent)).balance == 8
            assert await found.compute(98, "rate = 1", insert=absent, return_old=True) is None
            assert (await found.get(98)).balance == 7
            assert set((await contents(cluster)).values()) == {2}

    in_cluster(scenario, backups=1)


def test_every_computation_counts_once(in_cluster):
    """Many clients at one key: nothing comes between what is read and what is written."""

    async def scenario(cluster):
        async with accounts(cluster) as (client, found):
            other = client.map("accounts")
            results = await asyncio.gather(
                *(each.compute(3, "balance = balance + 1") for each in [found, other] * 15)
            )
            assert sorted(value.balance for value in results) == list(range(101, 131))
            assert (await found.get(3)).balance == 130
            scalars = client.map("scalars")
            await scalars.put("a", 1)
            assert await scalars.compute("a", "this = this * 10") == 10

    in_cluster(scenario, backups=2)


def test_what_cannot_be_is_refused_and_changes_nothing(in_cluster):
    refused = [
        ("balance = balance / 0", DivisionByZero),
        ("balance = NULL", NotNullViolation),
        ("balance = balance - 101", CheckViolation),
        ("balance = 1e40", NumericOverflow),
        ("owner = 'longer'", StringTooLong),
        ("balance = true", TypeMismatch),
        ("id = 3", InvalidDefinition),
        ("nothing = 3", UndefinedColumn),
        ("balance = ?", WrongParameters),
        ("balance = (SELECT 1)", NotSupported),
        ("balance = sum(balance)", GroupingError),
        ("balance = 1 RETURNING id", NotSupported),
        ("balance = 1 FROM other", NotSupported),
        ("balance = 1, balance = 2", SqlSyntaxError),
        ("balance = 1; DROP TABLE accounts", SqlSyntaxError),
        ("balance", SqlSyntaxError),
        ("", SqlSyntaxError),
        ({}, SqlSyntaxError),
        ({"balance": object()}, TypeMismatch),
        (7, remuda.errors.InputError),
    ]

    async def scenario(cluster):
        async with accounts(cluster, rows=3) as (client, found):
            before = await contents(cluster)
            for expression, error in refused:
                with pytest.raises(error):
                    await found.compute(1, expression)
            with pytest.raises(WrongParameters):
                await found.compute(1, "rate = ?", 1, 2)
            with pytest.raises(LimitExceeded, match="at most 8192 characters"):
                await found.compute(1, "rate = 1" + " + 1" * 3000)
            with pytest.raises(LimitExceeded):
                await found.compute(1, "rate = " + "(" * 3000 + "1" + ")" * 3000)
            with pytest.raises(ObjectMismatch):
                await found.compute("one", "rate = 1")
            with pytest.raises(ObjectMismatch):
                await found.compute(50, "rate = 1", insert={"balance": "much"})
            with pytest.raises(UndefinedMap):
                await client.map("nowhere").compute(1, "rate = 1")
            assert await contents(cluster) == before

    in_cluster(scenario, backups=1)


def test_many_keys_are_computed_each_for_itself(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster, rows=200) as (_, found):
            changed = await found.compute_all(range(150, 300), "balance = balance + ?", 1)
            assert sorted(changed) == list(range(150, 200))
            assert {value.balance for value in changed.values()} == {101}
            changed = await found.compute_all(
                [1, 2, 2, 500], "rate = 2", insert={"balance": 1}, where=col("id") > 1
            )
            assert sorted(changed) == [2, 500]
            assert await found.compute_all([], "rate = 2") == {}
            assert len(cluster.members[0].changes.known) <= 2
            assert await found.sum("balance") == 200 * 100 + 50 + 1

    in_cluster(scenario, backups=1)


def test_what_was_computed_at_one_member_is_not_sent_again_for_another(in_cluster, monkeypatch):
    """A client with an old view takes one member for the owner of all keys."""

    async def scenario(cluster):
        async with accounts(cluster) as (_, found):
            here = cluster.member(1)
            router = here.maps.open("accounts").router
            owners = [here.core.view.owners[router.key_partition((key,))] for key in range(20)]
            first = next(key for key in range(20) if owners[key] == 1)
            second = next(key for key in range(20) if owners[key] == 2)
            monkeypatch.setattr(Router, "owner", lambda *_: 1)
            with monkeypatch.context() as patched:
                refused = ViewChanged("it has just changed")
                patched.setattr(here.maps._forwarding, "ask", AsyncMock(side_effect=refused))
                with pytest.raises(TransientError, match="some of the entries were changed") as e:
                    await found.compute_all([first, second], "balance = balance + 1")
            assert type(e.value) is TransientError
            changed = await found.compute_all([first, second], "balance = balance + 1")
            assert {key: value.balance for key, value in changed.items()} == {
                first: 102,
                second: 101,
            }

    in_cluster(scenario, members=2, backups=1)


def test_a_text_is_bound_once_and_anew_for_another_schema(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster, rows=3) as (client, found):
            for amount in range(5):
                await found.compute(1, "balance = balance + ?", amount)
            known = [len(member.changes.known) for member in cluster.members]
            assert sum(known) == 1
            await client.sql("ALTER TABLE accounts ADD COLUMN more INT")
            assert (await found.compute(1, "balance = balance + ?", 1)).more is None
            # 1.5 is no exact integer, so the text is bound by the type of the value.
            assert (await found.compute(1, "more = ?", 1)).more == 1
            assert (await found.compute(1, "rate = 2 * ?", 1.5)).rate == 3.0
            assert (await found.compute(1, "rate = ?", None)).rate is None

    in_cluster(scenario, backups=1)


def test_versions(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster) as (_, found):
            assert await found.get_versioned(77, "none") == ("none", 0)
            value, version = await found.get_versioned(1)
            assert value.balance == 100
            assert await found.get_versioned(1) == (value, version)
            new = {"balance": 1, "owner": "new"}
            assert await found.replace(1, new, if_version=version)
            assert not await found.replace(1, new, if_version=version)
            _, later = await found.get_versioned(1)
            assert later > version
            assert await found.remove(1, "kept", if_version=version) == "kept"
            assert not await found.delete(1, if_version=version)
            assert (await found.remove(1, if_version=later)).owner == "new"
            assert not await found.replace(1, new, if_version=later)
            await found.put(1, new)
            assert not await found.replace(1, new, if_version=later)
            # Of those who have read one version, one replaces it.
            _, version = await found.get_versioned(2)
            done = await asyncio.gather(
                *(found.replace(2, {"balance": k}, if_version=version) for k in range(10))
            )
            assert sum(done) == 1
            for wrong in (True, "7", -1, 1 << 63):
                with pytest.raises(remuda.errors.InputError, match="a version is a number"):
                    await found.replace(2, new, if_version=wrong)
            assert set((await contents(cluster)).values()) == {2}

    in_cluster(scenario, backups=1)


def test_a_version_survives_the_loss_of_the_primary(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster, rows=60) as (_, found):
            keys = range(60)
            versions = {k: (await found.get_versioned(k))[1] for k in keys}
            lost = cluster.members.pop(1)
            await lost.stop()
            for key, version in versions.items():
                assert await found.get_versioned(key) == (await found.get(key), version)
            assert all(
                [await found.replace(k, {"balance": k}, if_version=versions[k]) for k in keys]
            )

    in_cluster(scenario, backups=1)


def test_expected_values(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster) as (client, found):
            value = await found.get(1)
            other = {**value._asdict(), "balance": Decimal("100.01")}
            assert not await found.replace_if(1, other, {"balance": 5})
            assert await found.replace_if(1, value, {"balance": 5, "rate": float("nan")})
            assert not await found.replace_if(1, value, {"balance": 6})
            for ask in (
                lambda: found.replace_if(1, None, value),
                lambda: found.delete(1, if_value=None),
            ):
                with pytest.raises(ObjectMismatch):
                    await ask()
            assert not await found.replace_if(99, {"balance": 5}, {"balance": 6})
            assert await found.remove(1, if_value={"balance": 5}) is None
            nan = {"balance": 5, "rate": float("nan")}
            assert (await found.get_and_replace(1, {"balance": 8}, if_value=nan)).balance == 5
            assert await found.get_and_replace(99, {"balance": 8}, "none") == "none"
            assert await found.delete(1, if_value={"balance": 8})
            assert not await found.contains_key(1)
            everything = client.map("everything")
            value = {"t": "ä", "b": b"\0", "f": 1.5, "d": Decimal("1.10"), "l": [1, None], "n": 3}
            await everything.put(1, value)
            assert await everything.replace_if(1, await everything.get(1), {**value, "n": 4})
            assert await everything.replace_if(1, {**value, "n": 4}, {**value, "n": 5})

    in_cluster(scenario, backups=1)


def test_in_transactions(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster) as (client, found):
            async with client.transaction() as tx:
                inside = tx.map("accounts")
                assert (await inside.compute(1, "balance = balance - 60")).balance == 40
                assert (await inside.compute(1, "balance = balance - 30")).balance == 10
                assert await inside.compute(1, "rate = 1", where="balance > 10") is None
                await inside.compute_all([2, 3], "balance = balance + 45")
                assert await inside.replace_if(4, await inside.get(4), {"balance": 0})
                assert await inside.delete(5, if_value=await inside.get(5))
                assert (await found.get(1)).balance == 100
                with pytest.raises(NotSupported):
                    await inside.get_versioned(1)
            assert [(await found.get(k)).balance for k in (1, 2, 3, 4)] == [10, 145, 145, 0]
            assert not await found.contains(5)
            with pytest.raises(SerializationFailure):
                async with client.transaction() as tx:
                    await tx.map("accounts").compute(1, "balance = balance + 1")
                    await found.compute(1, "balance = balance + 1")
            assert (await found.get(1)).balance == 11

    in_cluster(scenario, backups=1)


def test_replicated_maps(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster, rows=1) as (client, _):
            copied = client.map("copied")
            table = pa.table({"k": [1, 2], "n": [10, 20]})
            await copied.put_all(table, key="k", replicated=True)
            assert (await copied.compute(1, "n = n + 1")).n == 11
            value, version = await copied.get_versioned(1)
            assert not await copied.replace(1, {"n": 5}, if_version=version - 1)
            assert await copied.replace(1, {"n": 5}, if_version=version)
            assert (await copied.remove(2, if_value={"n": 20})).n == 20
            assert await copied.compute_all([1, 3], "n = n + 1", insert={"n": 0}) == {
                1: (1, 6),
                3: (3, 0),
            }
            found = await client.sql("SELECT k, n FROM copied ORDER BY k")
            assert await found.fetchall() == [(1, 6), (3, 0)]
            assert value.n == 11

    in_cluster(scenario, backups=1)


def test_about_all_entries(in_cluster):
    async def scenario(cluster):
        async with accounts(cluster, rows=100) as (client, found):
            assert await found.count() == 100
            assert await found.count(col("id") < 10) == 10
            assert await found.count(by="owner") == {"o": 100}
            assert await found.sum("balance", col("id") >= 98) == 200
            assert await found.sum("balance", col("id") < 0) is None
            assert await found.min("id") == 0
            assert await found.max(col("id") * 2 + 1) == 199
            assert await found.avg("rate") == 0.5
            assert await found.max("id", by=["owner", "rate"]) == {("o", 0.5): 99}
            with pytest.raises(UndefinedColumn):
                await found.sum("nothing")
            for by in ([], 5, {"owner": 1}):
                with pytest.raises(remuda.errors.InputError):
                    await found.count(by=by)
            with pytest.raises(remuda.errors.InputError):
                await found.remove_all(None)
            assert await found.remove_all(col("id") > 9) == 90
            assert await found.size() == 10
            assert await found.get_or_default(50, "none") == "none"
            assert (await found.get_and_remove(1)).balance == 100
            async with client.transaction() as tx:
                await tx.map("accounts").put(200, {"balance": 1})
                assert await tx.map("accounts").count() == 10
                assert not await tx.map("accounts").is_empty()
            assert not await found.is_empty()
            await found.clear()
            assert await found.is_empty()
            await found.put(1, {"balance": 1})
            with pytest.raises(DivisionByZero):  # a rollback brings the map back
                async with client.transaction() as tx:
                    await tx.map("accounts").destroy()
                    await tx.sql("SELECT 1 / 0")
            await found.truncate()
            assert await found.size() == 0
            await found.destroy()
            with pytest.raises(UndefinedMap):
                await found.get(1)

    in_cluster(scenario, backups=1)


def test_a_large_map_is_never_a_list(in_cluster, monkeypatch):
    """Who reads entries holds a few pages, and so do the members, however many there are."""
    sent = []
    original = Results.external_page

    def counted(self, batch, on_acknowledged):
        sent.append(batch.num_rows)
        original(self, batch, on_acknowledged)

    monkeypatch.setattr(Results, "external_page", counted)

    async def scenario(cluster):
        async with accounts(cluster, rows=1) as (client, _):
            large = client.map("large")
            rows = 400_000
            await large.put_all(pa.table({"id": range(rows), "v": range(rows)}), key="id")
            for ask in (large.keys, large.values, large.entries):
                sent.clear()
                async with aclosing(ask()) as found:
                    await anext(found)
                    held = [member.gauges()["memory_held"] for member in cluster.members]
                    assert sum(sent) <= (PAGES_IN_FLIGHT + 1) * PAGE_ROWS
                    assert max(held) < rows  # a byte for each would be a list already
                await cluster.idle()

    in_cluster(scenario)
