"""Relations that tell of the members: leases, silence, and the events that they have seen."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Simulation, simulation

EVENTS = "SELECT member, kind, subject, cause, view FROM sys.membership_events ORDER BY at, member"


async def _events(sim: Simulation) -> list[tuple]:
    client = await sim.client(1)
    return [tuple(row) for row in await client.run(EVENTS)]


def test_a_crash_is_seen_by_all_that_stay() -> None:
    with simulation(11, 3, backups=1) as sim:
        sim.form()
        before = sim.complete(_events(sim))
        sim.crash(3)
        sim.settle(60.0)
        after = sim.complete(_events(sim))
        sim.verdict()
    assert {(member, kind) for member, kind, *_ in before} == {(n, "view") for n in (1, 2, 3)}
    assert {member for member, *_ in after} == {1, 2}
    for member in (1, 2):
        own = [(kind, subject) for number, kind, subject, *_ in after if number == member]
        assert own[1:] == [("suspected", 3), ("view", None), ("dropped", 3)], own
    [cause] = {cause for _, kind, _, cause, _ in after if kind == "dropped"}
    assert cause


def test_leases_and_silence() -> None:
    async def look(sim: Simulation) -> dict[int, tuple]:
        client = await sim.client(1)
        rows = await client.run("SELECT member, lease, silent FROM sys.members")
        return {member: (lease, silent) for member, lease, silent in rows}

    with simulation(11, 3, backups=1) as sim:
        sim.form()
        found = sim.complete(look(sim))
        sim.verdict()
    assert found.keys() == {1, 2, 3}
    assert all(0 < lease < 60 and silent < 10 for lease, silent in found.values()), found
    assert found[1][1] == 0.0
