"""Profiles of statements: while they run, and of the last ones; figures of memory; waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import InputError, OutOfMemory, QueryCanceled, QueryTimeout
from remuda.execution.context import FragmentProfile
from remuda.member.queries.fragments import Listener
from remuda.member.statements.admission import AdmissionGate
from remuda.member.statements.recursion import Evaluation
from remuda.session.client_session import ClientSession
from remuda.session.settings import SETTINGS

InCluster = Callable[..., None]
MIB = 1 << 20


async def profile_of(client: Any, text: str) -> dict[str, Any]:
    found = await client.sql("SELECT profile FROM sys.query_profiles")
    profiles = [json.loads(profile) for (profile,) in found]
    return next(profile for profile in profiles if profile["text"] == text)


async def fill(client: Any, rows: int) -> None:
    await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, a BIGINT, s VARCHAR)")
    await client.sql(
        f"INSERT INTO t SELECT g, g % 1000, 'text ' || g FROM generate_series(1, {rows}) g"
    )


def test_a_finished_query_leaves_its_profile(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 6000)
        text = "SELECT a, count(*) FROM t WHERE k > 10 GROUP BY a ORDER BY a"
        assert len(await client.sql(text)) == 1000

        [row] = await client.sql(
            "SELECT member, state, rows, planning > 0, execution > 0, error FROM sys.query_history "
            f"WHERE text = '{text}'"
        )
        assert row == (1, "finished", 1000, True, True, None)
        other = await cluster.client(2)
        made = await profile_of(other, text)
        assert made["state"] == "finished"
        assert made["rows"] == 1000
        assert made["error"] is None
        [run] = made["runs"]
        assert "Scan t where k > 10" in run["plan_text"]
        assert "actual: rows=5990" in run["plan_text"]
        places = {(f["fragment"], f["member"], f["instance"]) for f in run["fragments"]}
        assert {member for fragment, member, _ in places if fragment == 1} == {1, 2, 3}
        for fragment in run["fragments"]:
            assert 0 <= fragment["first"] <= fragment["last"] < 600
            for operator in fragment["operators"]:
                assert operator["seconds"] >= 0
                assert operator["wait"] >= 0
        aggregates = [
            operator
            for fragment in run["fragments"]
            for operator in fragment["operators"]
            if operator["operator"].endswith("Aggregate")
        ]
        assert any(operator["memory"] > 0 for operator in aggregates)
        await cluster.idle()

    in_cluster(scenario)


def test_a_session_without_profiles_leaves_failures_only(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 10)
        quiet = ClientSession().with_value(SETTINGS["keep_profiles"], "off").encode()
        assert await client.sql("SELECT 1 AS quiet", session=quiet) == [(1,)]
        assert await client.sql("SELECT count(*) AS quiet FROM t", session=quiet) == [(10,)]
        with pytest.raises(InputError, match="nope"):
            await client.sql("SELECT nope AS quiet FROM t", session=quiet)
        assert await client.sql("SELECT 2 AS quiet") == [(2,)]
        kept = "text LIKE '%AS quiet%' AND text NOT LIKE '%sys.%' ORDER BY text"
        texts = await client.sql(f"SELECT text FROM sys.query_history WHERE {kept}")
        assert texts == [("SELECT 2 AS quiet",), ("SELECT nope AS quiet FROM t",)]
        sums = await client.sql(
            f"SELECT text, calls, errors FROM sys.statement_statistics WHERE {kept}"
        )
        assert sums == [("SELECT $1 AS quiet", 1, 0), ("SELECT nope AS quiet FROM t", 1, 1)]
        await cluster.idle()

    in_cluster(scenario)


def test_failures_and_cancels_are_kept_with_their_errors(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 3000)
        failing = "SELECT sum(1 / (a - 500)) FROM t"
        result = await client.run(failing)
        assert result.error is not None
        made = await profile_of(client, failing)
        assert made["state"] == "failed"
        assert made["error"]["sqlstate"] == "22012"
        assert made["runs"][0]["plan"]["Fragments"]

        wrong = await client.run("SELECT nothing FROM t")
        made = await profile_of(client, "SELECT nothing FROM t")
        assert made["error"]["message"] == wrong.error.message
        assert made["runs"] == []

        endless = "SELECT count(*) FROM t a, t b, t c WHERE a.s < b.s AND b.s < c.s"
        handle = await client.start(endless)
        while not [row async for row in live(client, endless)]:
            await asyncio.sleep(0)
        await client.cancel(handle)
        await handle.done.wait()
        assert isinstance(handle.error, QueryCanceled)
        assert (await profile_of(client, endless))["state"] == "cancelled"
        await cluster.idle()

    async def live(client: Any, text: str) -> Any:
        for row in await client.sql(
            "SELECT o.name FROM sys.operators o JOIN sys.queries q USING (query) "
            f"WHERE q.text = '{text}'"
        ):
            yield row

    in_cluster(scenario)


def test_a_fragment_that_ends_with_the_root_is_in_the_profile(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The news that it is done comes when the query is over already."""
    done = Listener.on_done

    def late(self: Listener, profile: FragmentProfile) -> None:
        if (profile.fragment, profile.member) != (1, 1):
            done(self, profile)

    monkeypatch.setattr(Listener, "on_done", late)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 100)
        text = "SELECT a, count(*) FROM t GROUP BY a"
        await client.sql(text)
        [run] = (await profile_of(client, text))["runs"]
        assert [
            f["seconds"] > 0 for f in run["fragments"] if (f["fragment"], f["member"]) == (1, 1)
        ]

    in_cluster(scenario)


