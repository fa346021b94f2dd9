"""A write that meets a lost member says so as one of which nothing was done, where that is known:
clients make it again by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from remuda.errors import MemberUnavailable, NotServed, QueryTimeout, RemudaError
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType

InCluster = Callable[..., None]
CREATE = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)"
ROWS = [(key, key) for key in range(40)]


class Lost(dict[int, str]):
    """Members that this one counts as lost, whatever it hears of them."""

    def pop(self, *arguments: Any) -> Any:
        return arguments[1] if len(arguments) > 1 else None

    def __delitem__(self, _key: int) -> None:
        """Heard from, but not in this test."""


@pytest.fixture(params=["put", "put_batch", "one put", "replicated put"])
def write(request: pytest.FixtureRequest) -> Any:
    async def act(cluster: Any, client: Any) -> None:
        schema = await client.schema("t")
        if request.param == "put_batch":
            batch = pa.record_batch([[k for k, _ in ROWS]] * 2, names=["k", "v"])
            message = user_pb2.PutBatchRequest(
                map="t", map_id=schema.map_id, schema_version=schema.version
            )
            body = [arrow_stream.encode(batch.schema, [batch])]
            await client.channel.request(RpcType.MAP_PUT_BATCH, message, body)
        elif request.param == "one put":
            router = cluster.member(1).transactions.router(schema.map_id)
            owners = cluster.member(1).core.view.owners
            theirs = [row for row in ROWS if owners[router.key_partition(row[:1])] == 3]
            await client.put(schema, theirs[0])
        else:
            await client.put(schema, *ROWS)

    act.kind = " REPLICATED" if request.param == "replicated put" else ""  # type: ignore[attr-defined]
    return act


@pytest.mark.parametrize("backups", [0, 1])
def test_nothing_is_written_when_an_owner_is_lost(
    in_cluster: InCluster, write: Any, backups: int
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql(CREATE + write.kind)
        core = cluster.member(1).core
        core.lost = Lost({3: "it is silent"})
        with pytest.raises(NotServed, match="lost") as caught:
            await write(cluster, client)
        assert not caught.value.may_have_run
        map_id = (await client.schema("t")).map_id
        copies = [store for m in cluster.members for store in m.core.copies_of(map_id)]
        assert copies
        assert not any(store.rows or store.job_pending for store in copies)

    in_cluster(scenario, members=3, backups=backups)


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT "


@pytest.mark.parametrize(
    "text",
    [f"INSERT INTO t {ENDLESS} n, n FROM r", f"UPDATE t SET v = ({ENDLESS} count(*) FROM r)"],
)
def test_a_statement_that_had_not_begun_to_commit_has_not_run(
    in_cluster: InCluster, text: str
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql(CREATE)
        await client.sql("INSERT INTO t VALUES (1, 1)")
        result = await client.run(text, timeout=0.1)
        assert isinstance(result.error, QueryTimeout), result.error
        assert not result.error.may_have_run
        assert result.error.retryable

    in_cluster(scenario)


def test_a_statement_whose_commit_has_begun_may_have_run(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql(CREATE)

        async def lost(*_: Any, **__: Any) -> int:
            raise MemberUnavailable("member 3 is lost", member="3")

        monkeypatch.setattr(cluster.member(1).commits, "commit_in_turn", lost)
        for text in ("INSERT INTO t VALUES (1, 1), (2, 2)", "TRUNCATE t"):
            result = await client.run(text)
            assert isinstance(result.error, RemudaError)
            assert (result.error.may_have_run, result.error.retryable) == (True, False), text

    in_cluster(scenario)
