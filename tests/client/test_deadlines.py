"""A timeout holds for everything that a request waits for, and its error tells what is known."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from collections import deque
from types import SimpleNamespace

import pytest

import remuda
import remuda.dbapi
from remuda.client.blocking.client import connect
from remuda.client.core.execution import DRAIN_TIMEOUT, Execution
from remuda.client.network import deadline as deadlines
from remuda.client.network.deadline import GRACE, Deadline
from remuda.client.requests.requests import Clock
from remuda.client.requests.result_stream import ResultStream
from remuda.errors import (
    ClientClosed,
    MemberUnavailable,
    NoAnswer,
    OutcomeUnknown,
    QueryTimeout,
    RemudaError,
    TransientError,
)
from remuda.limits import HEARTBEAT_INTERVAL
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.request import Incoming

LONG = 20.0
"""Seconds that no test here waits: without the deadline, a request would."""


@contextlib.contextmanager
def frozen(grid):
    """The members stand still, as after SIGSTOP: the system takes connections and bytes for them,
    and nothing is answered."""
    go_on = threading.Event()
    grid.loop.call_soon_threadsafe(go_on.wait)
    try:
        yield
    finally:
        go_on.set()


async def connected(client):
    """To all members, so that what is sent is under way when they stand still."""
    for number in (1, 2, 3):
        await client.cluster_info(number)


@pytest.fixture
def no_grace(monkeypatch):
    monkeypatch.setattr("remuda.client.core.execution.GRACE", 0.01)


@pytest.mark.usefixtures("no_grace")
class TestSilentMembers:
    def test_a_read_may_be_made_again(self, face, grid):
        async def scenario(client):
            await connected(client)
            with frozen(grid), pytest.raises(QueryTimeout, match="in time") as caught:
                await client.sql("SELECT 1", timeout=0.02)
            assert (caught.value.retryable, caught.value.may_have_run) == (True, False)

        face(scenario)

    @pytest.mark.parametrize("text", ["UPDATE m SET v = 1", "INSERT INTO m VALUES (1)", "CALL x"])
    def test_the_outcome_of_a_write_is_unknown(self, face, grid, text):
        async def scenario(client):
            await connected(client)
            with frozen(grid), pytest.raises(OutcomeUnknown, match="in time") as caught:
                await client.sql(text, timeout=0.02)
            assert (caught.value.retryable, caught.value.may_have_run) == (False, True)

        face(scenario)

    def test_a_prepared_statement(self, face, grid, script):
        grid.prepared["UPDATE"] = ((), None)
        grid.scripts["UPDATE"] = script(tag="UPDATE", affected=1)

        async def scenario(client):
            update = await client.prepare("UPDATE")
            for _ in range(3):  # every member has a plan
                await update()
            with frozen(grid), pytest.raises(OutcomeUnknown):
                await update(timeout=0.02)

        face(scenario)

    def test_a_statement_is_not_prepared_for_longer_than_its_timeout(self, face, grid):
        """Members that have no plan of it are asked for one first."""

        async def scenario(client):
            update = await client.prepare("UPDATE")
            with frozen(grid), pytest.raises(TransientError) as caught:
                for _ in range(2):
                    await update(timeout=0.02)
            assert caught.value.retryable  # it was never sent

        face(scenario)

    def test_a_get_and_a_put(self, face, grid):
        async def scenario(client):
            numbers, hasty = client.map("m"), client.with_timeout(0.2).map("m")
            await numbers.put(1, {"v": 1})
            assert await hasty.get(1)
            for act, error in (
                (lambda: hasty.get(1), NoAnswer),
                (lambda: hasty.put(1, {"v": 2}), OutcomeUnknown),
            ):
                assert await numbers.get(1)  # connects again
                with frozen(grid), pytest.raises(error, match="did not answer") as caught:
                    await act()
                assert caught.value.retryable is (error is NoAnswer)
                assert caught.value.may_have_run is (error is OutcomeUnknown)

        face(scenario)

    def test_connecting_counts(self, face, grid):
        """All members accept connections and finish no handshake; the client has none to them."""

        async def scenario(client):
            with frozen(grid), contextlib.ExitStack() as stack:
                for number in (1, 2, 3):
                    stack.enter_context(deaf(client._core.pool(number)))
                with pytest.raises(TransientError) as caught:
                    await client.sql("UPDATE m SET v = 1", timeout=0.05)
            assert (caught.value.retryable, caught.value.may_have_run) == (True, False)
            assert f"{LONG:g}" not in str(caught.value)

        face(scenario, connect_timeout=LONG)

    def test_a_request_that_was_not_taken_was_not_run(self, face, grid):
        """It is larger than what the system keeps for a process that reads nothing."""

        async def scenario(client):
            with frozen(grid), pytest.raises(RemudaError) as caught:
                for _ in range(2):
                    await client.sql("INSERT INTO m VALUES (?)", b"x" * 30_000_000, timeout=0.3)
            assert isinstance(caught.value, TransientError)

        face(scenario)

    def test_a_short_timeout_does_not_keep_others_from_connecting(self, face, grid):
        async def scenario(client):
            with frozen(grid), contextlib.ExitStack() as stack:
                for number in (1, 2, 3):
                    stack.enter_context(deaf(client._core.pool(number)))
                with pytest.raises(TransientError):
                    await client.sql("SELECT 1", timeout=0.01)
                assert not any(client._core.pool(n).backoff.failures for n in (1, 2, 3))

        face(scenario, connect_timeout=LONG)


@contextlib.contextmanager
def deaf(pool):
    """Of this client's, one member without a connection, and behind a port where nobody answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        if hasattr(pool, "drop_idle"):
            pool.drop_idle()
        else:
            pool._lines.clear()
        pool.port = listener.getsockname()[1]
        yield


