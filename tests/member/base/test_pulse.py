"""Rest of periodic work: until a beat, or until something begins."""

from __future__ import annotations

import asyncio

from remuda.member.base.pulse import Pulse


def test_rest_ends_with_a_beat_or_when_something_begins() -> None:
    async def scenario() -> None:
        pulse, beats = Pulse(), list[bool]()
        pulse.on_beat(lambda: beats.append(pulse.resting))
        assert not pulse.resting
        resting = asyncio.ensure_future(pulse.rest())
        patient = asyncio.ensure_future(pulse.next_beat())
        await asyncio.sleep(0)
        assert pulse.resting
        pulse.wake()
        assert not pulse.resting
        assert await resting
        assert not patient.done(), "it waits for a beat, whatever begins"
        again = asyncio.ensure_future(pulse.rest())
        await asyncio.sleep(0)
        pulse.beat()
        assert not await again
        await patient
        assert beats == [False]

    asyncio.run(scenario())


def test_a_beat_comes_without_heartbeats_too() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60):
            assert not await Pulse().rest()

    asyncio.run(scenario())


def test_work_that_was_cancelled_while_it_rests_disturbs_nobody() -> None:
    async def scenario() -> None:
        pulse = Pulse()
        gone = asyncio.ensure_future(pulse.rest())
        stays = asyncio.ensure_future(pulse.rest())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        pulse.wake()
        assert await stays
        assert gone.cancelled()

    asyncio.run(scenario())
