"""Scheduling: no message and no wake-up is lost, one thread at a time, fair slices."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from remuda.datatypes.sql import BIGINT, INTEGER, VARCHAR
from remuda.errors import InternalError, QueryCanceled
from remuda.execution.batch import Batch
from remuda.execution.checkpoint import RUNNING
from remuda.execution.context import FragmentContext
from remuda.execution.contract import Operator, Progress
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.pieces import PIECE_ROWS, in_pieces
from remuda.execution.evaluate.rows import per_row
from remuda.execution.fragment import FragmentInstance
from remuda.execution.instances import Sites
from remuda.execution.pool import Pool
from remuda.execution.root_sink import RootSink
from remuda.limits import BATCH_ROWS
from remuda.plan.expression import Call, Cast, ColumnRef, Literal
from remuda.query.ids import QueryId

CALL = Call(BIGINT, "note", ())


class Threads:
    def start_thread(self, target, name):
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread


class Counting(Operator):
    """Done after ``wanted`` messages; notes if two threads are ever in it."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.seen = 0
        self.closed = 0
        self.inside = threading.Lock()
        self.overlapped = False

    def message(self) -> None:
        self.seen += 1

    def advance(self) -> Progress:
        if not self.inside.acquire(blocking=False):
            self.overlapped = True
        try:
            return Progress.FETCHED_DONE if self.seen == self.wanted else Progress.WAIT
        finally:
            self.inside.release()

    def current_batch(self) -> Batch:
        return Batch([], 0)

    def close(self) -> None:
        self.closed += 1


class Listener:
    def __init__(self) -> None:
        self.ended = threading.Event()
        self.profiles: list = []
        self.errors: list = []

    def on_done(self, profile) -> None:
        self.profiles.append(profile)
        self.ended.set()

    def on_failed(self, fragment, error) -> None:
        self.errors.append(error)
        self.ended.set()


def instance_of(root, pool, listener, inline=False, clock=time.perf_counter):
    context = FragmentContext(
        query=QueryId(1, 1), member=1, parameters=(), read_timestamp=1, owners=[1], sites=Sites({}),
        sources=None, exchange=None, clock=clock,
    )  # fmt: skip
    return FragmentInstance(
        fragment=3, root=root, inboxes={}, outbox=None, profiles=list, context=context, pool=pool,
        listener=listener, inline=inline,
    )  # fmt: skip


