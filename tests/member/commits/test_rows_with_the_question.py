"""Rows of a batch go to their owners with the question whether they can be committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import remuda.aio
from remuda.errors import StorageFull
from remuda.member.base.peers import Peers
from remuda.member.commits import commits
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.transaction import staged_coordinator

InCluster = Callable[..., None]
CREATE = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)"
KEYS = range(200)
SUMMARY = "SELECT count(*), min(v), max(v) FROM t"


def connected(cluster: Any) -> Any:
    return remuda.aio.connect([(each.info.host, each.info.user_port) for each in cluster.members])


def rows(v: int) -> dict[int, dict[str, int]]:
    return {key: {"v": v} for key in KEYS}


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_a_lost_message_is_sent_again_with_its_rows(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(staged_coordinator, "RESEND_AFTER", 0.0)
    monkeypatch.setattr(commits, "TICK", 0.01)
    asked: Counter[int] = Counter()
    request = Peers.request_nowait

    def losing(peers: Peers, number: int, kind: int, body: Any, dbody: Any, heard: Any) -> None:
        if kind == RpcType.STAGE_ROWS:
            asked[number] += 1
            if asked[number] == 1:
                if lost == "answer":
                    request(peers, number, kind, body, dbody, lambda _: None)
                return
        request(peers, number, kind, body, dbody, heard)

    async def scenario(cluster: Any) -> None:
        async with connected(cluster) as client:
            await client.sql(CREATE)
            await client.map("t").put_all(rows(1))
            monkeypatch.setattr(Peers, "request_nowait", losing)
            await client.map("t").put_all(rows(2))
            assert set(asked.values()) == {2}
            found = await (await client.sql(SUMMARY)).fetchall()
            assert [tuple(row) for row in found] == [(len(KEYS), 2, 2)]
        await cluster.idle()

    in_cluster(scenario, backups=1)


@pytest.mark.parametrize("refusing", [1, 2, 3])
def test_rows_that_a_copy_refuses_are_written_nowhere(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch, refusing: int
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StorageFull("no memory is left", member=str(refusing))

    async def scenario(cluster: Any) -> None:
        async with connected(cluster) as client:
            await client.sql(CREATE)
            await client.map("t").put_all(rows(1))
            with monkeypatch.context() as patch:
                patch.setattr(cluster.member(refusing).core.room, "admit_rows", full)
                with pytest.raises(StorageFull, match="no memory is left"):
                    await client.map("t").put_all(rows(2))
            found = await (await client.sql(SUMMARY)).fetchall()
            assert [tuple(row) for row in found] == [(len(KEYS), 1, 1)]
            await client.map("t").put_all(rows(3))
        await cluster.idle()

    in_cluster(scenario, backups=1)
