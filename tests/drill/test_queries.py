"""Statements of a stock Drill client: results as value vectors, states, limits, pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from stock_client import ACK_BODY, PING, REQUEST, StockClient, frame

from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages import vectors_pb2 as v
from remuda.rpc.messages.user_pb2 import RpcType

COMPLETED, CANCELED, FAILED = 2, 3, 4
Run = Callable[..., None]


def gone(members: list[Any]) -> bool:
    return all(
        m.gauges()[name] == 0
        for m in members
        for name in ("queries", "statements", "cursors", "reads")
    )


async def idle(members: list[Any]) -> None:
    async with asyncio.timeout(100):
        while not gone(members):
            await asyncio.sleep(0.002)


def test_handshake_and_golden_frames(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        welcome = client.welcome
        assert (welcome.rpc_version, welcome.status) == (5, user_pb2.SUCCESS)
        assert tuple(map(int, welcome.server_infos.version.split("."))) >= (1, 19)
        assert welcome.server_infos.application.startswith("Remuda")
        implemented = set(welcome.supported_methods)
        assert {3, 4, 8, 11, 12, 14, 15, 16, 17, 22} <= implemented
        assert not {RpcType.GOODBYE, RpcType.REQUEST_RESULTS} & implemented
        # The frame in research: RUN_QUERY "select 1", STREAM_FULL, coordination id 2.
        golden = bytes.fromhex("180a06080010021803120e080110011a0873656c6563742031")
        assert frame(REQUEST, 2, 3, golden[-14:]) == golden
        future = client.waiting[2] = asyncio.get_running_loop().create_future()
        client.send(golden)
        reply = await future
        assert reply.rpc_type == RpcType.QUERY_HANDLE

    run_drill(check)


def test_ping_of_type_1_is_answered(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        client.send(frame(PING, 77, 1, ACK_BODY))
        pong = await client.pongs.get()
        assert (pong.pbody, pong.dbody) == (ACK_BODY, b"")
        assert await client.rows("SELECT 1") == [(1,)]
        assert await client.rows("SELECT protocol FROM sys.clients") == [("drill",)]

    run_drill(check)


SCALARS = """SELECT true AS b, CAST(-7 AS TINYINT) AS i1, CAST(-300 AS SMALLINT) AS i2, 70000 AS i4,
    CAST(-9000000000 AS BIGINT) AS i8, CAST(1.5 AS REAL) AS f4,
    CAST(-2.25 AS DOUBLE PRECISION) AS f8,
    CAST(-12.34 AS DECIMAL(6,2)) AS n, CAST('12345678901234567890.5' AS DECIMAL(38,1)) AS nn,
    'grüß' AS t, CAST('ab' AS CHAR(3)) AS c, CAST('\\x00ff' AS BYTEA) AS y, DATE '1969-12-31' AS d,
    TIME '23:59:59.125' AS tm, TIMESTAMP '2024-02-29 12:30:00.25' AS ts,
    TIMESTAMPTZ '2024-02-29 12:30:00+02' AS tz, INTERVAL '1 mon 2 days 03:04:05' AS iv,
    CAST('00112233-4455-6677-8899-aabbccddeeff' AS UUID) AS u, CAST('{"a": [1]}' AS JSON) AS j,
    NULL AS nothing"""


def test_every_scalar_type(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        result = await client.run(SCALARS)
        assert result.state == COMPLETED, result.errors
        (row,) = result.rows
        assert row == (
            True, -7, -300, 70000, -9000000000, 1.5, -2.25, Decimal("-12.34"),
            Decimal("12345678901234567890.5"), "grüß", "ab ".rstrip(), b"\x00\xff",
            date(1969, 12, 31), time(23, 59, 59, 125_000),
            datetime.fromisoformat("2024-02-29T12:30:00.250"),
            datetime.fromisoformat("2024-02-29T10:30:00"), (1, 2, 11_045_000),
            "00112233-4455-6677-8899-aabbccddeeff", '{"a": [1]}', None,
        )  # fmt: skip
        kinds = [f.major_type.minor_type for f in result.batches[0].field]
        assert kinds[:9] == [
            v.BIT, v.TINYINT, v.SMALLINT, v.INT, v.BIGINT, v.FLOAT4, v.FLOAT8, v.VARDECIMAL,
            v.VARDECIMAL,
        ]  # fmt: skip
        number = result.batches[0].field[7].major_type
        assert (number.precision, number.scale) == (6, 2)

    run_drill(check)


TABLE = (
    """CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20), tags TEXT[], scores INTEGER[])"""
)


async def fill(client: StockClient) -> None:
    assert (await client.run(TABLE)).rows == [(True, "CREATE TABLE")]
    made = await client.run(
        "INSERT INTO t SELECT i, 'n' || i, ARRAY['a' || i, 'b'], ARRAY[i::int] "
        "FROM generate_series(1, 10000) AS g(i)"
    )
    assert made.rows == [(True, "INSERT 10000")]
    assert made.affected == 10000


def test_required_nullable_and_many_batches(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await fill(client)
        result = await client.run("SELECT id, name FROM t ORDER BY id")
        assert len(result.batches) >= 3
        assert result.rows == [(i, f"n{i}") for i in range(1, 10001)]
        for batch in result.batches:  # every batch brings the whole description
            key, name = batch.field
            assert (key.major_type.mode, name.major_type.mode) == (v.REQUIRED, v.OPTIONAL)
            assert name.major_type.precision == 20
        assert await client.rows("SELECT id FROM t WHERE id = 77") == [(77,)]
        assert await client.rows("SELECT id FROM t WHERE id = 77") == [(77,)]  # a cached read
        empty = await client.run("SELECT * FROM t WHERE id < 0")
        assert empty.state == COMPLETED
        assert [batch.record_count for batch in empty.batches] == [0]
        assert list(empty.columns) == ["id", "name", "tags", "scores"]
        await idle(members)

    run_drill(check, 3)


def test_lists_and_maps_for_clients_that_know_them(run_drill: Run) -> None:
    nested = "SELECT ROW(1, 'x') AS r, ARRAY[ROW(1, ARRAY['p'])] AS l, tags FROM t WHERE id = 3"

    async def plain(client: StockClient, _: list[Any]) -> None:
        await fill(client)
        assert await client.rows("SELECT tags FROM t WHERE id = 3") == [('["a3", "b"]',)]
        (row,) = await client.rows(nested)
        assert row[0] == '{"f1": 1, "f2": "x"}'

    async def complex_types(client: StockClient, _: list[Any]) -> None:
        await fill(client)
        assert await client.rows("SELECT tags, scores FROM t WHERE id = 3") == [(["a3", "b"], [3])]
        (row,) = await client.rows(nested)
        assert row == ({"f1": 1, "f2": "x"}, [{"f1": 1, "f2": ["p"]}], ["a3", "b"])
        error = await client.error("SELECT ARRAY[1, NULL] AS x")
        assert error.error_type == user_pb2.PBError.UNSUPPORTED_OPERATION
        assert 'column "x"' in error.message
        assert await client.rows("SELECT 1") == [(1,)]

    run_drill(plain)
    run_drill(complex_types, support_complex_types=True)


def test_errors_have_drills_fields(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        error = await client.error("SELECT 1,\n  nope FROM (VALUES (1)) AS t(x)")
        assert error.error_type == user_pb2.PBError.VALIDATION
        assert error.message.startswith('VALIDATION ERROR: column "nope" does not exist')
        (place,) = error.parsing_error
        assert (place.start_row, place.start_column) == (2, 3)
        assert error.error_id in error.message
        assert (await client.error("SELEC 1")).error_type == user_pb2.PBError.PARSE
        assert (await client.error("SELECT 1/0")).error_type == user_pb2.PBError.FUNCTION
        for kind in (user_pb2.LOGICAL, user_pb2.PHYSICAL, user_pb2.EXECUTION):
            refused = await client.error("{}", type=kind)
            assert refused.error_type == user_pb2.PBError.UNSUPPORTED_OPERATION
            assert "Send SQL" in refused.message
        await idle(members)

    run_drill(check)


def test_autolimit_ends_the_query(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await fill(client)
        endless = "SELECT a.id FROM t a, t b, t c ORDER BY a.id * 0"
        for text, limit in (("SELECT id FROM t", 5), ("SELECT id FROM t", 5000), ("SHOW TABLES", 1),
                            ("SELECT 1 FROM t a, t b, t c, t d", 4097)):  # fmt: skip
            result = await client.run(text, autolimit_rowcount=limit)
            assert (result.state, len(result.rows)) == (COMPLETED, limit), text
        assert len((await client.run("SELECT 1", autolimit_rowcount=10)).rows) == 1
        assert len((await client.run("SELECT id FROM t", autolimit_rowcount=0)).rows) == 10000
        del endless
        await idle(members)

    run_drill(check, 2)


def test_cancel_ends_with_canceled(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await fill(client)
        client.hold = True
        result = await client.submit("SELECT a.id FROM t a, t b, t c")
        await result.first_page.wait()
        reply = await client.request(RpcType.CANCEL_QUERY, result.query)
        assert (reply.rpc_type, reply.pbody) == (RpcType.ACK, ACK_BODY)
        await result.done.wait()
        assert result.state == CANCELED
        again = await client.request(RpcType.CANCEL_QUERY, result.query)
        assert again.pbody == ACK_BODY
        await idle(members)

    run_drill(check, 2)


@pytest.mark.parametrize("place", ["before_plan", "before_start", "before_first_page"])
@pytest.mark.parametrize("end", ["resume", "cancel", "timeout", "leave"])
def test_pauses(run_drill: Run, place: str, end: str) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await fill(client)
        if end == "timeout":
            await client.run("SET statement_timeout = '30ms'")
        assert (await client.run(f"SET test_pauses = '{place}'")).state == COMPLETED
        result = await client.submit("SELECT count(*) FROM t")
        (statement,) = (s for s, _, _ in members[0].statements.running())
        assert statement.progress.pauses is not None
        if end == "resume":
            while place == "before_first_page" and not members[0].statements.gauges()["cursors"]:
                await asyncio.sleep(0)
            assert not result.first_page.is_set()
            reply = await client.request(RpcType.RESUME_PAUSED_QUERY, result.query)
            assert (reply.rpc_type, reply.pbody) == (RpcType.ACK, ACK_BODY)
        elif end == "cancel":
            await client.request(RpcType.CANCEL_QUERY, result.query)
        elif end == "leave":
            await client.close()
            await idle(members)
            return
        await result.done.wait()
        assert result.state == {"resume": COMPLETED, "cancel": CANCELED}.get(end, FAILED)
        if end == "resume":
            assert result.rows == [(10000,)]
        if end == "timeout":
            assert "30ms" in result.errors[0].message or "0.03 s" in result.errors[0].message
        await idle(members)

    run_drill(check, 2)


def test_resume_of_what_does_not_pause_is_acknowledged(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        unknown = common_pb2.QueryId(part1=1, part2=2)
        reply = await client.request(RpcType.RESUME_PAUSED_QUERY, unknown)
        assert (reply.rpc_type, reply.pbody) == (RpcType.ACK, ACK_BODY)
        error = await client.error("SET test_pauses = 'nowhere'")
        assert "before_first_page" in error.message

    run_drill(check)


def test_the_session_belongs_to_the_connection(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await client.run("ALTER SESSION SET `planner.width` = 7")
        assert await client.rows('SHOW "planner.width"') == [("7",)]
        info = members[0].info
        other = await StockClient.open(info.host, info.user_port)
        error = await other.error('SHOW "planner.width"')
        assert "unrecognized" in error.message
        await other.close()
        await client.run("ALTER SESSION RESET `planner.width`")
        assert (await client.run('SHOW "planner.width"')).state == FAILED

    run_drill(check)


def test_the_option_that_bounds_results(run_drill: Run) -> None:
    """As JDBC's ``Statement.setMaxRows`` sets it."""

    async def check(client: StockClient, _: list[Any]) -> None:
        await fill(client)
        text = "SELECT id FROM t"
        for statement, rows in (
            ("ALTER SESSION SET `exec.query.max_rows`=7", 7),
            ("SET `exec.query.max_rows` = 5000", 5000),
            ("ALTER SESSION SET `exec.query.max_rows`=0", 10000),
            ("ALTER SESSION SET `exec.query.max_rows`='none'", 10000),
        ):
            await client.run(statement)
            assert len((await client.run(text)).rows) == rows, statement
        assert len((await client.run(text, autolimit_rowcount=3)).rows) == 3
        await client.run("ALTER SESSION RESET `exec.query.max_rows`")

    run_drill(check)


