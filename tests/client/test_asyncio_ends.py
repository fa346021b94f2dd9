"""The asyncio face against fake members: cancellation, loss, closing, loops, forks."""

from __future__ import annotations

import asyncio
import gc
import os
from functools import partial

import pyarrow as pa
import pytest
from asyncio_grid import COLUMNS, loads, page, run, until

import remuda
import remuda.aio
from remuda.client.network import backoff
from remuda.errors import (
    ConnectionBroken,
    InputError,
    MemberUnavailable,
    QueryCanceled,
    QueryTimeout,
    ViewChanged,
)
from remuda.rpc.messages import user_pb2

pytestmark = pytest.mark.usefixtures("short_pauses")


class TestCancellation:
    def test_a_cancelled_reader_cancels_its_statement_and_leaves_the_connection(self, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)
        grid.scripts["stuck"] = script(COLUMNS, (page(0, 1),), endless=True)

        async def scenario(client):
            cursor = await client.query("endless", member=1)
            task = asyncio.ensure_future(cursor.fetchall())
            await until(lambda: grid.members[0].running[0].acknowledged > 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (line,) = client._core.pool(1)._lines
            await until(lambda: grid.members[0].running[0].over and line.load == 0)
            assert (await client.cluster_info(1)).member == 1
            assert client._core.pool(1)._lines == [line]
            assert not line.channel.closed

        run(grid, scenario)

    def test_before_the_member_has_answered(self, grid, script):
        grid.silent.add("run_query")

        async def scenario(client):
            task = asyncio.ensure_future(client.query("q", member=1))
            await until(lambda: user_pb2.RUN_QUERY in grid.members[0].requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.cluster_info(1)).member == 1

        run(grid, scenario)

    def test_a_statement_that_is_cancelled_before_its_id_is_known(self, grid, script, monkeypatch):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)
        member = grid.members[0]
        held = []
        real = member.on_run_query
        monkeypatch.setattr(member, "on_run_query", held.append)

        async def scenario(client):
            task = asyncio.ensure_future(client.query("endless", member=1))
            await until(lambda: held)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            grid.run(lambda: real(held[0]))
            await until(lambda: member.running[0].over and loads(client) == 0)

        run(grid, scenario)

    def test_a_cancelled_get_harms_nobody_else(self, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put_all({k: {"v": k} for k in range(100)})
            tasks = [asyncio.ensure_future(numbers.get(k)) for k in range(100)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(item, asyncio.CancelledError) for item in found[::2])
            assert [row.v for row in found[1::2]] == list(range(1, 100, 2))
            assert loads(client) == 0

        run(grid, scenario)

    def test_a_cursor_that_nobody_holds_is_cancelled(self, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)

        async def scenario(client):
            cursor = await client.query("endless", member=1)
            del cursor
            gc.collect()
            await until(lambda: grid.members[0].running[0].over and loads(client) == 0)

        run(grid, scenario)

    def test_a_second_reader_is_refused_and_harms_nobody(self, grid, script):
        """Two that waited for the same page would take it from each other: one waited for ever."""
        pages = [page(start, 100) for start in range(0, 1000, 100)]
        grid.scripts["long"] = script(COLUMNS, pages)

        async def scenario(client):
            cursor = await client.query("long", member=1)
            first = asyncio.ensure_future(cursor.fetchall())
            await asyncio.sleep(0)  # no longer: the rest of the pages may come
            assert cursor._reader.execution._reading
            with pytest.raises(InputError, match="another task or thread reads this result"):
                await cursor.fetchall()
            assert [row.id for row in await first] == list(range(1000))

        run(grid, scenario)

    def test_closed_by_another_task_while_it_is_read(self, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)

        async def scenario(client):
            cursor = await client.query("endless", member=1)
            reading = asyncio.ensure_future(cursor.fetchall())
            await until(lambda: cursor._reader.execution._reading)
            await cursor.close()
            with pytest.raises(InputError, match="closed"):
                await reading
            await until(lambda: grid.members[0].running[0].over and loads(client) == 0)

        run(grid, scenario)

    def test_cancel_from_another_task(self, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)

        async def scenario(client):
            cursor = await client.query("endless", member=1)
            reading = asyncio.ensure_future(cursor.fetchall())
            await asyncio.sleep(0)
            await cursor.cancel()
            with pytest.raises(QueryCanceled):
                await reading

        run(grid, scenario)


class TestLoss:
    @pytest.mark.parametrize("retry_reads", [0, 2])
    def test_reads_are_repeated_only_on_request(self, grid, monkeypatch, retry_reads):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            seen = []
            for member in grid.members:

                def broken(request, real=member.on_map_get):
                    seen.append(request)
                    if len(seen) <= 2:
                        request.channel.close()
                    else:
                        real(request)

                monkeypatch.setattr(member, "on_map_get", broken)
            if retry_reads:
                assert (await numbers.get(1)).v == 1
                assert len(seen) == 3
            else:
                with pytest.raises(ConnectionBroken, match=r"member \d .* broke"):
                    await numbers.get(1)
                assert len(seen) == 1

        run(grid, scenario, retry_reads=retry_reads)

    def test_a_write_is_not_repeated(self, grid, monkeypatch):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            seen = []

            def broken(request):
                seen.append(request)
                request.channel.close()

            for member in grid.members:
                monkeypatch.setattr(member, "on_map_put", broken)
            with pytest.raises(ConnectionBroken, match="broke"):
                await numbers.put(1, {"v": 2})
            assert len(seen) == 1
            assert (await numbers.get(1)).v == 1

        run(grid, scenario, retry_reads=5)

    def test_everything_under_way_on_a_lost_connection_fails_and_the_next_connects(
        self, grid, script, monkeypatch
    ):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)
        grid.silent.add("map_size")

        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            cursor = await client.query("endless", member=1)
            waiting = [
                asyncio.ensure_future(
                    client._core.call(
                        1, client.map("m")._bound(await client.map("m").schema()).requests.size()
                    )
                )
                for _ in range(10)
            ]
            await until(lambda: grid.members[0].requests.count(user_pb2.MAP_SIZE) == 10)
            channels = list(grid.members[0].server.channels)
            grid.run(lambda: [channel.close() for channel in channels])
            found = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(error, ConnectionBroken) for error in found)
            assert all(error.member == "1" for error in found)
            with pytest.raises(ConnectionBroken, match="member 1"):
                await cursor.fetchall()
            assert (await client.cluster_info(1)).member == 1
            await until(lambda: loads(client) == 0)

        run(grid, scenario)

    def test_a_lost_member_fails_at_once_then_waits_longer_and_longer(self, grid, monkeypatch):
        monkeypatch.setattr(backoff, "_FIRST", 10.0)

        async def scenario(client):
            assert (await client.cluster_info(2)).member == 2
            grid.stop_member(2)
            with pytest.raises((ConnectionBroken, MemberUnavailable)):
                await client.cluster_info(2)
            with pytest.raises(MemberUnavailable, match="is not reachable"):
                await client.cluster_info(2)
            with pytest.raises(MemberUnavailable, match="did not answer a moment ago"):
                await client.cluster_info(2)
            for _ in range(4):  # any member will do
                assert (await client.cluster_info()).member != 2

        run(grid, scenario)

    def test_silence_is_named_and_the_connection_not_trusted_any_more(self, grid):
        grid.silent.add("describe_map")

        async def scenario(client):
            with pytest.raises(MemberUnavailable, match=r"member \d .* did not answer within"):
                await client.with_timeout(0.05).describe("m")
            for number in (1, 2, 3):
                assert (await client.cluster_info(number)).member == number

        run(grid, scenario)

    def test_a_statement_timeout_that_the_member_does_not_keep(self, grid, script, monkeypatch):
        monkeypatch.setattr("remuda.client.core.execution.GRACE", 0.01)
        grid.silent.add("run_query")

        async def scenario(client):
            numbers = client.map("m")
            # The connections are there when the time of the statement begins.
            for key in range(20):
                await numbers.put(key, {"v": 1})
            with pytest.raises(QueryTimeout, match="did not end the statement in time"):
                await client.query("SELECT 1", member=1, timeout=0.1)

        run(grid, scenario)

    def test_a_read_is_routed_again_when_the_view_has_changed(self, grid, monkeypatch):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            owner = numbers._binding.router.owner((1,))
            answered = []
            real = grid.members[owner - 1].on_map_get

            def moved(request):
                if not answered:
                    answered.append(request)
                    raise ViewChanged("the partition has moved")
                real(request)

            monkeypatch.setattr(grid.members[owner - 1], "on_map_get", moved)
            before = client._core.view
            assert (await numbers.get(1)).v == 1
            assert client._core.view is not before

        run(grid, scenario)


