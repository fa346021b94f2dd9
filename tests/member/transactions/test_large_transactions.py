"""Transactions of many rows: what they take is done in slices, and others are served in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from transacting import Session

from remuda.member.sessions import maps as transaction_maps
from remuda.member.state.transaction_sets import PartWork, Write
from remuda.member.transactions import apply as transaction_apply
from remuda.member.transactions import slices as transaction_slices
from remuda.member.transactions import transactions as transactions_module
from remuda.transaction import states as tx

ROWS = 3_000
SLICE = 40
PART = 60
"""More rows than any partition has here."""


def prepare(*sizes: int) -> tx.Prepare:
    writes = [tuple(Write(1, 1, (row,), (row,)) for row in range(size)) for size in sizes]
    work: dict[int, object] = {place: PartWork(0, rows) for place, rows in enumerate(writes)}
    return tx.Prepare(tx.TransactionId(7, 1), tuple(work), work)


@pytest.mark.parametrize(
    ("sizes", "pieces"), [((1, 1), 1), ((40, 1), 2), ((38, 39, 1), 2), ((500, 500, 3), 3)]
)
def test_a_question_is_divided_between_parts(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], pieces: int
) -> None:
    monkeypatch.setattr(transaction_slices, "ROWS_PER_STEP", SLICE)
    message = prepare(*sizes)
    found = list(transaction_slices.slices(message))
    assert len(found) == pieces
    assert {p: work for piece in found for p, work in piece.work.items()} == message.work
    assert sum(len(piece.work) for piece in found) == len(message.work)
    assert {piece.partitions for piece in found} == {message.partitions}


@pytest.mark.cluster
def test_other_steps_of_the_loop_come_between(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_slices, "ROWS_PER_STEP", SLICE)
    monkeypatch.setattr("remuda.member.transactions.shell.ROWS_PER_STEP", SLICE)
    monkeypatch.setattr(transactions_module, "SORTED_PER_STEP", SLICE)
    monkeypatch.setattr(transaction_maps, "ROWS_AT_A_TIME", SLICE)
    applied: Counter[tuple[int, int]] = Counter()
    step = 0
    apply = transaction_apply.Applying.apply

    def counted(self: Any, partition: int, work: PartWork, timestamp: int) -> None:
        applied[id(self), step] += len(work.writes)
        apply(self, partition, work, timestamp)

    monkeypatch.setattr(transaction_apply.Applying, "apply", counted)

    async def scenario(cluster: Any) -> None:
        async def count() -> None:
            nonlocal step
            while True:
                step += 1
                await asyncio.sleep(0)

        session = Session(await cluster.client(1))
        await session.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        await session.sql("BEGIN")
        await session.sql(f"INSERT INTO t SELECT x, x FROM generate_series(1, {ROWS}) g(x)")
        counting = asyncio.get_running_loop().create_task(count())
        await session.sql("COMMIT")
        counting.cancel()
        found = await session.sql("SELECT count(*), sum(v) FROM t")
        assert found == [(ROWS, ROWS * (ROWS + 1) // 2)]
        (map_id,) = {s.map_id for s in cluster.members[0].core.catalog.maps}
        copies = [store for m in cluster.members for store in m.core.copies_of(map_id)]
        assert sum(store.rows for store in copies) == 2 * ROWS
        await cluster.idle()

    in_cluster(scenario, 3, backups=1)
    assert sum(applied.values()) == 2 * ROWS
    # A member stops once it has written as many rows as belong in a step; at most two frames of
    # others come in one turn of the loop.
    assert max(applied.values()) <= 3 * (SLICE + PART)
