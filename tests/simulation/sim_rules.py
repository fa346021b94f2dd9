"""The rules of the query protocol (design 5a) and of reads and commits (5b), each as a scenario
that fails without the rule. ``SCENARIOS`` has them by name; test_rules.py breaks each rule on
purpose.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest
from sim_client import Client, Result
from sim_cluster import Simulation, pbody, simulation
from sim_network import LOST, Fate, Sent

import remuda.member.sessions.replanning as planned_again_module
import remuda.planner.implementation.join as planned_joins
import remuda.query.registry as registry_module
from remuda.errors import (
    ConnectionBroken,
    DivisionByZero,
    LimitExceeded,
    MemberUnavailable,
    QueryCanceled,
    RemudaError,
    SchemaChanged,
    TransientError,
    ViewChanged,
)
from remuda.member.state.routing import Router
from remuda.rpc.messages import control_pb2

JOIN = "SELECT a.id, b.id FROM t a JOIN t b ON a.g = b.g"
ORDERED = "SELECT g, id, s FROM t ORDER BY g, id"
ROWS = 90
GROUPS = 9
WIDE = "x" * 300


@dataclass
class Play:
    """A formed cluster with a table ``t``, and what a scenario does to it."""

    sim: Simulation
    seen: list[Sent] = field(default_factory=list)

    async def load(self) -> None:
        self.sim.network.watchers.append(self.seen.append)
        client = await self.client(1)
        await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, s TEXT)")
        rows = ", ".join(f"({n}, {n % GROUPS}, '{WIDE}')" for n in range(ROWS))
        await client.run(f"INSERT INTO t VALUES {rows}")
        await client.run(JOIN)  # plans and statistics are known from now on
        client.channel.close()
        self.seen.clear()

    async def client(self, number: int) -> Client:
        return await self.sim.client(number)

    # ---- faults ----

    def fate(
        self, name: str, fate: Fate, *, to: int = 0, sender: int = 0, times: int = 10**9
    ) -> list[int]:
        """What becomes of messages of a kind from now on. Gives a counter of those concerned."""
        nodes = {0: None, **{number: node.name for number, node in self.sim.nodes.items()}}
        count = [0]

        def rule(sent: Sent) -> Fate | None:
            if sent.name != name or nodes[to] not in (None, sent.receiver):
                return None
            if nodes[sender] not in (None, sent.sender) or count[0] >= times:
                return None
            count[0] += 1
            return fate

        self.sim.network.rules.append(rule)
        return count

    def sent(self, name: str) -> list[Sent]:
        return [one for one in self.seen if one.name == name]

    # ---- looking ----

    def registry(self, number: int) -> Any:
        return self.sim.members[number].queries._registry

    def idle(self, number: int) -> bool:
        queries = self.sim.members[number].queries
        return not len(queries._registry) and not queries._running

    async def until(self, condition: Callable[[], bool], limit: float) -> None:
        deadline = self.sim.loop.now + limit
        while not condition():
            assert self.sim.loop.now < deadline, f"not within {limit:g} s"
            await asyncio.sleep(0.01)

    async def fails(self, result: Result, kind: type[RemudaError], limit: float) -> RemudaError:
        async with asyncio.timeout(limit):
            await result.done.wait()
        assert isinstance(result.error, kind), f"{result.error!r}, {len(result.rows)} rows"
        return result.error

    async def gives(self, client: Client, text: str, limit: float = 300.0, **options: Any) -> Any:
        async with asyncio.timeout(limit):
            return await client.run(text, **options)


PAIRS = sorted((a, b) for a in range(ROWS) for b in range(ROWS) if a % GROUPS == b % GROUPS)
SORTED = [(g, n) for g in range(GROUPS) for n in range(ROWS) if n % GROUPS == g]


@dataclass(frozen=True)
class Scenario:
    rule: int
    play: Callable[[Play], Awaitable[None]]
    members: int
    settings: dict[str, Any]
    skew: float

    def run(self, seed: int = 1) -> None:
        """Raises what shows that the rule does not hold."""
        with self._joins(), simulation(seed, self.members, **self.settings) as sim:
            sim.form()
            play = Play(sim)
            sim.complete(play.load())
            if self.skew:
                for number, member in sim.members.items():
                    member.core.world.clock.skew = self.skew * (number - 1)  # type: ignore[attr-defined]
            sim.complete(self.play(play))
            sim.settle(60.0)
            sim.verdict()

    def _joins(self) -> AbstractContextManager[object]:
        """The scenarios of this file need a JOIN whose members send rows to each other. The planner
        would join maps as small as theirs at the initiator."""
        if self.play.__module__ != __name__:
            return nullcontext()
        return patch.object(planned_joins, "SMALL_SIDES_ROWS", 0)


SCENARIOS: dict[str, Scenario] = {}


def scenario(rule: int, *, members: int = 3, skew: float = 0.0, **settings: Any):
    def add(play: Callable[[Play], Awaitable[None]]):
        SCENARIOS[play.__name__] = Scenario(rule, play, members, settings, skew)
        return play

    return add


# ---- 1: start ----


@scenario(1)
async def a_start_from_another_view_is_refused(play: Play) -> None:
    client = await play.client(1)
    core = play.sim.members[1].core
    at, view = core.timestamp(), core.view
    core.view = replace(view, number=view.number + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planned_again_module, "PATIENCE", 0.5)
        result = await client.start(JOIN, read_timestamp=at)
        await play.fails(result, ViewChanged, 2.0)
    core.view = view


@scenario(1)
async def admission_comes_before_any_start(play: Play) -> None:
    play.registry(1)._active_max = 1
    client = await play.client(1)
    client.patience = 1.0
    first = await client.start(JOIN, page_rows=50)
    await first.first.wait()
    begun = len(play.sent("QUERY_START"))
    await play.fails(await client.start(JOIN), LimitExceeded, 5.0)
    assert len(play.sent("QUERY_START")) == begun
    await client.cancel(first)


# ---- 2: streams ----


@scenario(2, batch_rows=5)
async def a_stream_belongs_to_its_sender(play: Play) -> None:
    client = await play.client(2)
    assert sorted(await play.gives(client, JOIN)) == PAIRS


# ---- 3: early batches ----


@scenario(3, batch_rows=5)
async def batches_before_the_start_are_kept(play: Play) -> None:
    client = await play.client(1)
    play.fate("QUERY_START", Fate((0.5,)), to=3)
    result = await client.start(JOIN)
    await asyncio.sleep(0.2)
    assert play.registry(3).early_size > 0
    await result.done.wait()
    assert sorted(result.rows) == PAIRS


@scenario(3, batch_rows=5)
async def early_batches_are_bounded(play: Play) -> None:
    client = await play.client(1)
    play.registry(3)._early_size_max = 1500
    play.fate("QUERY_START", Fate((1.0,)), to=3)
    result = await client.start(JOIN)
    most = 0
    for _ in range(100):
        await asyncio.sleep(0.01)
        most = max(most, play.registry(3).early_size)
    assert most <= 1500
    await play.fails(result, LimitExceeded, 10.0)


@scenario(3, batch_rows=5)
async def a_batch_of_an_own_forgotten_query_is_dropped(play: Play) -> None:
    client = await play.client(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry_module, "ENDED_QUERY_IDS_KEPT", 0)
        play.fate("REQ_RECORD_BATCH", Fate((2.0,)), to=1)
        result = await client.start(JOIN)
        await asyncio.sleep(0.1)
        await client.cancel(result)
        await play.fails(result, QueryCanceled, 1.0)
        await asyncio.sleep(3.0)
    assert play.idle(1)


# ---- 4: early cancel ----


@scenario(4, batch_rows=5)
async def a_cancel_before_its_start_leaves_a_surrogate(play: Play) -> None:
    client = await play.client(1)
    play.fate("QUERY_START", Fate((0.5,)), to=3)
    result = await client.start(JOIN)
    await asyncio.sleep(0.1)
    await client.cancel(result)
    await asyncio.sleep(1.0)
    assert play.idle(3), play.registry(3)


@scenario(4)
async def a_cancel_keeps_its_cause(play: Play) -> None:
    """Only member 2 fails; all hear who it was and why."""
    client = await play.client(1)
    ids = {row[0] for row in await client.run("SELECT id FROM t")}
    member = play.sim.members[2]
    owners = member.core.view.owners
    router = Router(member.core.catalog.get("t"))
    at = min(n for n in ids if owners[router.partition([n])] == 2)
    play.seen.clear()
    result = await client.start(f"SELECT 1 / (id - {at}) FROM t")
    error = await play.fails(result, DivisionByZero, 5.0)
    assert "zero" in error.message
    told = [control_pb2.QueryCancel.FromString(pbody(s)) for s in play.sent("QUERY_CANCEL")]
    assert told
    assert {message.cancel_initiator for message in told} == {2}
    assert {message.error.kind for message in told} == {"DivisionByZero"}


# ---- 5: check ----


@scenario(5)
async def a_lost_start_is_noticed(play: Play) -> None:
    client = await play.client(1)
    play.fate("QUERY_START", LOST, to=3)
    await play.fails(await client.start(JOIN), TransientError, 20.0)


@scenario(5)
async def what_never_started_is_asked_about(play: Play) -> None:
    """On a member that has not run a query: early batches, and no start ever."""
    client = await play.client(1)
    play.sim.members[3].queries._ticker.cancel()
    play.sim.members[3].queries._ticker = None
    play.fate("QUERY_START", LOST, to=3)
    play.fate("QUERY_CANCEL", LOST, to=3)
    result = await client.start(JOIN)
    await asyncio.sleep(0.1)
    await client.cancel(result)
    await asyncio.sleep(0.5)
    assert not play.idle(3)
    await play.until(lambda: play.idle(3), 15.0)


@scenario(5, batch_rows=3, window=3000)
async def a_lost_cancel_is_healed(play: Play) -> None:
    client = await play.client(1)
    client.patience = 30.0
    play.fate("QUERY_CANCEL", LOST)
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    await client.cancel(result)
    await play.fails(result, QueryCanceled, 1.0)
    assert not play.idle(3)
    await play.until(lambda: play.idle(2) and play.idle(3), 15.0)


@scenario(5, batch_rows=5)
async def a_lost_batch_fails_its_query(play: Play) -> None:
    client = await play.client(1)
    play.fate("REQ_RECORD_BATCH", LOST, to=2, times=1)
    error = await play.fails(await client.start(JOIN), ConnectionBroken, 30.0)
    assert "got lost" in error.message


@scenario(5)
async def a_lost_last_batch_between_participants_is_noticed(play: Play) -> None:
    """Nothing comes behind it, so its receiver cannot see a gap by itself."""
    client = await play.client(1)
    lost = play.fate("REQ_RECORD_BATCH", LOST, to=3, sender=2)
    result = await client.start(JOIN)
    error = await play.fails(result, ConnectionBroken, 60.0)
    assert "got lost" in error.message
    assert lost[0] > 0


@scenario(5)
async def two_members_that_wait_for_each_other_are_noticed(play: Play) -> None:
    """Each has lost the batches of the other, and repeats its grant."""
    client = await play.client(1)
    for sender, receiver in ((2, 3), (3, 2)):
        play.fate("REQ_RECORD_BATCH", LOST, to=receiver, sender=sender)
    play.fate("QUERY_CHECK_RESPONSE", LOST, times=2)
    error = await play.fails(await client.start(JOIN), ConnectionBroken, 60.0)
    assert "got lost" in error.message


# ---- 6: the end of a stream ----


@scenario(6, batch_rows=3, window=3000)
async def repeated_batches_count_once(play: Play) -> None:
    play.fate("REQ_RECORD_BATCH", Fate((0.0, 0.0005)))
    client = await play.client(1)
    assert [row[:2] for row in await play.gives(client, ORDERED)] == SORTED


@scenario(6, batch_rows=5)
async def a_stream_ends_by_count(play: Play) -> None:
    """Its last batch overtakes the others."""
    last = [0]

    def rule(sent: Sent) -> Fate | None:
        if sent.name != "REQ_RECORD_BATCH":
            return None
        last[0] += 1
        return Fate((0.3,)) if last[0] % 3 == 0 else None

    play.sim.network.rules.append(rule)
    client = await play.client(1)
    assert sorted(await play.gives(client, JOIN)) == PAIRS


@scenario(6, batch_rows=5)
async def an_ordered_stream_is_handed_out_in_order(play: Play) -> None:
    flip = [0]

    def rule(sent: Sent) -> Fate | None:
        flip[0] += sent.name == "REQ_RECORD_BATCH"
        return Fate((0.2,)) if sent.name == "REQ_RECORD_BATCH" and flip[0] % 2 else None

    play.sim.network.rules.append(rule)
    client = await play.client(1)
    assert [row[:2] for row in await play.gives(client, ORDERED)] == SORTED


# ---- 7, 8: credit ----


@scenario(7, batch_rows=3, window=3000)
async def a_repeated_grant_is_harmless(play: Play) -> None:
    play.fate("DATA_ACK_WITH_CREDIT", Fate((0.0, 0.01, 0.02)))
    client = await play.client(1)
    client.patience = 0.02
    rows = await play.gives(client, ORDERED, page_rows=2)
    assert [row[:2] for row in rows] == SORTED


@scenario(7, batch_rows=3, window=3000)
async def a_slow_client_keeps_senders_within_their_windows(play: Play) -> None:
    client = await play.client(1)
    client.patience = 30.0
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    await asyncio.sleep(1.0)
    for number in (2, 3):
        name = play.sim.nodes[number].name
        batches = [s for s in play.sent("REQ_RECORD_BATCH") if s.sender == name]
        assert 0 < sum(s.size for s in batches) < 2.5 * 3000
    await client.cancel(result)


@scenario(7, batch_rows=3, window=3000)
async def a_lost_grant_is_repeated(play: Play) -> None:
    """All of the first second: no later one says what they said."""
    client = await play.client(1)
    lost = play.fate("DATA_ACK_WITH_CREDIT", LOST)
    result = await client.start(ORDERED)
    await asyncio.sleep(1.0)
    play.sim.network.rules.clear()
    assert lost[0] > 0
    assert not result.done.is_set()
    async with asyncio.timeout(60.0):
        await result.done.wait()
    assert [row[:2] for row in result.rows] == SORTED


@scenario(8, batch_rows=3, window=3000)
async def batches_are_not_answered(play: Play) -> None:
    client = await play.client(1)
    assert [row[:2] for row in await play.gives(client, ORDERED)] == SORTED
    batches, grants = play.sent("REQ_RECORD_BATCH"), play.sent("DATA_ACK_WITH_CREDIT")
    assert len(batches) > 10
    assert all(one.one_way for one in batches + grants)
    assert len(grants) <= len(batches)


# ---- 9: LIMIT ----


@scenario(9, batch_rows=3, window=3000)
async def senders_stop_when_no_more_rows_are_needed(play: Play) -> None:
    client = await play.client(1)
    text = "SELECT a.id, a.s, b.s FROM t a JOIN t b ON a.g = b.g LIMIT 3"
    assert len(await play.gives(client, text, limit=2.0)) == 3
    await play.until(lambda: play.idle(2) and play.idle(3), 1.0)


# ---- 10: cancel ----


@scenario(10, members=4)
async def a_cancel_takes_two_steps(play: Play) -> None:
    """All four fail at once: at most 2N messages."""
    client = await play.client(1)
    result = await client.start("SELECT 1 / (g - g) FROM t")
    await play.fails(result, DivisionByZero, 5.0)
    await asyncio.sleep(1.0)
    assert 3 <= len(play.sent("QUERY_CANCEL")) <= 2 * 4


@scenario(10, batch_rows=3, window=3000)
async def without_initiator_participants_end_by_themselves(play: Play) -> None:
    client = await play.client(1)
    client.patience = 30.0
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    assert not play.idle(2)
    play.sim.crash(1)
    play.seen.clear()
    await play.until(lambda: play.idle(2) and play.idle(3), 5.0)
    # Before they know more than that the connection broke, they may tell it, once per query.
    told = Counter(
        (one.sender, one.receiver, control_pb2.QueryCancel.FromString(pbody(one)).query_id.part1)
        for one in play.sent("QUERY_CANCEL")
    )
    assert all(receiver == play.sim.nodes[1].name for _, receiver, _ in told)
    assert not told or max(told.values()) == 1


# ---- 11: connections ----


@scenario(11, batch_rows=3, window=3000)
async def a_broken_connection_fails_its_queries(play: Play) -> None:
    client = await play.client(1)
    client.patience = 30.0
    result = await client.start(ORDERED, page_rows=2)
    await result.first.wait()
    nodes = play.sim.nodes
    assert play.sim.network.break_connections(nodes[2], nodes[1], "data")
    error = await play.fails(result, MemberUnavailable, 1.0)
    assert error.member in ("1", "2")


# ---- 12: no stall ----


@scenario(12, batch_rows=2, window=1500)
async def small_windows_do_not_stall_an_ordered_merge(play: Play) -> None:
    client = await play.client(1)
    rows = await play.gives(client, ORDERED, limit=3.0)
    assert [row[:2] for row in rows] == SORTED


# ---- 14, 15, 17: views, reads, commits ----


@scenario(14)
async def a_member_that_was_given_up_stops(play: Play) -> None:
    nodes = play.sim.nodes
    for other in (1, 2):
        play.sim.network.silence(nodes[3], nodes[other], 4.2)
    await play.until(lambda: play.sim.members[3].core.stopping, 30.0)


@scenario(15, skew=-2.0, backups=0)
async def a_read_lies_above_all_clocks(play: Play) -> None:
    """Member 3's calendar is 4 s behind; what was put before is seen all the same. (Its plan has
    statistics of the other members already, and has heard their clocks with them.)"""
    writer, reader = await play.client(1), await play.client(3)
    schema = await writer.schema("t")
    assert await play.gives(reader, "SELECT count(*) FROM t") == [(ROWS,)]
    for n in range(1000, 1020):
        await writer.put(schema, n, 0, "")
    assert await play.gives(reader, "SELECT count(*) FROM t") == [(ROWS + 20,)]


@scenario(15)
async def a_reader_waits_for_what_is_prepared_below_it(play: Play) -> None:
    """The decision reaches member 3 late: nobody sees half of the write."""
    writer, reader = await play.client(1), await play.client(2)
    play.fate("COMMIT_FINISH", Fate((0.4,), overtaken=False), to=3)
    update = await writer.start("UPDATE t SET g = g + 100")
    count = "SELECT count(*) FROM t WHERE g >= 100"
    seen = [await play.gives(reader, count) for _ in range(12)]
    await update.done.wait()
    assert {rows[0][0] for rows in seen} <= {0, ROWS}
    assert await play.gives(reader, count) == [(ROWS,)]


@scenario(21)
async def a_put_for_an_older_schema_is_refused(play: Play) -> None:
    client = await play.client(2)
    schema = await client.schema("t")
    await client.run("ALTER TABLE t ADD COLUMN more INT")
    with pytest.raises(SchemaChanged):
        await client.put(schema, 500, 1, "")


@scenario(17)
async def without_coordinator_prepared_writes_are_decided(play: Play) -> None:
    writer = await play.client(1)

    def crash(sent: Sent) -> None:
        if sent.name == "COMMIT_PREPARE" and sent.mode == 1:
            loop, node = play.sim.loop, play.sim.director
            loop.call_soon(play.sim.crash, 1, context=node.context)

    play.sim.network.watchers.append(crash)
    await writer.start("UPDATE t SET g = g + 100")
    await play.until(lambda: not play.sim.nodes[1].alive, 5.0)
    members = [play.sim.members[n] for n in (2, 3)]
    await play.until(lambda: not any(m.commits.gauges()["prepared"] for m in members), 20.0)
