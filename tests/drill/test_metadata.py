"""GET_CATALOGS, GET_SCHEMAS, GET_TABLES, GET_COLUMNS, GET_SERVER_META, GET_QUERY_PLAN_FRAGMENTS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from stock_client import RESPONSE_FAILURE, StockClient

from remuda.errors import InvalidEscape
from remuda.member.drill.like_filter import matcher
from remuda.rpc.messages import user_metadata_pb2 as m
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

Run = Callable[..., None]
COMPLETED, FAILED = 2, 4


def like(pattern: str, escape: str | None = None) -> m.LikeFilter:
    return m.LikeFilter(pattern=pattern, escape=escape)


async def made(client: StockClient) -> None:
    for text in (
        """CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier VARCHAR(2) NOT NULL DEFAULT 'UA',
        delay DOUBLE PRECISION, price DECIMAL(7,2), at TIMESTAMP, tags TEXT[], raw BYTEA)""",
        'CREATE TABLE "Mixed_Case" ("Key" INTEGER PRIMARY KEY)',
        "CREATE TABLE mixedxcase (k INTEGER PRIMARY KEY)",
        "CREATE VIEW late AS SELECT id FROM flights WHERE delay > 10",
    ):
        result = await client.run(text)
        assert result.state == COMPLETED, result.errors


# --- filters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "escape", "name", "expected"),
    [
        ("a%", None, "abc", True),
        ("a%", None, "bac", False),
        ("a_c", None, "abc", True),
        ("a_c", None, "abbc", False),
        ("", None, "", True),
        ("", None, "a", False),
        ("%", None, "", True),
        ("%", None, "a\nb", True),
        ("a.c", None, "abc", False),
        ("a\\_c", None, "a_c", False),
        ("a\\_c", None, "a\\xc", True),
        ("a\\_c", "\\", "a_c", True),
        ("a\\_c", "\\", "abc", False),
        ("100!%", "!", "100%", True),
        ("a!!b", "!", "a!b", True),
        ("%%%", "%", "%", None),
        ("%%%%", "%", "%%", True),
        ("__", "_", "_", True),
    ],
)
def test_like_filters(pattern: str, escape: str | None, name: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(InvalidEscape):
            matcher(like(pattern, escape))
    else:
        assert matcher(like(pattern, escape))(name) is expected


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a!b", "!"), ("a!", "!"), ("a", "!!"), ("\\n", "\\")]
)
def test_wrong_escapes(pattern: str, escape: str) -> None:
    with pytest.raises(InvalidEscape, match="escape"):
        matcher(like(pattern, escape))


def test_absent_filters_let_everything_through() -> None:
    assert matcher(None)("x")
    assert matcher(m.LikeFilter(escape="!!"))("x")


# --- requests ---------------------------------------------------------------------------------


async def tables(client: StockClient, **filters: Any) -> list[tuple[str, str, str]]:
    response = await client.ask(
        RpcType.GET_TABLES, m.GetTablesReq(**filters), RpcType.TABLES, m.GetTablesResp
    )
    assert response.status == user_pb2.OK, response.error
    assert all(t.catalog_name == "remuda" for t in response.tables)
    return [(t.type, t.schema_name, t.table_name) for t in response.tables]


async def columns(client: StockClient, **filters: Any) -> list[Any]:
    response = await client.ask(
        RpcType.GET_COLUMNS, m.GetColumnsReq(**filters), RpcType.COLUMNS, m.GetColumnsResp
    )
    assert response.status == user_pb2.OK, response.error
    return list(response.columns)


def test_catalogs_and_schemas(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        async def catalogs(**filters: Any) -> list[str]:
            found = await client.ask(
                RpcType.GET_CATALOGS, m.GetCatalogsReq(**filters), RpcType.CATALOGS,
                m.GetCatalogsResp,
            )  # fmt: skip
            assert found.status == user_pb2.OK
            return [c.catalog_name for c in found.catalogs]

        async def schemas(**filters: Any) -> list[tuple[str, str]]:
            found = await client.ask(
                RpcType.GET_SCHEMAS, m.GetSchemasReq(**filters), RpcType.SCHEMAS, m.GetSchemasResp
            )
            assert found.status == user_pb2.OK
            return [(s.schema_name, s.mutable) for s in found.schemas]

        assert await catalogs() == ["remuda"]
        assert await catalogs(catalog_name_filter=like("REM%")) == []  # catalogs have a case
        everything = [
            ("information_schema", "NO"), ("pg_catalog", "NO"), ("public", "YES"), ("sys", "NO"),
        ]  # fmt: skip
        assert await schemas() == everything
        assert await schemas(schema_name_filter=like("PUB%")) == [("public", "YES")]
        both = {"catalog_name_filter": like("x"), "schema_name_filter": like("%")}
        assert await schemas(**both) == []

    run_drill(check)


def test_schemas_that_were_created(run_drill: Run) -> None:
    """Their names have a case where they were quoted; patterns have none."""

    async def check(client: StockClient, _: list[Any]) -> None:
        for text in (
            (
                "CREATE SCHEMA sales CREATE TABLE orders (id INTEGER PRIMARY KEY, what VARCHAR) "
                "CREATE VIEW named AS SELECT id, upper(what) AS what FROM orders"
            ),
            "CREATE SCHEMA `Stock`",
            "CREATE TABLE `Stock`.`Orders` (`Nr` BIGINT PRIMARY KEY)",
            "CREATE TABLE orders (k INTEGER PRIMARY KEY)",
            "INSERT INTO sales.orders VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO `Stock`.`Orders` VALUES (7)",
        ):
            result = await client.run(text)
            assert result.state == COMPLETED, (text, result.errors)
        request = m.GetSchemasReq(schema_name_filter=like("s%"))
        found = await client.ask(RpcType.GET_SCHEMAS, request, RpcType.SCHEMAS, m.GetSchemasResp)
        listed = [(each.schema_name, each.mutable) for each in found.schemas]
        assert listed == [("Stock", "YES"), ("sales", "YES"), ("sys", "NO")]
        assert await tables(client, table_name_filter=like("_rders")) == [
            ("TABLE", "Stock", "Orders"),
            ("TABLE", "public", "orders"),
            ("TABLE", "sales", "orders"),
        ]
        assert await tables(client, schema_name_filter=like("STOCK")) == [
            ("TABLE", "Stock", "Orders")
        ]
        named = await columns(client, schema_name_filter=like("sales"))
        assert [(each.table_name, each.column_name) for each in named] == [
            ("named", "id"), ("named", "what"), ("orders", "id"), ("orders", "what"),
        ]  # fmt: skip
        assert await client.rows("SELECT * FROM sales.named ORDER BY id") == [(1, "A"), (2, "B")]
        joined = (
            "SELECT `s`.`Nr`, count(*) FROM `Stock`.`Orders` s JOIN remuda.sales.orders o "
            "ON o.id < s.`Nr` GROUP BY s.`Nr`"
        )
        assert await client.rows(joined) == [(7, 2)]
        assert await client.rows("SELECT * FROM orders") == []
        result = await client.run("SELECT * FROM sales.nothing")
        assert result.state == FAILED
        described = "DESCRIBE `STOCK`.`orders`"
        assert await client.rows(described) == [("Nr", "BIGINT", "NO")]
        assert await client.rows("SHOW TABLES IN SALES") == [
            ("sales", "named"), ("sales", "orders"),
        ]  # fmt: skip
        assert (await client.run("USE remuda.Sales")).state == COMPLETED
        assert await client.rows("SELECT count(*) FROM orders") == [(2,)]
        shown = await client.rows("SHOW TABLES")
        assert shown == [("sales", "named"), ("sales", "orders")]
        assert len(await client.rows("DESCRIBE named")) == 2
        assert (await client.run("USE nothing")).state == FAILED
        assert (await client.run("USE public")).state == COMPLETED
        assert await client.rows("SELECT count(*) FROM orders") == [(0,)]
        result = await client.run("DROP SCHEMA sales CASCADE")
        assert result.state == COMPLETED, result.errors
        assert await tables(client, schema_name_filter=like("sales")) == []

    run_drill(check)


def test_tables(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        await made(client)
        assert await tables(client, schema_name_filter=like("public")) == [
            ("TABLE", "public", "Mixed_Case"),
            ("TABLE", "public", "flights"),
            ("TABLE", "public", "mixedxcase"),
            ("VIEW", "public", "late"),
        ]
        assert await tables(client, table_type_filter=["VIEW"]) == [("VIEW", "public", "late")]
        kinds = await tables(client, table_type_filter=["TABLE", "SYSTEM TABLE"])
        assert kinds == sorted(kinds)
        assert ("SYSTEM TABLE", "sys", "members") in kinds
        assert await tables(client, table_type_filter=["table"]) == []
        # Names of tables have a case; an underscore stands for any character unless escaped.
        assert await tables(client, table_name_filter=like("mixed_case")) == [
            ("TABLE", "public", "mixedxcase")
        ]
        assert await tables(client, table_name_filter=like("Mixed\\_%", "\\")) == [
            ("TABLE", "public", "Mixed_Case")
        ]

    run_drill(check)


def test_columns(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        await made(client)
        found = await columns(client, table_name_filter=like("flights"))
        assert [(c.ordinal_position, c.column_name, c.data_type) for c in found] == [
            (1, "id", "BIGINT"),
            (2, "carrier", "CHARACTER VARYING"),
            (3, "delay", "DOUBLE"),
            (4, "price", "DECIMAL"),
            (5, "at", "TIMESTAMP"),
            (6, "tags", "ARRAY"),
            (7, "raw", "BINARY VARYING"),
        ]
        key, carrier, delay, price, at, _, raw = found
        assert (key.is_nullable, delay.is_nullable) == (False, True)
        assert (key.numeric_precision, key.numeric_precision_radix, key.numeric_scale) == (64, 2, 0)
        assert (carrier.char_max_length, carrier.char_octet_length) == (2, 8)
        assert carrier.default_value == "'UA'"
        assert (price.numeric_precision, price.numeric_precision_radix, price.numeric_scale) == (
            7, 10, 2,
        )  # fmt: skip
        assert at.date_time_precision == 3
        assert raw.char_octet_length == 65535
        (one,) = await columns(
            client, table_name_filter=like("Mixed%"), column_name_filter=like("K%")
        )
        assert (one.table_name, one.column_name) == ("Mixed_Case", "Key")
        assert await columns(client, column_name_filter=like("KEY")) == []
        (of_view,) = await columns(client, table_name_filter=like("late"))
        assert (of_view.schema_name, of_view.column_name) == ("public", "id")

    run_drill(check)


def test_a_wrong_escape_is_answered(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        request = m.GetTablesReq(table_name_filter=like("a!b", "!"))
        found = await client.ask(RpcType.GET_TABLES, request, RpcType.TABLES, m.GetTablesResp)
        assert found.status == user_pb2.FAILED_
        assert "stands before 'b'" in found.error.message
        assert await client.rows("SELECT 1") == [(1,)]

    run_drill(check)


def test_server_meta_has_all_fifty_fields(run_drill: Run) -> None:
    async def check(client: StockClient, _: list[Any]) -> None:
        found = await client.ask(
            RpcType.GET_SERVER_META, m.GetServerMetaReq(), RpcType.SERVER_META, m.GetServerMetaResp
        )
        assert found.status == user_pb2.OK
        meta = found.server_meta
        fields = meta.DESCRIPTOR.fields
        assert sorted(f.number for f in fields) == list(range(1, 51))
        assert {f.name for f in fields} - {f.name for f, _ in meta.ListFields()} == {
            "collate_support",  # no COLLATE
            "system_functions",  # neither DATABASE() nor IFNULL nor USER()
        }
        # What it says is true.
        for name in [*meta.numeric_functions, "LENGTH"]:
            assert name == name.upper()
        assert {"ABS", "ROUND", "SQRT"} <= set(meta.numeric_functions)
        assert {"LOWER", "REPLACE", "SUBSTRING", "LENGTH"} <= set(meta.string_functions)
        quote = meta.identifier_quote_string
        assert await client.rows(f"SELECT 1 AS {quote}Ab{quote}") == [(1,)]
        rows = await client.rows("SELECT x FROM (VALUES (1), (NULL), (2)) AS t(x) ORDER BY x")
        assert rows[-1] == (None,)  # NULL is the highest
        assert await client.rows("SELECT 'a_b' LIKE 'a!_b' ESCAPE '!'") == [(True,)]
        joined = "SELECT count(*) FROM (VALUES (1), (2)) a(x) {} JOIN (VALUES (2)) b(y) ON x < y"
        assert [await client.rows(joined.format(j)) for j in ("LEFT", "RIGHT")] == [
            [(2,)], [(1,)],
        ]  # fmt: skip
        for literal in (
            "DATE '2020-01-01'", "TIME '01:02:03'", "TIMESTAMP '2020-01-01 00:00:00'",
            "INTERVAL '1' YEAR", "INTERVAL '2' MONTH", "INTERVAL '3' DAY", "INTERVAL '4' HOUR",
            "INTERVAL '5' MINUTE", "INTERVAL '6' SECOND", "INTERVAL '1-2' YEAR TO MONTH",
            "INTERVAL '1 2' DAY TO HOUR", "INTERVAL '1 2:03' DAY TO MINUTE",
            "INTERVAL '1 2:03:04' DAY TO SECOND", "INTERVAL '2:03' HOUR TO MINUTE",
            "INTERVAL '2:03:04' HOUR TO SECOND", "INTERVAL '3:04' MINUTE TO SECOND",
        ):  # fmt: skip
            await client.rows(f"SELECT {literal}")

    run_drill(check)


def test_plan_fragments(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        await made(client)

        async def ask(text: str, **fields: Any) -> Any:
            request = m.GetQueryPlanFragments(query=text, **fields)
            return await client.ask(12, request, 13, m.QueryPlanFragments)

        found = await ask("SELECT carrier, count(*) FROM flights GROUP BY `CARRIER`")
        assert found.status == COMPLETED, found.error
        places = [(f.handle.major_fragment_id, f.handle.minor_fragment_id) for f in found.fragments]
        assert places[0] == (0, 0)
        assert len(set(places)) == len(places)
        ports = {member.info.user_port for member in members}
        assert {f.assignment.user_port for f in found.fragments} == ports
        assert all(f.foreman.user_port == members[0].info.user_port for f in found.fragments)
        leaves = [f for f in found.fragments if f.leaf_fragment]
        assert len(leaves) == 3
        assert all("Scan" in f.fragment_json for f in leaves)
        assert json.loads(found.fragments[0].fragment_json)["Fragment"] == 0
        assert all(member.gauges()["queries"] == 0 for member in members)
        assert (await ask("INSERT INTO flights SELECT * FROM flights")).status == COMPLETED
        assert (await client.rows("SELECT count(*) FROM flights")) == [(0,)]
        for text, fields in (("SELECT nope", {}), ("SHOW TABLES", {}), ("x", {"type": 3})):
            wrong = await ask(text, **fields)
            if text != "SHOW TABLES":
                assert wrong.status == FAILED
                assert wrong.error.message

    run_drill(check, 3)


def test_broken_bodies_are_answered(run_drill: Run) -> None:
    async def check(client: StockClient, members: list[Any]) -> None:
        garbage = (b"\xff\xff\xff", b"\x0a\x05ab")
        for rpc_type in (3, 4, 11, 12, 14, 15, 16, 17, 22):
            for body in garbage:
                reply = await client.request(rpc_type, body)
                assert reply.mode == RESPONSE_FAILURE, (rpc_type, body)
                error = user_pb2.PBError.FromString(reply.pbody)
                assert error.kind == "ProtocolError", (rpc_type, body, error)
        assert await client.rows("SELECT 1") == [(1,)]
        while members[0].gauges()["statements"]:
            await asyncio.sleep(0.002)

    run_drill(check)
