"""The audit: a line for each login, definition and refusal; the slow statements in the log."""

from __future__ import annotations

import json
import logging

import pytest
from users_of_cluster import PASSWORD, READER, ROOT, known_users, refused

from remuda.client.network.login import Security
from remuda.config import MemberConfig
from remuda.errors import InputError, WrongPassword
from remuda.member.member import Member
from remuda.rpc import codec
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.world import system_world


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch) | {"audit_file": str(tmp_path / "audit.jsonl")}


def lines(settings):
    with open(settings["audit_file"], encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def shown(settings):
    return [(line["event"], line["user"], line["outcome"]) for line in lines(settings)]


def test_who_did_what(in_cluster, settings):
    async def scenario(cluster):
        root = await cluster.client(1, ROOT)
        await root.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await root.sql("INSERT INTO t VALUES (1)")
        reader = await cluster.client(1, READER)
        assert await reader.sql("SELECT k FROM t") == [(1,)]
        with refused("DELETE|role"):
            await reader.sql("DELETE FROM t")
        with refused("role"):
            await reader.sql("DROP TABLE t")
        with refused("role"):
            await reader.put(await reader.schema("t"), (2,))
        with pytest.raises(WrongPassword):
            await cluster.client(1, Security("root", "wrong"))
        await root.sql("TRUNCATE t")

    in_cluster(scenario, 1, **settings)
    found = shown(settings)
    assert found == [
        ("login", "root", "ok"),
        ("definition", "root", "ok"),
        ("login", "reader", "ok"),
        ("refusal", "reader", "42501"),
        ("refusal", "reader", "42501"),
        ("refusal", "reader", "42501"),
        ("login", "root", "28P01"),
        ("definition", "root", "ok"),
    ]
    by_text = [line.get("text") or line.get("request") for line in lines(settings)]
    assert by_text[3:6] == ["DELETE FROM t", "DROP TABLE t", "MAP_PUT"]
    assert {line["member"] for line in lines(settings)} == {1}
    assert PASSWORD not in (text := json.dumps(lines(settings)))
    assert "wrong" not in text.replace("WrongPassword", "")


def test_requests_that_define(in_cluster, settings):
    async def scenario(cluster):
        root = await cluster.client(1, ROOT)
        await root.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        reader = await cluster.client(1, READER)
        body = user_pb2.CreateMap(schema=codec.encode_schema(await root.schema("t")))
        with refused("role"):
            await reader.ask(RpcType.CREATE_MAP, body, user_pb2.MapDescription)

    in_cluster(scenario, 1, **settings)
    last = lines(settings)[-1]
    assert (last["event"], last["request"]) == ("definition", "CREATE_MAP")
    assert last["outcome"] == "42501"


def test_a_file_that_is_moved_away_is_begun_anew(in_cluster, settings, tmp_path):
    async def scenario(cluster):
        root = await cluster.client(1, ROOT)
        await root.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        (tmp_path / "audit.jsonl").rename(tmp_path / "old")
        await root.sql("DROP TABLE t")

    in_cluster(scenario, 1, **settings)
    assert [line["text"] for line in lines(settings)] == ["DROP TABLE t"]


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"audit_file .* cannot be opened: No such file"):
        Member(MemberConfig(audit_file=str(tmp_path / "none" / "file")), system_world())


@pytest.mark.parametrize(("seconds", "noted"), [(1e-9, True), (1000.0, False), (0.0, False)])
def test_slow_statements_are_noted(in_cluster, caplog, seconds, noted):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("SELECT g FROM generate_series(1, 10) g(g)")

    with caplog.at_level(logging.WARNING, "remuda.member.statements.query_history"):
        in_cluster(scenario, 1, log_statements=seconds)
    found = [record.remuda_fields for record in caplog.records if record.msg == "slow statement"]
    assert bool(found) == noted
    if noted:
        assert found[-1]["text"] == "SELECT g FROM generate_series(1, 10) g(g)"
        assert found[-1]["rows"] == 10
        assert found[-1]["outcome"] == "ok"
