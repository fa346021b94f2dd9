"""What goes on when its caller has gone."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from remuda.errors import JobAborted
from remuda.member.base.core import to_its_end


@pytest.mark.parametrize(
    ("error", "level"), [(JobAborted("no turn"), logging.INFO), (KeyError("k"), logging.ERROR)]
)
def test_an_error_that_nobody_waits_for_is_logged_once(error, level, caplog):
    async def scenario() -> None:
        go_on = asyncio.Event()

        async def work() -> int:
            await go_on.wait()
            raise error

        task = asyncio.ensure_future(work())
        caller = asyncio.ensure_future(to_its_end(task, "the commit of a job"))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled()
        assert not task.done()
        go_on.set()
        await asyncio.wait([task])

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
        gc.collect()
    assert [record.levelno for record in caplog.records] == [level]
    assert "the commit of a job" in caplog.text


def test_whoever_waits_gets_the_result():
    async def scenario() -> int:
        return await to_its_end(asyncio.ensure_future(asyncio.sleep(0, 7)), "a sleep")

    assert asyncio.run(scenario()) == 7
