"""Pages in order, the end last, whatever happens while a page is taken from the sink."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from remuda.errors import InternalError, RemudaError
from remuda.execution.root_sink import RootSink
from remuda.limits import PAGES_IN_FLIGHT
from remuda.member.queries.cursors import Cursor


class Wire:
    """Stands for ``Results``: what the client would see."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.waiting: list[Callable[[RemudaError | None], None]] = []
        self.in_flight = 0
        self.finished = False
        self.enough = self.untold = False

    def page(self, batch: pa.RecordBatch, on_acknowledged: Any) -> None:
        assert not self.finished, "a page after the end"
        self.in_flight += 1
        self.seen.append(batch.column(0)[0].as_py())
        self.waiting.append(on_acknowledged)

    def finish(self, error: RemudaError | None = None) -> None:
        if not self.finished:
            self.finished = True
            self.seen.append(error or "end")

    def acknowledge(self) -> None:
        self.in_flight -= 1
        self.waiting.pop(0)(None)


def page(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array([number], pa.int64())})


def cursor_of(sink: RootSink, wire: Wire) -> Cursor:
    channel: Any = SimpleNamespace(closed=False, writable=True, on_writable=[])
    results: Any = wire
    cursor = Cursor(results, channel, sink, on_finished=lambda: None, on_broken=lambda error: None)
    sink.tell(cursor.pump)
    return cursor


def test_the_root_fragment_may_run_and_end_while_a_page_is_taken() -> None:
    sink, wire = RootSink(100), Wire()
    cursor = cursor_of(sink, wire)
    to_come = [2, 3]

    def run_root() -> None:
        if to_come:
            number = to_come.pop(0)
            sink.put(page(number), last=not to_come)
            if not to_come:
                cursor.ended(None)

    sink.attach(run_root)
    sink.put(page(1), last=False)
    assert wire.seen == [1, 2, 3, "end"]


def test_many_pages_with_acknowledgements_stay_in_order() -> None:
    sink, wire = RootSink(100), Wire()
    cursor = cursor_of(sink, wire)
    to_come = list(range(40))

    def run_root() -> None:
        while to_come and sink.wants_rows():
            sink.put(page(to_come.pop(0)), last=not to_come)
        if not to_come and sink.finished:
            cursor.ended(None)

    sink.attach(run_root)
    run_root()
    while wire.waiting:
        assert len(wire.waiting) <= PAGES_IN_FLIGHT
        wire.acknowledge()
    assert wire.seen == [*range(40), "end"]


def test_nothing_follows_an_error_that_comes_while_a_page_is_taken() -> None:
    sink, wire = RootSink(100), Wire()
    cursor = cursor_of(sink, wire)
    error = InternalError("oops")
    sink.attach(lambda: cursor.ended(error))
    sink.put(page(1), last=False)
    assert wire.seen == [error]
