"""What asks all members while one of them says nothing."""

from __future__ import annotations

from typing import Any

import remuda.aio
from remuda.rpc.messages.control_pb2 import RpcType

ASKING = ("system.system_state", "statements.statistics_service")
SILENT = (2, 3)
ASKED = (RpcType.SYSTEM_STATE, RpcType.MAP_STATISTICS)


def test_sums_of_a_map_name_the_member_that_they_lack(in_cluster: Any, monkeypatch: Any) -> None:
    for module in ASKING:
        monkeypatch.setattr(f"remuda.member.{module}.PATIENCE", 0.05)

    async def scenario(cluster: Any) -> None:
        info = cluster.member(1).info
        client = await remuda.aio.connect(f"{info.host}:{info.user_port}")
        maker = await cluster.client(1)
        await maker.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await maker.sql("INSERT INTO t SELECT g FROM generate_series(1, 300) g")
        whole = await client.describe_map("t")
        assert (whole.rows, whole.no_answer) == (300, ())
        known = await client.map("t").statistics()
        assert (known.entries, sorted(known.members), known.no_answer) == (300, [1, 2, 3], ())
        tables = [cluster.member(number)._member_routes.control for number in SILENT]
        for table in tables:
            table.update(dict.fromkeys(ASKED, lambda _request: None))
        known = await client.map("t").statistics()
        described = await client.describe_map("t")
        # Whichever member the client asks: one of the others is silent.
        for found in (known.no_answer, described.no_answer):
            assert found
            assert set(found) <= set(SILENT)
        assert 0 < known.entries < 300
        assert 0 < described.rows < 300
        await client.close()

    in_cluster(scenario, 3)
