"""What goes wrong between members, and what must not come of it: no hang, no silence, no spread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from remuda.cluster.agreement import Decided
from remuda.cluster.next_view import next_view
from remuda.datatypes.timestamp import from_micros
from remuda.errors import (
    ConnectionBroken,
    InputError,
    InternalError,
    MemberGivenUp,
    MemberUnavailable,
    ProtocolError,
    QueryCanceled,
    RemudaError,
    SerializationFailure,
    ViewChanged,
)
from remuda.member import upkeep
from remuda.member.base.loop_handoff import Hop
from remuda.member.commits.jobs import Jobs
from remuda.member.commits.writes import StagedWrite
from remuda.member.maps.point_reads import PointAnswer
from remuda.member.membership.membership_messages import encode_agreement
from remuda.member.queries import queries as queries_module
from remuda.query import effects, events
from remuda.query.ids import Endpoint
from remuda.query.wire import decode_query_id
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.data_pb2 import RpcType as DataType
from remuda.rpc.messages.user_pb2 import RpcType

InCluster = Callable[..., None]
SECOND = from_micros(1_000_000)
HOUR = 3600 * SECOND


async def until(condition: Callable[[], object]) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.002)


async def filled(cluster, rows: int = 500):
    client = await cluster.client()
    await client.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, v BIGINT)")
    schema = await client.schema("t")
    await client.put(schema, *[(i, i % 50) for i in range(rows)])
    return client


# --- clocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [2**63 - 1, -1])
@pytest.mark.parametrize("local", [True, False])
def test_an_impossible_read_timestamp_is_refused(
    in_cluster: InCluster, at: int, local: bool
) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        result = await client.run("SELECT count(*) FROM t", local_only=local, read_timestamp=at)
        assert isinstance(result.error, InputError)
        assert await client.sql("SELECT count(*) FROM t") == [(500,)]
        core = cluster.member(1).core
        assert core.clock.last <= core.timestamp() < 2**62

    in_cluster(scenario, 2)


def test_a_client_moves_the_clock_less_far_than_a_member_may(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        core = cluster.member(1).core
        ahead = common_pb2.Context(clock=core.timestamp() + 30 * SECOND)
        with pytest.raises(ProtocolError, match="ahead"):
            await client.start("SELECT count(*) FROM t", context=ahead)
        request = client.keys_request(await client.schema("t"), 1, context=ahead)
        with pytest.raises(ProtocolError, match="ahead"):
            await client.ask(RpcType.MAP_GET, request, user_pb2.RowsResponse)
        near = common_pb2.Context(clock=core.timestamp() + SECOND)
        assert (await client.run("SELECT count(*) FROM t", context=near)).error is None
        assert core.clock.last > near.clock
        core.observe(ahead)
        assert core.clock.last == ahead.clock

    in_cluster(scenario, 1)


def test_a_member_whose_clock_is_far_ahead_moves_no_other_clock(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        schema = await client.schema("t")
        one = cluster.member(1).core
        two = cluster.member(2).core
        two.clock.last = two.timestamp() + HOUR
        refused = 0
        for key in range(20):
            try:
                await client.get(schema, key)
            except ProtocolError:
                refused += 1
        assert 0 < refused < 20, "the keys of member 2"
        with pytest.raises(RemudaError):
            await client.put(schema, *[(i, 0) for i in range(20)])
        assert one.timestamp() < from_micros(one.world.clock.wall_micros()) + HOUR // 2

    in_cluster(scenario, 2)


def test_refused_heartbeats_are_logged_and_are_the_cause_of_the_loss(
    in_cluster: InCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario(cluster) -> None:
        one, two = cluster.member(1).core, cluster.member(2).core
        two.clock.last = two.timestamp() + HOUR
        await until(lambda: one.lost)
        assert "s ahead of member 1" in one.lost[2]
        refused = [r for r in caplog.records if r.message == "message refused"]
        assert refused, "one-way messages are refused aloud"

    in_cluster(scenario, 2, heartbeat_timeout=2.0)


# --- connections and messages -----------------------------------------------------------------


def data_channel(cluster, sender: int, receiver: int) -> Any:
    return cluster.member(sender).peers.peer(receiver, ChannelKind.DATA).channel


@pytest.mark.parametrize("sender, receiver", [(2, 1), (2, 3)])
def test_a_broken_data_connection_fails_its_queries(
    in_cluster: InCluster, sender: int, receiver: int
) -> None:
    """Also when the batch that is lost with it was the last thing that its sender had to do."""
    text = "SELECT count(*) FROM t a JOIN t b ON a.v = b.v"

    async def scenario(cluster) -> None:
        client = await filled(cluster)
        assert await client.sql(text) == [(5000,)]
        channel = data_channel(cluster, sender, receiver)
        channel.send = lambda *_: channel._transport.abort()
        result = await client.run(text)
        assert isinstance(result.error, MemberUnavailable)
        assert "the data connection to member" in result.error.message
        assert await client.sql(text) == [(5000,)], "the connection is made again"
        assert not cluster.member(1).core.lost
        await cluster.idle()

    in_cluster(scenario, 3)


def test_a_broken_data_connection_fails_queries_that_have_just_ended_here(
    in_cluster: InCluster,
) -> None:
    """What they sent may be lost, and its receiver may not have begun to wait for it."""

    async def scenario(cluster) -> None:
        client = await filled(cluster)
        two = cluster.member(2)
        result = await client.run("SELECT count(*) FROM t")
        await cluster.idle()
        sent: list[tuple[int, object]] = []

        def record(number: int, rpc_type: int, body: Any) -> None:
            if rpc_type == ControlType.QUERY_CANCEL:
                sent.append((number, decode_query_id(body.query_id)))

        two.peers.send_control = record
        two.queries.connection_broken(1, ChannelKind.DATA, ConnectionBroken("a cut"))
        assert sent == [(1, decode_query_id(result.handle))]

    in_cluster(scenario, 2)


def test_a_batch_that_is_refused_fails_its_query(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        await client.sql("SELECT count(*) FROM t")
        channel = data_channel(cluster, 2, 1)
        send = channel.send

        def spoiled(rpc_type: int, body: Any, dbody: Any = ()) -> None:
            body.context.clock += HOUR
            send(rpc_type, body, dbody)

        channel.send = spoiled
        result = await client.run("SELECT count(*) FROM t")
        assert isinstance(result.error, ProtocolError)
        await cluster.idle()

    in_cluster(scenario, 2)


def test_a_stream_whose_sender_has_ended_must_end(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        await client.sql("SELECT count(*) FROM t")
        channel = data_channel(cluster, 2, 1)
        send = channel.send
        lost = []

        def forgetful(rpc_type: int, body: Any, dbody: Any = ()) -> None:
            if rpc_type == DataType.REQ_RECORD_BATCH:
                lost.append(body)
            else:
                send(rpc_type, body, dbody)

        channel.send = forgetful
        result = await client.start("SELECT count(*) FROM t")
        queries = cluster.member(1).queries

        def overdue() -> bool:
            return any(
                inbox._streams[Endpoint(2)].gap_deadline is not None
                for running in queries._running.values()
                for instance in running.instances
                for inbox in instance._inboxes.values()
            )

        await until(overdue)
        assert lost
        await client.cancel(result)
        await result.done.wait()

    in_cluster(scenario, 2)


def test_a_lost_fragment_report_is_sent_again_when_asked_for(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        one, two = cluster.member(1), cluster.member(2)
        send = two.peers.send_control
        lost = []

        def forgetful(number: int, rpc_type: int, body: Any) -> None:
            if rpc_type == ControlType.FRAGMENT_DONE:
                lost.append(body)
            else:
                send(number, rpc_type, body)

        two.peers.send_control = forgetful
        result = await client.start("EXPLAIN ANALYZE SELECT count(*) FROM t")
        await until(lambda: lost)
        two.peers.send_control = send
        await until(lambda: decode_query_id(lost[0].query_id) not in two.queries._running)
        check = control_pb2.QueryCheck(
            context=one.core.context(), suspected=[message.query_id for message in lost]
        )
        one.peers.send_control(2, ControlType.QUERY_CHECK, check)
        await result.done.wait()
        assert result.error is None
        await cluster.idle()

    in_cluster(scenario, 2)


# --- members that were given up ---------------------------------------------------------------


def test_a_member_that_the_others_have_given_up_stops(
    in_cluster: InCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster) -> None:
        await filled(cluster)
        one = cluster.member(1)
        reasons: list[str] = []
        one.on_given_up.append(reasons.append)
        client = await cluster.client(1)
        for number in (2, 3):
            membership = cluster.member(number).membership
            heard = membership._machine._on_heard
            # The next heartbeat would take the suspicion back.
            monkeypatch.setattr(
                membership._machine,
                "_on_heard",
                lambda now, sender, heard=heard: [] if sender == 1 else heard(now, sender),
            )
            membership.lose(1, "no heartbeat for 10.1 s", refused=True)
        await until(lambda: client.channel.closed)
        assert one.core.stopping
        (reason,) = reasons
        assert "member 1 was given up by member" in reason
        assert "no heartbeat for 10.1 s" in reason
        with pytest.raises(RemudaError):
            await client.sql("CREATE TABLE y (id INTEGER PRIMARY KEY)")
        assert not cluster.member(2).core.stopping
        assert not cluster.member(3).core.stopping
        assert "the others have given this member up" in caplog.text

    in_cluster(scenario, 3)


def test_news_of_another_member_that_was_given_up_ends_nobody(in_cluster: InCluster) -> None:
    """A forwarded request brings the refusal of the member that passed it on."""

    async def scenario(cluster) -> None:
        one = cluster.member(1)
        one.peers.given_up(MemberGivenUp("member 2 was given up by member 3", member="2"))
        assert one._end is None
        one.peers.given_up(MemberGivenUp("member 1 was given up by member 3", member="1"))
        assert one._end is not None

    in_cluster(scenario, 2)


def test_a_process_whose_number_another_one_has_was_given_up(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        one, two = cluster.member(1), cluster.member(2)
        other = replace(two.info, uuid="another")
        with pytest.raises(MemberGivenUp, match="another process is member 2"):
            one.core.check_identity(other, two.core.view.number)
        with pytest.raises(ViewChanged):
            one.core.check_identity(other, two.core.view.number + 1)

    in_cluster(scenario, 2)


def test_a_member_with_a_wrong_calendar_hears_that_it_was_given_up(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        one, two = cluster.member(1), cluster.member(2)
        view = next_view(two.core.view, {1}, ())
        ahead = two.core.context()
        ahead.clock += 24 * HOUR
        encoded = encode_agreement(Decided(view), ahead, "it was silent")
        one.membership.on_agree(SimpleNamespace(pbody=encoded.SerializeToString()))
        assert one._end is not None

    in_cluster(scenario, 2)


def test_a_request_under_way_fails_with_the_loss_of_its_member(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        one = cluster.member(1)
        clock = control_pb2.Heartbeat(context=one.core.context())
        await one.peers.request(2, ControlType.CLOCK, clock)
        under_way = asyncio.ensure_future(one.peers.request(2, ControlType.CLOCK, clock))
        await asyncio.sleep(0)
        one.membership.lose(2, "no heartbeat for 10.1 s")
        with pytest.raises(MemberUnavailable, match=r"is lost: no heartbeat for 10\.1 s"):
            await under_way

    in_cluster(scenario, 2)


# --- cancel -----------------------------------------------------------------------------------

WHILE_T_IS_CHOSEN = [
    "EXPLAIN ANALYZE SELECT count(*) FROM t",
    "INSERT INTO u SELECT id, v FROM t",
    "UPDATE t SET v = v + 1",
    "DELETE FROM t",
    "SELECT v FROM t",
]


@pytest.mark.parametrize("text", WHILE_T_IS_CHOSEN)
def test_cancel_counts_while_the_timestamp_is_chosen(in_cluster: InCluster, text: str) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        await client.sql("CREATE TABLE u (id INTEGER PRIMARY KEY, v BIGINT)")
        membership = cluster.member(1).membership
        clocks, asked, gate = membership.clocks, asyncio.Event(), asyncio.Event()

        async def slow(members: tuple[int, ...]) -> None:
            asked.set()
            await gate.wait()
            await clocks(members)

        membership.clocks = slow
        result = await client.start(text)
        await asked.wait()
        await client.cancel(result)
        gate.set()
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        assert await client.sql("SELECT count(*), sum(v) FROM t") == [(500, 500 * 49 // 2)]
        await cluster.idle()

    in_cluster(scenario, 2)


def test_cancel_ends_the_query_of_a_later_attempt(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        add, attempts = StagedWrite.add, 0
        second, gate = asyncio.Event(), asyncio.Event()
        failed: list[object] = []

        async def contested(self: StagedWrite, *arguments: Any) -> None:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise SerializationFailure("another write came between")
            second.set()
            await gate.wait()
            await add(self, *arguments)

        monkeypatch.setattr(StagedWrite, "add", contested)
        queries = cluster.member(1).queries
        fail = queries.fail
        queries.fail = lambda query, error: (failed.append(query), fail(query, error))
        result = await client.start("UPDATE t SET v = v + 1")
        await second.wait()
        failed.clear()
        await client.cancel(result)
        gate.set()
        await result.done.wait()
        assert isinstance(result.error, QueryCanceled)
        assert failed[0] != decode_query_id(result.handle), "the query that runs is told"

    in_cluster(scenario, 2)


# --- bugs -------------------------------------------------------------------------------------


def broken(*_: object) -> None:
    raise ValueError("a bug of the test")


def test_a_read_by_key_that_meets_a_bug_is_answered(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        text = "SELECT v FROM t WHERE id = ?"
        await client.sql(text, 1)
        monkeypatch.setattr(PointAnswer, "_results", broken)
        for key in range(20):  # of both members
            with pytest.raises(InternalError, match="a bug of the test"):
                await client.start(text, key)

    in_cluster(scenario, 2)


def test_a_bug_in_an_effect_ends_its_query_only(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        client = await filled(cluster)
        queries = cluster.member(1).queries
        perform, spoiled = queries._perform, []

        def fragile(effect: effects.Effect) -> None:
            if isinstance(effect, effects.SendStart) and not spoiled:
                spoiled.append(effect)
                broken()
            perform(effect)

        queries._perform = fragile
        result = await client.run("SELECT count(*) FROM t")
        assert isinstance(result.error, InternalError)
        assert await client.sql("SELECT count(*) FROM t") == [(500,)]
        await cluster.idle()

    in_cluster(scenario, 2)


def test_query_checks_go_on_after_a_bug(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries_module, "QUERY_CHECK_INTERVAL", 0.001)

    async def scenario(cluster) -> None:
        client = await filled(cluster)
        registry = cluster.member(1).queries._registry
        step, ticks = registry.step, 0

        def fragile(now: float, event: events.Event) -> list[effects.Effect]:
            nonlocal ticks
            if isinstance(event, events.Tick):
                ticks += 1
                broken()
            return step(now, event)

        registry.step = fragile
        await client.sql("SELECT count(*) FROM t")
        await until(lambda: ticks > 1)

    in_cluster(scenario, 2)


def test_upkeep_goes_on_after_a_bug(in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    def fragile(_: Jobs) -> None:
        calls.append(None)
        broken()

    monkeypatch.setattr(upkeep, "EXPIRY_INTERVAL", 0.0)
    monkeypatch.setattr(Jobs, "expire", fragile)

    async def scenario(_cluster) -> None:
        await until(lambda: len(calls) > 1)

    in_cluster(scenario, 1)


def test_commit_checks_go_on_after_a_bug(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        commits = cluster.member(1).commits
        led: list[object] = []

        def fragile(leading: object, _: object) -> None:
            led.append(leading)
            broken()

        commits._lead = fragile
        commits._leading = {"a": "a", "b": "b"}
        commits._start_ticking()
        await until(lambda: len(led) >= 4)
        commits._leading = {}

    in_cluster(scenario, 1)


def test_messages_behind_one_that_fails_are_sent(in_cluster: InCluster) -> None:
    async def scenario(cluster) -> None:
        peer = cluster.member(1).peers.peer(2, ChannelKind.DATA)
        assert peer.channel is None, "it opens when it is first needed"
        sent = asyncio.Event()
        failures: list[RemudaError] = []
        peer.use(broken, failures.append)
        peer.use(broken)
        peer.use(lambda _: sent.set())
        await sent.wait()
        assert [type(failure) for failure in failures] == [InternalError]

    in_cluster(scenario, 2)


def test_calls_behind_one_that_fails_reach_the_loop() -> None:
    async def main() -> None:
        hop = Hop(asyncio.get_running_loop())
        reached = asyncio.Event()

        def work() -> None:
            hop(broken)
            hop(reached.set)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()  # one wake-up serves both
        await reached.wait()

    asyncio.run(main())