def test_prepared_statements(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        await fill(client)
        request = user_pb2.CreatePreparedStatementReq(
            sql_query="SELECT `id`, name, 1.5 AS n FROM t WHERE id < 3 ORDER BY id"
        )
        response = await client.ask(
            RpcType.CREATE_PREPARED_STATEMENT,
            request,
            RpcType.PREPARED_STATEMENT,
            user_pb2.CreatePreparedStatementResp,
        )
        assert response.status == user_pb2.OK
        key, name, number = response.prepared_statement.columns
        assert (key.column_name, key.data_type, key.is_nullable) == ("id", "BIGINT", False)
        assert (key.precision, key.signed, key.display_size) == (19, True, 20)
        assert key.class_name == "java.lang.Long"
        assert (name.data_type, name.precision, name.is_nullable) == ("CHARACTER VARYING", 20, True)
        assert name.searchability == user_pb2.ResultColumnMetadata.ALL
        assert (number.data_type, number.precision, number.scale) == ("DECIMAL", 2, 1)
        assert not response.prepared_statement.result_columns
        result = await client.run(
            type=user_pb2.PREPARED_STATEMENT_TYPE,
            prepared_statement_handle=response.prepared_statement.server_handle,
        )
        assert result.rows == [(1, "n1", Decimal("1.5")), (2, "n2", Decimal("1.5"))]
        request.sql_query = "SELECT nope"
        response = await client.ask(22, request, 23, user_pb2.CreatePreparedStatementResp)
        assert response.status == user_pb2.FAILED_
        assert response.error.message.startswith("VALIDATION ERROR")

    run_drill(check)


def test_a_lost_client_leaves_nothing(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await fill(client)
        client.hold = True
        result = await client.submit("SELECT a.id FROM t a, t b")
        await result.first_page.wait()
        await client.close()
        await idle(members)

    run_drill(check, 3)