class TestClosedClients:
    def test_a_loop_that_retries_what_is_retryable_ends(self, face):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            statement = await client.prepare("SELECT 1")
            await settled(client.close())
            for act in (
                lambda: client.sql("SELECT 1"),
                lambda: client.sql("UPDATE m SET v = 1"),
                statement,
                lambda: client.prepare("SELECT 1"),
                lambda: client.describe("m"),
                lambda: numbers.get(1),
                lambda: numbers.put(1, {"v": 1}),
                lambda: numbers.size() if hasattr(numbers, "size") else client.cluster_info(),
                client.cluster_info,
            ):
                with pytest.raises(ClientClosed, match="client is closed") as caught:
                    await act()
                assert (caught.value.retryable, caught.value.may_have_run) == (False, False)
                assert caught.value.sqlstate == "08003"

        face(scenario)

    def test_database_api(self, grid):
        connection = remuda.dbapi.connect(grid.addresses[0])
        cursor = connection.cursor()
        connection.close()
        with pytest.raises(remuda.dbapi.Error, match="closed"):
            cursor.execute("SELECT 1")

    def test_closing_while_requests_are_under_way(self, grid):
        async def scenario():
            async with remuda.aio.connect(grid.addresses) as client:
                numbers = client.map("m")
                await numbers.put(1, {"v": 1})
                grid.silent |= {"map_get", "map_put"}
                waiting = [
                    asyncio.ensure_future(numbers.get(1)),
                    asyncio.ensure_future(numbers.put(1, {"v": 2})),
                ]
                loads = lambda: sum(line.load for p in ports(client) for line in p._lines)  # noqa: E731
                while loads() < 2:
                    await asyncio.sleep(0.001)
                await client.close()
                read, write = await asyncio.gather(*waiting, return_exceptions=True)
                assert isinstance(read, ClientClosed)
                assert isinstance(write, OutcomeUnknown)
                assert not read.retryable
                assert not write.retryable

        asyncio.run(scenario())


def ports(client):
    return client._core.members.ports


async def settled(found):
    return await found if asyncio.iscoroutine(found) or hasattr(found, "__await__") else found


class FakeTime:
    """A clock that moves only while somebody waits."""

    now = 100.0

    def __call__(self):
        return self.now


class SlowTalk:
    """A member that answers at certain moments, and from then on never."""

    def __init__(self, clock, answers):
        self.clock = clock
        self.answers = deque(answers)
        self.waits = []
        self.over = ""

    async def send(self, rpc_type, body, dbody=(), deadline=deadlines.NEVER):
        return 1 if rpc_type == user_pb2.RUN_QUERY else 2

    async def receive(self, timeout):
        self.waits.append(timeout)
        if self.answers and self.answers[0][0] <= self.clock.now + timeout:
            self.clock.now, incoming = self.answers.popleft()
            return incoming
        self.clock.now += timeout
        raise QueryTimeout("nothing came")

    def acknowledge(self, incoming):
        pass

    def release(self):
        self.over = "released"

    def abandon(self):
        self.over = "abandoned"


