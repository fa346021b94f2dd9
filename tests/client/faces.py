"""Both faces of the client under one name, and members that lose connections."""

from __future__ import annotations

import asyncio
import inspect


class Blocking:
    """A blocking client (or map) whose methods are awaited."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args, **options):
            result = found(*args, **options)
            if name in {"map", "with_timeout"}:
                return Blocking(result)
            return asyncio.sleep(0, Blocking(result) if name == "prepare" else result)

        return call

    def __call__(self, *args, **options):
        return asyncio.sleep(0, self._inner(*args, **options))


def cut(monkeypatch, grid, handler, times):
    """The members close the connection at the next requests of this kind."""
    seen = []
    for member in grid.members:
        real = getattr(member, handler)

        def handle(request, real=real):
            seen.append(request)
            if len(seen) <= times:
                request.channel.close()
            else:
                real(request)

        monkeypatch.setattr(member, handler, handle)
    return seen


def impatient(client, seconds=0.2):
    """A client or a transaction, from now on: what went before may take its time."""
    client._core.patience = seconds


async def settle(found):
    return await found if inspect.isawaitable(found) else found
