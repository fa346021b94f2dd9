"""``ChangeStream``: the changes of a map as record batches, for a blocking program."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Self

import pyarrow as pa

from remuda.client.asynchronous.change_stream import ChangeStream as AsyncChangeStream
from remuda.client.blocking.background import Background, background
from remuda.client.core.core import Core


class ChangeStream:
    """The changes of a map, batch by batch. Made by ``Map.changes``; one thread at a time.

        with flights.changes(from_="snapshot") as stream:
            for batch in stream:
                ...
                save(json.dumps(stream.position))

    Each batch has the columns of the map (of a delete: the row that was removed), ``_change``
    (snapshot, insert, update, delete), ``_commit_timestamp``, ``_transaction`` (the hybrid
    timestamp of the commit) and ``_before`` (a struct; NULL of what was not there). The changes of
    one key come in the order of their commits, each exactly once, whatever becomes of the members.
    A stream that is resumed at a ``position`` goes on after the batch that was handed out last.
    A slow reader waits for nothing and holds nobody up; when changes are gone before they
    were read, reading raises ChangesExpired, which says since when there are some.
    """

    def __init__(
        self, core: Core, begin: Callable[[Core], Coroutine[Any, Any, AsyncChangeStream]]
    ) -> None:
        self._background: Background = background(core)
        self._stream = self._background.run(begin(self._background.core))

    @property
    def schema(self) -> pa.Schema:
        """Of the batches, as the map was when the stream began."""
        return self._stream.schema

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = self.read()
        if batch is None:
            raise StopIteration
        return batch

    def read(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """The next batch, never empty; None: the stream was stopped, or nothing has changed for
        ``timeout`` seconds. Raises what has ended the stream: ChangesExpired, UndefinedMap,
        InsufficientPrivilege, ..."""
        return self._background.run(self._stream.read(timeout))

    @property
    def position(self) -> dict[str, Any]:
        """The place where another stream begins to go on after the last batch that was handed out.
        JSON holds it. In the middle of a snapshot: at the begin of that snapshot."""
        return self._stream.position

    def stop(self) -> None:
        """End it. Stopping twice does nothing."""
        if not self._background.closed:
            self._background.run(self._stream.stop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
