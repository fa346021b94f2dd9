"""/health, /ready and /metrics of real members, over sockets."""

from __future__ import annotations

import asyncio
import base64
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from users_of_cluster import PASSWORD, known_users

import remuda
from remuda.config import MemberConfig
from remuda.errors import InputError
from remuda.member.member import Member
from remuda.member.monitoring import sources
from remuda.world import system_world


async def fetch(member, path, *headers):
    """Status and content of one page."""
    host, port = member.metrics.address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {path} HTTP/1.1", "Host: a", "Connection: close", *headers, "", ""]
    writer.write("\r\n".join(lines).encode())
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), content.decode()


async def samples(member):
    """name and labels -> value."""
    status, content = await fetch(member, "/metrics")
    assert status == 200
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(content)
        for sample in family.samples
    }


def test_a_member_that_runs_from_sources_tells_its_release(in_cluster):
    async def scenario(cluster):
        found = await samples(cluster.member(1))
        names = [dict(labels)["version"] for name, *labels in found if name == "remuda_build_info"]
        assert names == [remuda.__version__]

    in_cluster(scenario, 1)


def test_what_happens_is_counted(in_cluster):
    async def scenario(cluster):
        member = cluster.member(1)
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)")
        before = await samples(member)
        await client.sql("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g(g)")
        result = await client.run("SELECT 1 / 0")
        assert result.error is not None
        schema = await client.schema("t")
        await client.get(schema, *range(1, 11), 1001)
        after = await samples(member)

        def grown(*key):
            return after.get(key, 0) - before.get(key, 0)

        assert grown("remuda_statements_total", ("outcome", "ok")) == 1
        assert grown("remuda_statements_total", ("outcome", "22012")) == 1
        assert grown("remuda_statement_duration_seconds_count") == 2
        ran = ("operation", "run_query"), ("outcome", "ok")
        assert grown("remuda_operations_total", *ran) == 2
        assert grown("remuda_operation_duration_seconds_count", ("operation", "map_get")) == 1
        assert grown("remuda_map_entries", ("map", "t")) == 100
        assert grown("remuda_map_gets_total", ("map", "t")) == 11
        assert grown("remuda_map_misses_total", ("map", "t")) == 1
        assert after["remuda_clients",] == 1
        assert after["remuda_ready",] == 1
        assert after["remuda_partitions", ("role", "primary")] == 271

    in_cluster(scenario, 1)


def test_writes_of_the_log_are_timed(in_cluster, tmp_path):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await client.sql("INSERT INTO t VALUES (1)")
        found = await samples(cluster.member(1))
        writes = found["remuda_log_writes_total",]
        assert writes > 0
        assert found["remuda_log_write_duration_seconds_count",] == writes
        assert found["remuda_log_records_total",] >= found["remuda_log_durable_records_total",] > 0

    in_cluster(scenario, 1, data_dir=str(tmp_path / "data"))


def test_all_gauges_of_a_member_are_shown(in_cluster, tmp_path):
    """A gauge that a part adds must get a name here."""

    async def scenario(cluster):
        shown_elsewhere = {"storage_held", "storage_limit", "writes_refused"}
        named = sources.GAUGES.keys() | sources.COUNTERS.keys() | shown_elsewhere
        assert cluster.member(1).gauges().keys() - named == set()

    archive = tmp_path / "archive"
    archive.mkdir()
    in_cluster(scenario, 1, data_dir=str(tmp_path / "data"), log_archive=str(archive))


def test_names_keep_the_conventions(in_cluster):
    """Those that promtool checks: units are base units and stand in the name, counters end with
    _total and nothing else does, every family has a help text, no name stands twice."""

    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        _, content = await fetch(cluster.member(1), "/metrics")
        families = list(text_string_to_metric_families(content))
        names = re.findall(r"^# TYPE (\S+) ", content, re.MULTILINE)
        assert len(names) == len(set(names)) == len(families)
        wrong = re.compile(r"_(milli|micro|nano)?(ms|us|minutes|hours|kb|mb|percent)(_|$)")
        for name, family in zip(names, families, strict=True):
            assert re.fullmatch(r"(remuda|process)_[a-z0-9_]+", name)
            assert name.endswith("_total") == (family.type == "counter"), name
            assert not wrong.search(name), name
            assert not re.search(r"_(counter|gauge|histogram|count|sum|bucket)$", name), name
            assert family.documentation.endswith("."), name
            if family.type == "histogram":
                assert name.endswith("_seconds"), name
            for sample in family.samples:
                assert all(re.fullmatch(r"[a-z_]+", label) for label in sample.labels)

    in_cluster(scenario, 1)


def test_health_and_readiness(in_cluster):
    async def scenario(cluster):
        member = cluster.member(1)
        assert await fetch(member, "/health") == (200, "ok\n")
        assert await fetch(member, "/ready") == (200, "ready\n")
        assert (await fetch(member, "/nowhere"))[0] == 404
        member.core.departure.refuse()
        assert await fetch(member, "/ready") == (503, "leaving\n")
        assert await fetch(member, "/health") == (200, "ok\n")

    in_cluster(scenario, 1)


def test_a_member_that_waits_for_others_is_healthy_and_not_ready():
    async def scenario():
        member = Member(MemberConfig(cluster_size=2, join_timeout=20.0), system_world())
        starting = asyncio.ensure_future(member.start())
        while not member.metrics.address:
            await asyncio.sleep(0)
        assert await fetch(member, "/health") == (200, "ok\n")
        assert await fetch(member, "/ready") == (503, "starting\n")
        assert (await samples(member))["remuda_ready",] == 0
        starting.cancel()
        await asyncio.wait([starting])
        await member.stop()

    asyncio.run(scenario())


def test_users_need_a_role_to_see_metrics(in_cluster, tmp_path, monkeypatch):
    def basic(user, password=PASSWORD):
        return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    async def scenario(cluster):
        member = cluster.member(1)
        assert (await fetch(member, "/health"))[0] == (await fetch(member, "/ready"))[0] == 200
        assert (await fetch(member, "/metrics"))[0] == 401
        assert (await fetch(member, "/metrics", basic("root", "wrong")))[0] == 401
        status, text = await fetch(member, "/metrics", basic("reader"))
        assert (status, text) == (403, 'user "reader" lacks the role read on all maps\n')
        assert (await fetch(member, "/metrics", basic("root")))[0] == 200

    in_cluster(scenario, 1, **known_users(tmp_path, monkeypatch))


def test_an_address_that_others_reach_needs_protection():
    async def scenario():
        config = MemberConfig(metrics_host="0.0.0.0")
        member = Member(config, system_world())
        with pytest.raises(InputError, match=r"0\.0\.0\.0 needs protection"):
            await member.start()
        await member.stop()

    asyncio.run(scenario())


def test_members_without_a_port_have_no_pages(in_cluster):
    async def scenario(cluster):
        assert cluster.member(1).metrics.address == ""
        assert "metrics" not in cluster.member(1).addresses()

    in_cluster(scenario, 1, metrics_port=-1)
