"""The asyncio face against fake members: pipelining, loss, cancellation, closing, loops, forks."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os

import pyarrow as pa
import pytest

import remuda
import remuda.aio
from remuda.client import backoff
from remuda.client.asynchronous import connections
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.errors import (
    ConnectionBroken,
    InputError,
    MemberUnavailable,
    QueryCanceled,
    QueryTimeout,
    SqlSyntaxError,
    UndefinedMap,
    ViewChanged,
)
from remuda.rpc.messages import user_pb2

COLUMNS = (Column("id", sql.BIGINT),)
GET = user_pb2.MAP_GET


def page(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(start, start + count), pa.int64())})


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(backoff, "_FIRST", 0.001)


def run(grid, scenario, **options):
    async def main():
        async with remuda.aio.connect(grid.addresses, **options) as client:
            await scenario(client)

    asyncio.run(main())


def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.001)

    return wait()


def loads(client):
    """Requests and conversations under way, over all connections."""
    return sum(line.load for port in client._core._members.values() for line in port._lines)


class TestMap:
    def test_the_same_operations_as_the_blocking_map(self, grid):
        async def scenario(client):
            numbers = client.map("m")
            with pytest.raises(UndefinedMap):
                await numbers.get(1)
            assert await numbers.put_if_absent(1, {"v": 10})
            assert not await numbers.put_if_absent(1, {"v": 11})
            assert await numbers.get_and_put(1, {"v": 12}) == (10,)
            assert await numbers.replace(1, {"v": 13})
            assert not await numbers.replace(9, {"v": 0})
            assert (await numbers.get(1)).v == 13
            assert await numbers.contains(1)
            assert await numbers.remove(1) == (13,)
            assert await numbers.remove(1, "none") == "none"
            assert not await numbers.delete(1)
            assert await numbers.put_all({k: {"v": k} for k in range(500)}) == 500
            assert await numbers.get_all([3, 4, 999]) == {3: (3,), 4: (4,)}
            assert await numbers.size() == 500
            assert (await numbers.schema()).key == ("__key",)
            table = pa.table({"__key": [7, 8], "v": [70, 80]})
            assert await numbers.put_all(table) == 2
            assert (await numbers.get(8)).v == 80
            assert (await client.describe("m")).name == "m"
            await client.drop_map("m")

        run(grid, scenario)

    def test_many_requests_are_under_way_on_one_connection(self, grid):
        async def scenario(client):
            numbers = client.map("m")
            await numbers.put_all({k: {"v": k} for k in range(300)})
            found = await asyncio.gather(*(numbers.get(k) for k in range(300)))
            assert [row.v for row in found] == list(range(300))
            assert all(len(port._lines) == 1 for port in client._core._members.values())

        run(grid, scenario, max_connections=1)

    def test_more_connections_are_opened_under_load_up_to_the_bound(self, grid, monkeypatch):
        monkeypatch.setattr(connections, "_BUSY", 4)

        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            owner = numbers._binding.router.owner((1,))
            lines = client._core._members[owner]._lines
            for _ in range(20):
                await asyncio.gather(*(numbers.get(1) for _ in range(50)))
            assert len(lines) == 3

        run(grid, scenario, max_connections=3)

    def test_entries_stream_and_stop_early(self, grid, script):
        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            columns = (Column("__key", sql.BIGINT), Column("v", sql.BIGINT))
            rows = pa.record_batch({"__key": [1, 2], "v": [10, 20]})
            text = 'SELECT "__key", "v" FROM "m"'
            grid.scripts[text] = script(columns, (rows,) * 3)
            assert [e async for e in client.map("m").entries()] == [(1, (10,)), (2, (20,))] * 3
            grid.scripts[text] = script(columns, (rows,), endless=True)
            values = client.map("m").values()
            assert await anext(values) == (10,)
            await values.aclose()
            assert loads(client) == 0

        run(grid, scenario)


class TestStatements:
    def test_rows_in_every_form(self, grid, script):
        grid.scripts["q"] = script(COLUMNS, (page(0, 3), page(3, 2)))

        async def scenario(client):
            cursor = await client.sql("q")
            assert [row.id async for row in cursor] == [0, 1, 2, 3, 4]
            assert (cursor.rowcount, cursor.tag) == (5, "SELECT")
            assert cursor.query_id
            cursor = await client.sql("q")
            assert await cursor.fetchone() == (0,)
            assert await cursor.fetchmany(3) == [(1,), (2,), (3,)]
            assert await cursor.fetchall() == [(4,)]
            assert await cursor.fetchone() is None
            assert await (await client.sql("q")).scalar() == 0
            assert (await (await client.sql("q")).to_arrow()).num_rows == 5
            assert list((await (await client.sql("q")).to_pandas())["id"]) == [0, 1, 2, 3, 4]
            sizes = [batch.num_rows async for batch in (await client.sql("q")).batches()]
            assert sizes == [3, 2]
            async with await client.query("q", member=2) as cursor:
                assert cursor.schema.names == ["id"]
            with pytest.raises(InputError, match="closed"):
                await cursor.fetchone()

        run(grid, scenario)

    def test_many_statements_share_connections_and_each_gets_its_own_rows(self, grid, script):
        for number in range(50):
            pages = tuple(page(number * 100 + i, 1) for i in range(7))
            grid.scripts[f"q{number}"] = script(COLUMNS, pages)
            grid.scripts[f"last{number}"] = script(COLUMNS, (), affected=number, result_first=True)

        async def scenario(client):
            async def one(number):
                cursor = await client.sql(f"q{number}")
                return [row.id async for row in cursor]

            found = await asyncio.gather(*(one(number) for number in range(50)))
            assert found == [[n * 100 + i for i in range(7)] for n in range(50)]
            cursors = await asyncio.gather(*(client.sql(f"last{n}") for n in range(50)))
            assert [cursor.rowcount for cursor in cursors] == list(range(50))
            await until(lambda: loads(client) == 0)

        run(grid, scenario, max_connections=1)

    def test_a_slow_reader_holds_only_its_own_statement_back(self, grid, script):
        grid.scripts["endless"] = script(COLUMNS, (page(0, 1),), endless=True)
        grid.scripts["q"] = script(COLUMNS, (page(0, 1),))

        async def scenario(client):
            slow = await client.query("endless", member=1)
            for _ in range(20):
                assert await (await client.query("q", member=1)).scalar() == 0
            running = grid.members[0].running[0]
            assert running.sent - running.acknowledged == grid.members[0].window
            assert len(await slow.fetchmany(30)) == 30
            await slow.close()
            assert loads(client) == 0

        run(grid, scenario, max_connections=1)

    def test_errors_come_as_they_do_without_asyncio(self, grid, script):
        grid.scripts["late"] = script(COLUMNS, (page(0, 1),), error=SqlSyntaxError("late"))

        async def scenario(client):
            with pytest.raises(UndefinedMap, match="no script"):
                await client.sql("unknown")
            cursor = await client.sql("late")
            assert await cursor.fetchone() == (0,)
            with pytest.raises(SqlSyntaxError, match="late"):
                await cursor.fetchone()
            with pytest.raises(InputError, match="a statement is text"):
                await client.sql(7)
            await until(lambda: loads(client) == 0)

        run(grid, scenario)

    def test_prepared(self, grid, script):
        grid.scripts["p"] = script(COLUMNS, (page(5, 1),))
        grid.prepared["p"] = ((sql.BIGINT,), ())

        async def scenario(client):
            statement = await client.prepare("p")
            assert statement.parameter_types == (sql.BIGINT,)
            found = await asyncio.gather(*(statement(n) for n in range(9)))
            assert [await cursor.scalar() for cursor in found] == [5] * 9

        run(grid, scenario)


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
            (line,) = client._core._members[1]._lines
            await until(lambda: grid.members[0].running[0].over and line.load == 0)
            assert (await client.cluster_info(1)).member == 1
            assert client._core._members[1]._lines == [line]
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
            await until(lambda: cursor._reader.execution._reading)
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
                await client.describe("m")
            for number in (1, 2, 3):
                assert (await client.cluster_info(number)).member == number

        run(grid, scenario, request_timeout=0.05)

    def test_a_statement_timeout_that_the_member_does_not_keep(self, grid, script, monkeypatch):
        monkeypatch.setattr("remuda.client.execution.TIMEOUT_GRACE", 0.01)
        grid.silent.add("run_query")

        async def scenario(client):
            with pytest.raises(QueryTimeout, match="did not end the statement in time"):
                await client.query("q", member=1, timeout=0.01)

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


def test_both_faces_have_the_same_operations():
    only_blocking = {"fetch", "to_arrow_reader"}
    only_asyncio = {"run", "run_with", "job_writer", "entry_lists", "value_lists", "key_lists",
                    "prepare"}  # fmt: skip
    for name in ("Client", "Map", "Cursor", "Statement", "Job", "JobWriter"):
        blocking, asynchronous = getattr(remuda, name), getattr(remuda.aio, name)

        def public(cls):
            return {n: getattr(cls, n) for n in dir(cls) if not n.startswith("_")}

        ours, theirs = public(blocking), public(asynchronous)
        assert set(ours) - set(theirs) - {"name", "text", "rows", "target", "task"} <= only_blocking
        assert set(theirs) - set(ours) <= only_asyncio
        for operation in set(ours) & set(theirs):
            if inspect.isfunction(ours[operation]) and inspect.isfunction(theirs[operation]):
                assert list(inspect.signature(ours[operation]).parameters) == list(
                    inspect.signature(theirs[operation]).parameters
                ), operation
                assert inspect.getdoc(theirs[operation]), operation


class TestCrowds:
    """What many tasks need at the same moment is asked for once, or once more for those who came
    while the first question was under way."""

    def test_a_map_is_described_once_for_many(self, grid):
        async def scenario(client):
            await client.map("m").put_all({k: {"v": k} for k in range(100)})
            for member in grid.members:
                member.requests.clear()
            numbers = client.map("m")
            found = await asyncio.gather(*(numbers.get(k) for k in range(100)))
            assert [row.v for row in found] == list(range(100))
            asked = sum(m.requests.count(user_pb2.DESCRIBE_MAP) for m in grid.members)
            assert asked <= 2

        run(grid, scenario)

    def test_everybody_gets_the_error(self, grid):
        async def scenario(client):
            found = await asyncio.gather(
                *(client.map("none").get(k) for k in range(3)), return_exceptions=True
            )
            assert all(isinstance(error, UndefinedMap) for error in found)
            numbers = client.map("none")
            found = await asyncio.gather(
                *(numbers.get(k) for k in range(20)), return_exceptions=True
            )
            assert all(isinstance(error, UndefinedMap) for error in found)
            assert len(set(map(id, found))) == 20

        run(grid, scenario)

    def test_who_is_cancelled_while_asking_leaves_it_to_the_next(self, grid):
        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            grid.silent.add("describe_map")
            numbers = client.map("m")
            tasks = [asyncio.ensure_future(numbers.get(1)) for _ in range(5)]
            await until(lambda: loads(client) == 1)
            grid.silent.clear()
            tasks[0].cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(found[0], asyncio.CancelledError)
            assert [row.v for row in found[1:]] == [1] * 4

        run(grid, scenario)
