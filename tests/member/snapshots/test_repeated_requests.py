"""Requests that come again while they are worked on, and afterwards, are worked on once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from remuda.errors import RemudaError, TransientError
from remuda.member.snapshots import repeated_requests
from remuda.member.snapshots.repeated_requests import RepeatedRequests


class Asked:
    """A request, as far as it is used; ``heard`` gets each answer."""

    rpc_type = 1

    def __init__(self, body: bytes, heard: list[object]) -> None:
        self.pbody = body
        self._heard = heard

    def reply(self, _rpc_type: int, answer: object) -> None:
        self._heard.append(answer)

    def fail(self, error: RemudaError) -> None:
        self._heard.append(error)


class Spawning:
    """A core, as far as it is used."""

    def spawn(
        self, work: Coroutine[Any, Any, None], _what: str, failed: Callable[[RemudaError], None]
    ) -> None:
        async def guarded() -> None:
            try:
                await work
            except RemudaError as error:
                failed(error)

        self.task = asyncio.ensure_future(guarded())


def played(bodies: list[bytes], *, fails: bool = False, one_by_one: bool = False) -> Any:
    """How often there was work for these requests, and the answers in their order."""
    done: list[bytes] = []
    heard: list[object] = []

    async def run() -> None:
        core = Spawning()
        requests = RepeatedRequests(core)  # type: ignore[arg-type]
        for body in bodies:

            async def work(body: bytes = body) -> Any:
                done.append(body)
                await asyncio.sleep(0)
                if fails:
                    raise TransientError("not now")
                return f"answer {body.decode()}"

            requests.serve(Asked(body, heard), work)  # type: ignore[arg-type]
            if one_by_one:
                await core.task
        await core.task

    asyncio.run(run())
    return done, heard


@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_is_asked_again_is_done_once(one_by_one: bool) -> None:
    done, heard = played([b"a", b"a", b"b", b"a"], one_by_one=one_by_one)
    assert done == [b"a", b"b"]
    assert sorted(heard) == ["answer a"] * 3 + ["answer b"]


def test_all_who_wait_hear_of_a_failure_and_may_ask_again() -> None:
    _, heard = played([b"a", b"a"], fails=True)
    assert [type(each) for each in heard] == [TransientError] * 2
    done, _ = played([b"a", b"a"], fails=True, one_by_one=True)
    assert done == [b"a", b"a"]


def test_only_the_last_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_requests, "ANSWERS_KEPT", 1)
    done, _ = played([b"a", b"b", b"b", b"a"], one_by_one=True)
    assert done == [b"a", b"b", b"a"]
