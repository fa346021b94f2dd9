"""One timeout for everything that a call waits for: ``with_timeout``, and the DB-API's."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from faces import settle

import remuda
import remuda.dbapi
from remuda.client.asynchronous.jobs import Job
from remuda.client.asynchronous.map import Map
from remuda.client.asynchronous.near_map import NearMap
from remuda.client.blocking.client import connect
from remuda.client.network import deadline as deadlines
from remuda.client.operations.near_cache import NearCache
from remuda.client.operations.row_writer import JobWriter
from remuda.datatypes.arrow import engine_schema
from remuda.errors import (
    InputError,
    MemberNotReady,
    NoAnswer,
    OutcomeUnknown,
    TransientError,
)
from remuda.limits import HEARTBEAT_INTERVAL

SHORT = 0.03
READS = {
    "get": lambda m: m.get(1),
    "get_or_default": lambda m: m.get_or_default(1, None),
    "get_all": lambda m: m.get_all([1, 2, 3, 4, 5]),
    "contains": lambda m: m.contains(1),
    "contains_key": lambda m: m.contains_key(1),
    "get_versioned": lambda m: m.get_versioned(1),
    "ttl": lambda m: m.ttl(1),
    "size": lambda m: m.size(),
    "count": lambda m: m.count(),
    "sum": lambda m: m.sum("v"),
    "min": lambda m: m.min("v"),
    "max": lambda m: m.max("v"),
    "avg": lambda m: m.avg("v"),
    "is_empty": lambda m: m.is_empty(),
    "options": lambda m: m.options(),
    "statistics": lambda m: m.statistics(),
}
WRITES = {
    "put": lambda m: m.put(1, {"v": 1}),
    "get_and_put": lambda m: m.get_and_put(1, {"v": 1}),
    "put_if_absent": lambda m: m.put_if_absent(1, {"v": 1}),
    "setdefault": lambda m: m.setdefault(1, {"v": 1}),
    "replace": lambda m: m.replace(1, {"v": 1}),
    "replace_if": lambda m: m.replace_if(1, {"v": 1}, {"v": 2}),
    "get_and_replace": lambda m: m.get_and_replace(1, {"v": 1}),
    "remove": lambda m: m.remove(1),
    "get_and_remove": lambda m: m.get_and_remove(1),
    "pop": lambda m: m.pop(1),
    "delete": lambda m: m.delete(1),
    "put_all": lambda m: m.put_all({key: {"v": key} for key in range(100)}),
    "update": lambda m: m.update({1: {"v": 1}}),
    "compute": lambda m: m.compute(1, "v = v + 1"),
    "compute_all": lambda m: m.compute_all([1, 2], "v = v + 1"),
    "set_ttl": lambda m: m.set_ttl(1, 5),
    "set_options": lambda m: m.set_options(ttl="10 s"),
    "create_index": lambda m: m.create_index("v"),
    "drop_index": lambda m: m.drop_index("i"),
    "remove_all": lambda m: m.remove_all(remuda.col("v") > 1),
    "clear": lambda m: m.clear(),
    "truncate": lambda m: m.truncate(),
    "destroy": lambda m: m.destroy(),
}
ELSEWHERE = {
    *("entries", "items", "keys", "values", "popitem"),
    *("entry_lists", "key_lists", "value_lists"),
    *("listen", "changes", "over", "schema"),
}
"""Iterators, listeners and what they are made of; ``schema`` is no method of a blocking map."""


@contextlib.contextmanager
def frozen(grid):
    """The members stand still, as after SIGSTOP."""
    go_on = threading.Event()
    grid.loop.call_soon_threadsafe(go_on.wait)
    try:
        yield
    finally:
        go_on.set()


@pytest.fixture
def no_grace(monkeypatch):
    monkeypatch.setattr("remuda.client.core.execution.GRACE", 0.01)
    monkeypatch.setattr("remuda.client.operations.bulk.GRACE", 0.01)
    monkeypatch.setattr("remuda.client.asynchronous.transaction.GRACE", 0.01)


def test_every_operation_of_a_map_is_here():
    assert {name for name in dir(Map) if name[0] != "_"} == {*READS, *WRITES, *ELSEWHERE}


@pytest.mark.usefixtures("no_grace")
class TestSilentMembers:
    """Without the timeout each of these takes a minute, ``request_timeout``, or never ends."""

    @pytest.mark.parametrize("retries", [0, 3])
    def test_reads_may_be_made_again(self, face, grid, retries):
        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            hasty = client.with_timeout(SHORT).map("m")
            for number in (1, 2, 3):
                await client.cluster_info(number)
            assert await client.map("m").get(1)
            with frozen(grid):
                for name, read in READS.items():
                    with pytest.raises(TransientError) as caught:
                        await read(hasty)
                    assert (caught.value.retryable, name) == (True, name)
                    assert (caught.value.may_have_run, name) == (False, name)

        face(scenario, retry_reads=retries, retry_writes=retries)

    @pytest.mark.parametrize("retries", [0, 3])
    def test_writes_say_whether_they_may_have_run(self, face, grid, retries):
        """Those that were sent. The first ones are, over connections that are there."""

        async def scenario(client):
            slow, unknown = client.map("m"), 0
            await slow.put(1, {"v": 1})
            for name, write in WRITES.items():
                hasty = client.with_timeout(SHORT).map("m")
                await slow.get_all(range(20))  # connected to all members
                with contextlib.suppress(TransientError):  # learns what the map is
                    await hasty.get(1)
                with frozen(grid), pytest.raises(TransientError) as caught:
                    await write(hasty)
                error = caught.value
                assert error.retryable is not error.may_have_run, name
                assert isinstance(error, OutcomeUnknown) is error.may_have_run, name
                unknown += error.may_have_run
            assert unknown >= len(WRITES) - 3

        face(scenario, retry_reads=retries, retry_writes=retries)

    def test_tables(self, face, grid):
        """Nothing is visible until a job is committed."""
        rows = pa.table({"k": list(range(50)), "v": list(range(50))})

        async def scenario(client):
            await client.map("t").put_all(rows, key="k")
            hasty = client.with_timeout(SHORT).map("t")
            with frozen(grid), pytest.raises(TransientError) as caught:
                await hasty.put_all(rows)
            assert caught.value.retryable
            for silent, error in (("job_write", TransientError), ("job_commit", OutcomeUnknown)):
                grid.silent = {silent}
                with pytest.raises(error) as caught:
                    await client.with_timeout(0.3).map("t").put_all(rows)
                assert caught.value.retryable is (silent == "job_write")
                grid.silent = set()

        face(scenario)

    def test_writers_of_jobs(self, face, grid):
        """Each call has the time for itself, also of a writer that another process makes. Without
        the timeout each of them would take half a minute."""

        def writer_of(job, task):
            if isinstance(job, Job):
                return JobWriter(job.target, task, job._core.with_timeout(SHORT))
            target = pickle.loads(pickle.dumps(job.target))
            return replace(target, timeout=SHORT).writer(task)

        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            job = await client.with_timeout(30).begin_job("m")
            assert job.target.timeout == 30
            numbers = [pa.array(range(5000), pa.int64())] * 2
            rows = pa.record_batch(numbers, schema=engine_schema(job.schema))
            writer = writer_of(job, "0:0")
            with frozen(grid), pytest.raises(TransientError):
                await settle(writer.write(rows))
                await settle(writer.finish())
            writer.close()
            writer = writer_of(job, "1:0")
            grid.silent = {"job_write"}
            with pytest.raises(TransientError):
                await settle(writer.write(rows))
                await settle(writer.finish())
            writer.close()
            grid.silent = set()

        face(scenario)

    def test_statements_and_a_timeout_of_their_own(self, face, grid, script):
        grid.scripts["UPDATE"] = script(tag="UPDATE", affected=1)

        async def scenario(client):
            hasty = client.with_timeout(SHORT)
            for number in (1, 2, 3):
                await client.cluster_info(number)
            prepared = await client.with_timeout(0.5).prepare("UPDATE")
            with frozen(grid):
                with pytest.raises(TransientError):
                    await hasty.sql("SELECT 1")
                with pytest.raises(TransientError):
                    await prepared(timeout=SHORT)
                with pytest.raises(TransientError):
                    await client.with_timeout(60).sql("SELECT 1", timeout=SHORT)
                with pytest.raises(TransientError):
                    await hasty.execute_many("INSERT INTO m VALUES (?)", [(1,)])
                with pytest.raises(TransientError):
                    await hasty.cluster_info()
                with pytest.raises(TransientError):
                    await hasty.describe("m")

        face(scenario)
        assert [message.timeout for _, message in grid.statements] == [SHORT] * len(grid.statements)

    def test_near_caches(self, face, grid):
        """A cache that cannot begin to listen leaves time for the request."""

        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            near = client.with_timeout(1.0).map("m", near_cache=NearCache())
            grid.silent = {"changes_read", "changes_end"}
            assert await near.get(1)
            grid.silent = set()
            with frozen(grid), pytest.raises(NoAnswer):
                await client.with_timeout(SHORT).map("m", near_cache=NearCache()).get(1)

        face(scenario)

    def test_dbapi(self, grid, script):
        grid.scripts["SELECT 1"] = script()
        with remuda.dbapi.connect(grid.addresses, autocommit=True, timeout=SHORT) as connection:
            assert connection.timeout == SHORT
            for number in (1, 2, 3):
                connection.client.with_timeout(30).cluster_info(number)
            with frozen(grid), pytest.raises(remuda.dbapi.OperationalError) as caught:
                connection.cursor().execute("UPDATE m SET v = 1")
            assert isinstance(caught.value.__cause__, OutcomeUnknown)
            with pytest.raises(remuda.dbapi.InterfaceError, match="number of seconds"):
                connection.timeout = "soon"
            connection.timeout = None
            connection.cursor().execute("SELECT 1")
            connection.timeout = 0.5
            connection.cursor().execute("SELECT 1")
        with pytest.raises(remuda.dbapi.InterfaceError, match="number of seconds"):
            remuda.dbapi.connect(grid.addresses, timeout=-1)
        assert [message.timeout for _, message in grid.statements][-2:] == [0.0, 0.5]


class TestRefusingMembers:
    """They answer at once that they cannot serve: it is the tries together that take time."""

    @pytest.mark.parametrize("name", ["get", "get_all", "contains", "put", "remove", "put_all"])
    def test_all_tries_together_end_at_the_deadline(self, grid, monkeypatch, name):
        class FakeTime:
            now = 100.0

            def __call__(self):
                return self.now

        clock = FakeTime()
        monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=clock))
        # Only pauses move this clock. An answer takes real time, which is not for it to bound: a
        # write whose last try has to be answered within milliseconds would have no known outcome.
        monkeypatch.setattr(deadlines.Deadline, "remaining", lambda _self: 60.0)

        async def pause(_self, seconds):
            clock.now += seconds

        monkeypatch.setattr("remuda.client.network.connections.BlockingPorts.pause", pause)

        def refuse(_request):
            raise MemberNotReady("not yet", member="1")

        with connect(grid.addresses, retry_reads=5, retry_writes=5) as client:
            client.map("m").put(1, {"v": 1})
            hasty = client.with_timeout(2.0).map("m")
            hasty.get(1)
            for member in grid.members:
                for asked in ("on_map_get", "on_map_put", "on_map_remove", "on_map_put_batch"):
                    monkeypatch.setattr(member, asked, refuse)
            began = clock.now
            with pytest.raises(TransientError) as caught:
                {**READS, **WRITES}[name](hasty)
            assert caught.value.retryable
            assert 1.0 < clock.now - began <= 2.0


def test_the_session_and_the_transaction_are_shared(grid, script):
    grid.scripts["SELECT 1"] = script()
    with connect(grid.addresses) as client:
        hasty = client.with_timeout(5)
        assert hasty.with_timeout(7)._core.shared is client._core.shared
        client._core.shared.settings = b""
        hasty.sql("SELECT 1").close()
        hasty.close()
        with pytest.raises(remuda.errors.ClientClosed):
            client.sql("SELECT 1")


@pytest.mark.parametrize("seconds", [0, -1, True, "2", None, float("nan")])
def test_a_timeout_is_a_number_of_seconds(face, seconds):
    async def scenario(client):
        with pytest.raises(InputError, match="number of seconds above 0"):
            client.with_timeout(seconds)

    face(scenario)


@pytest.mark.cluster
def test_maps_transactions_and_connections_of_a_stopped_member():
    """Bounded generously: without deadlines the retries took the timeout several times, and a
    transaction's end took a minute."""
    limit = 1 + HEARTBEAT_INTERVAL + 2.5
    with (
        remuda.start(members=2) as cluster,
        cluster.connect(retry_reads=3, retry_writes=3) as client,
    ):
        client.map("m").put_all({number: number for number in range(100)})
        hasty = client.with_timeout(1)
        numbers = hasty.map("m")
        assert numbers.get_all(range(100))
        stopped = next(
            number
            for number in range(100)
            if numbers._map._binding.router.owner((number,)) == client._core.view.members[1].number
        )
        connection = remuda.dbapi.connect(cluster.addresses, timeout=1)
        connection.client.map("m").get(stopped)

        def get_in_transaction():
            with hasty.transaction() as transaction:
                transaction.map("m").get(stopped)

        def put_in_transaction():
            with hasty.transaction() as transaction:
                transaction.map("m").put(stopped, 5)

        def statement_of_the_connection():
            connection.cursor().execute("SELECT sum(this) FROM m").fetchall()

        os.kill(cluster.pids[1], signal.SIGSTOP)
        try:
            for name, act, writes in (
                ("get", lambda: numbers.get(stopped), False),
                ("put", lambda: numbers.put(stopped, 1), True),
                ("compute", lambda: numbers.compute(stopped, "this = this + 1"), True),
                ("get in a transaction", get_in_transaction, False),
                ("put in a transaction", put_in_transaction, True),
                ("dbapi", statement_of_the_connection, False),
            ):
                began = time.monotonic()
                with pytest.raises((TransientError, remuda.dbapi.OperationalError)) as caught:
                    act()
                took = time.monotonic() - began
                assert took < (2 * limit if "transaction" in name else limit), name
                error = caught.value
                if isinstance(error, remuda.dbapi.OperationalError):
                    error = error.__cause__
                assert error.retryable is not error.may_have_run, name
                assert writes or error.retryable, name
        finally:
            os.kill(cluster.pids[1], signal.SIGCONT)
            connection.client.close()


def test_near_maps_have_the_same_operations():
    assert {name for name in vars(NearMap) if name[0] != "_"} == {
        *("get", "get_all", "close", "near_cache_statistics")
    }
