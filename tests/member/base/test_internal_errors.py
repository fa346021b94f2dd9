"""An exception that nobody expected stays an internal error, and is counted where users see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from remuda.errors import InternalError
from remuda.execution.operators.project import ProjectOperator

InCluster = Callable[..., None]


def test_internal_errors_are_counted_by_the_member_that_was_asked(
    in_cluster: InCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Any) -> None:
        client = await cluster.client()
        count = "SELECT sum(internal_errors) FROM sys.members"
        assert [tuple(row) for row in await client.sql(count)] == [(0,)]

        def broken(_self: object) -> None:
            raise ZeroDivisionError("a bug of the test")

        with monkeypatch.context() as patch:
            patch.setattr(ProjectOperator, "advance", broken)
            with pytest.raises(InternalError) as raised:
                await client.sql("SELECT g + 1 FROM generate_series(1, 3) g")
        assert raised.value.sqlstate == "XX000"
        assert [tuple(row) for row in await client.sql(count)] == [(1,)]

    in_cluster(scenario, members=2)
