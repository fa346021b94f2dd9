"""What both faces of the client do when members leave in order: no request fails or runs twice."""

from __future__ import annotations

import asyncio
import threading
import time

import pyarrow as pa
import pytest
from faces import settle
from test_failover import numbers_owner, refuse

from remuda.client.network import connections, line
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.errors import MemberLeaving, NotServed, OutcomeUnknown
from remuda.rpc.messages import common_pb2, user_pb2

pytestmark = pytest.mark.usefixtures("short_pauses")

COLUMNS = (Column("id", sql.BIGINT),)
PUT = user_pb2.MAP_PUT


def parts(monkeypatch, grid, handler, number, times=1):
    """The member says goodbye in place of serving the next requests of this kind."""
    member = grid.members[number - 1]
    real, seen = getattr(member, handler), []

    def handle(request):
        seen.append(request)
        if len(seen) <= times:
            request.channel.part(user_pb2.GOODBYE, user_pb2.Empty())
        else:
            real(request)

    monkeypatch.setattr(member, handler, handle)
    return seen


@pytest.mark.parametrize("handler", ["on_map_get", "on_map_put", "on_map_remove"])
def test_what_a_member_did_not_receive_before_its_goodbye_is_sent_again(
    face, grid, monkeypatch, handler
):
    """Writes, too: the member says that it has served nothing of what it has not answered."""

    async def scenario(client):
        numbers = client.map("m")
        key = next(k for k in range(50) if numbers_owner(grid, k) == 2)
        await numbers.put(key, {"v": 1})
        seen = parts(monkeypatch, grid, handler, 2)
        if handler == "on_map_get":
            assert (await numbers.get(key)).v == 1
        elif handler == "on_map_put":
            await numbers.put(key, {"v": 2})
        else:
            assert (await numbers.remove(key)).v == 1
        assert len(seen) == 2

    face(scenario)


def test_requests_to_several_members_of_which_one_says_goodbye(face, grid, monkeypatch):
    async def scenario(client):
        numbers = client.map("m")
        await numbers.put_all({key: {"v": key} for key in range(50)})
        seen = parts(monkeypatch, grid, "on_map_get", 2)
        found = await numbers.get_all(range(50))
        assert len(found) == 50
        assert len(seen) >= 2

    face(scenario)


@pytest.mark.parametrize("text", ["UPDATE m", "SELECT 1"])
def test_a_statement_that_meets_a_goodbye_runs_elsewhere(face, grid, monkeypatch, script, text):
    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    grid.scripts["UPDATE m"] = script(tag="UPDATE", affected=1)
    grid.scripts["SELECT 1"] = script(COLUMNS, (batch,))

    async def scenario(client):
        for number in (1, 2, 3):
            parts(monkeypatch, grid, "on_run_query", number)
        for _ in range(6):
            await client.sql(text)
        assert len(grid.statements) == 6

    face(scenario)


@pytest.fixture
def reads_late(monkeypatch):
    """Set once a member has parted: until then, the clients read nothing of what it has sent."""
    parted = threading.Event()
    blocking, asynchronous = connections.Talk.receive, line.Talk.receive

    async def receive(talk, timeout):
        assert parted.wait(10)
        return await blocking(talk, timeout)

    async def receive_on_loop(talk, timeout):
        for _ in range(3):
            await asyncio.sleep(0)  # the request leaves first
        assert parted.wait(10)
        return await asynchronous(talk, timeout)

    monkeypatch.setattr(connections.Talk, "receive", receive)
    monkeypatch.setattr(line.Talk, "receive", receive_on_loop)
    return parted


def parts_after(monkeypatch, grid, parted, serve):
    """Each member says goodbye in the step in which it has served a statement."""
    for member in grid.members:
        real = member.on_run_query

        def handle(request, real=real):
            serve(real, request)
            request.channel.part(user_pb2.GOODBYE, user_pb2.Empty())
            parted.set()

        monkeypatch.setattr(member, "on_run_query", handle)


@pytest.mark.parametrize("text", ["UPDATE m", "SELECT 1"])
def test_a_statement_whose_end_comes_together_with_a_goodbye_has_run(
    face, grid, monkeypatch, script, reads_late, text
):
    """Its end waits unread when the member, which has answered everything, parts."""
    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    grid.scripts["UPDATE m"] = script(tag="UPDATE", affected=1)
    grid.scripts["SELECT 1"] = script(COLUMNS, (batch,))
    parts_after(monkeypatch, grid, reads_late, lambda real, request: real(request))

    async def scenario(client):
        cursor = await client.sql(text)
        await settle(cursor.fetchall())
        assert cursor.rowcount == 1
        assert len(grid.statements) == 1, "it ran once"

    face(scenario)


def test_a_write_that_a_member_began_before_its_goodbye_may_have_run(
    face, grid, monkeypatch, reads_late
):
    """The member has taken the statement, so it may commit, though its end does not come."""

    def serve(_real, request):
        grid.statements.append((0, request))
        request.reply(user_pb2.QUERY_HANDLE, common_pb2.QueryId(part1=1, part2=1))

    parts_after(monkeypatch, grid, reads_late, serve)

    async def scenario(client):
        with pytest.raises(OutcomeUnknown, match="it left before it told the end"):
            await client.sql("UPDATE m")
        assert len(grid.statements) == 1

    face(scenario)


def test_a_connection_that_ends_without_a_goodbye_leaves_a_write_open(face, grid, monkeypatch):
    async def scenario(client):
        numbers = client.map("m")
        key = next(k for k in range(50) if numbers_owner(grid, k) == 2)
        await numbers.put(key, {"v": 1})
        member = grid.members[1]
        monkeypatch.setattr(member, "on_map_put", lambda request: request.channel.close())
        with pytest.raises(OutcomeUnknown):
            await numbers.put(key, {"v": 2})

    face(scenario)


def test_a_leaving_member_is_passed_over_at_once(face, grid, monkeypatch, script):
    """No pause, no error: the others serve statements while it lets open work end."""
    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    grid.scripts["SELECT 1"] = script(COLUMNS, (batch,))

    async def scenario(client):
        prepared = await client.prepare("SELECT 1")
        leaving = MemberLeaving("member 2 is leaving", member="2")
        seen = refuse(monkeypatch, grid, "on_run_query", [leaving] * 100, grid.members[1:2])
        began = time.monotonic()
        for _ in range(20):
            await client.sql("SELECT 1")
            await prepared()
        assert len(grid.statements) == 40
        assert 0 < len(seen) < 20, "most requests go round it"
        return time.monotonic() - began

    face(scenario)


def test_when_every_member_leaves_the_request_says_so(face, grid, monkeypatch):
    async def scenario(client):
        errors = [MemberLeaving(f"member {n} is leaving") for n in range(1000)]
        seen = refuse(monkeypatch, grid, "on_run_query", errors)
        with pytest.raises(NotServed) as caught:
            await client.sql("SELECT 1", timeout=0.5)
        assert not caught.value.may_have_run
        assert len(seen) < 100, "it waits between its tries"

    face(scenario)
