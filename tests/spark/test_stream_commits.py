"""Batches of a stream count once, whatever fails in their commit: without Spark."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from remuda.client.blocking.tool_access import change_ranges, job_committed
from remuda.errors import InputError, JobAborted, RemudaError, SerializationFailure
from remuda.spark.streams.commits import Target, abort_batch, commit_batch, read_progress

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


class Broken(RemudaError):
    """The process of the commit ends."""


class Failing:
    """A client of which one call, the ``count``-th, fails: before it is sent, or after."""

    def __init__(self, client: Any, count: int, *, after: bool) -> None:
        self.client, self.left, self.after = client, count, after
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            self.names.append(name)
            if self.left == 0 and not self.after:
                raise Broken("before")
            result = getattr(self.client, name)(*arguments, **options)
            if self.left == 0:
                raise Broken("after")
            return result

        return call


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        made.sql("CREATE TABLE sink (k BIGINT PRIMARY KEY, v BIGINT) "
                 "WITH (change_retention = '1 h')")  # fmt: skip
        yield made
        made.drop_map("sink")


@pytest.fixture
def target(client: Any) -> Target:
    return Target(f"query-{secrets.token_hex(4)}", "sink", client.describe("sink").map_id)


def staged(client: Any, rows: dict[int, int], number: int = 1) -> tuple[str, list[Any]]:
    """A job with the rows of a batch, not committed."""
    job = client.begin_job("sink", job_id=f"{number}-{secrets.token_hex(12)}")
    batch = pa.record_batch({"k": pa.array(rows.keys(), pa.int64()),
                             "v": pa.array(rows.values(), pa.int64())})  # fmt: skip
    return job.id, [job.write([batch])]


def changes(client: Any) -> list[tuple[int, int]]:
    """Every write that the map has seen, in order of key and time."""
    ranges = change_ranges(client, "sink")
    end = (ranges.now(), None, 0)
    found = [row for b in ranges.read((0, None, 0), end, range(271)) for row in b.to_pylist()]
    return [(r["k"], r["v"]) for r in sorted(found, key=lambda r: (r["k"], r["_transaction"]))]


def test_a_job_is_begun_once_under_the_id_of_its_client(client: Any) -> None:
    job, tasks = staged(client, {1: 1})
    again = client.begin_job("sink", job_id=job)
    assert again.id == job
    assert not job_committed(client, f"1-{secrets.token_hex(12)}"), "nobody knows it"
    assert client.commit_job(job, tasks) == 1
    assert job_committed(client, job)
    with pytest.raises(JobAborted, match="has ended"):
        client.begin_job("sink", job_id=job)
    for wrong in ("1", "1-xyz", "x-" + "0" * 24, "1-" + "0" * 23):
        with pytest.raises(JobAborted, match="is not the id of a job"):
            client.begin_job("sink", job_id=wrong)
    other, tasks = staged(client, {2: 2}, number=2)
    assert not job_committed(client, other), "and never will be"
    with pytest.raises(JobAborted):
        client.commit_job(other, tasks)


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_that_fails_anywhere_is_repeated(client: Any, target: Target, after: bool) -> None:
    batch = 0
    for call in range(1, 10):
        rows = dict.fromkeys(range(5), batch)
        job, tasks = staged(client, rows)
        failing = Failing(client, call, after=after)
        try:
            commit_batch(failing, target, batch, job, tasks)
        except Broken:
            abort_batch(client, [job])  # as Spark does
            again, tasks = staged(client, rows, number=2)
            commit_batch(client, target, batch, again, tasks)
            assert read_progress(client, target).done  # type: ignore[union-attr]
        else:
            break
        batch += 1
    assert call == len(failing.names) + 1 >= 5, "every call has failed once"
    assert changes(client) == [(k, v) for k in range(5) for v in range(batch + 1)]


def test_what_does_not_follow_is_refused(client: Any, target: Target) -> None:
    for batch in (0, 1):
        assert commit_batch(client, target, batch, *staged(client, {1: batch}))
    for batch in (0, 1):  # repeated: nothing happens, nothing stays behind
        job, tasks = staged(client, {1: 100})
        assert not commit_batch(client, target, batch, job, tasks)
        assert not job_committed(client, job)
    with pytest.raises(InputError, match="batch 3 of the query does not follow") as error:
        commit_batch(client, target, 3, *staged(client, {1: 3}))
    assert "the next one is batch 2" in error.value.detail
    new = Target(target.query, "sink", target.map_id + 1000)
    with pytest.raises(InputError, match="The map has no batch of query"):
        commit_batch(client, new, 1, *staged(client, {1: 3}))
    assert changes(client) == [(1, 0), (1, 1)]


def test_two_runs_of_a_query(client: Any, target: Target) -> None:
    first, first_tasks = staged(client, {1: 1})
    second, second_tasks = staged(client, {1: 2})

    class Paused:
        """The first run is overtaken between its note and its commit."""

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        def commit_job(self, job: str, tasks: Any) -> int:
            assert commit_batch(client, target, 0, second, second_tasks)
            count: int = client.commit_job(job, tasks)
            return count

    paused: Any = Paused()
    with pytest.raises(JobAborted):
        commit_batch(paused, target, 0, first, first_tasks)
    assert changes(client) == [(1, 2)]

    class Late(Paused):
        """The second run notes its batch while the first one looks."""

        def sql(self, text: str, *values: Any) -> Any:
            found = client.sql(text, *values)
            if text.startswith("SELECT"):
                rows = found.fetchall()
                found.fetchall = lambda: rows
                commit_batch(client, target, 1, *staged(client, {1: 4}))
            return found

    late: Any = Late()
    with pytest.raises(SerializationFailure, match="another run of query"):
        commit_batch(late, target, 1, *staged(client, {1: 3}))
    assert changes(client) == [(1, 2), (1, 4)]
