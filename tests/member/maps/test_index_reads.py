"""Reads by a secondary index that are answered in one message, and when they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.member.maps.test_point_answers import ask, rows

from remuda.datatypes.timestamp import from_micros
from remuda.member.maps.index_reads import CROWDED_SKIPS, VERSIONS_MAX, IndexReads
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import PartWork, Write
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.indexes.access import Equal, spans_of
from remuda.storage.indexes.few_rows import Declined
from remuda.transaction.states import TransactionId

InCluster = Callable[..., None]
ROWS = 3000


async def filled(cluster: Any) -> Any:
    client = await cluster.client(1)
    await client.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR, day DATE, v DOUBLE, g INT, h INT)"
    )
    await client.run(
        "INSERT INTO t SELECT i, 'n' || (i / 3)::BIGINT, DATE '2024-01-01' + (i / 4)::INT, "
        f"i / 8.0, (i / 5)::INT, CASE WHEN i % 7 = 0 THEN NULL ELSE i END "
        f"FROM generate_series(0, {ROWS - 1}) AS s(i)"
    )
    for number, columns in enumerate(("name", "day", "v", "g, h", "h")):
        await client.run(f"CREATE INDEX t_{number} ON t ({columns})")
    await client.run("CREATE INDEX t_hash ON t (g) USING HASH")
    return client


async def general(client: Any, text: str, *parameters: object) -> Any:
    """The same on the general way: no short one has a LIMIT."""
    return sorted(await client.sql(f"{text} LIMIT 100000", *parameters), key=str)


ASKED: list[tuple[str, list[list[object]]]] = [
    ("SELECT id, name FROM t WHERE name = ?", [["n5"], ["n500"], ["none"], [None]]),
    ("SELECT id, h FROM t WHERE name = 'n7' AND h > ?", [[20], [21], [None]]),
    ("SELECT id + h, upper(name) FROM t WHERE h = ?", [[15], [14], [-1], [None]]),
    ("SELECT id FROM t WHERE g = ? AND h = ?", [[3, 16], [3, 21], [3, None]]),
    ("SELECT id FROM t WHERE g = ? AND h > ?", [[3, 16], [3, 0]]),
    ("SELECT name, day FROM t WHERE day = DATE '2024-01-09'", [[]]),
    ("SELECT id FROM t WHERE v BETWEEN 3.0 AND 4.0", [[]]),
    ("SELECT id FROM t WHERE v = ?", [[3.5], [float("nan")]]),
    ("SELECT id, g FROM t WHERE g IN (4, 9, 4)", [[]]),
    ("SELECT many FROM (SELECT id AS many, name FROM t) AS s WHERE name = ?", [["n9"]]),
    ("SELECT 1 FROM t WHERE name = ?", [["n9"]]),
]


@pytest.mark.parametrize("members", [1, 3])
def test_the_same_rows_as_on_the_general_way(in_cluster: InCluster, members: int) -> None:
    async def scenario(cluster: Any) -> None:
        await filled(cluster)
        for number in range(1, members + 1):
            client = await cluster.client(number)
            for text, parameters in ASKED:
                for each in parameters:
                    expected = await general(client, text, *each)
                    assert sorted(await client.sql(text, *each), key=str) == expected
                    kind, answer = await ask(client, text, *each)
                    if None not in each:
                        assert kind == RpcType.QUERY_ANSWER, text
                        assert sorted(rows(answer.about, answer), key=str) == expected, text
        await cluster.idle()

    in_cluster(scenario, members=members)


def test_every_member_is_asked_once(in_cluster: InCluster, monkeypatch: Any) -> None:
    served: list[int] = []
    original = IndexReads.on_read

    def on_read(self: IndexReads, request: Any) -> None:
        served.append(self._core.number)
        original(self, request)

    monkeypatch.setattr(IndexReads, "on_read", on_read)

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        text = "SELECT id FROM t WHERE name = ?"
        await client.sql(text, "n1")
        served.clear()
        assert len(await client.sql(text, "n2")) == 3
        assert sorted(served) == [2, 3]
        served.clear()
        first = await client.sql("SELECT id FROM t WHERE name = ? ORDER BY id LIMIT 1", "n2")
        assert first == [(6,)]
        assert served == []

    in_cluster(scenario)


def test_many_rows_are_streamed(in_cluster: InCluster) -> None:
    """A statement that finds too many is not tried again at once."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        many = 4 * VERSIONS_MAX
        text = "SELECT id FROM t WHERE name = ?"
        await client.run(f"UPDATE t SET name = 'same' WHERE id < {many}")
        await client.run("DROP INDEX t_0")
        await client.run("CREATE INDEX t_0 ON t (name)")  # over all chunks that there are now
        await client.run("ANALYZE t")
        reads = cluster.member(1).statements.reads.by_index
        await client.sql(text, "n900")  # planned anew, with other statistics
        assert len(await client.sql(text, "same")) == many
        assert reads._crowded == {text: CROWDED_SKIPS}
        for _ in range(CROWDED_SKIPS):
            assert (await ask(client, text, "n900"))[0] == RpcType.QUERY_HANDLE
        assert (await ask(client, text, "n900"))[0] == RpcType.QUERY_ANSWER
        assert reads._asked == {}
        await cluster.idle()

    in_cluster(scenario)