class SlowMember:
    name, member, request_timeout = "member 1 (h:1)", "1", 60.0

    def __init__(self, talk):
        self.talk = talk
        self.asked = []

    async def converse(self, deadline=deadlines.NEVER):
        return self.talk

    async def call(self, call, timeout=None):
        self.asked.append(timeout.seconds)

    def broken(self, error, timeout=None):
        return error


def handle():
    query = common_pb2.QueryId(part1=1, part2=2)
    return Incoming(True, 1, user_pb2.QUERY_HANDLE, query.SerializeToString(), b"")


@pytest.fixture
def clock(monkeypatch):
    found = FakeTime()
    monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=found))
    return found


class TestVirtualTime:
    @pytest.mark.parametrize("answers", [[], [1.0], [1.9], [2.9]])
    def test_a_statement_ends_one_heartbeat_after_its_timeout(self, clock, answers):
        talk = SlowTalk(clock, [(clock.now + after, handle()) for after in answers])

        async def scenario():
            began = clock.now
            stream = ResultStream("SELECT 1", Clock())
            execution = await Execution.begin(
                SlowMember(talk), stream, b"", Deadline(2.0), reads=True
            )
            with pytest.raises(QueryTimeout):
                await execution.next_page()
            return clock.now - began

        assert asyncio.run(scenario()) == pytest.approx(2.0 + HEARTBEAT_INTERVAL)
        assert talk.over == "abandoned"
        assert GRACE == HEARTBEAT_INTERVAL

    @pytest.mark.parametrize(("timeout", "expected"), [(2.0, 3.0), (None, DRAIN_TIMEOUT)])
    def test_closing_and_cancelling_end_with_the_statement(self, clock, timeout, expected):
        talk = SlowTalk(clock, [(clock.now, handle())])
        member = SlowMember(talk)

        async def scenario():
            began = clock.now
            stream = ResultStream("SELECT 1", Clock())
            execution = await Execution.begin(member, stream, b"", Deadline(timeout), reads=True)
            await execution._step(talk, 1.0)
            await execution.cancel()
            await execution.close()
            return clock.now - began

        assert asyncio.run(scenario()) == pytest.approx(expected, abs=0.01)
        assert member.asked == [3.0 if timeout else 60.0]

    def test_all_tries_together_end_at_the_deadline(self, clock, monkeypatch, grid):
        """Members that refuse are asked again and again, and the view is learned in between."""

        async def pause(_self, seconds):
            clock.now += seconds

        monkeypatch.setattr("remuda.client.network.connections.BlockingPorts.pause", pause)
        began = clock.now
        with connect(grid.addresses) as client:
            grid.answer = refuse
            with pytest.raises(MemberUnavailable, match="not yet") as caught:
                client.sql("UPDATE m SET v = 1", timeout=2.0)
        assert caught.value.retryable
        assert 1.0 < clock.now - began <= 2.0
        assert len(grid.statements) > 3
        given = [message.timeout for _, message in grid.statements]
        assert given == sorted(given, reverse=True)  # what is left of it


def refuse(text, message):
    raise remuda.errors.MemberNotReady("not yet", member="1")


@pytest.mark.cluster
def test_a_member_that_is_stopped():
    """Bounded generously: without deadlines it took 5 to 8 seconds more than the timeout."""
    with remuda.start(members=2) as cluster, cluster.connect() as client:
        client.map("m").put_all({number: number for number in range(1000)})
        read, write = "SELECT sum(this) FROM m", "UPDATE m SET this = this + 1"
        for text in (read, write):
            client.sql(text).fetchall()
        os.kill(cluster.pids[1], signal.SIGSTOP)
        try:
            for text in (read, write):
                began = time.monotonic()
                with pytest.raises(TransientError) as caught:
                    client.sql(text, timeout=1).fetchall()
                assert time.monotonic() - began < 1 + HEARTBEAT_INTERVAL + 2.5
                assert caught.value.retryable != caught.value.may_have_run
                assert text is write or caught.value.retryable
        finally:
            os.kill(cluster.pids[1], signal.SIGCONT)
