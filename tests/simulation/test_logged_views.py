"""Views on members that keep logs: a part of a transaction may end, and be forgotten, in the very
step that installs a view. The log has its end all the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
import sim_world
from sim_cluster import Simulation, simulation
from sim_log_disk import LogDisk
from sim_network import LOST, Fate, Sent
from test_donors import ROWS, TOTAL, load, until

from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import Write
from remuda.storage.format import records


async def dropped(sim: Simulation) -> None:
    """Member 3 is the near member of a write in one phase, and its only backup: when a view drops
    it, the primary commits the write, and nobody may ask for it any more."""
    one, near = sim.members[1], sim.members[3]
    schema = near.core.schema("t")
    router = Router(schema)
    rows = {key: near.core.view.replicas[router.key_partition((key,))] for key in range(ROWS)}
    key = next(key for key, row in rows.items() if row == (1, 3))
    silent = str(sim.nodes[1])

    def rule(sent: Sent) -> Fate | None:
        return LOST if sent.name == "PARTS" and sent.sender == silent else None

    sim.network.rules.append(rule)
    committing = near.transactions.commit(
        [Write(schema.map_id, schema.version, (key,), (key, 2), None)], None
    )
    near.node.context.run(sim.loop.create_task, committing)  # type: ignore[attr-defined]
    await until(lambda: one.transactions.pending.parts)
    appended: list[records.Record] = []
    wal = one.core.wal
    append = wal.append  # type: ignore[attr-defined]

    def noted(record: records.Record, **more: bool) -> int:
        appended.append(record)
        return cast("int", append(record, **more))

    with mock.patch.object(wal, "append", noted):
        sim.crash(3, silently=True)
        await until(lambda: one.core.view.number > 1 and one.core.ready)
    sim.network.rules.clear()
    assert sum(isinstance(record, records.Committed) for record in appended) == 1
    client = await sim.client(2)
    assert await client.run(TOTAL) == [(ROWS, ROWS + 1)]
    client.channel.close()


def test_the_end_of_a_part_that_is_forgotten_at_once_is_in_the_log() -> None:
    with (
        mock.patch.object(sim_world, "SimulatedDisk", LogDisk),
        simulation(1, 3, backups=1, data_dir="/data") as sim,
    ):
        sim.form()
        sim.complete(load(sim))
        sim.complete(dropped(sim))
        sim.settle(60.0)
        sim.verdict()
