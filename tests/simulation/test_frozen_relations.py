"""Every system relation while a member stands still: it answers soon, and names the member."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, simulation

from remuda.catalog.system_relations import SYS, SYSTEM
from remuda.member.base.round import PATIENCE

SILENT = 3
PER_MEMBER = {
    "queries", "query_history", "query_profiles", "fragments", "operators", "logs", "map_parts",
    "snapshot_tasks", "log_levels", "transactions", "clients", "locks", "subscriptions",
    "membership_events", "spark_services",
}  # fmt: skip
"""A silent member has a row of its own there."""
SUMMED = {"maps", "indexes", "statement_statistics"}
"""Their rows name the members whose share is missing."""
LOCAL = {"partitions", "columns", "views", "snapshots", "restorable", "settings", "lock_waits"}
"""What they tell is known to one member, or is about what answers."""


async def looked_at(sim: Simulation) -> dict[str, list[dict[str, Any]]]:
    client = await sim.client(1)
    await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)")
    await client.run("CREATE INDEX by_a ON t (a)")
    await client.run("INSERT INTO t SELECT i, i FROM generate_series(1, 50) AS g(i)")
    sim.nodes[SILENT].frozen = True
    found = {}
    for name, relation in SYSTEM[SYS].items():
        columns = [column.name for column in relation.columns]
        began = sim.loop.now
        rows = await client.run(f"SELECT {', '.join(columns)} FROM sys.{name}")
        took = sim.loop.now - began
        assert took < 1.5 * PATIENCE, f"sys.{name} took {took:.1f} s"
        found[name] = [dict(zip(columns, row, strict=True)) for row in rows]
    began = sim.loop.now
    assert await client.run("EXPLAIN SELECT count(*) FROM t AS x JOIN t AS y ON x.id = y.a")
    assert sim.loop.now - began < 1.5 * PATIENCE, "a plan that needs statistics waited"
    for name in ("pg_stat_activity", "pg_locks"):  # tools would take a row of it for a connection
        began = sim.loop.now
        rows = await client.run(f"SELECT pid FROM {name}")
        assert sim.loop.now - began < 1.5 * PATIENCE
        assert all(pid is not None for (pid,) in rows), name
    sim.loop.thaw(sim.nodes[SILENT])
    return found


def test_every_system_relation_answers_while_a_member_stands_still() -> None:
    assert set(SYSTEM[SYS]) == PER_MEMBER | SUMMED | LOCAL | {"members"}
    with simulation(7, 3, backups=1, heartbeat_timeout=300.0) as sim:
        sim.form()
        found = sim.complete(looked_at(sim))
        sim.settle(60.0)
        sim.verdict()
    for name in PER_MEMBER:
        [row] = [row for row in found[name] if row["member"] == SILENT]
        told = {column: value for column, value in row.items() if value is not None}
        state = "kind" if "kind" in row else "state"
        assert told == {"member": SILENT} | ({state: "no answer"} if state in row else {}), name
    for name in SUMMED:
        assert found[name], name
        assert {row["no_answer"] for row in found[name]} == {str(SILENT)}, name
    members = {row["member"]: row for row in found["members"]}
    assert {number: row["state"] for number, row in members.items()} == {
        1: "alive", 2: "alive", SILENT: "no answer",
    }  # fmt: skip
    assert members[SILENT]["cause"] == f"member {SILENT} did not answer within 2 s"
    assert members[SILENT]["partitions"] > 0  # known from the view
    assert members[SILENT]["storage_held"] is None
    [inserted] = [r for r in found["statement_statistics"] if r["text"].startswith("INSERT")]
    assert inserted["calls"] == 1


def test_nothing_is_missing_while_all_answer() -> None:
    async def asked(sim: Simulation) -> list[tuple[Any, ...]]:
        client = await sim.client(1)
        await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        return [
            *await client.run("SELECT no_answer FROM sys.maps"),
            *await client.run("SELECT DISTINCT no_answer FROM sys.statement_statistics"),
            *await client.run("SELECT DISTINCT cause FROM sys.members"),
        ]

    with simulation(8, 3, backups=1) as sim:
        sim.form()
        assert sim.complete(asked(sim)) == [(None,)] * 3
        sim.settle(60.0)
        sim.verdict()


def test_a_wait_for_a_silent_member_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.member.system.statement_statistics.PATIENCE", 30.0)
    with (
        pytest.raises(AssertionError, match="took 30"),
        simulation(7, 3, backups=1, heartbeat_timeout=300.0) as sim,
    ):
        sim.form()
        sim.complete(looked_at(sim))
