"""The blocking face's connections: their bound, and when a lost member is tried again."""

from __future__ import annotations

import dataclasses
import threading

import pyarrow as pa
import pytest

from remuda.client.blocking.client import connect
from remuda.client.network import backoff
from remuda.client.network.backoff import Backoff, pause
from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.errors import ConnectionBroken, InputError, LimitExceeded

COLUMNS = (Column("id", sql.BIGINT),)


@pytest.fixture
def endless(grid, script):
    batch = pa.record_batch({"id": pa.array([1], pa.int64())})
    grid.scripts["endless"] = script(COLUMNS, (batch,), endless=True)


@pytest.mark.usefixtures("endless")
class TestBound:
    def test_who_needs_one_more_waits_and_is_told(self, grid):
        with connect(grid.addresses, max_connections=2) as client:
            cursors = [client.query("endless", member=1) for _ in range(2)]
            pool = client._core.pool(1)
            pool.settings = dataclasses.replace(pool.settings, connect_timeout=0.1)
            with pytest.raises(LimitExceeded, match=r"all 2 connections to member 1 .* in use"):
                client.query("endless", member=1)
            assert client.cluster_info(2).member == 2
            cursors.pop().close()
            assert client.cluster_info(1).member == 1
            cursors.pop().close()

    def test_a_connection_that_is_given_back_serves_who_waits(self, grid):
        with connect(grid.addresses, max_connections=1) as client:
            cursor = client.query("endless", member=1)
            found = []
            thread = threading.Thread(target=lambda: found.append(client.cluster_info(1).member))
            thread.start()
            cursor.close()
            thread.join()
            assert found == [1]
            assert len(client._core.pool(1)._open) == 1

    def test_closing_the_client_ends_what_others_do(self, grid):
        client = connect(grid.addresses)
        cursor = client.query("endless", member=1)
        thread_errors: list[Exception] = []

        def wait() -> None:
            try:
                list(cursor)
            except ConnectionBroken as error:
                thread_errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        client.close()
        thread.join()
        assert len(thread_errors) == 1
        assert "the client is closed" in str(thread_errors[0])
        while not grid.members[0].running[0].over:
            threading.Event().wait(0.001)

    def test_a_cursor_that_nobody_holds_makes_room(self, grid):
        with connect(grid.addresses, max_connections=1, connect_timeout=20) as client:
            for _ in range(3):
                client.query("endless", member=1).fetchone()

    def test_many_threads_share_few_connections(self, grid):
        with connect(grid.addresses, max_connections=2) as client:
            client.map("m").put_all({k: {"v": k} for k in range(50)})
            found: list[int] = []

            def read() -> None:
                found.extend(client.map("m").get(k).v for k in range(50))

            threads = [threading.Thread(target=read) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(found) == sorted(list(range(50)) * 8)


@pytest.mark.parametrize(
    "options",
    [{"max_connections": 0}, {"max_connections": True}, {"retry_reads": -1},
     {"connect_timeout": 0}, {"request_timeout": "1"}],
)  # fmt: skip
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError, match=next(iter(options))):
        connect(**options)


class TestBackoff:
    def test_pauses_grow_with_jitter_up_to_a_bound(self):
        for attempt in range(40):
            bound = min(5.0, 0.05 * 2**attempt)
            assert all(bound / 2 <= pause(attempt) <= bound for _ in range(20))
        assert len({pause(3) for _ in range(20)}) > 1

    def test_failures_in_a_row_wait_longer_and_success_forgets_them(self):
        found = Backoff()
        now, waits = 100.0, []
        for _ in range(8):
            found.failed(now, now)
            waits.append(found.until - now)
            now = found.until
        assert waits[-1] > waits[0] * 8
        found.succeeded()
        assert found.until == 0.0
        found.failed(now, now)
        assert found.until - now <= backoff._FIRST

    def test_attempts_made_side_by_side_count_once(self):
        found = Backoff()
        for _ in range(10):
            found.failed(100.0, 100.0)
        assert found.failures == 1

    def test_an_attempt_that_hung_is_not_repeated_soon(self):
        found = Backoff()
        found.failed(100.0, 130.0)
        assert found.until == 135.0
