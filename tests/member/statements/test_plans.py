"""Planning in a member: a long statement does not hold the others up."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from remuda.errors import SqlSyntaxError, UndefinedColumn
from remuda.member.statements import plans
from remuda.session import sight


def insert(rows: int) -> str:
    return "INSERT INTO m VALUES " + ", ".join(f"({i}, {i})" for i in range(rows))


@pytest.mark.parametrize(("place", "step"), [(sight, "bound"), (plans, "planned")])
def test_a_long_statement_is_planned_while_others_are_served(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch, place: Any, step: str
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    real = getattr(place, step)

    def held(first: Any, *arguments: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert goes_on.wait(30)
        return real(first, *arguments)

    async def scenario(cluster: Any) -> None:
        client, other = await cluster.client(), await cluster.client()
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v INTEGER)")
        monkeypatch.setattr(place, step, held)
        text = insert(1000)
        assert len(text) >= plans.LONG_TEXT
        result = await client.start(text)
        await asyncio.to_thread(begun.wait, 30)
        assert begun.is_set(), "the loop was held by the long statement"
        assert await other.sql("SELECT count(*) FROM m") == [(0,)]
        goes_on.set()
        await result.done.wait()
        assert result.error is None
        assert result.affected == 1000
        assert cluster.member(1).gauges()["cached_plans"] == 1, "only that of SELECT"
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_errors_of_a_long_statement_are_its_own(in_cluster: Any) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        await client.sql("CREATE TABLE m (id INTEGER PRIMARY KEY, v INTEGER)")
        padding = " " * plans.LONG_TEXT
        for text, kind in (
            ("SELECT FROM FROM", SqlSyntaxError),
            ("SELECT x FROM m", UndefinedColumn),
        ):
            with pytest.raises(kind):
                await client.sql(text + padding)
        assert await client.sql("SELECT count(*) FROM m" + padding) == [(0,)]

    in_cluster(scenario, members=1)
