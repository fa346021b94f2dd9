"""SELECTs over three members: answers, ends, and what is left afterwards (nothing)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import (
    DivisionByZero,
    InputError,
    InvalidText,
    MemberUnavailable,
    NotNullViolation,
    QueryCanceled,
    QueryTimeout,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedMap,
    UniqueViolation,
    ViewChanged,
    WrongParameters,
)
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

InCluster = Callable[..., None]
COMPLETED, CANCELED, FAILED = 2, 3, 4


async def filled(cluster: Any, rows: int = 100, number: int = 2) -> Any:
    client = await cluster.client(number)
    await client.run("CREATE TABLE t (id INTEGER PRIMARY KEY, grp VARCHAR, v BIGINT)")
    values = ", ".join(f"({i}, 'g{i % 5}', {i * 10})" for i in range(rows))
    done = await client.run(f"INSERT INTO t VALUES {values}")
    assert done.error is None, done.error
    assert (done.affected, done.tag) == (rows, "INSERT")
    return client


@pytest.mark.parametrize("members", [1, 3])
def test_select_from_every_member(in_cluster: InCluster, members: int) -> None:
    async def scenario(cluster: Any) -> None:
        await filled(cluster, number=members)
        for number in range(1, members + 1):
            client = await cluster.client(number)
            assert await client.sql("SELECT count(*), sum(v) FROM t") == [(100, 49500)]
            grouped = await client.sql("SELECT grp, count(*) FROM t GROUP BY grp ORDER BY grp")
            assert grouped == [(f"g{i}", 20) for i in range(5)]
            top = await client.sql("SELECT id FROM t WHERE v > ? ORDER BY v DESC LIMIT 3", 100)
            assert top == [(99,), (98,), (97,)]
            joined = await client.sql("SELECT count(*) FROM t a JOIN t b ON a.v = b.id")
            assert joined == [(10,)]
        await cluster.idle()

    in_cluster(scenario, members=members)


def test_reads_by_key(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        for _ in range(2):  # planned, then from the plan cache
            for key in range(20):
                assert await client.sql("SELECT v FROM t WHERE id = ?", key) == [(key * 10,)]
                found = await client.sql("SELECT v + 1 AS w, grp FROM t WHERE id = ?", key)
                assert found == [(key * 10 + 1, f"g{key % 5}")]
        assert await client.sql("SELECT v FROM t WHERE id = ?", 1000) == []
        assert await client.sql("SELECT v FROM t WHERE id = ? AND v < 0", 5) == []
        assert sorted(await client.sql("SELECT v FROM t WHERE id IN (1, 2, 3)")) == [
            (10,), (20,), (30,),
        ]  # fmt: skip
        assert await client.sql("SELECT v FROM t WHERE id = ?", 2**40) == []
        empty = await client.run("SELECT v, grp FROM t WHERE id = 1000")
        assert empty.columns == ["v", "grp"]
        assert len(empty.pages) == 1
        await cluster.idle()

    in_cluster(scenario)


def test_prepared_statement(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster, 3000)
        request = user_pb2.CreatePreparedStatementReq(sql_query="SELECT v FROM t WHERE id = ?")
        answer = await client.ask(
            RpcType.CREATE_PREPARED_STATEMENT, request, user_pb2.CreatePreparedStatementResp
        )
        prepared = answer.prepared_statement
        assert answer.status == user_pb2.OK
        assert [t.kind for t in prepared.parameter_types] == ["INTEGER"]
        assert list(prepared.route_parameters) == [0]
        assert [column.name for column in prepared.result_columns] == ["v"]
        other = await cluster.client(3)
        options = {
            "type": user_pb2.PREPARED_STATEMENT_TYPE,
            "prepared_statement_handle": prepared.server_handle,
        }
        assert await other.sql("", 7, **options) == [(70,)]
        wrong = user_pb2.CreatePreparedStatementReq(sql_query="SELECT nothing FROM t")
        answer = await client.ask(
            RpcType.CREATE_PREPARED_STATEMENT, wrong, user_pb2.CreatePreparedStatementResp
        )
        assert answer.status == user_pb2.FAILED_
        assert answer.error.sqlstate == UndefinedColumn.sqlstate

    in_cluster(scenario)


def test_wrong_statements_fail_clearly_and_the_next_works(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        cases: list[tuple[str, type[Exception]]] = [
            ("SELEC 1", SqlSyntaxError),
            ("SELECT * FROM missing", UndefinedMap),
            ("SELECT missing FROM t", UndefinedColumn),
            ("SELECT grp + 1 FROM t", UndefinedFunction),
            ("SELECT v / (id - id) FROM t", DivisionByZero),
            ("SELECT v FROM t WHERE id = ?", WrongParameters),
            ("INSERT INTO t VALUES (1, 'a', 1)", UniqueViolation),
            ("INSERT INTO t VALUES (1000, 'a', 'x')", InvalidText),
            ("INSERT INTO t VALUES (NULL, 'a', 1)", NotNullViolation),
        ]
        for text, kind in cases:
            result = await client.run(text)
            assert isinstance(result.error, kind), (text, result.error)
            assert result.state == FAILED
            assert await client.sql("SELECT count(*) FROM t") == [(100,)]
        await cluster.idle()

    in_cluster(scenario)


def test_large_results_stream_in_pages_with_bounded_flight(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster, 3000)
        client.hold = True
        result = await client.start("SELECT id, v FROM t", page_rows=100)
        await result.first_page.wait()
        while len(client.held) < 3:
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(client.held) == 3, "no more than PAGES_IN_FLIGHT without acknowledgement"
        client.release()
        await result.done.wait()
        assert result.error is None
        assert sorted(result.rows) == [(i, i * 10) for i in range(3000)]
        assert len(result.pages) >= 30
        await cluster.idle()

    in_cluster(scenario)


@pytest.mark.parametrize("how", ["cancel", "timeout", "client gone"])
def test_an_unfinished_query_frees_everything_everywhere(in_cluster: InCluster, how: str) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster, 3000)
        client.hold = True
        options = {"timeout": 0.3} if how == "timeout" else {}
        result = await client.start("SELECT a.id FROM t a, t b", page_rows=100, **options)
        await result.first_page.wait()
        if how == "cancel":
            await client.cancel(result)
            await result.done.wait()
            assert isinstance(result.error, QueryCanceled)
            assert result.state == CANCELED
        elif how == "timeout":
            await result.done.wait()
            assert isinstance(result.error, QueryTimeout)
        else:
            client.channel.close()
        await cluster.idle()
        other = await cluster.client(1)
        assert await other.sql("SELECT count(*) FROM t") == [(3000,)]

    in_cluster(scenario)


def test_a_lost_member_fails_queries_and_is_named(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster, 3000, number=1)
        client.hold = True
        result = await client.start("SELECT a.id FROM t a, t b", page_rows=100)
        await result.first_page.wait()
        await cluster.member(3).stop("killed by the test")
        await result.done.wait()
        assert isinstance(result.error, MemberUnavailable), result.error
        assert "member 3" in result.error.message
        client.hold = False
        again = await client.run("SELECT count(*) FROM t")
        assert isinstance(again.error, MemberUnavailable)
        assert "member 3" in str(again.error)
        schema = next(m for m in cluster.member(1).core.catalog.maps if m.name == "t")
        answers = await asyncio.gather(
            *(client.get(schema, key) for key in range(50)), return_exceptions=True
        )
        failures = [answer for answer in answers if isinstance(answer, Exception)]
        assert failures and all(isinstance(f, MemberUnavailable) for f in failures)
        assert any(not isinstance(answer, Exception) for answer in answers)
        await cluster.idle()

    in_cluster(scenario, backups=0)  # a backup would take over


def test_explain_and_show(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        plain = await client.run("EXPLAIN SELECT grp, count(*) FROM t GROUP BY grp")
        assert plain.columns == ["plan"] and plain.tag == "EXPLAIN"
        assert any("Scan t" in row[0] for row in plain.rows)
        analyzed = await client.run("EXPLAIN ANALYZE SELECT grp, count(*) FROM t GROUP BY grp")
        text = "\n".join(row[0] for row in analyzed.rows)
        assert "rows=100" in text and "Execution time" in text
        assert [row[0] for row in await client.sql("SHOW MAPS")] == ["t"]
        described = await client.sql("DESCRIBE t")
        assert [row[0] for row in described] == ["id", "grp", "v"]
        await cluster.idle()

    in_cluster(scenario)


def test_insert_select_and_sink(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        await client.run("CREATE TABLE u (id INTEGER PRIMARY KEY, v BIGINT)")
        done = await client.run("INSERT INTO u SELECT id, v FROM t WHERE id < 50")
        assert (done.error, done.affected) == (None, 50)
        again = await client.run("INSERT INTO u SELECT id, v FROM t WHERE id < 60")
        assert isinstance(again.error, UniqueViolation)
        assert await client.sql("SELECT count(*) FROM u") == [(50,)]
        sunk = await client.run("SINK INTO u SELECT id, v + 1 FROM t WHERE id < 60")
        assert (sunk.error, sunk.affected) == (None, 60)
        assert await client.sql("SELECT count(*), min(v) FROM u") == [(60, 1)]
        await cluster.idle()

    in_cluster(scenario)


def test_partitions_of_another_member_are_refused(in_cluster: InCluster) -> None:
    """An empty answer would mean rows that silently miss from a Spark read."""

    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        theirs = cluster.member(1).core.view.partitions_of(2)
        with pytest.raises(ViewChanged, match="belongs to member 2"):
            await client.sql("SELECT count(*) FROM t", partitions=theirs)
        with pytest.raises(InputError, match="no partition 5000"):
            await client.sql("SELECT count(*) FROM t", partitions=[5000])
        assert await client.sql("SELECT count(*) FROM t") == [(0,)]

    in_cluster(scenario)


def test_reads_of_some_partitions_on_one_member(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        await filled(cluster, 300)
        view = cluster.member(1).core.view
        client = await cluster.client(1)
        at = cluster.member(1).core.timestamp()
        seen: list[tuple[int]] = []
        named: list[tuple[int]] = []
        for number in (1, 2, 3):
            reader = await cluster.client(number)
            mine = view.partitions_of(number)
            for part in (mine[:10], mine[10:]):
                seen += await reader.sql("SELECT id FROM t", partitions=part, read_timestamp=at)
                by_key = "SELECT id FROM t WHERE id = 7 OR id IN (8, 9)"
                named += await reader.sql(by_key, partitions=part, read_timestamp=at)
            local = await reader.sql("SELECT count(*) FROM t", local_only=True)
            assert 0 < local[0][0] < 300
        assert sorted(seen) == [(i,) for i in range(300)]
        assert sorted(named) == [(7,), (8,), (9,)], "each in its own partition alone"
        await client.put(await client.schema("t"), (0, "new", -1))
        old = await client.sql("SELECT v FROM t WHERE id = 0", read_timestamp=at)
        assert old == [(0,)]
        assert await client.sql("SELECT v FROM t WHERE id = 0") == [(-1,)]
        await cluster.idle()

    in_cluster(scenario)


def test_type_of_a_parameter_may_differ_from_the_column(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        assert await client.sql("SELECT count(*) FROM t WHERE id < ?", 10.5) == [(11,)]
        assert await client.sql("SELECT count(*) FROM t WHERE grp = ?", "g1") == [(20,)]
        wrong = await client.run("SELECT count(*) FROM t WHERE id = ?", "text")
        assert isinstance(wrong.error, UndefinedFunction)
        assert "integer = varchar" in wrong.error.message
        assert await client.sql("SELECT ? + 1", 41) == [(42,)]

    in_cluster(scenario)


@pytest.mark.parametrize("workers", [0, 2])
def test_small_maps_with_many_pairs_do_not_hold_up_the_loop(
    in_cluster: InCluster, workers: int
) -> None:
    """Seconds of work over a few rows; only a loop that goes on hears of the cancel."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster, 600, number=1)
        text = "SELECT count(*) FROM t a, t b, t c WHERE a.v + b.v + c.v < 0"
        result = await client.start(text)
        await client.cancel(result)
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        assert await client.sql("SELECT count(*) FROM t") == [(600,)]
        await cluster.idle()

    in_cluster(scenario, members=1, workers=workers)


def test_the_timer_of_a_timeout_ends_with_its_query(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        call_later = loop.call_later

        def spy(delay: float, *what: Any) -> asyncio.TimerHandle:
            handle = call_later(delay, *what)
            if 590 < delay < 610:
                timers.append(handle)
            return handle

        client = await filled(cluster)
        monkeypatch.setattr(loop, "call_later", spy)
        assert await client.sql("SELECT count(*) FROM t", timeout=600.0) == [(100,)]
        failed = await client.run("SELECT v / (id - id) FROM t", timeout=600.0)
        assert isinstance(failed.error, DivisionByZero)
        await cluster.idle()
        assert [timer.cancelled() for timer in timers] == [True, True]

    in_cluster(scenario)


def test_wide_pages_are_split_below_the_frame_limit(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE w (id INTEGER PRIMARY KEY, s VARCHAR)")
        for key in range(4):
            await client.sql("INSERT INTO w VALUES (?, ?)", key, "x" * 6_000_000)
        result = await client.run("SELECT * FROM w")
        assert result.error is None
        assert sorted((row[0], len(row[1])) for row in result.rows) == [
            (key, 6_000_000) for key in range(4)
        ]
        assert len(result.pages) > 1
        await cluster.idle()

    in_cluster(scenario)
