"""The gateway's clients of the cluster: kept, shared, and asked about their password again."""

from __future__ import annotations

import asyncio

import pytest

from remuda.errors import WrongPassword
from remuda.gateway import grids
from remuda.gateway.grids import Credentials, Grids

ANN = Credentials("ann", "old")


class Answer:
    async def close(self):
        """Nothing is open."""


class FakeClient:
    closed = False

    def __init__(self):
        self._core = self

    def refuse_transactions(self):
        self.refuses = True

    async def sql(self, text):
        return Answer()

    async def close(self):
        self.closed = True


def test_a_password_is_asked_about_again(monkeypatch):
    """Else one that has been changed would serve for as long as the gateway runs."""
    now, right, made = [0.0], ["old"], []
    monkeypatch.setattr(grids, "_now", lambda: now[0])

    async def connect(credentials):
        if credentials.password != right[0]:
            raise WrongPassword("no")
        made.append(FakeClient())
        return made[-1]

    async def main():
        kept = Grids(connect, ())
        async with kept.client(ANN) as first:
            now[0] = grids.TRUSTED_SECONDS
            async with kept.client(ANN) as again:
                assert again is first
            now[0] += 1
            async with kept.client(ANN) as second:
                assert second is not first
            assert not first.closed  # somebody still uses it
        assert first.closed
        right[0] = "new"
        now[0] += grids.TRUSTED_SECONDS + 1
        with pytest.raises(WrongPassword):
            async with kept.client(ANN):
                pass
        assert [client.closed for client in made] == [True, True]

    asyncio.run(main())
