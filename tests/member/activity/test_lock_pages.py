"""All locks are shown, page by page."""

from __future__ import annotations

from typing import Any

import pytest
from transacting import Session

from remuda.errors import UndefinedObject
from remuda.member.state.lock_rows import LockRow
from remuda.member.system import lock_pages
from remuda.member.system.lock_pages import IDLE_MAX, KEPT, ROWS, LockPages
from remuda.rpc.messages.control_pb2 import ActivityRequest, RpcType
from remuda.transaction.locks import Mode


def locks(count: int) -> list[LockRow]:
    return [LockRow(7, (key,), "row", Mode.EXCLUSIVE, True, "1:1") for key in range(count)]


def test_every_row_is_on_one_page() -> None:
    rows, pages = locks(2 * ROWS + 1), LockPages(lambda: 0.0)
    found, more = pages.begin(rows)
    assert len(found) == ROWS
    seen = list(found)
    while more:
        found, more = pages.next(more)
        seen += found
    assert seen == rows
    assert not len(pages)
    assert pages.begin(rows[:ROWS]) == (rows[:ROWS], 0)


def test_lists_that_nobody_reads_are_forgotten() -> None:
    now = 0.0
    pages, rows = LockPages(lambda: now), locks(3 * ROWS)
    numbers = [pages.begin(rows)[1] for _ in range(KEPT + 1)]
    with pytest.raises(UndefinedObject, match="forgotten before its last page"):
        pages.next(numbers[0])
    now = IDLE_MAX
    pages.next(numbers[1])
    now = 2 * IDLE_MAX - 1
    pages.expire()
    assert len(pages) == 1
    assert pages.next(numbers[1])[1] == 0


def test_all_locks_of_all_members_are_shown(in_cluster: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(lock_pages, "ROWS", 4)

    async def scenario(cluster: Any) -> None:
        client, other = [Session(await cluster.client(n)) for n in (1, 2)]
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        values = ", ".join(f"({key})" for key in range(1, 51))
        await other.sql("BEGIN PESSIMISTIC")
        await other.sql(f"INSERT INTO t VALUES {values}")
        for relation in ("sys.locks", "pg_locks"):
            assert await client.sql(f"SELECT count(*) FROM {relation}") == [(50,)]
        keys = await client.sql("SELECT key FROM sys.locks WHERE granted")
        assert set(keys) == {(f"Key (k)=({key})",) for key in range(1, 51)}
        assert await client.sql("SELECT DISTINCT member FROM sys.locks ORDER BY 1") == [
            (1,), (2,), (3,),
        ]  # fmt: skip
        silent = cluster.member(3)._member_routes.control
        answer = silent[RpcType.ACTIVITY]

        def first_page_only(request: Any) -> None:
            if ActivityRequest.FromString(request.pbody).page:
                request.fail(UndefinedObject("this list of locks was forgotten"))
            else:
                answer(request)

        silent[RpcType.ACTIVITY] = first_page_only
        rows = await client.sql("SELECT key, kind FROM sys.locks WHERE member = 3")
        assert len(rows) == 5
        assert rows[-1] == (None, "no answer")
        await other.sql("ROLLBACK")

    in_cluster(scenario)
