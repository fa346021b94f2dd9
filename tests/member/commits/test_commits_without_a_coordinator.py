"""A coordinator aborts a commit that the participants have completed without it. Its error says
that the commit may have run, so neither the member nor the client runs the statement again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import remuda.aio
from remuda.errors import (
    JobAborted,
    MemberLeaving,
    OutcomeUnknown,
    SerializationFailure,
    TransientError,
    ViewChanged,
)
from remuda.member.open_work import OpenWork
from remuda.member.sessions.replanning import told
from remuda.member.sessions.statement import Progress


def completed_by_others(owner: Any, name: str, error: TransientError) -> list[None]:
    """Commits of ``owner`` take effect and then end with ``error``; the list counts them."""
    real, done = getattr(owner, name), []

    async def commit(*args: Any, **options: Any) -> None:
        await real(*args, **options)
        done.append(None)
        raise error

    setattr(owner, name, commit)
    return done


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("UPDATE m SET b = b + 1 WHERE a IN (1, 2)", 5),
        ("INSERT INTO m SELECT a + (SELECT max(a) FROM m), b FROM m", 6),
    ],
)
def test_a_statement_that_others_may_have_committed_runs_once(
    in_cluster: Any, text: str, after: int
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE m (a INTEGER PRIMARY KEY, b INTEGER)")
        await client.sql("INSERT INTO m VALUES (1, 1), (2, 2)")
        moved = ViewChanged("partitions were moved", may_have_run=True)
        commits = [
            completed_by_others(cluster.member(number).commits, "commit_in_turn", moved)
            for number in (1, 2)
        ]
        host = cluster.member(1).info
        async with remuda.aio.connect(f"{host.host}:{host.user_port}") as ours:
            with pytest.raises(OutcomeUnknown, match="partitions were moved"):
                await ours.sql(text)
        assert sum(map(len, commits)) == 1
        assert await client.sql("SELECT sum(b) FROM m") == [(after,)]
        await cluster.idle()

    in_cluster(scenario, members=2)


def test_a_statement_in_a_transaction_of_its_own_runs_once(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE m (a INTEGER PRIMARY KEY, b INTEGER UNIQUE)")
        await client.sql("INSERT INTO m VALUES (1, 1), (2, 2)")
        sessions = cluster.member(1).statements._writes._implicit._sessions
        error = SerializationFailure("rows were changed", may_have_run=True)
        commits = completed_by_others(sessions, "commit", error)
        with pytest.raises(SerializationFailure) as caught:
            await client.sql("UPDATE m SET b = b + 10 WHERE a IN (1, 2)")
        assert caught.value.may_have_run
        assert len(commits) == 1
        assert await client.sql("SELECT sum(b) FROM m") == [(23,)]
        await cluster.idle()

    in_cluster(scenario, members=2)


@pytest.mark.parametrize("in_doubt", [False, True])
def test_a_statement_that_a_leave_ends_keeps_the_doubt_of_its_commit(in_doubt: bool) -> None:
    """Clients send again what ends with MemberLeaving, unless it may have run."""
    progress = Progress(error=MemberLeaving("member 1 is leaving"), undone=False)
    statement: Any = SimpleNamespace(progress=progress, error=progress.error)
    error = told(statement, JobAborted("job 1 was aborted", may_have_run=in_doubt))
    assert isinstance(error, MemberLeaving)
    assert error.may_have_run == in_doubt


def test_a_leave_ends_no_statement_that_commits() -> None:
    running = [
        SimpleNamespace(query=name, commits_now=name == "commits") for name in ("reads", "commits")
    ]
    ended: list[str] = []
    statements = SimpleNamespace(
        running=lambda: iter([(each, 0, 0) for each in running]),
        cancel=lambda query, _error: ended.append(query),
    )
    others: Any = SimpleNamespace(end_open=lambda _error: None)
    work = OpenWork(others, cast("Any", statements), others, others, others, others)
    work.end(MemberLeaving("member 1 is leaving"))
    assert ended == ["reads"]
