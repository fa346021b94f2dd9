"""The ready line: the one line of JSON that a member prints when it serves, or why it does not."""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

_LINE_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ready:
    """A member that serves. Addresses are host:port; ``metrics`` and ``postgres`` are empty for one
    without such a port."""

    number: int
    user: str
    control: str
    data: str
    metrics: str = ""
    postgres: str = ""


def parse_ready(line: bytes) -> tuple[Ready | None, str]:
    """(the member, "") or (None, why it did not start)."""
    try:
        message = json.loads(line)
        if message["ready"]:
            user, control, data = (message[kind] for kind in ("user", "control", "data"))
            others = (message.get(kind, "") for kind in ("metrics", "postgres"))
            return Ready(message["member"], user, control, data, *others), ""
        return None, str(message["error"])
    except (ValueError, KeyError, TypeError):
        return None, f"it printed {line[:200]!r} instead of its ready line"


class ReadyLines:
    """Reads the first line of several pipes side by side."""

    def __init__(self, pipes: Sequence[IO[bytes] | None]) -> None:
        self._selector = selectors.DefaultSelector()
        self._buffers = [b""] * len(pipes)
        self._found: dict[int, Ready] = {}
        self._count = len(pipes)
        for index, pipe in enumerate(pipes):
            if pipe is not None:
                self._selector.register(pipe, selectors.EVENT_READ, index)

    @property
    def ready(self) -> list[Ready]:
        return [self._found[index] for index in range(self._count)]

    @property
    def missing(self) -> list[int]:
        return [index for index in range(self._count) if index not in self._found]

    def next(self, timeout: float) -> tuple[int, Ready | None, str] | None:
        """(which pipe, the member or None, the error); None when all are ready, or at the timeout.

        An error of "" means that the pipe ended without a line: the process is dead.
        """
        deadline = time.monotonic() + timeout
        while self.missing:
            events = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                return None
            for key, _ in events:
                result = self._take(key)
                if result is not None:
                    return result
        return None

    def _take(self, key: selectors.SelectorKey) -> tuple[int, Ready | None, str] | None:
        index: int = key.data
        piece = os.read(key.fd, 4096)
        buffer = self._buffers[index] = self._buffers[index] + piece
        if piece and b"\n" not in buffer and len(buffer) < _LINE_MAX:
            return None
        self._selector.unregister(key.fileobj)
        if not buffer.strip():
            return index, None, ""
        ready, error = parse_ready(buffer.split(b"\n", 1)[0])
        if ready is not None:
            self._found[index] = ready
        return index, ready, error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._selector.close()