class TestEnds:
    def test_closing_ends_what_is_under_way(self, grid):
        grid.silent.add("describe_map")

        async def scenario(client):
            waiting = asyncio.ensure_future(client.describe("m"))
            await until(lambda: loads(client) == 1)
            await client.close()
            await client.close()
            with pytest.raises(ConnectionBroken, match="client is closed"):
                await waiting
            with pytest.raises(ConnectionBroken, match="client is closed"):
                await client.cluster_info()

        run(grid, scenario)

    def test_a_job_whose_begin_is_cancelled_is_aborted(self, grid, monkeypatch):
        held, aborted = [], []

        def watch(member):
            begin, abort = member.on_job_begin, member.on_job_abort
            monkeypatch.setattr(member, "on_job_begin", lambda r: held.append((begin, r)))
            monkeypatch.setattr(member, "on_job_abort", lambda r: (aborted.append(r), abort(r)))

        for member in grid.members:
            watch(member)

        async def scenario(client):
            numbers = client.map("numbers")
            await numbers.put_all({k: {"v": k} for k in range(3)})
            rows = pa.table({"__key": pa.array([7]), "v": pa.array([7])})
            for work in (numbers.put_all(rows), client.begin_job("numbers")):
                held.clear()
                aborted.clear()
                task = asyncio.ensure_future(work)
                await until(lambda: held)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not aborted
                grid.run(partial(*held[0]))
                await until(lambda: aborted and loads(client) == 0)

        run(grid, scenario)

    def test_a_client_belongs_to_one_loop(self, grid):
        async def make():
            return await remuda.aio.connect(grid.addresses)

        async def use(client):
            with pytest.raises(InputError, match="belongs to another event loop"):
                await client.cluster_info()

        client = asyncio.run(make())
        asyncio.run(use(client))

    def test_connecting(self, grid):
        async def main():
            with pytest.raises(InputError, match="is no address"):
                remuda.aio.connect("host:port")
            with pytest.raises(InputError, match="max_connections"):
                remuda.aio.connect(max_connections=0)
            with pytest.raises(InputError, match="retry_reads"):
                remuda.aio.connect(retry_reads=-1)
            port = grid.view.members[0].user_port
            grid.stop_member(1)
            with pytest.raises(MemberUnavailable, match="is not reachable"):
                await remuda.aio.connect(f"127.0.0.1:{port}")
            async with remuda.aio.connect(grid.addresses) as client:
                assert (await client.cluster_info(2)).member == 2

        asyncio.run(main())

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_after_a_fork_the_child_has_connections_of_its_own(self, client, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)
        numbers = client.map("m")
        numbers.put_all({k: {"v": k} for k in range(10)})
        cursor = client.sql("endless")
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                assert numbers.get(3).v == 3
                try:
                    cursor.fetchall()
                except ConnectionBroken as error:
                    status = 0 if "forked" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(cursor.fetchmany(50)) == 50
        cursor.close()
        assert numbers.get(4).v == 4
