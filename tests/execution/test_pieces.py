"""Batches that are too large for the memory of who holds them come in pieces; pages, too."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.errors import OutOfMemory
from remuda.execution.contract import Progress
from remuda.execution.exchange.encoding import BatchForm
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.execution.operators.input import Upstream
from remuda.execution.operators.root import RootOperator
from remuda.execution.root_sink import RootSink
from remuda.execution.spill import SpillSpace
from remuda.limits import KIB
from remuda.plan.logical import OutputColumn

sys.path.insert(0, str(Path(__file__).parent))

from spilling import Given, small_account

TYPES = (BIGINT, VARCHAR)
ROWS = [(n, "x" * 1000) for n in range(400)]


def pieces(rows: Sequence[tuple[object, ...]], limit: int | None) -> list[int]:
    account = small_account(limit) if limit else MemoryAccount(None)
    upstream = Upstream(Given(list(rows), TYPES, 200), Reservation(account, "Sort"))
    counts = []
    while not upstream.done:
        batch = upstream.fetch()
        if batch is not None:
            counts.append(batch.rows)
    return counts


def test_a_large_batch_comes_in_pieces_and_ends_with_the_last_one() -> None:
    counts = pieces(ROWS, 512 * KIB)  # of which an operator holds 128, and takes 32 at a time
    assert sum(counts) == len(ROWS)
    assert max(counts) == 32
    assert pieces(ROWS, None) == [200, 200]
    assert pieces([(1, "y" * 100_000)] * 3, 64 * KIB) == [1, 1, 1]


def root(limit: int, spill: bool = True) -> tuple[RootOperator, RootSink, MemoryAccount]:
    account = MemoryAccount(limit, SpillSpace(io.BytesIO, 1 << 20) if spill else None)
    sink = RootSink(4096)
    sink.attach(lambda: None, account)
    form = BatchForm([OutputColumn(1, "a", BIGINT), OutputColumn(2, "b", VARCHAR)])
    return RootOperator(Given(ROWS, TYPES, 200), sink, form), sink, account


def test_pages_are_bounded_in_bytes_and_wait_for_their_turn() -> None:
    operator, sink, account = root(512 * KIB)
    account.reserve(440 * KIB, "a sort")  # two pages fit beside it
    found: list[int] = []
    progress, stood = Progress.WAIT, 0
    while progress is not Progress.FETCHED_DONE:
        progress = operator.advance()
        stood += progress is Progress.WAIT and account.held > 440 * KIB
        page = sink.take()
        if page is not None:
            assert page.nbytes < 33 * KIB
            found += page.column(0).to_pylist()
    while (page := sink.take()) is not None:
        found += page.column(0).to_pylist()
    assert found == list(range(len(ROWS)))
    assert stood > 5
    assert sink.exhausted
    assert account.held == 440 * KIB


def test_a_page_that_waits_for_no_other_needs_memory() -> None:
    operator, _, account = root(512 * KIB)
    account.reserve(512 * KIB, "a sort")
    with pytest.raises(OutOfMemory, match="limit"):
        while True:
            operator.advance()


def test_a_result_that_nobody_wants_any_more_stops_its_fragment() -> None:
    """The pages would be dropped as fast as they come: without the stop a cancelled statement ran
    to its end, within one call of ``advance``."""
    operator, sink, account = root(512 * KIB)
    assert operator.advance() is Progress.FETCHED or sink.wants_rows()
    sink.clear()
    assert operator.advance() is Progress.WAIT
    assert not account.held
    assert not sink.exhausted
