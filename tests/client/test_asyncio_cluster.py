"""The asyncio client under load while a member process is killed."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

import remuda
import remuda.aio
from remuda.errors import OutcomeUnknown, TransientError

pytestmark = pytest.mark.cluster

TASKS = 40


def test_a_member_that_is_killed_under_load():
    """Every request ends, with its answer or with an error that says that it may be tried again;
    a backup takes over what the member owned; nothing is left under way."""

    async def main(cluster):
        async with remuda.aio.connect(cluster.addresses, max_connections=2) as client:
            numbers = client.map("numbers")
            await numbers.put_all({number: number for number in range(2000)})
            key = await client.prepare("SELECT this FROM numbers WHERE __key = ?")
            by_owner = {}
            for number in range(2000):
                by_owner.setdefault(numbers._binding.router.owner((number,)), []).append(number)
            killed, done = asyncio.Event(), asyncio.Event()
            answers, errors = [], []

            async def load(task):
                number = task
                while not done.is_set():
                    number = (number + 7) % 2000
                    try:
                        if task % 4 == 0:
                            found = await (await key(number)).scalar()
                        elif task % 4 == 1:
                            await numbers.put(number, number)
                            found = number
                        elif task % 4 == 2:
                            await (await client.sql("SELECT count(*) FROM numbers")).fetchall()
                            found = number
                        else:
                            found = await numbers.get(number)
                        assert found == number
                        answers.append(killed.is_set())
                    except TransientError as error:
                        errors.append(error)
                        await asyncio.sleep(0.01)

            tasks = [asyncio.ensure_future(load(task)) for task in range(TASKS)]
            while len(answers) < 500:
                await asyncio.sleep(0.005)
            assert not errors
            os.kill(cluster.pids[1], signal.SIGKILL)
            killed.set()
            while sum(answers) < 500:
                await asyncio.sleep(0.005)
            done.set()
            await asyncio.gather(*tasks)
            assert all(error.retryable or isinstance(error, OutcomeUnknown) for error in errors)
            for owned in by_owner.values():
                some = owned[:20]
                assert await asyncio.gather(*(numbers.get(n) for n in some)) == some
            ports = client._core.members.ports
            while any(line.load for port in ports for line in port._lines):
                await asyncio.sleep(0.005)

    with remuda.start(members=3) as cluster:
        asyncio.run(main(cluster))
