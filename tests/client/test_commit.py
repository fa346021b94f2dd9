"""How staged jobs end when connections break, and which statements may be run twice."""

from __future__ import annotations

import pyarrow as pa
import pytest

from remuda.client.blocking.client import connect
from remuda.client.core.core import is_read
from remuda.client.network.ports import COMMIT_TIMEOUT
from remuda.client.operations import commit
from remuda.errors import ConnectionBroken, JobAborted
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.messages import user_pb2

TABLE = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(commit, "_PAUSE", 0.001)


def break_connections(grid, monkeypatch, requests, times):
    """The members break the connection at the first ``times`` of these requests, instead
    of serving them; the list of all of them."""
    seen = []

    def broken(member, name):
        real = getattr(member, name)

        def handle(request):
            seen.append(name)
            if len(seen) <= times:
                request.channel.close()
            else:
                real(request)

        return handle

    for member in grid.members:
        for name in requests:
            monkeypatch.setattr(member, name, broken(member, name))
    return seen


def test_a_commit_is_asked_again_after_a_lost_connection(client, grid, monkeypatch):
    seen = break_connections(grid, monkeypatch, ["on_job_commit"], times=2)
    target = client.map("m")
    target.put_all(TABLE, key="id")
    assert seen == ["on_job_commit"] * 3
    assert target.get(2).v == 20


def test_a_commit_without_any_answer_says_that_its_outcome_is_open(client, grid, monkeypatch):
    break_connections(grid, monkeypatch, ["on_job_commit"], times=99)
    with pytest.raises(ConnectionBroken) as caught:
        client.map("m").put_all(TABLE, key="id")
    assert "not known whether job" in caught.value.__notes__[0]


def test_a_commit_may_take_longer_than_other_requests(grid, monkeypatch):
    timeouts = {}
    real = BlockingChannel.request

    def request(channel, rpc_type, body, dbody=(), timeout=None):
        timeouts[rpc_type] = timeout
        return real(channel, rpc_type, body, dbody, timeout=timeout)

    with connect(grid.addresses, request_timeout=30) as client:
        monkeypatch.setattr(BlockingChannel, "request", request)
        client.map("m").put_all(TABLE, key="id")
    assert timeouts[user_pb2.JOB_BEGIN] == pytest.approx(30, abs=5)
    assert timeouts[user_pb2.JOB_COMMIT] > COMMIT_TIMEOUT / 2


def test_an_abort_that_fails_does_not_hide_why(client, grid, monkeypatch):
    def refuse(request):
        raise JobAborted("a key occurs twice")

    for member in grid.members:
        monkeypatch.setattr(member, "on_job_commit", refuse)
    seen = break_connections(grid, monkeypatch, ["on_job_abort"], times=99)
    with pytest.raises(JobAborted, match="a key occurs twice"):
        client.map("m").put_all(TABLE, key="id")
    assert seen == ["on_job_abort"]
    with pytest.raises(ZeroDivisionError), client.begin_job("m"):
        raise ZeroDivisionError
    assert seen == ["on_job_abort"] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", True),
        ("  (select 1)", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", True),
        ("EXPLAIN ANALYZE SELECT 1", True),
        ("EXPLAIN ANALYZE INSERT INTO m VALUES (1)", False),
        ("explain\nanalyze update m SET v = 1", False),
        ("WITH x AS (SELECT 1) INSERT INTO m SELECT * FROM x", False),
        ("WITH x AS (SELECT 1) MERGE INTO m USING x ON true WHEN MATCHED THEN DELETE", False),
        (
            "WITH x AS (SELECT 1 AS k) MERGE INTO m USING x ON k = id WHEN MATCHED THEN DO NOTHING",
            False,
        ),
        ("EXPLAIN ANALYZE EXECUTE insertion", False),
        ("EXPLAIN ANALYZE SINK INTO m VALUES (1)", False),
        ("INSERT INTO m VALUES (1)", False),
        ("-- a remark\nSELECT 1", False),
    ],
)
def test_only_reads_are_repeated(text, expected):
    assert is_read(text) is expected
