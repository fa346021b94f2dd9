"""What both faces of the client do when members refuse, leave, join, hang or die."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from faces import cut, impatient

import remuda.aio
import remuda.dbapi
from remuda.client.blocking.client import connect
from remuda.client.network import backoff, deadline, line
from remuda.client.network import connections as blocking_connections
from remuda.client.network import loop_connections as asyncio_connections
from remuda.client.requests import requests
from remuda.datatypes import sql
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.schema import Column
from remuda.datatypes.view import View
from remuda.errors import (
    ConnectionBroken,
    InputError,
    MemberNotReady,
    MemberUnavailable,
    NoLease,
    NotServed,
    OutcomeUnknown,
    PartitionsLost,
    ViewChanged,
)
from remuda.rpc.messages import user_pb2

pytestmark = pytest.mark.usefixtures("short_pauses")

COLUMNS = (Column("id", sql.BIGINT),)
PUT, GET = user_pb2.MAP_PUT, user_pb2.MAP_GET


def refuse(monkeypatch, grid, handler, errors, members=None):
    """The members answer the next requests of this kind by these errors; the list of all."""
    seen = []
    for member in members or grid.members:
        real = getattr(member, handler)

        def handle(request, member=member, real=real):
            seen.append(member.number)
            if len(seen) <= len(errors):
                raise errors[len(seen) - 1]
            real(request)

        monkeypatch.setattr(member, handler, handle)
    return seen


def over_after(monkeypatch, condition):
    """The time of requests is over when the client pauses and ``condition`` holds: between two
    requests, for the outcome of a write whose answer comes too late is not known."""
    now, pause, passed = time.monotonic, backoff.pause, []

    def paused(number):
        if condition():
            passed.append(3600.0)
        return pause(number)

    monkeypatch.setattr(backoff, "pause", paused)
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: now() + sum(passed)))


REFUSALS = [
    MemberNotReady("just promoted"),
    NoLease("no majority"),
    ViewChanged("an older view"),
    NotServed("stopping"),
]


@pytest.mark.parametrize(("handler", "act"), [
    ("on_map_get", lambda m: m.get(1)),
    ("on_map_get", lambda m: m.contains(1)),
    ("on_map_get", lambda m: m.get_all([1, 2])),
    ("on_map_put", lambda m: m.put(1, {"v": 2})),
    ("on_map_put", lambda m: m.put_if_absent(1, {"v": 2})),
    ("on_map_remove", lambda m: m.remove(1)),
])  # fmt: skip
def test_what_nobody_served_is_asked_again(face, grid, monkeypatch, handler, act):
    async def scenario(client):
        numbers = client.map("m")
        await numbers.put(1, {"v": 1})
        seen = refuse(monkeypatch, grid, handler, REFUSALS)
        await act(numbers)
        assert len(seen) >= 5

    face(scenario)


def test_statements_as_well_reads_and_writes(face, grid, monkeypatch, script):
    grid.scripts["INSERT INTO m"] = script(tag="INSERT", affected=1)
    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    grid.scripts["SELECT 1"] = script(COLUMNS, (batch,))

    async def scenario(client):
        for text in ("INSERT INTO m", "SELECT 1"):
            before = len(grid.statements)
            with monkeypatch.context() as patch:
                seen = refuse(patch, grid, "on_run_query", REFUSALS)
                await client.sql(text)
            assert len(seen) == 5
            assert len(grid.statements) == before + 1
        prepared = await client.prepare("SELECT 1")
        with monkeypatch.context() as patch:
            seen = refuse(patch, grid, "on_run_query", REFUSALS)
            await prepared()
        assert len(seen) == 5

    face(scenario)


def test_a_statement_that_is_refused_when_it_runs_is_run_again(face, grid, script):
    grid.scripts["UPDATE m"] = script(error=MemberNotReady("just promoted"))

    async def scenario(client):
        runs = []

        def answer(text, message):
            runs.append(text)
            return script(error=MemberNotReady("not yet") if len(runs) < 3 else None, affected=7)

        grid.answer = answer
        assert (await client.sql("UPDATE x")).rowcount == 7
        assert len(runs) == 3

    face(scenario)


@pytest.mark.parametrize("prepares", [False, True])
def test_all_runs_of_a_statement_share_its_timeout(face, grid, script, prepares):
    async def scenario(client):
        timeouts = []

        def answer(text, message):
            timeouts.append(message.timeout)
            return script(error=MemberNotReady("not yet") if len(timeouts) < 3 else None)

        grid.answer = answer
        if prepares:
            await (await client.prepare("SELECT 1"))(timeout=60)
        else:
            await client.sql("SELECT 1", timeout=60)
        first, second, third = timeouts
        assert first == 60 > second > third > 0

    face(scenario)


def test_refusals_for_ever_end_with_the_request_timeout(face, grid, monkeypatch):
    async def scenario(client):
        numbers = client.map("m")
        await numbers.put(1, {"v": 1})
        seen = refuse(monkeypatch, grid, "on_map_put", [NoLease("no majority")] * 100_000)
        impatient(client, 60.0)
        over_after(monkeypatch, lambda: len(seen) == 4)
        with pytest.raises(NoLease) as caught:
            await numbers.put(1, {"v": 2})
        assert not caught.value.may_have_run
        assert len(seen) == 4

    face(scenario)


def test_input_errors_are_not_repeated(face, grid, monkeypatch):
    async def scenario(client):
        numbers = client.map("m")
        await numbers.put(1, {"v": 1})
        seen = refuse(monkeypatch, grid, "on_map_put", [InputError("no")] * 9)
        with pytest.raises(InputError):
            await numbers.put(1, {"v": 2})
        assert len(seen) == 1

    face(scenario, retry_writes=5, retry_reads=5)


class TestLostAnswers:
    @pytest.mark.parametrize("act", [
        lambda m: m.put(1, {"v": 2}),
        lambda m: m.put_all({1: {"v": 2}}),
        lambda m: m.get_and_put(1, {"v": 2}),
    ])  # fmt: skip
    def test_a_write_says_that_its_outcome_is_unknown(self, face, grid, monkeypatch, act):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            seen = cut(monkeypatch, grid, "on_map_put", 99)
            with pytest.raises(OutcomeUnknown, match=r"member \d .* broke") as caught:
                await act(numbers)
            error = caught.value
            assert (error.sqlstate, error.retryable, error.may_have_run) == ("08007", False, True)
            assert "not known whether the write was carried out" in str(error)
            assert len(seen) == 1
            assert error.member == str(numbers_owner(grid, 1))

        face(scenario, retry_reads=5)

    def test_a_statement_that_writes(self, face, grid, monkeypatch):
        cut(monkeypatch, grid, "on_run_query", 99)

        async def scenario(client):
            with pytest.raises(OutcomeUnknown):
                await client.sql("UPDATE m SET v = 1")
            with pytest.raises(ConnectionBroken) as caught:
                await client.sql("SELECT 1")
            assert not isinstance(caught.value, OutcomeUnknown)

        face(scenario)

    def test_no_answer_in_time(self, face, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            grid.silent.add("map_put")
            impatient(client)
            with pytest.raises(OutcomeUnknown, match="did not answer within"):
                await numbers.put(1, {"v": 2})

        face(scenario)

    def test_puts_are_repeated_on_request_conditional_ones_never(self, face, grid, monkeypatch):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            for act in (lambda: numbers.put(1, {"v": 2}), lambda: numbers.put_all({1: {"v": 3}})):
                with monkeypatch.context() as patch:
                    seen = cut(patch, grid, "on_map_put", 2)
                    await act()
                    assert len(seen) == 3
            cut(monkeypatch, grid, "on_map_put", 1)
            with pytest.raises(OutcomeUnknown):
                await numbers.put_if_absent(5, {"v": 1})

        face(scenario, retry_writes=2)


class TestViews:
    def test_an_answer_of_a_newer_view_is_a_reason_to_learn_it(self, face, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put_all({key: {"v": key} for key in range(50)})
            number = grid.add_member()
            grid.change_view([1, 2, number])
            old = client._core.view.owners
            stays = next(k for k in range(50) if numbers_owner(grid, k) == old[partition(k)])
            assert (await numbers.get(stays)).v == stays
            await until(lambda: client._core.view.number == grid.view.number)
            assert sorted(port.number for port in client._core.members.ports) == [1, 2, number]
            for key in range(50):  # every owner refuses what is not its own
                assert (await numbers.get(key)).v == key

        face(scenario)

    def test_a_write_of_many_that_was_refused_is_sent_again(self, face, grid, monkeypatch):
        async def scenario(client):
            numbers = client.map("m")
            entries = {key: {"v": key} for key in range(30)}
            await numbers.put_all(entries)
            before = [member.requests.count(PUT) for member in grid.members]
            assert sum(before) == 1
            asked = [member for member in grid.members if member.requests.count(PUT)]
            refuse(monkeypatch, grid, "on_map_put", [MemberNotReady("x")], asked)
            await numbers.put_all(entries)
            assert sum(member.requests.count(PUT) for member in grid.members) == 3

        face(scenario)

    def test_large_writes_and_moved_partitions(self, face, grid, monkeypatch):
        async def scenario(client):
            numbers = client.map("m")
            entries = {key: {"v": key} for key in range(500)}
            await numbers.put(0, {"v": 0})
            real = grid.members[1].on_map_put_batch

            def moved(request):
                if grid.view.number == 1:
                    grid.change_view([1, 3])
                    raise ViewChanged("an older view")
                real(request)

            monkeypatch.setattr(grid.members[1], "on_map_put_batch", moved)
            for member in (grid.members[0], grid.members[2]):
                monkeypatch.setattr(member, "owned", lambda name, key: key)  # as members forward
            await numbers.put_all(entries)
            grid.change_view([1, 3])
            found = await numbers.get_all(range(500))
            assert {key: row.v for key, row in found.items()} == {key: key for key in range(500)}

        face(scenario)

    def test_a_member_that_died_its_backup_takes_over(self, face, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put_all({key: {"v": key} for key in range(50)})
            grid.stop_member(2)
            grid.change_view([1, 3])
            for key in range(50):
                assert (await numbers.get(key)).v == key
                await numbers.put(key, {"v": key + 1})

        # Nothing but the request that is under way when it dies needs ``retry_reads``.
        face(scenario, retry_reads=1)

    def test_before_the_view_tells_of_it_others_are_asked(self, face, grid, monkeypatch):
        """A member that this client alone cannot reach: the others pass its requests on."""

        async def scenario(client):
            numbers = client.map("m")
            key = next(k for k in range(50) if numbers_owner(grid, k) == 2)
            await numbers.put(key, {"v": 1})
            grid.stop_member(2)
            asked = []

            def passes_on(request, member):
                asked.append(member.number)
                grid.members[1].on_map_get(request)

            for member in (grid.members[0], grid.members[2]):
                monkeypatch.setattr(
                    member, "on_map_get", lambda request, member=member: passes_on(request, member)
                )
            assert (await numbers.get(key)).v == 1
            assert (await numbers.get(key)).v == 1
            assert set(asked) <= {1, 3}
            assert len(asked) == 2

        face(scenario, retry_reads=1)

    def test_a_member_that_hangs_and_is_dropped_keeps_nobody(self, face, grid, monkeypatch):
        for module in (blocking_connections, asyncio_connections, line):
            for name in ("SILENCE", "RETIREMENT"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, 0.05)

        async def scenario(client):
            numbers = client.map("m")
            await numbers.put_all({key: {"v": key} for key in range(50)})
            key = next(k for k in range(50) if numbers_owner(grid, k) == 2)
            monkeypatch.setattr(grid.members[1], "handle", grid.members[1].requests.append)
            listening = grid.members[1].server
            grid.run(lambda: [setattr(c, "_handler", lambda _: None) for c in listening.channels])
            timer = threading.Timer(0.1, lambda: grid.change_view([1, 3]))
            timer.start()
            assert (await numbers.get(key)).v == key
            timer.join()
            assert 2 not in {port.number for port in client._core.members.ports}

        face(scenario, retry_reads=1)

    def test_a_member_that_was_restarted_at_its_old_address(self, face, grid, script):
        """It has a new number: whatever is meant for the old one must not be sent to it, and
        requests that any member may serve go on."""

        async def scenario(client):
            numbers = client.map("m")
            grid.scripts["SELECT 1"] = script(COLUMNS)
            await numbers.put_all({key: {"v": key} for key in range(50)})
            number = grid.restart_member(2)
            grid.change_view([1, 3, number])
            for key in range(50):
                assert (await numbers.get(key)).v == key
                await numbers.put(key, {"v": key})
            for _ in range(6):
                await client.sql("SELECT 1")
            assert {port.number for port in client._core.members.ports} == {1, 3, number}

        face(scenario, retry_reads=1)

    def test_before_the_view_tells_of_a_restarted_member(self, face, grid):
        """The process at the address says at once that it is another member. The others pass on
        what it was asked, and whoever takes members in turn passes it over."""

        async def scenario(client):
            numbers = client.map("m")
            key = next(k for k in range(50) if numbers_owner(grid, k) == 2)
            await numbers.put(key, {"v": 1})
            number = grid.restart_member(2)
            before = list(grid.members[number - 1].requests)
            port = client._core.pool(2)
            port.close()
            client._core.members.install(replace(client._core.view, members=()))
            client._core.members.install(grid.view)
            with pytest.raises(NotServed, match=f"member {number} answers at its address"):
                await client._core.pool(2).call(requests.cluster_info(client._core.clock))
            for _ in range(6):
                await client.cluster_info()
            assert grid.members[number - 1].requests[len(before) :].count(GET) == 0

        face(scenario)

    def test_a_number_of_a_newer_view_than_the_client_knows(self, face, grid):
        """Another process may have told it: a Spark driver its tasks, say."""

        async def scenario(client):
            number = grid.add_member()
            grid.change_view([1, 2, number])
            assert (await client.cluster_info(member=number)).view.number == 2
            with pytest.raises(InputError, match="has no member 9"):
                await client.cluster_info(member=9)
            with pytest.raises(NotServed, match="has no member 9 yet"):
                client._core.pool(9)

        face(scenario)

    def test_a_transaction_learns_of_views_with_its_client(self, grid):
        """What the client has learned after the transaction was made must be known to it."""
        with connect(grid.addresses) as client:
            transaction = client.transaction()
            core = transaction._transaction._enter()
            number = grid.add_member()
            grid.change_view([1, 2, number])
            client.cluster_info(member=number)
            assert core.view is client._core.view
            assert core.pool(number) is client._core.pool(number)
            client.close()
            assert core.closed

    def test_a_partition_without_any_copy(self, face, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            grid.view = lost_partitions(grid)
            await client._core.refresh()
            before = [list(member.requests) for member in grid.members]
            for act in (
                lambda: numbers.get(1),
                lambda: numbers.put(1, {"v": 2}),
                lambda: numbers.get_all([1, 2]),
                lambda: numbers.put_all({1: {"v": 1}}),
            ):
                with pytest.raises(PartitionsLost, match="every copy of the partition"):
                    await act()
            for member, old in zip(grid.members, before, strict=True):
                assert not {GET, PUT} & set(member.requests[len(old) :])

        face(scenario)

    def test_only_dead_addresses(self, face, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            for number in (1, 2, 3):
                grid.stop_member(number)
            with pytest.raises((MemberUnavailable, ConnectionBroken)):
                await numbers.put(1, {"v": 2})
            with pytest.raises(NotServed, match="no member answers at 127"):
                await numbers.put(1, {"v": 2})
            with pytest.raises(MemberUnavailable, match="no member answers at 127"):
                await client._core.refresh()

        face(scenario)


def test_dbapi_names_the_state(grid, monkeypatch):
    cut(monkeypatch, grid, "on_run_query", 99)
    with (
        remuda.dbapi.connect(grid.addresses, retry_writes=1, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        with pytest.raises(remuda.dbapi.OperationalError) as caught:
            cursor.execute("UPDATE m SET v = 1")
        assert caught.value.sqlstate == "08007"
        assert caught.value.__cause__.may_have_run


def test_a_connection_that_ended_while_idle_is_no_lost_write(grid, monkeypatch):
    monkeypatch.setattr(blocking_connections, "_IDLE", 0.0)
    with connect(grid.addresses) as client:
        numbers = client.map("m")
        numbers.put(1, {"v": 1})
        for member in grid.members:
            channels = list(member.server.channels)
            grid.run(lambda channels=channels: [channel.close() for channel in channels])
        numbers.put(1, {"v": 2})
        assert numbers.get(1).v == 2


# ---


def partition(key):
    return partition_of(hasher([sql.BIGINT])((key,)))


def numbers_owner(grid, key):
    return grid.view.owners[partition(key)]


def lost_partitions(grid):
    view = grid.view
    return View(view.number + 1, view.members, ((),) * len(view.replicas), view.last_number)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)