@pytest.mark.parametrize("attempt", range(5))
def test_ten_thousand_messages_from_eight_threads_are_all_seen(attempt):
    pool = Pool(3, Threads())
    root, listener = Counting(10_000), Listener()
    instance = instance_of(root, pool, listener)
    senders = [
        threading.Thread(target=lambda: [instance.post(root.message) for _ in range(1250)])
        for _ in range(8)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert listener.ended.wait(30)
    pool.close()
    assert (root.seen, root.closed, root.overlapped) == (10_000, 1, False)
    assert len(listener.profiles) == 1
    assert listener.profiles[0].fragment == 3


def test_cancel_while_waiting_ends_with_its_error():
    pool = Pool(1, Threads())
    root, listener = Counting(1), Listener()
    instance = instance_of(root, pool, listener)
    instance.schedule()
    error = QueryCanceled("stop")
    instance.cancel(error)
    assert listener.ended.wait(30)
    instance.cancel()
    instance.post(root.message)
    pool.close()
    assert (listener.errors, root.closed) == ([error], 1)


def test_a_bug_becomes_an_internal_error(caplog):
    class Broken(Counting):
        def advance(self) -> Progress:
            raise KeyError("oops")

    pool = Pool(0, Threads())
    listener = Listener()
    instance_of(Broken(1), pool, listener, inline=True).schedule()
    assert isinstance(listener.errors[0], InternalError)
    assert "KeyError" in listener.errors[0].message
    assert "Traceback" in caplog.text


def test_inline_slices_do_not_nest():
    pool = Pool(0, Threads())
    depth, order = [0], []

    class Task:
        def __init__(self, name, then=()):
            self.name, self.then = name, then

        def run_slice(self):
            depth[0] += 1
            assert depth[0] == 1
            order.append(self.name)
            for task in self.then:
                pool.submit(task, inline=True)
            depth[0] -= 1

    pool.submit(Task("a", (Task("b", (Task("d"),)), Task("c"))), inline=True)
    assert order == ["a", "b", "c", "d"]


@pytest.mark.parametrize("threads", [0, 1])
def test_an_inline_fragment_that_takes_long_goes_on_in_the_pool(threads):
    """The thread that starts it may be the event loop, which must not stand still."""
    now, ran_in = [0.0], []

    class Long(Counting):
        def advance(self) -> Progress:
            ran_in.append(threading.get_ident())
            now[0] += 1.0
            return Progress.FETCHED if len(ran_in) < 4 else Progress.FETCHED_DONE

    pool, listener = Pool(threads, Threads()), Listener()
    instance_of(Long(1), pool, listener, inline=True, clock=lambda: now[0]).schedule()
    assert listener.ended.wait(30)
    pool.close()
    here = threading.get_ident()
    assert [thread == here for thread in ran_in] == [True] + 3 * [threads == 0]


def test_a_pool_without_threads_gives_a_long_fragment_turns_of_its_own():
    """Between them the event loop takes cancels, timeouts and other requests."""
    now, steps = [0.0], [0]

    class Endless(Counting):
        def advance(self) -> Progress:
            steps[0] += 1
            assert steps[0] < 100, "it does not let go of the thread"
            now[0] += 1.0
            return Progress.FETCHED

    later: list = []
    pool, listener = Pool(0, Threads(), later=later.append), Listener()
    instance = instance_of(Endless(1), pool, listener, inline=True, clock=lambda: now[0])
    instance.schedule()
    assert (steps, len(later)) == ([1], 1)
    later.pop()()
    assert (steps, len(later)) == ([2], 1)
    error = QueryCanceled("stop")
    instance.cancel(error)
    later.pop()()
    assert (listener.errors, later) == ([error], [])


def test_fragments_that_call_each_other_inline_go_to_the_pool_after_a_while():
    """Each of their slices is short, but there is no end of them."""
    now, steps, pair = [0.0], [0], []

    class PingPong(Counting):
        def advance(self) -> Progress:
            steps[0] += 1
            assert steps[0] < 1000, "they do not let go of the thread"
            now[0] += 0.001
            for instance in pair:
                instance.schedule()
            return Progress.WAIT

    later: list = []
    pool = Pool(0, Threads(), later=later.append)
    for _ in range(2):
        root = PingPong(1)
        pair.append(instance_of(root, pool, Listener(), inline=True, clock=lambda: now[0]))
    pair[0].schedule()
    assert len(later) == 2


def test_pages_are_produced_only_on_demand(engine):
    data = engine.table([("v", BIGINT)], [(i,) for i in range(10_000)])
    grid = engine.Grid(engine.single(data.scan()), [data], page_rows=100, batch_rows=5000)
    grid.start()
    while grid.pool.step():
        pass
    assert len(grid.sink._pages) == 3
    assert grid.members[1].instances[0].ended is False
    rows = 0
    while not grid.sink.exhausted:
        page = grid.sink.take()
        if page is None:
            assert grid.pool.step()
        else:
            rows += page.num_rows
            assert len(grid.sink._pages) <= 3
    assert rows == 10_000
    assert isinstance(grid.sink, RootSink)


def test_a_cancelled_fragment_ends_within_a_batch_of_a_slow_function():
    """The function of Python is called for one more piece of the batch at most."""
    calls: list[int] = []

    class Evaluating(Counting):
        def advance(self) -> Progress:
            slow = in_pieces(per_row(note)(CALL), BIGINT, "note")
            slow([pa.array(range(BATCH_ROWS), pa.int64())], BATCH_ROWS)
            return Progress.FETCHED_DONE

    def note(value: int) -> int:
        calls.append(value)
        if len(calls) == PIECE_ROWS + 1:
            instance.cancel(error)
        return value

    pool = Pool(1, Threads())
    root, listener, error = Evaluating(1), Listener(), QueryCanceled("stop")
    instance = instance_of(root, pool, listener)
    instance.schedule()
    assert listener.ended.wait(30)
    pool.close()
    assert (listener.errors, root.closed, len(calls)) == ([error], 1, 2 * PIECE_ROWS)
    assert RUNNING.task is None


def test_every_slow_function_looks_at_the_cancellation_within_a_batch():
    """All but those that Arrow or NumPy compute for a whole batch, and casts between numbers."""

    class Task:
        looks = 0

        def still_wanted(self) -> None:
            self.looks += 1

    text, number = ColumnRef(VARCHAR, 0, "t"), ColumnRef(BIGINT, 1, "n")
    compiler = Compiler({0: 0, 1: 1})
    rows = 3 * PIECE_ROWS + 1
    batch = Batch(
        [pa.array([f"{n}-x" for n in range(rows)]), pa.array(range(rows), pa.int64())], rows
    )
    slow = [
        Call(VARCHAR, "regexp_replace", (text, Literal(VARCHAR, "x"), Literal(VARCHAR, "y"))),
        Call(VARCHAR, "repeat", (text, Literal(INTEGER, 2))),
        Call(VARCHAR, "quote_literal", (text,)),
        Cast(VARCHAR, number),
    ]
    try:
        for expression in slow:
            RUNNING.task = task = Task()
            column = compiler.column(expression)(batch)
            assert (len(column), task.looks) == (rows, 4), expression
            pieces = [batch.slice(first, 1000) for first in range(0, rows, 1000)]
            parts = [compiler.column(expression)(piece) for piece in pieces]
            assert column.equals(pa.concat_arrays(parts))
    finally:
        RUNNING.task = None
