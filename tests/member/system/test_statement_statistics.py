"""``sys.statement_statistics``: what statements have done, by fingerprint, over all members."""

from __future__ import annotations

import pytest
from users_of_cluster import READER, ROOT, known_users

from remuda.errors import DivisionByZero, SqlSyntaxError
from remuda.member.metrics.quantiles import RELATIVE_ERROR


async def of(client, text, columns="calls"):
    """The only row with a text like this."""
    [row] = await client.sql(
        f"SELECT {columns} FROM sys.statement_statistics WHERE text LIKE '{text}'"
    )
    return row


@pytest.mark.parametrize("members", [1, 3])
def test_calls_are_summed_over_members(in_cluster, members):
    async def scenario(cluster):
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await client.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        await client.sql("INSERT INTO t VALUES (3, 3), (4, 4), (5, 5) -- more")
        for number in range(1, members + 1):
            other = await cluster.client(number)
            await other.sql(f"SELECT a FROM t WHERE a IN ({number}, 2, 3)")
            await other.sql("select A\nfrom T where a in (1)")
            with pytest.raises(DivisionByZero):
                await other.sql(f"SELECT a / 0 FROM t WHERE a > {number - 10}")
            with pytest.raises(SqlSyntaxError):
                await other.sql(f"SELECT FROM WHERE {number}")
        columns = "calls, errors, rows, members, user_name"
        asker = await cluster.client(members)
        written = await of(asker, "INSERT INTO t VALUES ($1, $2)%", columns)
        assert written == (2, 0, 5, 1, "remuda")
        calls, errors, rows, held, _ = await of(asker, "SELECT a FROM t WHERE a IN%", columns)
        assert (calls, errors, held) == (2 * members, 0, members)
        assert rows == {1: 3 + 1, 3: 3 + 2 + 2 + 3}[members]
        failed = await of(asker, "SELECT a / $1 FROM t%", columns)
        assert failed == (members, members, 0, members, "remuda")
        refused = await of(asker, "<syntax error>", "calls, errors, fingerprint")
        assert refused == (members, members, None)

    in_cluster(scenario, members)


def test_times_are_consistent(in_cluster):
    async def scenario(cluster):
        client = await cluster.client()
        for number in range(20):
            await (await cluster.client(1 + number % 3)).sql(f"SELECT {number} + 1")
        row = await of(
            client,
            "SELECT $1 + $2",
            "calls, total_seconds, min_seconds, mean_seconds, max_seconds, p50_seconds, "
            "p95_seconds, p99_seconds, planning_seconds, queue_seconds, first <= last",
        )
        calls, total, least, mean, most, p50, p95, p99, planning, queued, ordered = row
        assert calls == 20
        assert mean == pytest.approx(total / 20)
        assert least <= p50 <= p95 <= p99 <= most
        assert least <= mean <= most
        assert p99 >= most * (1 - 2 * RELATIVE_ERROR)  # of 20, the last one
        assert 0 < planning <= total
        assert queued >= 0
        assert ordered

    in_cluster(scenario, 3)


def test_memory_and_spilled_bytes_are_known(in_cluster):
    async def scenario(cluster):
        client = await cluster.client()
        await client.sql("SELECT g % 7, count(*) FROM generate_series(1, 20000) g GROUP BY 1")
        memory, spilled = await of(client, "SELECT g \\% $1%", "memory, spilled")
        assert memory > 0
        assert spilled == 0

    in_cluster(scenario, 3)


def test_reads_by_key_are_counted(in_cluster):
    async def scenario(cluster):
        client = await cluster.client()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT)")
        await client.sql("INSERT INTO t SELECT g, g FROM generate_series(1, 50) g")
        for key in range(1, 41):
            assert await client.sql("SELECT a FROM t WHERE k = ?", key) == [(key,)]
        calls, reads, rows = await of(
            client, "SELECT a FROM t WHERE k = $1", "calls, reads_by_key, rows"
        )
        assert calls == 40
        assert reads == 40 - rows
        assert 30 <= reads < 40

    in_cluster(scenario, 3)


def test_texts_of_others_are_hidden(in_cluster, tmp_path, monkeypatch):
    async def scenario(cluster):
        root = await cluster.client(1, ROOT)
        reader = await cluster.client(2, READER)
        await root.sql("SELECT 'of root'")
        await reader.sql("SELECT 'of reader' || 'x'")
        seen = await reader.sql(
            "SELECT user_name, fingerprint IS NULL, text FROM sys.statement_statistics "
            "WHERE text NOT LIKE '%statistics%'"
        )
        assert sorted(seen) == [
            ("reader", False, "SELECT $1 || $2"),
            ("root", True, "<insufficient privilege>"),
        ]
        texts = await root.sql("SELECT text FROM sys.statement_statistics ORDER BY text")
        assert {("SELECT $1",), ("SELECT $1 || $2",)} <= set(texts)

    in_cluster(scenario, 3, **known_users(tmp_path, monkeypatch))
