"""Levels of logs change while members run, and sums of statements begin again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from users_of_cluster import READER, ROOT, known_users

import remuda
import remuda.aio
from remuda.cli.main import main
from remuda.errors import (
    InputError,
    InsufficientPrivilege,
    NotSupported,
    SqlSyntaxError,
    UndefinedFunction,
    UndefinedObject,
)
from remuda.rpc.messages.control_pb2 import RpcType

SUMS = "SELECT calls FROM sys.statement_statistics WHERE text LIKE 'SELECT $1 + $2%'"
PART = "remuda.member.membership"


@pytest.fixture(autouse=True)
def levels_as_before() -> Iterator[None]:
    """All members of a test live in its process, and share its loggers."""
    loggers = [logging.getLogger(name) for name in ("remuda", "remuda.member", PART)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def address(cluster: Any) -> str:
    info = cluster.member(1).info
    return f"{info.host}:{info.user_port}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT statement_statistics_reset()",
        "SELECT pg_stat_statements_reset() AS done",
        "ALTER CLUSTER RESET STATEMENT STATISTICS",
    ],
)
def test_sums_of_all_members_begin_again(in_cluster: Any, text: str) -> None:
    async def scenario(cluster: Any) -> None:
        clients = [await cluster.client(number) for number in (1, 2)]
        for client in clients:
            await client.sql("SELECT 1 + 2")
        assert await clients[0].sql(SUMS) == [(2,)]
        answer = await clients[0].sql(text)
        assert answer == ([(True,)] if text.startswith("SELECT") else [])
        assert await clients[1].sql(SUMS) == []
        await clients[1].sql("SELECT 3 + 4")
        assert await clients[0].sql(SUMS) == [(1,)]

    in_cluster(scenario, 2)


def test_a_call_that_has_no_row_resets_nothing(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("SELECT 1 + 2")
        await client.sql("SELECT statement_statistics_reset() WHERE 1 = 2")
        assert await client.sql(SUMS) == [(1,)]
        with pytest.raises(UndefinedFunction, match="of 1 arguments does not exist"):
            await client.sql("SELECT statement_statistics_reset(1)")
        with pytest.raises(NotSupported, match="cannot stand here"):
            await client.sql("SELECT 1 WHERE statement_statistics_reset()")

    in_cluster(scenario, 1)


def test_levels_are_changed_shown_and_taken_back(in_cluster: Any, capsys: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await remuda.aio.connect(address(cluster))
        activity = client.activity
        before = logging.getLogger(PART).getEffectiveLevel()
        await activity.set_log_level("debug", "member.membership")
        assert logging.getLogger(PART).isEnabledFor(logging.DEBUG)
        shown = {(row.member, row.part): row.level for row in await activity.log_levels()}
        assert shown[1, "member.membership"] == shown[2, "member.membership"] == "debug"
        assert {member for member, part in shown if part == "all"} == {1, 2}
        await client.sql("ALTER CLUSTER SET LOG LEVEL default FOR member.membership ON MEMBER 1")
        assert logging.getLogger(PART).getEffectiveLevel() == before
        await client.sql("ALTER CLUSTER SET LOG LEVEL error")
        assert logging.getLogger("remuda").level == logging.ERROR
        words = ["log-level", "default", "--connect", address(cluster)]
        assert await asyncio.to_thread(main, words) == 0
        assert "all" in capsys.readouterr().out
        assert logging.getLogger("remuda").level == logging.INFO  # as it is configured
        with pytest.raises(UndefinedObject, match="no part of the log is called"):
            await activity.set_log_level("debug", "member.nothing")
        with pytest.raises(UndefinedObject, match="there is no member 9"):
            await activity.set_log_level("debug", member=9)
        with pytest.raises(InputError, match="there is no level 'loud'"):
            await activity.set_log_level("loud")
        with pytest.raises(SqlSyntaxError, match="loud"):
            await client.sql("ALTER CLUSTER SET LOG LEVEL loud")
        await client.close()

    in_cluster(scenario, 2)


def test_one_member_is_told(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client, told = await cluster.client(1), []
        for number in (2, 3):
            routes = cluster.member(number)._member_routes.control
            serve = routes[RpcType.SET_LOG_LEVEL]
            routes[RpcType.SET_LOG_LEVEL] = lambda request, n=number, serve=serve: (
                told.append(n), serve(request),
            )  # fmt: skip
        await client.sql("ALTER CLUSTER SET LOG LEVEL debug FOR 'member.membership' ON MEMBER 3")
        assert told == [3]
        await client.sql("ALTER CLUSTER SET LOG LEVEL info FOR 'member.membership'")
        assert sorted(told) == [2, 3, 3]

    in_cluster(scenario, 3)


def test_only_administrators_change_them(in_cluster: Any, tmp_path: Any, monkeypatch: Any) -> None:
    async def scenario(cluster: Any) -> None:
        reader, root = await cluster.client(2, READER), await cluster.client(1, ROOT)
        for text in (
            "SELECT statement_statistics_reset()",
            "ALTER CLUSTER RESET STATEMENT STATISTICS",
            "ALTER CLUSTER SET LOG LEVEL debug",
        ):
            with pytest.raises(InsufficientPrivilege):
                await reader.sql(text)
        assert await root.sql("SELECT statement_statistics_reset()") == [(True,)]

    in_cluster(scenario, 2, **known_users(tmp_path, monkeypatch))
