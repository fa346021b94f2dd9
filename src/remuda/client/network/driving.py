"""Runs the client's coroutines to their end in the caller's thread, without an event loop.

The logic of the client is written once, as coroutines over ``ports``. Over the blocking ports no
coroutine ever suspends: an awaited call has done its work when it returns. So the blocking face
sends once, and the answer is the coroutine's result.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

from remuda.errors import InternalError

T = TypeVar("T")


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine over blocking ports, or the error that it raises."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise InternalError("a blocking call of the client was suspended")


def items(source: AsyncGenerator[T, None]) -> Iterator[T]:
    """The values that an asynchronous generator over blocking ports yields; closing this closes
    it."""
    try:
        while True:
            try:
                item = finish(_next(source))
            except StopAsyncIteration:
                return
            yield item
    finally:
        finish(source.aclose())


async def _next(source: AsyncGenerator[T, None]) -> T:
    return await source.__anext__()