def test_what_is_not_decided_or_moves_goes_the_general_way(in_cluster: InCluster) -> None:
    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        text = "SELECT id FROM t WHERE name = ?"
        expected = await client.sql(text, "n2")
        assert (await ask(client, text, "n2"))[0] == RpcType.QUERY_ANSWER
        second = cluster.member(2).core.readiness
        second.hold("test", "a test holds it back")
        assert (await ask(client, text, "n2"))[0] == RpcType.QUERY_HANDLE
        second.release("test")
        store = cluster.member(3).core.stores[client_map(cluster)]
        store.mixed_until = 2**63 - 2
        assert (await ask(client, text, "n2"))[0] == RpcType.QUERY_HANDLE
        store.mixed_until = 0
        assert (await ask(client, text, "n2"))[0] == RpcType.QUERY_ANSWER
        await client.run("DROP INDEX t_0")
        assert sorted(await client.sql(text, "n2")) == sorted(expected)
        await cluster.idle()

    in_cluster(scenario)


def client_map(cluster: Any) -> int:
    found: int = cluster.member(1).core.schema("t").map_id
    return found


def test_what_a_member_with_a_clock_ahead_has_committed_is_seen(in_cluster: InCluster) -> None:
    """The initiator reads at its own clock, which has not heard of it."""

    async def scenario(cluster: Any) -> None:
        client = await filled(cluster)
        second = cluster.member(2).core
        store = second.stores[client_map(cluster)]
        router = Router(store.schema)
        mine = next(i for i in range(35, 99) if second.view.owners[router.partition((i,))] == 2)
        text = f"SELECT id, name FROM t WHERE g = {mine // 5}"
        await client.sql(text)
        found = sorted(await client.sql(text))
        second.clock.observe(second.clock.last + from_micros(2_000_000))
        row = store.get((mine,), second.timestamp())
        store.set((row[0], "later", *row[2:]), second.timestamp())
        expected = [(i, "later" if i == mine else name) for i, name in found]
        assert sorted(await client.sql(text)) == expected

    in_cluster(scenario, backups=0)


def test_a_write_that_is_not_decided_is_waited_for_where_it_concerns_the_keys(
    in_cluster: InCluster,
) -> None:
    async def scenario(cluster: Any) -> None:
        await filled(cluster)
        member = cluster.member(1)
        core, pending, reads = member.core, member.transactions.pending, member.statements.reads
        store = core.stores[client_map(cluster)]
        index = next(i for i in store.schema.indexes if i.names == ("g", "h"))
        form = store.indexes.by_id[index.index_id].form

        def read(g: int) -> Any:
            spans = spans_of(form, [(Equal(g),)])
            at = core.timestamp()
            return reads.by_index._here(store, index.index_id, spans, at, (0,), newest=True)

        old = store.get((35,), core.timestamp())
        assert (35,) in read(7)
        row = (*old[:4], 9, old[5])  # from g = 7 to g = 9
        write = Write(store.schema.map_id, store.schema.version, (35,), row)
        address = (TransactionId(1, 1), Router(store.schema).partition((35,)))
        ahead = core.timestamp() + from_micros(1_000_000)
        pending.add(address, PartWork(0, (write,)), ahead, readers_wait=True)
        assert read(7) is Declined.NEWER
        assert read(9) is Declined.NEWER
        assert len(read(8)) == 5
        pending.remove(address)
        assert len(read(7)) == 5

    in_cluster(scenario, members=1)
