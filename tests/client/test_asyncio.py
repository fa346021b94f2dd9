"""The asyncio face against fake members: maps, statements, pipelining, many at once."""

from __future__ import annotations

import asyncio
import inspect

import pyarrow as pa
import pytest
from asyncio_grid import COLUMNS, loads, page, run, until

import remuda
import remuda.aio
from remuda.client.network import loop_connections as connections
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.errors import (
    InputError,
    SqlSyntaxError,
    UndefinedMap,
)
from remuda.rpc.messages import user_pb2

pytestmark = pytest.mark.usefixtures("short_pauses")


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
            assert all(len(port._lines) == 1 for port in client._core.members.ports)

        run(grid, scenario, max_connections=1)

    def test_more_connections_are_opened_under_load_up_to_the_bound(self, grid, monkeypatch):
        monkeypatch.setattr(connections, "_BUSY", 4)

        async def scenario(client):
            numbers = client.map("m")
            await numbers.put(1, {"v": 1})
            owner = numbers._binding.router.owner((1,))
            lines = client._core.pool(owner)._lines
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


def test_both_faces_have_the_same_operations():
    only_blocking = {"fetch", "to_arrow_reader", "pipeline"}
    only_asyncio = {"run", "entry_lists", "value_lists", "key_lists"}
    only_asyncio |= {"prepare", "over", "take", "begin"}
    classes = ("Client", "Map", "NearMap", "Listener", "Cursor", "Statement", "Job", "JobWriter")
    for name in classes:
        blocking, asynchronous = getattr(remuda, name), getattr(remuda.aio, name)

        def public(cls):
            return {n: getattr(cls, n) for n in dir(cls) if not n.startswith("_")}

        ours, theirs = public(blocking), public(asynchronous)
        attributes = {"name", "text", "rows", "target", "task", "error"}
        assert set(ours) - set(theirs) - attributes <= only_blocking
        assert set(theirs) - set(ours) <= only_asyncio
        for operation in set(ours) & set(theirs):
            if inspect.isfunction(ours[operation]) and inspect.isfunction(theirs[operation]):
                # Only a blocking program gives its function to another thread.
                parameters = list(inspect.signature(ours[operation]).parameters)
                parameters = [name for name in parameters if name != "callback"]
                assert parameters == list(inspect.signature(theirs[operation]).parameters), (
                    operation
                )
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