def test_a_change_waits_for_each_member_once(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, ...]] = []
    through = AdmissionGate.pass_

    async def noted(self: Any, statement: Any, plan: Any, members: tuple[int, ...]) -> None:
        asked.append(members)
        await through(self, statement, plan, members)

    monkeypatch.setattr(AdmissionGate, "pass_", noted)

    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 100)
        asked.clear()
        await client.sql("UPDATE t SET a = 0")

    in_cluster(scenario)
    assert (1, 2, 3) in asked
    assert all(len(set(members)) == len(members) for members in asked)


def test_a_recursive_query_that_runs_is_seen(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fragments belong to queries of their own, one after the other: the statement is held
    after the first of them, and then in the second one."""
    done, gather, holding = Listener.on_done, Evaluation._gather, []

    def held(self: Listener, profile: FragmentProfile) -> None:
        if not (holding and self._query.member == 1):
            done(self, profile)

    monkeypatch.setattr(Listener, "on_done", held)

    async def scenario(cluster: Any) -> None:
        between, further = asyncio.Event(), asyncio.Event()

        async def paused(*arguments: Any) -> None:
            await gather(*arguments)
            between.set()
            await further.wait()

        monkeypatch.setattr(Evaluation, "_gather", paused)
        client, other = await cluster.client(), await cluster.client(2)
        await fill(client, 100)
        text = (
            "WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL "
            "SELECT n + 1 FROM r JOIN t ON k = 1) SELECT count(*) FROM r"
        )
        result = await client.start(text)
        await between.wait()
        seen = f"SELECT query, state FROM sys.queries WHERE text = '{text}'"
        [(query, state)] = await other.sql(seen)
        assert state == "running"

        running = cluster.member(1).queries.running
        ended = {run for run, _ in running()}
        holding.append(True)
        further.set()
        while not (runs := {run for run, _ in running()} - ended):
            await asyncio.sleep(0)
        assert query not in map(str, runs)
        assert (query,) in await other.sql("SELECT query FROM sys.fragments WHERE member = 1")
        assert await other.sql(seen) == [(query, "running")]
        holding.clear()
        await client.cancel(result)
        await result.done.wait()

    in_cluster(scenario)


def test_a_query_that_runs_is_seen(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(), await cluster.client(2)
        await fill(client, 60_000)
        client.hold = True
        text = "SELECT k, s FROM t"
        result = await client.start(text, page_rows=100)
        await result.first_page.wait()
        made = await profile_of(other, text)
        assert made["state"] == "running"
        assert made["member"] == 1
        assert made["runs"][0]["fragments"]
        [row] = await other.sql(
            "SELECT state, rows > 0, planning > 0, queued FROM sys.queries "
            "WHERE text = 'SELECT k, s FROM t'"
        )
        assert row == ("running", True, True, 0.0)
        roots = await other.sql("SELECT name FROM sys.operators WHERE name = 'Root' AND waits > 0")
        assert roots
        client.release()
        await result.done.wait()
        await cluster.idle()

    in_cluster(scenario)


def test_profiles_are_bounded(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        history = cluster.member(1).statements.history
        for number in range(220):
            await client.sql(f"SELECT {number}")
        assert len(history) == 200
        size = history.size
        history._size_max = size // 2
        await client.sql("SELECT '" + "x" * 50_000 + "'")
        assert history.size <= size // 2
        [text] = [facts.text for facts in history.finished()][:1]
        assert len(text) == 4000

    in_cluster(scenario, 1)


def test_explain_analyze_shows_memory_and_spilling(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 120_000)
        text = "SELECT x.*, y.s FROM t x, t y WHERE x.s = y.s || '' ORDER BY x.s"
        lines = [line for (line,) in await client.sql(f"EXPLAIN ANALYZE {text}")]
        assert any("memory=" in line and "MiB" in line for line in lines)
        assert any("spilled=" in line and "files" in line for line in lines)
        [(made,)] = await client.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}")
        assert '"Spilled Bytes"' in made
        assert '"Peak Memory"' in made
        await client.sql(text)
        [(spilled, memory)] = await client.sql(
            f"SELECT spilled > 1000000, memory FROM sys.query_history WHERE text = $${text}$$"
        )
        assert spilled
        assert 0 < memory <= 6 * MIB
        await cluster.idle()

    in_cluster(scenario, 1, statement_memory=6 * MIB)


def test_memory_of_all_statements_is_bounded_and_shown(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await fill(client, 100_000)
        memory = cluster.member(1).core.memory
        queries = [client.run("SELECT k, s FROM t ORDER BY s, k") for _ in range(6)]
        results = await asyncio.gather(*queries)
        assert all(result.error is None for result in results)
        assert {len(result.rows) for result in results} == {100_000}
        assert 0 < memory.peak <= 40 * MIB
        assert memory.held == 0
        [row] = await client.sql(
            "SELECT memory_limit, memory_peak, queued FROM sys.members WHERE member = 1"
        )
        assert row == (40 * MIB, memory.peak, 0)
        await cluster.idle()

    in_cluster(scenario, 1, member_memory=40 * MIB)


def test_queries_wait_for_memory_in_turn(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(), await cluster.client()
        await fill(client, 30_000)
        memory = cluster.member(1).core.memory
        assert memory.reserve(38 * MIB)  # somebody has nearly all of it
        text = "SELECT a, count(*) FROM t GROUP BY a"
        waiting = [await client.start(text) for _ in range(3)]
        while cluster.member(1).statements.gate.waiting < 3:
            await asyncio.sleep(0)
        states = await other.sql(f"SELECT state FROM sys.queries WHERE text = '{text}'")
        assert states == [("queued",)] * 3
        assert await other.sql("SELECT a FROM t WHERE k = 7") == [(7,)], "short ones do not wait"
        assert await other.sql("SELECT queued FROM sys.members WHERE member = 1") == [(3,)]

        await client.cancel(waiting[1])
        await waiting[1].done.wait()
        assert isinstance(waiting[1].error, QueryCanceled)
        late = await other.run(text, timeout=0.05)
        assert isinstance(late.error, QueryTimeout)

        memory.release(38 * MIB)
        for result in (waiting[0], waiting[2]):
            await result.done.wait()
            assert result.error is None
        [(queued,)] = await other.sql(
            f"SELECT max(queued) FROM sys.query_history WHERE text = '{text}'"
        )
        assert queued > 0
        await cluster.idle()

    in_cluster(scenario, 1, member_memory=40 * MIB)


def test_waiting_ends_with_a_reason_and_a_change_waits_before_it_takes_its_turn(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(), await cluster.client()
        await fill(client, 30_000)
        memory = cluster.member(2).core.memory
        assert memory.reserve(39 * MIB)
        while cluster.member(1).statements.gate.waiting == 0:
            change = asyncio.ensure_future(client.run("UPDATE t SET a = a + 1"))
            done, _ = await asyncio.wait([change], timeout=0.05)
            if done:  # member 2 had not reported yet
                assert (await change).error is None
        inserted = await other.run("INSERT INTO t SELECT 100001, 1, 'x'")
        assert inserted.error is None, "nobody holds the turn of the map"
        result = await change
        assert isinstance(result.error, OutOfMemory)
        assert result.error.sqlstate == "53200"
        assert "member 2 holds" in result.error.detail
        memory.release(39 * MIB)
        await cluster.idle()

    in_cluster(scenario, 3, member_memory=40 * MIB, admission_timeout=0.4)
